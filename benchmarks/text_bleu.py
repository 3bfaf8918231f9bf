"""Time BLEU, Self-BLEU, MS-Jaccard and the n-gram rates of captions.

    QDTHEORY_DATA=FOLDER python benchmarks/text_bleu.py [CASE]

FOLDER holds coco60/train.txt, one caption a line. The cases: `nltk`, 1,000 captions;
`paired`, 10,000, each against one; `bleu`, 10,000 against 10,000; `self` and `large`,
Self-BLEU of 10,000 and 50,000, all for orders 2 to 5 and smoothed, from lists of tokens
to scores; `sorts`, Self-BLEU, the rates and MS-Jaccard against np.argsort of the keys
that are sorted; `growth`, the powers of the size with which the rates of 3-grams and
BLEU-3 with Self-BLEU-3 grow, here and by NLTK. fast-bleu is built from source by
`make bench`, which needs a C++ compiler; without it only our side is timed. Each case
runs in a process of its own; its peak memory, with the imports and the captions, is
read before the rival starts. Sides without threads are compared by their CPU time,
those with fast-bleu's two by the clock.
"""

import os
import warnings
from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np
from lab import corpora
from measure import captions, least, peak, run, seconds

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


def words(first: int, last: int) -> list[list[str]]:
    return [line.split() for line in captions(first, last)]


def report(
    name: str,
    ours: Callable,
    rival: Callable | None,
    rival_name: str = "fast-bleu",
    clock: Callable[[], float] = perf_counter,
    tolerance: float = 1e-7,  # fast-bleu rounds its weights to single precision
) -> None:
    """The rival gives a row of sentence scores for each order."""
    spent, value = least(ours, rounds=RUNS, clock=clock)
    line = f"{name}: {spent:.3f} s, peak {peak():.0f} MB"
    if rival is None:
        print(f"{line}; {rival_name} is not installed: no ratio")
        return
    other, expected = seconds(rival, clock=clock)
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


def beside_nltk(
    name: str, ours: Callable, candidates: list, references_of: Callable
) -> None:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    method, weights = SmoothingFunction().method1, list(WEIGHTS.values())
    warnings.simplefilter("ignore")

    def theirs():
        pairs = zip(references_of(), candidates, strict=True)
        return np.array([sentence_bleu(r, c, weights, method) for r, c in pairs]).T

    report(name, ours, theirs, "NLTK", process_time, 1e-12)


def nltk() -> None:
    candidates, references = words(0, 1000), words(1000, 2000)
    beside_nltk(
        "BLEU, 1,000 and 1,000",
        lambda: text.bleu_scores(candidates, references, 5, "epsilon"),
        candidates,
        lambda: [references] * 1000,
    )
    beside_nltk(
        "Self-BLEU, 1,000",
        lambda: text.self_bleu_scores(candidates, 5, "epsilon"),
        candidates,
        lambda: (candidates[:i] + candidates[i + 1 :] for i in range(1000)),
    )


def paired() -> None:
    candidates, references = words(0, 10_000), words(10_000, 20_000)
    beside_nltk(
        "paired BLEU, 10,000",
        lambda: corpora.paired_bleu_scores(candidates, references, 5, "epsilon"),
        candidates,
        lambda: ([r] for r in references),
    )


def bleu() -> None:
    candidates, references = words(0, 10_000), words(10_000, 20_000)
    report(
        "BLEU, 10,000 and 10,000",
        lambda: text.bleu_scores(candidates, references, 5, "epsilon"),
        compiled("BLEU", references, candidates),
    )


def self_bleu(size: int) -> None:
    candidates = words(0, size)
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
    spent, _ = least(ours, rounds=RUNS)
    sort, _ = least(lambda: [np.argsort(x) for x in keys], rounds=RUNS)
    print(f"{name}: {spent:.3f} s, {spent / sort:.1f} times argsort ({sort:.3f} s)")


def sorts() -> None:
    spent, corpus = least(text.as_corpus, words(0, 50_000), rounds=RUNS)
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


def trigram_rates(candidates: list, references: list) -> None:
    rates(text.as_corpus(candidates), text.as_corpus(references), 3)


def both_bleu(candidates: list, references: list) -> None:
    text.bleu(candidates, references, 3)
    text.self_bleu(candidates, 3)


def both_by_nltk(candidates: list, references: list) -> None:
    from nltk.translate.bleu_score import sentence_bleu

    warnings.simplefilter("ignore")
    for i, one in enumerate(candidates):
        for known in references, candidates[:i] + candidates[i + 1 :]:
            sentence_bleu(known, one, (1 / 3,) * 3)


def growth() -> None:
    few, many = (50, 100, 200, 400), (2_500, 5_000, 10_000, 20_000)
    sides = {
        "CR, NRR and CND": (trigram_rates, many),
        "BLEU-3 and Self-BLEU-3": (both_bleu, many),
        "the same by NLTK": (both_by_nltk, few),
    }
    for name, (measured, sizes) in sides.items():
        parts = ((words(0, k), words(20_000, 20_000 + k)) for k in sizes)
        spent = [least(measured, *part, rounds=3)[0] for part in parts]
        power = np.polyfit(np.log(sizes), np.log(spent), 1)[0]
        print(f"{name}, {sizes[0]:,} to {sizes[-1]:,} a side: size^{power:.2f}")


if __name__ == "__main__":
    run(
        {
            "nltk": nltk,
            "paired": paired,
            "bleu": bleu,
            "self": lambda: self_bleu(10_000),
            "large": lambda: self_bleu(50_000),
            "sorts": sorts,
            "growth": growth,
        }
    )
