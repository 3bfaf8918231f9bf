"""Cost of `evaluate` and coverage of its intervals by sample size; sample_sizes.csv.

    python notebooks/data/make_sample_sizes.py FOLDER

Sentences of 8 words from the source of topic_source.py, against 1,000 references. Cost
is CPU time and peak memory of one process, orders 1 to 4: of the metrics alone, with
intervals, with intervals in 8 parts one after another, and with intervals by counting
anew without each group. Coverage is how many 95 % intervals over the candidates hold
the mean given the references, which is known, orders 1 and 2. A run that is killed
loses the part under way only, whose file is missing from the folder. All take some six
minutes of CPU time.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial, reduce
from pathlib import Path

import numpy as np
import tables
from topic_source import draw, means, topic_source

from qdtheory import text
from qdtheory.text.evaluation import counted, every_metric, planned, reported
from qdtheory.text.intervals import interval_of, jackknife_variance
from qdtheory.text.partial_sums import merge, partial_sums

VOCAB, TOPICS, LENGTH, REFERENCES, PARTS = 50_000, 10, 8, 1000, 8
SOURCE = topic_source(VOCAB, TOPICS, LENGTH, seed=0)
REAL = draw(SOURCE, REFERENCES, np.random.default_rng(1))
SIZES = 10**3, 10**4, 10**5, 10**6
WAYS = "metrics", "intervals", "parts", "recounted"
# Repeats of a part, and how many parts.
REPEATS = dict(zip(SIZES, ((200, 2), (200, 2), (50, 2), (8, 3))))
SETTINGS = (
    f"{VOCAB} words, {TOPICS} topics, {LENGTH} words a sentence, {REFERENCES} "
    f"references, {PARTS} parts"
)
COLUMNS = (
    *("what", "size", "name", "seconds", "megabytes"),
    *("repeats", "hits", "mean", "average", "deviation", "standard_error"),
)


def measure(way: str, size: int) -> None:
    """Print the CPU time of one evaluation and this process's peak of memory."""
    ours = draw(SOURCE, size, np.random.default_rng([2, size]))
    plan, corpora, real = planned({"ours": ours}, REAL)
    start = time.process_time()
    if way == "metrics":
        every_metric(real)(ours)
    elif way == "intervals":
        counted(plan, corpora, real)
    elif way == "parts":
        numbers = ({"part": k, "num_parts": PARTS} for k in range(PARTS))
        known = reduce(merge, (partial_sums(corpora, real, 4, **k) for k in numbers))
        reported(plan, known.totals, known.blocks)
    else:
        text.jackknife_interval(every_metric(real), ours)
    taken = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([taken, peak]))


def cost(way: str, size: int) -> Iterator[list]:
    """The same in a process of its own; the least time of three where it is short."""
    command = [sys.executable, __file__, "-", "--measure", way, str(size)]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        for _ in range(3 if size <= 10**4 else 1)
    ]
    yield [way, size, *np.min(runs, axis=0).tolist()]


def coverage(size: int, part: int) -> Iterator[list]:
    """Value, limits and standard error of each metric, for each repeat."""
    names = means(SOURCE, REAL, 2)
    for repeat in range(REPEATS[size][0]):
        ours = draw(SOURCE, size, np.random.default_rng([3, size, part, repeat]))
        report = text.evaluate({"ours": ours}, REAL, 2, None)
        variance = jackknife_variance(report.left_out["ours"])
        of = interval_of(report.scores["ours"].value, *variance)
        limits = of.value, of.low, of.high, of.standard_error
        found = dict(zip(report.metrics, np.transpose(limits).tolist()))
        for name in names:
            yield [name, *map(repr, found[name])]


def covered(size: int, found: list[list[str]]) -> Iterator[list]:
    """How many intervals hold the mean."""
    for name, mean in means(SOURCE, REAL, size).items():
        rows = np.array([row[1:] for row in found if row[0] == name], float)
        value, low, high, error = rows.T
        hits = int(((low <= mean) & (mean <= high)).sum())
        deviation = value.std(ddof=1)
        numbers = len(rows), hits, mean, value.mean(), deviation, error.mean()
        yield ["coverage", size, name, None, None, *numbers]


def main() -> None:
    """Make the parts that are missing, then write the table in one go."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the parts lie")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        way, size = options.measure
        return measure(way, int(size))
    options.folder.mkdir(parents=True, exist_ok=True)
    table = []
    for size in SIZES:
        for way in WAYS[: 4 if size <= 10**5 else 3]:
            path = options.folder / f"cost_{way}_{size}.csv"
            ((_, _, *row),) = tables.part(path, SETTINGS, partial(cost, way, size))
            table.append(["cost", size, way, *map(float, row), *6 * [None]])
            print(*table[-1][:5], file=sys.stderr)
    for size, (_, parts) in REPEATS.items():
        found: list[list[str]] = []
        for part in range(parts):
            start = time.process_time()
            path = options.folder / f"coverage_{size}_{part}.csv"
            found += tables.part(path, SETTINGS, partial(coverage, size, part))
            taken = time.process_time() - start
            print(f"{size}, part {part}: {taken:.0f} s of CPU", file=sys.stderr)
        table += covered(size, found)
    comments = [
        "python notebooks/data/make_sample_sizes.py FOLDER",
        f"{tables.versions('numpy', 'scipy')}; {SETTINGS}",
    ]
    tables.write("sample_sizes.csv", comments, COLUMNS, table)


if __name__ == "__main__":
    main()
