"""Time `evaluate` on synthetic captions: intervals, half a million, ten millions.

    QDTHEORY_DATA=FOLDER python benchmarks/text_scale.py CASE [ARGUMENT]

FOLDER holds coco60/train.txt, one caption a line; the captions here are drawn from its
bigrams and kept in a folder of temporary files. The cases: `jackknife`, all metrics
with intervals against without, of 10,000 and 100,000 captions; `commit CHECKOUT`,
500,000 against 500,000 here and in another checkout of qdtheory; `large [SIZE]`, two
workers on 10^6 and 10^7 captions, or so many, against 500,000, with the peak memory of
each process; `dask`, two workers against one, 10^6 against 500,000; `duckdb`, the count
tables of 20,000 against DuckDB's. Sides of one process are compared by their CPU time,
those on a cluster by the clock.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measure import captions, least, peak, seconds

CHUNK = 100_000


def draws(size: int, seed: int) -> Iterator[list[str]]:
    """Draw captions from the bigrams of COCO's, in chunks."""
    texts = [line.split() for line in captions()]
    words = [*dict.fromkeys(word for text in texts for word in text)]
    ids = {word: index for index, word in enumerate(words)}
    end = len(words)  # begins and ends a caption
    flat = np.array([ids[w] if w else end for t in texts for w in [None, *t]] + [end])
    pairs, counts = np.unique(flat[:-1] * (end + 1) + flat[1:], return_counts=True)
    first, second = np.divmod(pairs, end + 1)
    # The u-th share of the bigrams that begin with i stands at i + u.
    totals = np.bincount(first, counts)
    reached = np.cumsum(counts)
    shares = first + (reached - (np.cumsum(totals) - totals)[first]) / totals[first]
    rng = np.random.default_rng(seed)
    for start in range(0, size, CHUNK):
        number = min(CHUNK, size - start)
        current, alive = np.full(number, end), np.arange(number)
        drawn: list[list[str]] = [[] for _ in range(number)]
        while len(alive):
            u = rng.random(len(alive))
            place = np.searchsorted(shares, current + u, side="right")
            current = second[np.minimum(place, len(shares) - 1)]
            going = current != end
            alive, current = alive[going], current[going]
            for caption, word in zip(alive.tolist(), current.tolist()):
                drawn[caption].append(words[word])
        yield [" ".join(caption) for caption in drawn]


def write(path: Path, size: int, seed: int) -> None:
    """Write captions to a file, unless they are there."""
    if path.exists():
        return
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8") as file:
        for drawn in draws(size, seed):
            file.writelines(f"{caption}\n" for caption in drawn)
    unfinished.rename(path)


def file(size: int, seed: int) -> Path:
    """Captions in a file."""
    folder = Path(tempfile.gettempdir(), "qdtheory-captions")
    folder.mkdir(exist_ok=True)
    path = folder / f"{size}_{seed}.txt"
    write(path, size, seed)
    return path


def jackknife() -> None:
    from lab.corpora import every_metric

    from qdtheory import text
    from qdtheory.text.evaluation import counted, planned

    for size in (10_000, 100_000):
        ours, theirs = (text.read_corpus(file(size, seed)) for seed in (1, 2))
        texts = {"ours": ours}, theirs
        spent, _ = least(counted, planned(*texts), *texts, rounds=3)
        alone, _ = least(lambda real, x: every_metric(real)(x), theirs, ours, rounds=3)
        print(
            f"{size:,} captions with intervals: {spent:.3f} s, "
            f"{spent / alone:.2f} times the metrics alone ({alone:.3f} s)"
        )


EVALUATE = """
import json, resource, sys, time
from qdtheory.text import evaluate, read_corpus
ours, theirs = map(read_corpus, sys.argv[1:])
start = time.process_time()
found = evaluate({"ours": ours}, theirs).scores["ours"]
spent = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([spent, peak, [*found.value, *found.standard_error]]))
"""


def commit(checkout: str) -> None:
    size = 500_000
    texts = [str(file(size, seed)) for seed in (1, 2)]
    found = []
    for folder in (Path(__file__).parents[1], Path(checkout).resolve()):
        run = subprocess.run(
            [sys.executable, "-c", EVALUATE, *texts],
            env=os.environ | {"PYTHONPATH": str(folder)},
            cwd=folder,
            check=True,
            capture_output=True,
        )
        found.append(json.loads(run.stdout))
    (spent, peak, values), (other, most, expected) = found
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
    print(
        f"{size:,} and {size:,} captions: {spent:.1f} s, peak {peak:.0f} MB; "
        f"{checkout} {other:.0f} s, {most:.0f} MB, ratio {other / spent:.1f}"
    )


