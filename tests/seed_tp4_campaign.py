#!/usr/bin/env python3
"""The seed's layer on four ranks, measured as a whole: what reports/ needs of a machine with four GPUs.

    tests/gpu_campaign.sh pack build/release build/gpu-bin       before: the programs, stripped
    tests/seed_tp4_campaign.py run OUT                           on the machine with GPUs, within --seconds
    tests/seed_tp4_campaign.py report OUT FOLDER                 then, anywhere: FOLDER with a report of each
    tests/seed_tp4_campaign.py run OUT --engine sim              the same steps on the simulator: a dry run

`run` measures, each item beside the simulator's prediction of the same configs: the GPU tests of four
ranks; the ladder from the serial layer, with links as they are and capped at 50 and 25 GB/s; the rungs of
each ladder's best config; the SM split, and the rungs across it; slot and pull orders on those three links,
with timelines that say which link they load; one, two and four ranks with the same work per rank. It works on
fewer than four GPUs, too: ranks then share them, which says nothing of a layer's wall, and the summary says so.

It leaves a few files in OUT: summary.md, campaign.json (each step: command, seconds, outcome),
log.txt, tests.jsonl and machine.txt of the tests, and results.tar.gz in parts of 15 MiB. A step that fails or for
which no time is left is named; the others still run, and the end is 1.
"""
import argparse
import contextlib
import datetime
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # beside the sources
import seed_tp4_summary  # noqa: E402

TESTS = pathlib.Path(__file__).resolve().parent
SWEEPS = TESTS.parent / "sweeps"
PART_BYTES = 15 * 1024 * 1024
PREDICT_SECONDS = 60  # kept for the predictions and for packing
LINKS = [0, 50, 25]
SCALED = [(1, "scaling/seed-tp1"), (2, "scaling/seed-tp2"), (4, "ladder/link-0")]  # ranks, folder
PROBLEM = ["--shape", "seed-tp4", "--routing", "uniform"]
# Kernel 1 as slot-order.json has it, so that a timeline belongs to one of its configs.
SLOT_BASE = ["dispatch_comm_sms=24", "combine_comm_sms=8", "tokens_per_block=8", "schedule=fused",
             "activation=fused"]
ORDERS = {
    "pulls-by-token": ["pull_order=by_token"],
    "slots-by-token": ["slot_order=by_token"],
    "slots-interleaved": ["slot_order=interleave_sources"],
    "slots-rotated": ["slot_order=rotate_from_self"],
}


def settings(assignments):
    return [word for assignment in assignments for word in ("--set", assignment)]


def steps():
    """(name = folder, seconds that it may take, arguments); `{best}` is a folder of the same name."""
    plan = []
    for link in LINKS:
        capped = [f"link_gbps={link}"] if link else []
        plan.append((f"ladder/link-{link}", 60, ["sweep", "scaling", *settings(capped)]))
        plan.append((f"ladder/link-{link}/best", 40, ["run", *PROBLEM, "--rungs", "--config", "{best}"]))
        plan.append((f"slot-order/link-{link}/sweep", 40, ["sweep", "slot-order", *settings(capped)]))
        for name, order in ORDERS.items():
            plan.append((f"slot-order/link-{link}/{name}", 30,
                         ["run", *PROBLEM, "--max-seconds", "0.3", *settings(SLOT_BASE + order + capped)]))
    for ranks in (2, 1):
        plan.append((f"scaling/seed-tp{ranks}", 60, ["sweep", "scaling", "--shape", f"seed-tp{ranks}"]))
    plan.append(("sm-split", 60, ["sweep", "sm-split", *settings(SLOT_BASE[2:])]))
    plan.append(("sm-tax", 60, ["run", "--shape", "seed-tp4", "--routing", "balanced", "--rungs", "--across",
                                "dispatch_comm_sms=4,8,16,32", *settings(SLOT_BASE[2:])]))
    return plan


def environment(binaries):
    found = {**os.environ, "FUSESCOPE_SWEEPS_DIR": str(SWEEPS), "FUSESCOPE_BIN": str(binaries)}
    package = importlib.util.find_spec("nvidia.nccl") if importlib.util.find_spec("nvidia") else None
    for folder in package.submodule_search_locations if package else []:
        library = pathlib.Path(folder) / "lib" / "libnccl.so.2"
        if library.exists():
            found.setdefault("FUSESCOPE_NCCL", str(library))
    return found


def run_whole(command, env, log, limit):
    """The exit status. At its limit all that it has started is ended with it: what would still be at work on the
    GPUs would be measured with the next step."""
    process = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


