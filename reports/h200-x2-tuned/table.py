"""The tables of README.md, from a table of tuned configs and the logs that its entries name.

    git worktree add before 1f59185
    python3 table.py ../../sweeps/tuned/h200.json before/sweeps/tuned/h200.json simulated

Walls are as measured, no drift divided out: the base config's is the median of its measurements, a winner's that of its
samples in the turns at the end, any other config's that of all its samples in the search. The second argument is the
earlier table, in its own tree; the third a folder of sweeps on the simulator, one for each log and named as it is
(simulated/seed-tp2-t512/trials.jsonl), of tune.json's whole space: strategy grid, no budget, profile h200-nvlink.
"""
import bisect
import gzip
import itertools
import json
import pathlib
import statistics
import sys

TILES = ["auto", "160x256", "288x128"]
ORDER = {"by_token": "by token", "interleave_sources": "interleaved", "rotate_from_self": "rotated"}
COUNTER = {"none": "none", "kernel_2": "kernel 2", "both": "both"}


def identity(config):
    return json.dumps(config, sort_keys=True)


class Entry:
    def __init__(self, entry, root):
        path = root / entry["log"]
        with gzip.open(path, "rt") if path.suffix == ".gz" else open(path, encoding="utf-8") as log:
            self.trials = [json.loads(line) for line in list(log)[1:]]
        self.log = path.name.split(".")[0]
        self.key = (entry["shape"], entry["routing"])
        self.name = entry["problem"].split(" (")[0]
        self.routing = entry["routing"]
        self.numbers = {part[0]: int(part[2:]) for part in entry["shape"].split()}
        self.config, self.runner_up = entry["config"], entry["runner_up"]
        self.base = statistics.median(trial["raw_median_us"] for trial in self.trials if trial["kind"] == "base")
        self.winner = statistics.median(wall for trial in self.trials
                                        if trial["kind"] == "finalist" and trial["config"] == self.config
                                        for wall in trial["wall_us"])

    def searched(self, tile=None):
        """Wall by config, of those with that tile."""
        walls = {}
        for trial in self.trials:
            if trial["kind"] == "search" and tile in (None, trial["config"]["tile"]):
                walls.setdefault(identity(trial["config"]), []).extend(trial["wall_us"])
        return {config: statistics.median(of) for config, of in walls.items()}

    def rows(self):
        n = self.numbers
        return n["R"] * n["T"] * n["K"] // n["E"]

    def title(self):
        return f"{self.name}, {self.numbers['T']}", self.routing

    def walls(self):
        return f"{self.base:.0f}", f"{self.winner:.0f}", f"{self.base / self.winner:.2f}"


KNOBS = ["dispatch, combine SMs", "slots", "slot order", "tile", "tiles by a counter"]


def knobs(config):
    return (f"{config['dispatch_comm_sms']}, {config['combine_comm_sms']}", config["tokens_per_block"],
            ORDER[config["slot_order"]], config["tile"], COUNTER[config["tile_counter"]])


def entries(path):
    path = pathlib.Path(path).resolve()
    table = json.loads(path.read_text(encoding="utf-8"))
    return [Entry(entry, path.parents[2]) for entry in table["entries"]]


def best(entry, tile):
    walls = entry.searched(tile)
    return f"{min(walls.values()):.0f} of {len(walls)}" if walls else "-"


def pairs(entry, tile, other):
    """How much slower `other` is, the median over the configs that were searched with both."""
    walls = {key: {config.replace(f'"tile": "{key}"', ""): wall for config, wall in entry.searched(key).items()}
             for key in (tile, other)}
    ratios = [walls[other][config] / wall for config, wall in walls[tile].items() if config in walls[other]]
    return f"{100 * (statistics.median(ratios) - 1):+.1f}% ({len(ratios)})" if ratios else "-"