def on_workers(workers: int, ours: Path, theirs: Path) -> tuple[float, object, list]:
    """Seconds by the clock, the report, and the peaks in MB: this process, workers."""
    from qdtheory import text
    from qdtheory.text.cluster import connected

    with connected(workers) as client:
        client.run(text.evaluate, {"x": ["a"] * 3}, ["a"] * 3, 1)  # imports
        took, found = seconds(text.evaluate, [ours], theirs, scheduler=client)
        return took, found, [peak(), *client.run(peak).values()]


def large(*sizes: str) -> None:
    real, times = file(500_000, 2), []
    for size in map(int, sizes or (10**6, 10**7)):
        spent, _, most = on_workers(2, file(size, 4), real)
        times.append(spent)
        shown = ", ".join(f"{x:.0f}" for x in most)
        print(
            f"{size:,} captions on two workers: {spent:.0f} s, peaks {shown} MB "
            f"(client, workers); load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    print(f"{times[-1] / times[0]:.1f} times as long as the first")


def dask() -> None:
    from qdtheory import text

    ours, theirs = file(10**6, 4), file(500_000, 2)
    whole, spent = text.evaluate([ours], theirs), []
    for workers in (1, 2):
        took, found, _ = on_workers(workers, ours, theirs)
        spent.append(took)
        assert found == whole
    print(
        f"1,000,000 and 500,000 captions: two workers {spent[1]:.1f} s, "
        f"{spent[1] / spent[0]:.2f} times one ({spent[0]:.1f} s); "
        f"load {os.getloadavg()[0]:.1f}"
    )


def duckdb() -> None:
    from duckdb import connect

    from qdtheory import text
    from qdtheory.text.partial_sums import partial_sums

    paths = [file(20_000, seed) for seed in (1, 2)]
    ours, theirs = map(text.read_corpus, paths)
    found = partial_sums({"x": ours}, theirs, 4)
    base = connect()
    for name, path in zip(("ours", "theirs"), paths):
        lines = path.read_text("utf-8").splitlines()
        base.execute(f"create table {name} as select unnest(?) as line", [lines])
        base.execute(
            f"create table {name}_words as select row_number() over () as sentence, "
            f"string_split(line, ' ') as words from {name}"
        )
    for n in range(1, 5):
        for name in ("ours", "theirs"):
            base.execute(
                f"create or replace table {name}_counts as select gram, sentence, "
                f"count(*) as c from (select sentence, words[i:i + {n - 1}] as gram "
                f"from (select sentence, words, unnest(range(1, len(words) - {n} + 2)) "
                f"as i from {name}_words)) group by all"
            )
        row = base.execute(
            "with q as (select gram, sum(c) as c, sum(c * c) as w from ours_counts "
            "group by gram), p as (select gram, sum(c) as c from theirs_counts group "
            "by gram) select count(*), sum(q.c * q.c), sum(w), sum(q.c * "
            "coalesce(p.c, 0)), sum(least(q.c * 20000, coalesce(p.c, 0) * 20000)) "
            "from q left join p using (gram)"
        ).fetchone()
        sums = found.totals.sums["x"]
        own = sums.distinct, sums.squares, sums.within, sums.common, sums.overlap
        assert [int(x) for x in row] == [int(x[n - 1, 0]) for x in own]
        matches = base.execute(
            "select coalesce(sum(least(c, most)), 0) from ours_counts join (select "
            "gram, max(c) as most from theirs_counts group by gram) using (gram)"
        ).fetchone()
        (clipped,) = (int(x) for x in matches)
        blocks = found.blocks["x"]
        assert clipped == sum(int(block.bleu[n - 1].sum()) for block in blocks)
        print(f"order {n}: {[*map(int, row), clipped]} as DuckDB counts them")


CASES = {
    "jackknife": jackknife,
    "commit": commit,
    "large": large,
    "dask": dask,
    "duckdb": duckdb,
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in CASES:
        sys.exit(f"expected one of {', '.join(CASES)}")
    CASES[sys.argv[1]](*sys.argv[2:])