class Campaign:
    def __init__(self, args, work):
        self.args = args
        self.work = work
        self.out = pathlib.Path(args.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.end = time.monotonic() + args.seconds
        self.records = []
        self.log = open(self.out / "log.txt", "w", encoding="utf-8")

    def step(self, name, limit, command, keep_seconds):
        """Its output goes to the log. Simulations have no limit of their own."""
        left = self.end - keep_seconds - time.monotonic()
        limit = min(limit, left) if limit else left
        record = {"step": name, "command": [str(word) for word in command], "seconds": 0, "outcome": "done"}
        begin = time.monotonic()
        if left < 5:
            record["outcome"] = "no time was left"
        else:
            self.log.write(f"==== {name}\n")
            self.log.flush()
            try:
                code = run_whole(record["command"], environment(self.args.binaries), self.log, limit)
                if code != 0:
                    record["outcome"] = f"exit {code}"
            except subprocess.TimeoutExpired:
                record["outcome"] = f"not done after {limit:.0f} s"
            except OSError as error:
                record["outcome"] = str(error)
        record["seconds"] = round(time.monotonic() - begin, 2)
        self.records.append(record)
        print(f"{name:46} {record['seconds']:8.1f} s  {record['outcome']}", flush=True)

    def tests(self):
        if self.args.engine != "cuda":
            print("tests of four ranks: none, the engine is sim")
            return
        folder = self.work / "tests"
        self.step("tests", 180, [TESTS / "gpu_campaign.sh", folder, "four"], PREDICT_SECONDS)
        for source, name in ((folder / "records.jsonl", "tests.jsonl"), (folder / "machine.txt", "machine.txt")):
            if source.exists():
                shutil.copy(source, self.out / name)

    def all_steps(self, kind, engine, keep_seconds):
        for name, limit, arguments in steps():
            folder = self.work / kind / name
            # Predicted is what the engine ran: the configs that its searches found best.
            best = self.work / self.args.engine / name / "run.json"
            if "{best}" in arguments and not best.exists():
                continue  # its sweep has no winner, and said why
            words = [str(best) if word == "{best}" else word for word in arguments]
            command = [self.args.fusescope, *words, "--engine", engine, "--out", folder]
            if engine == "sim":
                command += ["--profile", self.args.profile]
            if kind == "predicted" and "{best}" in arguments:
                command += ["--force"]  # over the winner of its own sweep
            self.step(f"{kind} {name}", limit if engine == "cuda" else None, command, keep_seconds)

    def pack(self):
        summary = {"engine": self.args.engine, "profile": self.args.profile, "steps": self.records,
                   "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
        (self.out / "campaign.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        text = seed_tp4_summary.summary(self.work, summary, LINKS, ORDERS, SCALED)
        (self.out / "summary.md").write_text(text, encoding="utf-8")
        for timeline in (self.work / "predicted").rglob("timeline.fst"):
            timeline.unlink()  # a simulation, which anybody can repeat
        archive = self.work.parent / "results.tar.gz"
        subprocess.run(["tar", "-czf", archive, "-C", self.work, "."], check=True)
        with open(archive, "rb") as whole:
            for number in range(1 + archive.stat().st_size // PART_BYTES):
                (self.out / f"results.tar.gz.{number:02}").write_bytes(whole.read(PART_BYTES))


def run(args):
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch) / "results"
        work.mkdir()
        campaign = Campaign(args, work)
        campaign.tests()
        campaign.all_steps(args.engine, args.engine, PREDICT_SECONDS)
        campaign.all_steps("predicted", "sim", 0)
        campaign.pack()
        print((campaign.out / "summary.md").read_text(encoding="utf-8"))
    failed = [record["step"] for record in campaign.records if record["outcome"] != "done"]
    if failed:
        print(f"not done: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def report(args):
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    out = pathlib.Path(args.out)
    archive = b"".join(part.read_bytes() for part in sorted(out.glob("results.tar.gz.*")))
    subprocess.run(["tar", "-xzf", "-", "-C", folder], input=archive, check=True)
    for name in ("summary.md", "campaign.json", "tests.jsonl", "machine.txt"):
        if (out / name).exists():
            shutil.copy(out / name, folder / name)
    outcome = 0
    engine = json.loads((folder / "campaign.json").read_text(encoding="utf-8"))["engine"]
    for name, _, arguments in steps():
        if "{best}" not in arguments and (folder / engine / name).exists():  # a ladder's report has its best
            outcome |= subprocess.run([args.fusescope, "report", folder / engine / name],
                                      env=environment(args.binaries), check=False).returncode
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="measure, predict, summarise")
    running.add_argument("out")
    running.add_argument("--engine", choices=["cuda", "sim"], default="cuda", help="default: %(default)s")
    running.add_argument("--seconds", type=float, default=520, help="for all of it; default: %(default)s")
    running.add_argument("--profile", default="h200-nvlink", help="of the predictions; default: %(default)s")
    reporting = commands.add_parser("report", help="unpack the results and write their reports")
    reporting.add_argument("out")
    reporting.add_argument("folder")
    for command in (running, reporting):
        command.add_argument("--binaries", default=os.environ.get("FUSESCOPE_BIN", "build/gpu-bin"),
                             help="folder that `gpu_campaign.sh pack` filled; default: %(default)s")
        command.add_argument("--fusescope", help="the program; default: the one in --binaries")
    args = parser.parse_args()
    args.fusescope = args.fusescope or str(pathlib.Path(args.binaries) / "fusescope")
    return run(args) if args.command == "run" else report(args)


if __name__ == "__main__":
    sys.exit(main())
