"""How often the 95 % intervals of `evaluate` and `compare` hold what they are for.

    python benchmarks/text_coverage.py [SHARE]
    python benchmarks/text_coverage.py closer [SHARE]

A sentence is 8 words of a Markov chain on 1,000 words. References and a candidate are
of one law ("same"); the chains of the others are mixed with another chain, 3 % ("near")
and 30 % of it ("far"). There are 400 runs of 200 candidates and 240 of 2,000, or a
share of them. The means of CR, NRR and CND are known exactly. That of BLEU given the
references is the mean of 20 times as many fresh candidates, of 2,000 in every other
run; those of the other metrics are the means over all runs. Prints two tables in
Markdown, of the metrics and of the differences: a cell has the coverage of each law in
per cent, and in brackets how many of a hundred runs give an interval, where not all do;
"rare" if fewer than five do, "none" if none does; "!" marks what is three standard
errors below 95. Then how often an interval that is rare misses, and how often a
candidate is said to depend on the references, if a share of it is copied from them.
Last, which intervals cover least if a hundredth of all sentences repeat one word.

With "closer" it prints how often the interval of a difference in CND holds the true
one, in per cent; in brackets how often it does with the references held fixed, and the
standard error over the spread of the differences. There are 400 runs of 200, 2,000 and
20,000 candidates and references each, 200 where both are 20,000; near ties are near and
same, far and "other" (30 % of a third chain), a clear difference far and same.
"""

import sys
from typing import Any, NamedTuple

import numpy as np

from qdtheory import text
from qdtheory.text.evaluation import KINDS

WORDS, LENGTH = 1000, 8
SIZES = 200, 2000
ORDERS = 1, 2, 3, 4
MIXED = {"same": 0, "near": 0.03, "far": 0.3}
RARE = 0.05
COPIED = 0, 0.01, 0.05, 0.1, 0.49
REPEATING = 0.01
RUNS, EVERY, FRESH = {200: 400, 2000: 240}, {200: 1, 2000: 2}, 20
CLOSER = ("near", "same"), ("far", "other"), ("far", "same")
CLOSER_SIZES, CLOSER_RUNS = (200, 2000, 20000), 400


class Chain(NamedTuple):
    """A Markov chain: the law of the first word, which is stationary, and the rows."""

    first: np.ndarray
    rows: np.ndarray

    def draw(self, size: int, rng: np.random.Generator) -> text.Corpus:
        """Independent sentences."""
        # Rows one after another, each a unit further: one search finds word and row.
        ends = (np.cumsum(self.rows, axis=1) + np.arange(WORDS)[:, None]).ravel()
        words = np.empty((size, LENGTH), np.int32)
        words[:, 0] = rng.choice(WORDS, size, p=self.first)
        for k in range(1, LENGTH):
            before = words[:, k - 1]
            found = np.searchsorted(ends, rng.random(size) + before) - before * WORDS
            words[:, k] = np.minimum(found, WORDS - 1)
        offsets = np.arange(size + 1) * LENGTH
        return text.Corpus(words.ravel(), offsets, tuple(range(WORDS)))

    def alike(self, other: "Chain") -> list[float]:
        """The chances that an n-gram of each is the same, n = 1 to 4."""
        both, rows = self.first * other.first, self.rows * other.rows
        return [both.sum(), *((both := both @ rows).sum() for _ in ORDERS[1:])]


def chains() -> dict[str, Chain]:
    """The laws by name."""
    rng = np.random.default_rng(0)
    one, other, third = (
        rows / rows.sum(axis=1, keepdims=True)
        for _ in range(3)
        for rows in [
            np.exp(2 * rng.normal(size=(WORDS, WORDS))) / np.arange(10, WORDS + 10)
        ]
    )
    found = {}
    mixed = {name: (share, other) for name, share in MIXED.items()}
    for name, (share, more) in (mixed | {"other": (MIXED["far"], third)}).items():
        rows, first = (1 - share) * one + share * more, np.full(WORDS, 1 / WORDS)
        for _ in range(100):
            first = first @ rows
        found[name] = Chain(first / first.sum(), rows)
    return found


EVERY_LAW = chains()
LAWS = {name: EVERY_LAW[name] for name in MIXED}
SOURCE = LAWS["same"]


def exact(law: Chain) -> dict[str, float]:
    """Means of the rates against references of the source."""
    found = {}
    pairs = ((law, SOURCE), (law, law), (SOURCE, SOURCE))
    rates = [one.alike(other) for one, other in pairs]
    for n, common, own, real in zip(ORDERS, *rates):
        found |= {f"CR-{n}": common, f"NRR-{n}": -own}
        found[f"CND-{n}"] = own + real - 2 * common
    return found


