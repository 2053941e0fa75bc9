"""How far apart the visits of one config lie in stored logs, as measured and with the base config's drift divided out:
by each measurement of the base (its latest over its first), or only once the last three are all above, or all below,
the first three (the rule of docs/sweeps.md).

    python3 drift.py ../h200-x2-tuned/*.gz ../h200-x2-reference/*/trials.jsonl *.jsonl.gz

Prints, of each log in which a config ran more than once, the root of the mean over such configs of the variance of the
logarithms of their visits' medians, in percent.
"""
import gzip
import json
import math
import statistics
import sys


def trials(path):
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8") as log:
        return [trial for trial in map(json.loads, list(log)[1:]) if trial["verdict"] == "ok"]


def latest(base):
    return base[-1] / base[0] if base else 1


def lasting(base):
    first, last = base[:3], base[-3:]
    apart = len(base) >= 6 and (min(last) > max(first) or max(last) < min(first))
    return statistics.median(last) / statistics.median(first) if apart else 1


def apart(log, drift):
    """[%], or None where no config ran twice."""
    base, visits = [], {}
    for trial in log:
        if trial["kind"] == "base":
            base.append(trial["raw_median_us"])
        else:
            key = json.dumps(trial["config"], sort_keys=True)
            visits.setdefault(key, []).append(math.log(trial["raw_median_us"] / drift(base)))
    variances = [statistics.variance(walls) for walls in visits.values() if len(walls) > 1]
    return 100 * math.sqrt(statistics.mean(variances)) if variances else None


RULES = {"as measured": lambda base: 1, "each measurement": latest, "what lasts": lasting}
rows = []
print(f"{'':52}" + "".join(f"{name:>18}" for name in RULES))
for path in sys.argv[1:]:
    log = trials(path)
    row = [apart(log, drift) for drift in RULES.values()]
    if row[0] is not None:
        rows.append(row)
        print(f"{path[-52:]:52}" + "".join(f"{value:17.2f}%" for value in row))
print(f"{f'mean of {len(rows)} logs':52}" + "".join(f"{statistics.mean(values):17.2f}%" for values in zip(*rows)))
