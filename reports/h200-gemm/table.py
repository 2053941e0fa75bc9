"""The tables of README.md's first part, from a run's samples, its `gemm_bench` lines, and an earlier run's samples.

    python3 table.py compare_5.json bench_6.jsonl compare_4.json
"""
import json
import pathlib
import sys

CASES = {"gate_up": "gate+up, balanced", "gate_up_uniform": "gate+up, uniform", "down": "down, balanced",
         "down_uniform": "down, uniform"}
BENCH_CASES = {"gate_up_fused": "gate+up balanced", "gate_up_fused_uniform": "gate+up uniform",
               "down": "down balanced", "down_uniform": "down uniform", "down_128": "down, 128 rows"}
FORMS = {  # a row's title: its form in compare_*.json
    "128x256, round robin": "round robin",
    "128x256, slack, round robin": "slack, round robin",
    "128x256, slack, counter": "slack, counter",
    "160x256, round robin": "160x256, round robin",
    "160x256, counter": "160x256, counter",
    "288x128, round robin": "288x128, round robin",
    "288x128, counter": "288x128, counter",
}
BENCH_FORMS = {  # and in bench_*.jsonl: variant, order of tiles
    "128x256, slack, round robin": ("n256_s4", "robin"),
    "128x256, slack, counter": ("n256_s4", "counter"),
    "160x256, round robin": ("n256_s4_t", "robin"),
    "160x256, counter": ("n256_s4_t", "counter"),
    "288x128, round robin": ("n128_s4_t", "robin"),
    "288x128, counter": ("n128_s4_t", "counter"),
}


def header(*columns):
    print("| " + " | ".join(["", *columns]).lstrip() + " |\n|" + "---|" * (len(columns) + 1))


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def signed(percent):
    return f"{round(percent, 1) + 0.0:+.1f}"  # + 0.0: no -0.0


def samples(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["cases"]


def quantiles(values):
    values = sorted(values)
    return [values[int(q * (len(values) - 1))] for q in (0.5, 0.1, 0.9)]


def ratio(compared, case, form, key="kernel_us"):
    """DeepGEMM's median over the form's."""
    deep_gemm, ours = (quantiles(compared[case]["forms"][name][key])[0] for name in ("DeepGEMM", FORMS[form]))
    return deep_gemm / ours


def times(compared):
    def duration(case, name):
        return "{:.0f} ({:.0f} to {:.0f})".format(*quantiles(compared[case]["forms"][name]["kernel_us"]))

    best = {case: max(f"{ratio(compared, case, form):.2f}" for form in FORMS) for case in CASES}
    header(*CASES.values())
    row("DeepGEMM", *(duration(case, "DeepGEMM") for case in CASES))
    for form, name in FORMS.items():
        ratios = {case: f"{ratio(compared, case, form):.2f}" for case in CASES}
        row(form, *(f"{duration(case, name)}, " + (f"**{ratios[case]}**" if ratios[case] == best[case] else ratios[case])
                    for case in CASES))


def moves(now, before):
    def median(run, case, name, value):
        batches = run[case]["forms"][name]
        return quantiles(list(map(value, batches["batch_us"], batches["sm_ghz"])))[0]

    def extent(name, value):
        changes = [100 * (median(now, case, name, value) / median(before, case, name, value) - 1) for case in CASES]
        return f"{signed(min(changes))} to {signed(max(changes))}%"

    header(*CASES.values(), "least ratio of the four, by events", "SM clock", "cycles of a launch")
    for form in ("DeepGEMM", *FORMS):
        cells = ["-"] * (len(CASES) + 1)
        if form in FORMS:
            more = (100 * (ratio(now, case, form) / ratio(before, case, form) - 1) for case in CASES)
            least = (min(ratio(now, case, form, key) for case in CASES) for key in ("kernel_us", "batch_us"))
            cells = [*(f"{signed(percent)}%" for percent in more), ", ".join(f"{value:.3f}" for value in least)]
        name = FORMS.get(form, form)
        row(form, *cells, extent(name, lambda us, ghz: ghz), extent(name, lambda us, ghz: us * ghz))


def bench(path):
    lines = map(json.loads, pathlib.Path(path).read_text(encoding="utf-8").splitlines())
    found = {(line["load"], line["case"], line["variant"].removesuffix("_store").removesuffix("_silu_mul"),
              line["form"].split("_", 2)[2]): line for line in lines}  # the form without its groups

    def cell(load, case, variant, order):
        line = found.get((load, case, variant, f"slack_{order}"), found.get((load, case, variant, f"full_{order}")))
        if line is None:
            return "-"
        return f"{line['median_us']:.0f}" + (f" at {line['sm_ghz']:.2f}" if load == "sustained" else "")

    header(*(title for case in BENCH_CASES.values() for title in (f"{case}, rested", "sustained, at GHz")))
    for form, (variant, order) in BENCH_FORMS.items():
        row(form, *(cell(load, case, variant, order) for case in BENCH_CASES for load in ("rested", "sustained")))


def main():
    now, before = samples(sys.argv[1]), samples(sys.argv[3])
    times(now)
    print()
    moves(now, before)
    print()
    bench(sys.argv[2])


main()
