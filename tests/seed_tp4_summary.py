"""What seed_tp4_campaign.py found, as Markdown: each measurement beside the simulator's prediction of the same
config. Reads two folders of the results, one named after the engine, and `predicted`; what is missing there is left
out here."""
import json

# A device may spell out what the simulator leaves to it.
CHOSEN_BY_DEVICE = {"tile", "gemm", "collectives"}


def load(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def key(config):
    return json.dumps({name: value for name, value in config.items() if name not in CHOSEN_BY_DEVICE},
                      sort_keys=True)


def trials(folder):
    """Those that ran, in the log's order."""
    try:
        lines = (folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    except OSError:
        return []
    return [trial for trial in map(json.loads, lines) if trial.get("verdict") == "ok"]


def pulls(run):
    """What the attribution of a run says of its pulls."""
    load_of_pulls = (run or {}).get("attribution", {}).get("links", {}).get("pulls_by_source_rank")
    return load_of_pulls["statement"].replace(" us", " µs") if load_of_pulls else "nothing: ranks share GPUs, or there is no timeline"


class Sweep:
    """Both passes of one sweep. A config that was timed again in turns counts with that time."""

    def __init__(self, work, engine, name):
        self.all = trials(work / engine / name)
        self.found = {}
        for trial in self.all:
            if trial["kind"] in ("search", "finalist"):
                self.found[key(trial["config"])] = trial
        self.rungs = [trial for trial in self.all if trial["kind"] == "rung"]
        self.rungs.sort(key=lambda trial: trial["id"])
        self.expected = {}
        for trial in trials(work / "predicted" / name):
            self.expected.setdefault(key(trial["config"]), trial["median_us"])

    def predicted(self, trial):
        return self.expected.get(key(trial["config"]))

    def best(self):
        finalists = [trial for trial in self.all if trial["kind"] == "finalist"]
        return min(finalists or self.found.values(), key=lambda trial: trial["median_us"], default=None)

    def serial(self):
        return next((rung for rung in self.rungs if rung["config"]["form"] == "serial"), None)


def us(value):
    return "" if value is None else f"{value:.1f}"


def percent(value, base):
    return "" if value is None or not base else f"{100 * (value / base - 1):+.1f}%"


def share_gpus(trial):
    """Then its phases ran rank by rank: no prediction is of that."""
    return "co-located" in trial["source"]


def off_by(expected, trial):
    return "" if share_gpus(trial) else percent(expected, trial["median_us"])


def with_interval(trial):
    return us(trial["median_us"]) + (f" ± {trial['half_ci_us']:.1f}" if trial["half_ci_us"] else "")


def described(config, knobs):
    return " ".join(f"{knob}={str(config[knob]).lower()}" for knob in knobs)


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n\n"


def ranks_of(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    places = [0.0] * len(values)
    for place, index in enumerate(order):
        places[index] = place
    return places


def agreement(sweep):
    """Of the predictions with a sweep's measurements, in a sentence."""
    if any(share_gpus(trial) for trial in sweep.found.values()):
        return "Ranks shared GPUs, and the predictions are of one GPU each: not to be compared.\n\n"
    pairs = [(trial["median_us"], sweep.predicted(trial)) for trial in sweep.found.values()]
    pairs = [(measured, expected) for measured, expected in pairs if expected]
    if len(pairs) < 3:
        return ""
    errors = sorted(abs(expected / measured - 1) for measured, expected in pairs)
    a, b = ranks_of([pair[0] for pair in pairs]), ranks_of([pair[1] for pair in pairs])
    mean = (len(pairs) - 1) / 2
    spread = sum((x - mean) ** 2 for x in a)
    correlation = sum((x - mean) * (y - mean) for x, y in zip(a, b)) / spread
    return (f"{len(pairs)} configs: prediction off by {100 * errors[len(errors) // 2]:.1f}% (median), "
            f"{100 * errors[-1]:.1f}% (worst); rank correlation {correlation:.3f}.\n\n")


class Summary:
    def __init__(self, work, campaign):
        self.work = work
        self.engine = campaign["engine"]
        runs = [load(path) for path in (work / self.engine).rglob("run.json")]
        self.sources = sorted({run["source"] for run in runs})
        self.origins = sorted({run["provenance"] for run in runs})  # what made the numbers, by their own word
        self.wall = f"{' and '.join(self.origins)} [µs]"
        self.text = ""

    def head(self, campaign):
        origin = f"Engine {self.engine}: {'; '.join(self.sources) or 'nothing ran'}."
        if self.origins == ["simulated"]:
            origin += " **Every number here is simulated; nothing was measured.**"
        origin += f" Predictions: simulated on the profile {campaign['profile']}."
        self.text += f"# seed-tp4: the campaign of {campaign['date']}\n\n{origin}\n\n"
        bad = [[record["step"], record["outcome"]] for record in campaign["steps"] if record["outcome"] != "done"]
        if bad:
            self.text += "Not done:\n\n" + table(["step", "outcome"], bad)

    def ladder(self, name, title):
        sweep = Sweep(self.work, self.engine, name)
        serial = sweep.serial()
        if not sweep.rungs or serial is None:
            return
        base, expected_base = serial["median_us"], sweep.predicted(serial)
        rows = []
        for rung in sweep.rungs:
            expected = sweep.predicted(rung)
            rows.append([rung["label"], with_interval(rung), percent(rung["median_us"], base), us(expected),
                         percent(expected, expected_base), off_by(expected, rung)])
        best = sweep.best()
        if best:
            expected = sweep.predicted(best)
            rows.append(["best of the search", with_interval(best), percent(best["median_us"], base), us(expected),
                         percent(expected, expected_base), off_by(expected, best)])
        self.text += f"## Ladder, {title}\n\n" + table(
            ["rung", self.wall, "against serial", "predicted [µs]", "against serial", "prediction off by"], rows)
        if best:
            knobs = ["dispatch_comm_sms", "combine_comm_sms", "combine", "all_hands", "launch", "tile_counter"]
            self.text += f"Best: `{described(best['config'], knobs)}`. " + agreement(sweep)

    def rungs(self, names):
        rows = []
        for name, title in names:
            found, expected = (load(self.work / kind / name / "run.json") for kind in (self.engine, "predicted"))
            if not found or "rungs" not in found:
                continue
            for kind, document in ((self.wall, found), ("predicted [µs]", expected)):
                if document and "rungs" in document:
                    walls, costs = document["rungs"]["walls_us"], document["rungs"]["costs_us"]
                    rows.append([title, kind, us(walls["compute only, all SMs"]["us"])] +
                                [us(costs[cost]["us"]) for cost in
                                 ("SM tax", "contention", "arrival limit", "ordering loss", "tail")] +
                                [us(walls["full layer"]["us"])])
        if rows:
            self.text += "## Counterfactual rungs\n\n" + table(
                ["run", "", "compute only, all SMs", "SM tax", "contention", "arrival limit", "ordering loss", "tail",
                 "full layer"], rows)

    def split(self, name):
        sweep = Sweep(self.work, self.engine, name)
        if not sweep.found:
            return
        order = sorted(sweep.found.values(), key=lambda trial: trial["median_us"])
        rows = [[described(trial["config"], ["dispatch_comm_sms", "combine_comm_sms"]), with_interval(trial),
                 us(sweep.predicted(trial)), off_by(sweep.predicted(trial), trial)]
                for trial in order[:5] + order[-1:]]
        self.text += "## SM split: the five fastest, and the slowest\n\n" + table(
            ["split", self.wall, "predicted [µs]", "prediction off by"], rows) + agreement(sweep)

    def orders(self, link):
        sweep = Sweep(self.work, self.engine, f"slot-order/link-{link}/sweep")
        if not sweep.found:
            return
        rows = [[described(trial["config"], ["dispatch_comm_sms", "pull_order", "slot_order"]), with_interval(trial),
                 us(sweep.predicted(trial)), off_by(sweep.predicted(trial), trial)]
                for trial in sweep.found.values()]
        title = f"links at {link} GB/s" if link else "links as they are"
        self.text += f"## Pull and slot orders, {title}\n\n" + table(
            ["config", self.wall, "predicted [µs]", "prediction off by"], rows) + agreement(sweep)

    def egress(self, links, orders):
        rows = []
        for link in links:
            for order in orders:
                name = f"slot-order/link-{link}/{order}"
                found, expected = (load(self.work / kind / name / "run.json") for kind in (self.engine, "predicted"))
                if found:
                    rows.append([f"{f'{link} GB/s' if link else 'as it is'}, {order}", us(found["wall_us"]["median"]), pulls(found),
                                 us(expected["wall_us"]["median"]) if expected else "", pulls(expected)])
        if rows:
            self.text += "## Which egress the pulls load\n\n" + table(
                ["link, order", self.wall, "pulls", "predicted [µs]", "predicted"], rows)

    def scaling(self, sweeps):
        rows = []
        alone = None
        for ranks, name in sweeps:
            sweep = Sweep(self.work, self.engine, name)
            best, serial = sweep.best(), sweep.serial()
            if not best or not serial:
                continue
            alone = alone or (best["median_us"], sweep.predicted(best))
            rows.append([ranks, with_interval(serial), us(sweep.predicted(serial)), with_interval(best),
                         us(sweep.predicted(best)), "" if share_gpus(best) else percent(best["median_us"], alone[0]),
                         percent(sweep.predicted(best), alone[1])])
        if rows:
            self.text += "## Ranks, at 2048 tokens in all\n\n" + table(
                ["ranks", f"serial, {self.wall}", "predicted [µs]", f"best fused, {self.wall}", "predicted [µs]",
                 "against one rank", "predicted"], rows)


def summary(work, campaign, links, orders, scaled):
    page = Summary(work, campaign)
    page.head(campaign)
    for link in links:
        page.ladder(f"ladder/link-{link}", f"links at {link} GB/s" if link else "links as they are")
    page.rungs([(f"ladder/link-{link}/best", f"best, link {link or 'as it is'}") for link in links] +
               [(f"sm-tax/dispatch_comm_sms-{sms}", f"dispatch_comm_sms={sms}") for sms in (4, 8, 16, 32)])
    page.split("sm-split")
    for link in links:
        page.orders(link)
    page.egress(links, orders)
    page.scaling(scaled)
    return page.text
