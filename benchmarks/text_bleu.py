"""Time BLEU, Self-BLEU, MS-Jaccard and the n-gram rates of captions.

    QDTHEORY_DATA=FOLDER python benchmarks/text_bleu.py [CASE]

FOLDER holds coco60/train.txt, one caption a line. The cases: `nltk`, 1,000 captions;
`paired`, 10,000, each against one; `bleu`, 10,000 against 10,000; `self` and `large`,
Self-BLEU of 10,000 and 50,000, all for orders 2 to 5 and smoothed, from lists of tokens
to scores; `sorts`, Self-BLEU, the rates and MS-Jaccard against np.argsort of the keys
that are sorted. fast-bleu is built from source by `make bench`, which needs a C++
compiler; without it only our side is timed. Each case runs in a process of its own; its
peak memory, with the imports and the captions, is read before the rival starts. Sides
without threads are compared by their CPU time, those with fast-bleu's two by the clock.
"""

import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from qdtheory import text
from qdtheory.text.ngrams import _keys
from qdtheory.text.postings import positions_of

os.environ["OMP_NUM_THREADS"] = "2"  # fast-bleu reads it when it is imported
try:
    import fast_bleu
except ImportError:
    fast_bleu = None

ORDERS = range(2, 6)
WEIGHTS = {n: (1 / n,) * n for n in ORDERS}
RUNS = 5


def captions(first: int, last: int) -> list[list[str]]:
    path = Path(os.environ["QDTHEORY_DATA"], "coco60", "train.txt")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines[first:last]]


def seconds(function: Callable, clock=time.perf_counter) -> tuple[float, object]:
    start = clock()
    value = function()
    return clock() - start, value


def best(function: Callable, clock=time.perf_counter) -> tuple[float, object]:
    runs = [seconds(function, clock) for _ in range(RUNS)]
    return min(runs, key=lambda run: run[0])


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(
    name: str,
    ours: Callable,
    rival: Callable | None,
    rival_name: str = "fast-bleu",
    clock: Callable[[], float] = time.perf_counter,
    tolerance: float = 1e-7,  # fast-bleu rounds its weights to single precision
) -> None:
    """The rival gives a row of sentence scores for each order."""
    spent, value = best(ours, clock)
    line = f"{name}: {spent:.3f} s, peak {megabytes():.0f} MB"
    if rival is None:
        print(f"{line}; {rival_name} is not installed: no ratio")
        return
    other, expected = seconds(rival, clock)
    np.testing.assert_allclose(value[:, 1:].T, expected, rtol=0, atol=tolerance)
    print(f"{line}; {rival_name} {other:.2f} s, ratio {other / spent:.0f}")


def compiled(metric: str, lists: list, *arguments) -> Callable | None:
    if fast_bleu is None:
        return None

    def run():
        model = getattr(fast_bleu, metric)(lists, WEIGHTS)
        scores = model.get_score(*arguments)
        return [scores[n] for n in ORDERS]

    return run


def nltk() -> None:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    candidates, references = captions(0, 1000), captions(1000, 2000)
    method = SmoothingFunction().method1
    warnings.simplefilter("ignore")

    def run(references_of):
        pairs = zip(references_of, candidates, strict=True)
        return np.array(
            [sentence_bleu(r, c, list(WEIGHTS.values()), method) for r, c in pairs]
        ).T

    report(
        "BLEU, 1,000 and 1,000",
        lambda: text.bleu_scores(candidates, references, 5, "epsilon"),
        lambda: run([references] * 1000),
        "NLTK",
        time.process_time,
        1e-12,
    )
    report(
        "Self-BLEU, 1,000",
        lambda: text.self_bleu_scores(candidates, 5, "epsilon"),
        lambda: run(candidates[:i] + candidates[i + 1 :] for i in range(1000)),
        "NLTK",
        time.process_time,
        1e-12,
    )


def paired() -> None:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    candidates, references = captions(0, 10_000), captions(10_000, 20_000)
    method = SmoothingFunction().method1
    weights = list(WEIGHTS.values())
    warnings.simplefilter("ignore")

    def run():
        pairs = zip(references, candidates, strict=True)
        return np.array([sentence_bleu([r], c, weights, method) for r, c in pairs]).T

    report(
        "paired BLEU, 10,000",
        lambda: text.paired_bleu_scores(candidates, references, 5, "epsilon"),
        run,
        "NLTK",
        time.process_time,
        1e-12,
    )


def bleu() -> None:
    candidates, references = captions(0, 10_000), captions(10_000, 20_000)
    report(
        "BLEU, 10,000 and 10,000",
        lambda: text.bleu_scores(candidates, references, 5, "epsilon"),
        compiled("BLEU", references, candidates),
    )


def self_bleu(size: int) -> None:
    candidates = captions(0, size)
    report(
        f"Self-BLEU, {size:,}",
        lambda: text.self_bleu_scores(candidates, 5, "epsilon"),
        compiled("SelfBLEU", candidates),
    )


def packed(corpus: text.Corpus, n: int) -> np.ndarray:
    starts = np.flatnonzero(positions_of(corpus, 1).remaining >= n)
    columns = (corpus.tokens[starts + k] for k in range(n))
    return _keys(columns, corpus.vocab_size)[0]


def rates(candidates: text.Corpus, references: text.Corpus, n: int) -> None:
    q, p = (text.ngram_counts(x, n) for x in (candidates, references))
    text.coverage_rate(q, p, n)
    text.negative_repetition_rate(q, n, "plug-in")
    text.cnd(q, p, n, "plug-in")


def compare_with_sort(name: str, ours: Callable, keys: list[np.ndarray]) -> None:
    spent, _ = best(ours, time.process_time)
    sort, _ = best(lambda: [np.argsort(x) for x in keys], time.process_time)
    print(f"{name}: {spent:.3f} s, {spent / sort:.1f} times argsort ({sort:.3f} s)")


def sorts() -> None:
    lists = captions(0, 50_000)
    spent, corpus = best(lambda: text.as_corpus(lists), time.process_time)
    print(f"as_corpus, 50,000: {spent:.3f} s")
    compare_with_sort(
        "Self-BLEU-1..5, 50,000",
        lambda: text.self_bleu(corpus, 5),
        [packed(corpus, n) for n in range(1, 6)],
    )
    halves = corpus[:25_000], corpus[25_000:]
    compare_with_sort(
        "CR, NRR and CND, n = 1..4, 25,000 and 25,000",
        lambda: [rates(*halves, n) for n in range(1, 5)],
        [packed(half, n) for n in range(1, 5) for half in halves],
    )
    halves = corpus[:20_000], corpus[20_000:40_000]
    compare_with_sort(
        "MS-Jaccard-1..5, 20,000 and 20,000",
        lambda: text.ms_jaccard(*halves, 5),
        [packed(half, n) for n in range(1, 6) for half in halves],
    )


CASES = {
    "nltk": nltk,
    "paired": paired,
    "bleu": bleu,
    "self": lambda: self_bleu(10_000),
    "large": lambda: self_bleu(50_000),
    "sorts": sorts,
}


def main() -> None:
    if "QDTHEORY_DATA" not in os.environ:
        sys.exit("QDTHEORY_DATA does not name a folder with coco60/train.txt")
    if len(sys.argv) > 1:
        CASES[sys.argv[1]]()
        return
    for case in CASES:
        subprocess.run([sys.executable, __file__, case], check=True)


if __name__ == "__main__":
    main()
