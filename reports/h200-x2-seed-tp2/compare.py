"""fusescope's layer and PyTorch's in one job, in turns: a round is a process of layer_timing and a
process of torch_layer.py, on the same shape and the same kind of routing, and the rounds alternate, so
that drift of the machine meets both. Both time an iteration in the same way (see torch_layer.py).

    python3 compare.py --layer-timing build/release/bin/layer_timing --out compare.json
        --case 'serial:form=serial' --case 'fused:dispatch_comm_sms=0 tokens_per_block=8'

Prints a table, and writes one JSON: by layer the median, the 10% and the 90% of all samples, the median
of each round, the SM clock, and the relative error of the outputs (PyTorch's are not checked). Ends with
1 if a process failed; what the others measured is written all the same.
"""
import argparse
import datetime
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SWEEPS = HERE.parent.parent / "sweeps"


def environment():
    """With PyTorch's NCCL for fusescope's serial layer, too, unless another is asked for."""
    found = {"FUSESCOPE_SWEEPS_DIR": str(SWEEPS), **os.environ}
    package = importlib.util.find_spec("nvidia.nccl") if importlib.util.find_spec("nvidia") else None
    for folder in package.submodule_search_locations if package else []:
        library = pathlib.Path(folder) / "lib" / "libnccl.so.2"
        if library.exists():
            found.setdefault("FUSESCOPE_NCCL", str(library))
    return found


def quantile(values, share):
    ordered = sorted(values)
    return round(ordered[int(share * (len(ordered) - 1) + 0.5)], 2)


def run(command, limit):
    """None, or what went wrong."""
    try:
        done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"{command[0]}: not done after {limit} s"
    except OSError as error:
        return f"{command[0]}: {error}"
    if done.returncode != 0:
        return f"{command[0]}: exit {done.returncode}\n{done.stdout[-2000:]}"
    return None


def fusescope_round(args, number, file):
    command = [args.layer_timing, "--shape", args.shape, "--routing", f"uniform@{number + 1}",
               "--rounds", str(args.inner_rounds), "--per-round", str(args.per_round),
               "--rest-ms", str(args.rest_ms), "--out", file]
    for case in args.case:
        command += ["--case", case]
    problem = run(command, args.limit)
    if not os.path.getsize(file):
        return {}, {}, problem
    with open(file) as written:
        report = json.load(written)
    layers = {case["name"]: case for case in report["cases"] if not case["failure"]}
    return layers, {key: report[key] for key in ("program", "device", "driver")}, problem


def torch_round(args, shape, number, file):
    command = [sys.executable, str(HERE / "torch_layer.py"), "--out", file,
               "--samples", str(args.inner_rounds * args.per_round), "--seed", str(number + 1),
               "--rest-ms", str(args.rest_ms), "--port", str(29511 + number)]
    for option, key in (("ranks", "ranks"), ("tokens", "tokens_per_rank"), ("hidden", "hidden"),
                        ("experts", "experts"), ("topk", "topk"), ("inter", "intermediate")):
        command += ["--" + option, str(shape[key])]
    problem = run(command, args.limit)
    if not os.path.getsize(file):
        return {}, {}, problem
    with open(file) as written:
        report = json.load(written)
    name = f"PyTorch {report['torch']}, CUDA graph"
    return {name: report["graph"]}, {"nccl": report["nccl"]}, problem


def summarise(name, rounds):
    walls = [us for taken in rounds for us in taken["wall_us"]]
    layer = {"name": name, "samples": len(walls), "median_us": quantile(walls, 0.5),
             "p10_us": quantile(walls, 0.1), "p90_us": quantile(walls, 0.9),
             "round_medians_us": [quantile(taken["wall_us"], 0.5) for taken in rounds],
             "sm_clock_mhz": quantile([taken["sm_clock_mhz"] for taken in rounds], 0.5)}
    for key in ("config", "collectives", "relative_error", "worst_row_error", "host_late"):
        if key in rounds[0]:
            layer[key] = max(taken[key] for taken in rounds)
    return {**layer, "wall_us": [taken["wall_us"] for taken in rounds]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layer-timing", required=True)
    parser.add_argument("--shape", default="seed-tp2", help="a name in sweeps/shapes")
    parser.add_argument("--case", action="append", required=True, help="as layer_timing takes it")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--inner-rounds", type=int, default=2, help="of layer_timing's cases, in a round")
    parser.add_argument("--per-round", type=int, default=20, help="samples, in an inner round")
    parser.add_argument("--rest-ms", type=int, default=0, help="pause before each iteration")
    parser.add_argument("--limit", type=int, default=120, help="of one process [s]")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    shape = json.loads((SWEEPS / "shapes" / (args.shape + ".json")).read_text())

    rounds, about, problems = {}, {}, []
    for number in range(args.rounds):
        for take in (lambda file: fusescope_round(args, number, file),
                     lambda file: torch_round(args, shape, number, file)):
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                layers, said, problem = take(file.name)
            about.update(said)
            if problem:
                problems.append(problem)
                print(problem, file=sys.stderr)
            for name, taken in layers.items():
                rounds.setdefault(name, []).append(taken)
        print(f"round {number + 1} of {args.rounds} done", flush=True)

    report = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "shape": shape, "routing": "uniform", "rest_ms": args.rest_ms, **about, "problems": problems,
              "layers": [summarise(name, taken) for name, taken in rounds.items()]}
    with open(args.out, "w") as file:
        json.dump(report, file, indent=1)
    print(f"{'layer':<34}{'median us':>10}{'p10':>9}{'p90':>9}{'SM MHz':>8}{'samples':>9}  by round")
    for layer in report["layers"]:
        print(f"{layer['name']:<34}{layer['median_us']:>10.1f}{layer['p10_us']:>9.1f}"
              f"{layer['p90_us']:>9.1f}{layer['sm_clock_mhz']:>8.0f}{layer['samples']:>9}  "
              + " ".join(f"{us:.1f}" for us in layer["round_medians_us"]))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