def ranks(values):
    """From 1; equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [(bisect.bisect_left(ordered, value) + bisect.bisect_right(ordered, value) + 1) / 2 for value in values]


class Simulated:
    """How the simulator's walls of the whole space fit those of the searched configs."""

    def __init__(self, entry, folder):
        with open(folder / entry.log / "trials.jsonl", encoding="utf-8") as log:
            self.walls = {identity(trial["config"]): trial["median_us"] for trial in map(json.loads, list(log)[1:])}
        self.entry = entry
        self.measured = entry.searched()
        self.correlation = statistics.correlation(ranks([self.walls[config] for config in self.measured]),
                                                  ranks(list(self.measured.values())))
        self.error = statistics.median(abs(self.walls[config] / wall - 1) for config, wall in self.measured.items())

    def winner_rank(self):
        return 1 + sum(wall < self.walls[identity(self.entry.config)] for wall in self.walls.values())

    def first_ten(self):
        """How much slower than the best is the best of the ten that it puts first."""
        ten = sorted(self.measured, key=self.walls.get)[:10]
        return min(map(self.measured.get, ten)) / min(self.measured.values()) - 1

    def cells(self):
        errors = []
        for tile in TILES:
            of = [self.walls[config] / wall - 1 for config, wall in self.entry.searched(tile).items()]
            errors.append(f"{100 * statistics.median(of):+.0f}")
        return f"{self.correlation:.2f}", ", ".join(errors) + "%", self.winner_rank()


def course(entry):
    """Of a search: its measurements, how much slower than its best its first config is, and when it was within 1%."""
    walls = entry.searched()
    best = min(walls.values())
    slower = [walls[identity(trial["config"])] / best - 1 for trial in entry.trials if trial["kind"] == "search"]
    return len(slower), slower[0], 1 + next(i for i, by in enumerate(slower) if by <= 0.01)


def shared(entry, old):
    """The configs of both searches: the median of now / then."""
    then = old.searched()
    ratios = [wall / then[config] for config, wall in entry.searched().items() if config in then]
    return f"{statistics.median(ratios):.3f} ({len(ratios)})"


def order(entry):
    seed = entry.name == "seed-tp2"
    return (not seed, entry.routing if seed else "", entry.numbers["T"] if seed else 0)


def header(*columns):
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |")


def main():
    new = sorted(entries(sys.argv[1]), key=order)
    before = {entry.key: entry for entry in entries(sys.argv[2])}

    header("shape, T", "routing", "rows per expert", "base, us", "winner, us", "base / winner", *KNOBS,
           "runner-up slower by", "measurements", "took")
    for entry in new:
        rival = entry.runner_up
        row(*entry.title(), entry.rows(), *entry.walls(), *knobs(entry.config),
            f"{100 * rival['slower']:.2f}%{', a tie' if rival['tie'] else ''}",
            sum(trial["kind"] == "search" for trial in entry.trials),
            f"{sum(trial['seconds'] for trial in entry.trials):.1f} s")

    print()
    header("shape, T", "routing", "earlier: base, us", "winner, us", "base / winner", "tile", "now: base, us",
           "winner, us", "base / winner", "tile", "the earlier winner's config in the new search, us",
           "configs of both, now / then")
    for entry in new:
        old = before[entry.key]
        again = entry.searched().get(identity(old.config))
        row(*entry.title(), *old.walls(), old.config["tile"], *entry.walls(), entry.config["tile"],
            f"{again:.0f}" if again else "not measured", shared(entry, old))

    print()
    header("shape, T", "routing", "rows per expert", "best in the search, us, of configs: 128x256", "160x256",
           "288x128", "same knobs: 128x256 to 160x256", "128x256 to 288x128", "160x256 to 288x128",
           "simulator: rank correlation", "error, by tile", "winner's place")
    simulated = [Simulated(entry, pathlib.Path(sys.argv[3])) for entry in new]
    for entry, simulation in zip(new, simulated):
        row(*entry.title(), entry.rows(), *(best(entry, tile) for tile in TILES),
            *(pairs(entry, tile, other) for tile, other in itertools.combinations(TILES, 2)),
            *simulation.cells())

    print()
    header("mean of the searches", "measurements", "first measured slower than the best",
           "measured until within 1% of it")
    for name, of in ("earlier", [before[entry.key] for entry in new]), ("now", new):
        number, first, until = (statistics.mean(values) for values in zip(*map(course, of)))
        row(name, f"{number:.0f}", f"{100 * first:.1f}%", f"{until:.0f}")
    correlation, error, ten = (statistics.mean(values) for values in zip(
        *((of.correlation, of.error, of.first_ten()) for of in simulated)))
    print(f"\nSimulator, mean of the searches: rank correlation {correlation:.2f}, median absolute error "
          f"{100 * error:.1f}%, best of its first ten {100 * ten:.1f}% slower than the best measured")


main()