MEANS = {name: exact(law) for name, law in EVERY_LAW.items()}


def once(size: int, many: int, rng: np.random.Generator, scored: bool) -> dict:
    """Each metric and difference of a run: value, ends, and what it is for."""
    real = SOURCE.draw(many, rng)
    report = text.evaluate({x: law.draw(size, rng) for x, law in LAWS.items()}, real)
    bleu = {}
    for name, law in LAWS.items() if scored else ():
        fresh = text.bleu(law.draw(FRESH * size, rng), real)
        bleu[name] = {f"BLEU-{n}": x for n, x in zip(ORDERS, fresh)}
    found: dict[tuple[str, str], tuple] = {}
    for name in LAWS:
        known = MEANS[name] | bleu.get(name, {})
        for metric, i in report[name].items():
            found[name, metric] = i.value, i.low, i.high, known.get(metric, np.nan)
    for name in ("near", "far"):
        compared = report.compare(name, "same")
        i = compared.difference
        ends = np.transpose([*map(np.asarray, (i.value, i.low, i.high))]).tolist()
        for metric, numbers in zip(compared.metrics, ends):
            means = [found[x, metric][3] for x in (name, "same")]
            found[f"{name} - same", metric] = *numbers, means[0] - means[1]
    found["dependent", ""] = ("same" in report.dependent, *(np.nan,) * 3)
    return found


def covered(runs: list[Any], metric: str) -> tuple[float, float, int]:
    """The share that holds the mean, that which has an interval, how many runs."""
    value, low, high, mean = np.array(runs, float).T
    if metric.startswith("BLEU"):  # the mean of the fresh ones has an error, too
        value, low, high, mean = np.array(runs, float)[~np.isnan(mean)].T
        more = np.sqrt(1 + 1 / FRESH)
        low, high = value + more * (low - value), value + more * (high - value)
    mean = np.where(np.isnan(mean), np.nanmean(value), mean)
    given = ~np.isnan(low)
    slack = 1e-12 * np.abs(mean)
    hits = (low <= mean + slack) & (mean <= high + slack)
    return hits[given].mean() if given.any() else np.nan, given.mean(), given.sum()


def row(metric: str, names: tuple[str, ...], found: dict) -> str:
    """A row of Markdown; what is far below 95 % is marked."""
    cells = [metric]
    for corner in found.values():
        shown = []
        for name in names:
            if (name, metric) not in corner:
                continue
            share, given, runs = covered(corner[name, metric], metric)
            if given < RARE:
                shown.append("rare" if runs else "none")
                continue
            few = f" ({100 * given:.0f})" if given < 0.995 else ""
            error = np.sqrt(0.95 * 0.05 / runs)
            shown.append(
                f"{100 * share:.0f}{few}" + "!" * bool(share < 0.95 - 3 * error)
            )
        cells.append(", ".join(shown))
    return f"| {' | '.join(cells)} |"


def replaced(drawn: text.Corpus, chosen: np.ndarray, words: Any) -> text.Corpus:
    """The sentences with other words in some of them."""
    rows = drawn.tokens.reshape(len(drawn), LENGTH).copy()
    rows[chosen] = words
    return text.Corpus(rows.ravel(), drawn.offsets, drawn.vocabulary)


def told(size: int, share: float, repeats: int) -> float:
    """How often a candidate of the same law with copies is said to be dependent."""
    rng, found = np.random.default_rng([2, size, int(100 * share)]), 0
    for _ in range(repeats):
        real, ours = (SOURCE.draw(size, rng) for _ in range(2))
        copies = rng.choice(size, int(share * size), replace=False)
        mixed = replaced(ours, copies, real.tokens.reshape(size, LENGTH)[copies])
        found += bool(text.evaluate({"x": mixed}, real).dependent)
    return found / repeats


def repeating(size: int, rng: np.random.Generator) -> text.Corpus:
    """Sentences of the source, a few of which are one word over and over."""
    drawn = SOURCE.draw(size, rng)
    return replaced(drawn, rng.random(size) < REPEATING, 0)


