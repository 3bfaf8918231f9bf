"""Levels of the intervals of `evaluate` and `compare` at corners: a row for each law.

    python benchmarks/text_corners.py [RUNS]

References and two candidates of 400 sentences are independent draws of one law. A cell
has the coverage of a 95 % interval of one candidate, in per cent, of the mean over all
runs; after the stroke how often the two are called different; in brackets how many of a
hundred runs have an interval. The last column has how many are warned of.
"""

import sys
from collections.abc import Callable

import numpy as np

from qdtheory import text

SIZE, WORDS = 400, 40
METRICS = (
    "NRR-2",
    "NRR-4",
    "CND-2",
    "CND-3",
    "CND-4",
    "distinct_900-2",
    "distinct_900-4",
)
ZIPF = 1 / np.arange(3, WORDS + 3)
ZIPF /= ZIPF.sum()
Draw = Callable[[np.random.Generator], list]


def zipf(rng: np.random.Generator) -> list[list[int]]:
    """Five to twelve words that are common or rare."""
    lengths = rng.integers(5, 13, SIZE)
    return [rng.choice(WORDS, n, p=ZIPF).tolist() for n in lengths]


def template(rng: np.random.Generator) -> list[list[int]]:
    """Rare words, but one in twenty has eight words of nine in common."""
    fixed = [*range(8)]
    return [[*fixed, x[0]] if rng.random() < 0.05 else x for x in rare(rng)]


def rare(rng: np.random.Generator) -> list[list[int]]:
    """Six of twenty thousand words."""
    return rng.integers(0, 20_000, (SIZE, 6)).tolist()


def modes(rng: np.random.Generator) -> list[list[int]]:
    """A model that has collapsed to 50 sentences."""
    known = zipf(np.random.default_rng(0))[:50]
    return [known[i] for i in rng.integers(0, 50, SIZE)]


LAWS: dict[str, Draw] = {
    "zipf": zipf,
    "few words": lambda rng: rng.integers(0, 4, (SIZE, 7)).tolist(),
    "rare words": rare,
    "template": template,
    "modes": modes,
    "each twice": lambda rng: [x for x in zipf(rng)[: SIZE // 2] for _ in range(2)],
}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"| law | {' | '.join(METRICS)} | warned |\n|{'---|' * (len(METRICS) + 2)}")
    for number, (law, draw) in enumerate(LAWS.items()):
        found, warned = {metric: [] for metric in METRICS}, 0
        for run in range(runs):
            rng = np.random.default_rng([number, run])
            report = text.evaluate(
                {"a": draw(rng), "b": draw(rng)}, draw(rng), draws=900
            )
            compared = report.compare("a", "b")
            warned += any(
                "more than once" in x or "decide" in x for x in report.warnings
            )
            for metric in METRICS:
                one = report["a"].get(metric)
                if one is not None:
                    apart = metric in compared.metrics and compared.better(metric)
                    found[metric].append((one.value, one.low, one.high, bool(apart)))
        cells = [shown(np.array(rows, float)) for rows in found.values()]
        print(
            f"| {law} | {' | '.join(cells)} | {100 * warned / runs:.0f} |", flush=True
        )


def shown(rows: np.ndarray) -> str:
    """Coverage, how often two are called different, how often there is an interval."""
    given = rows[~np.isnan(rows[:, 1])] if len(rows) else rows
    if not len(given):
        return "none"
    _, low, high, apart = given.T
    mean = rows[:, 0].mean()
    hit = 100 * ((low - 1e-12 <= mean) & (mean <= high + 1e-12)).mean()
    return f"{hit:.0f} / {100 * apart.mean():.0f} ({100 * len(given) / len(rows):.0f})"


if __name__ == "__main__":
    main()