def rarest(size: int, repeats: int) -> str:
    """The rates that cover least, where a few sentences decide them."""
    runs: dict[str, list] = {}
    for run in range(repeats):
        rng = np.random.default_rng([3, size, run])
        real, ours = repeating(size, rng), repeating(size, rng)
        for metric, i in text.evaluate({"x": ours}, real)["x"].items():
            if metric.startswith(("CR", "NRR", "CND")):
                runs.setdefault(metric, []).append((i.value, i.low, i.high, np.nan))
    shares = [(*covered(found, metric), metric) for metric, found in runs.items()]
    least = sorted((x, metric) for x, given, _, metric in shares if given > 0.5)
    return ", ".join(f"{metric} {x:.0%}" for x, metric in least[:4])


def closer(size: int, many: int, runs: int) -> dict[tuple, tuple[float, ...]]:
    """By order and pair: coverage, that for fixed references, error over spread."""
    told: dict[tuple, list] = {}
    for run in range(runs):
        rng = np.random.default_rng([4, size, many, run])
        drawn = {name: law.draw(size, rng) for name, law in EVERY_LAW.items()}
        report = text.evaluate(drawn, SOURCE.draw(many, rng), 2)
        for pair in CLOSER:
            ways = [report.compare(*pair, fixed=fixed) for fixed in (False, True)]
            for n in (1, 2):
                metric = f"CND-{n}"
                one, other = (MEANS[name][metric] for name in pair)
                i = ways[0].metrics.index(metric)
                d, given = (x.difference for x in ways)
                hits = [x.low[i] <= one - other <= x.high[i] for x in (d, given)]
                row = *hits, d.standard_error[i], d.value[i] - one + other
                told.setdefault((n, pair), []).append(row)
    found = {}
    for key, rows in told.items():
        hit, fixed, error, miss = np.array(rows, float).T
        known = ~np.isnan(error)
        width = np.sqrt(np.mean(error[known] ** 2)) / miss[known].std()
        found[key] = hit[known].mean(), fixed[known].mean(), width
    return found


def differences(share: float) -> None:
    """How often the interval of a difference in CND holds the true one: a table."""
    cells = [(n, pair) for n in (1, 2) for pair in CLOSER]
    names = [f"CND-{n}, {' and '.join(pair)}" for n, pair in cells]
    print(f"| candidates; references | {' | '.join(names)} |")
    print(f"|{'---|' * (1 + len(names))}")
    for size in CLOSER_SIZES:
        for many in CLOSER_SIZES:
            most = size == many == CLOSER_SIZES[-1]
            found = closer(size, many, int(share * CLOSER_RUNS / (1 + most)))
            shown = [
                f"{100 * hit:.1f} ({100 * fixed:.0f}; {width:.2f})"
                for hit, fixed, width in map(found.get, cells)
            ]
            print(f"| {size:,}; {many:,} | {' | '.join(shown)} |", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["closer"]:
        differences(float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
        return
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    found: dict[tuple[int, int], dict] = {}
    for size in SIZES:
        for many in SIZES:
            corner = found[size, many] = {}
            for run in range(int(share * RUNS[size])):
                rng = np.random.default_rng([1, size, many, run])
                for key, entry in once(size, many, rng, run % EVERY[size] == 0).items():
                    corner.setdefault(key, []).append(entry)
    heads = ["", *(f"{a:,}; {b:,}" for a, b in found)]
    metrics = [f"{kind}-{n}" for kind in KINDS for n in ORDERS]
    metrics += [f"distinct_1000-{n}" for n in ORDERS]
    for names in (("same", "near", "far"), ("near - same", "far - same")):
        print(f"\n{', '.join(names)}; candidates; references\n")
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        for metric in metrics:
            print(row(metric, names, found))
    shares = [
        covered(runs, metric)
        for corner in found.values()
        for (_, metric), runs in corner.items()
        if metric
    ]
    rare = [(1 - share) * given for share, given, _ in shares if 0 < given < RARE]
    print(f"\nrare intervals miss in at most {max(rare, default=0):.1%} of all runs")
    for corner, entry in found.items():
        false = np.mean([x[0] for x in entry["dependent", ""]])
        print(f"{corner}: of independent samples {false:.1%} said to be dependent")
    for copied in COPIED:
        repeats = [max(1, int(share * RUNS[size] / 8)) for size in SIZES]
        found_of = [told(size, copied, n) for size, n in zip(SIZES, repeats)]
        shown = (f"{x:.0%} of {size:,}" for x, size in zip(found_of, SIZES))
        print(f"{copied:.1%} copied are told:", *shown)
    for size in SIZES:
        least = rarest(size, max(2, int(share * RUNS[size])))
        print(f"{REPEATING:.0%} of {size:,} sentences repeat one word: {least}")


if __name__ == "__main__":
    main()
