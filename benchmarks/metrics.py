"""Time the metrics since 2020 on 10,000 captions against the packages that have them.

    QDTHEORY_DATA=FOLDER python benchmarks/metrics.py [NUM_TEXTS]

FOLDER holds coco60/train.txt, one caption a line. The rivals are vendi-score, diversity
and rouge-score (`make bench`); their files are loaded alone, since what is timed does
not need all their requirements, such as PyTorch. Vendi is of the captions' MiniLM
features, which need the extra "embeddings". Both sides run in one process, one after
the other, and are timed by CPU; of the rounds the fastest counts. Captions are cut into
words by rouge-score's own rule, so that all sides see the same words. Where definitions
agree, values are equal to 1e-9. They differ so:

* vendi-score's `score_dual` is the covariance route; its `score_X` takes order 1
  whatever q is, and an infinite order is the text "inf".
* rouge-score lower-cases a text and cuts it at what is no letter or digit; of the raw
  caption our words are those between spaces, punctuation among them.
* diversity rounds ROUGE-L and n-gram diversity to 3 digits; the former is 1 if no two
  texts share a word, the latter counts n-grams that run from one text into the next;
  its gzip ratio compresses the compressed file again. Self-repetition agrees.
* None of them has distinct_k. Its rival is the estimator in whole numbers, one binomial
  a class.
"""

import importlib.util
import sys
from collections import Counter
from functools import partial
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
from lab import corpora
from measure import captions, least

from qdtheory import text

once, timed = partial(least, rounds=1), partial(least, rounds=3)


def rival(package: str, name: str):
    """Load one file of a package without its `__init__`."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"no package {package}: make bench")
    path = Path(next(iter(spec.submodule_search_locations)), name)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def vendi(texts: list[str]) -> None:
    """Vendi of order 1 by the covariance, and its price in products."""
    features = corpora.embed(texts).astype(float)
    ours, value = timed(corpora.vendi_score, features)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    base, _ = timed(lambda: np.linalg.eigh(unit.T @ unit / len(unit)))
    theirs, expected = timed(rival("vendi_score", "vendi.py").score_dual, features)
    assert abs(value - expected) < 1e-9 * expected
    print(
        f"Vendi of MiniLM, {features.shape}: {value:.3f} in {ours:.2f} s, "
        f"{ours / base:.1f} times a covariance and its eigh; "
        f"vendi-score {theirs / ours:.1f} times ours"
    )


def self_repetition(texts: list[str]) -> None:
    ours, value = timed(corpora.self_repetition, texts, 4)
    score = rival("diversity", "self_repetition.py").self_repetition_score
    theirs, expected = once(score, texts, 4, False)
    assert abs(value - expected) < 1e-9
    print(
        f"self-repetition: {value:.4f} in {ours:.2f} s; "
        f"diversity {theirs / ours:.0f} times that"
    )

    value = corpora.ngram_diversity(texts, 4)
    other = rival("diversity", "ngram_diversity.py").ngram_diversity_score(texts, 4)
    print(f"n-gram diversity: {value:.4f}; diversity {other}, across texts")


def rouge_l(texts: list[str], raw: list[str]) -> None:
    from rouge_score import rouge_scorer

    ours, value = once(text.pairwise_rouge_l, texts)
    scorer, few = rouge_scorer.RougeScorer(["rougeL"]), texts[:200]
    pairs = list(combinations(few, 2))
    theirs, found = timed(
        lambda: [scorer.score(a, b)["rougeL"].fmeasure for a, b in pairs]
    )
    assert abs(np.mean(found) - text.pairwise_rouge_l(few)) < 1e-9
    number = len(texts) * (len(texts) - 1) // 2
    ratio = theirs / len(pairs) * number / ours
    print(f"ROUGE-L of {number:,} pairs: {value:.5f} in {ours:.1f} s;")
    print(f"  rouge-score {ratio:.0f} times, by the pair; of raw captions", end=" ")
    print(f"{text.pairwise_rouge_l(raw):.5f}")


def distinct_k(texts: list[str], k: int = 100) -> None:
    def whole():
        counts, n = Counter(texts), len(texts)
        ways = comb(n, k)
        return sum((ways - comb(n - c, k)) / ways for c in counts.values())

    ours, value = timed(corpora.distinct_k, texts, k)
    theirs, expected = once(whole)
    assert abs(value - expected) < 1e-9 * expected
    print(
        f"distinct_{k}: {value:.4f} in {ours:.3f} s; "
        f"binomials {theirs / ours:.0f} times that"
    )


def main() -> None:
    from rouge_score import tokenize

    raw = captions(0, int((sys.argv[1:] or [10_000])[0]))
    texts = [" ".join(tokenize.tokenize(line, None)) for line in raw]
    distinct_k(texts)
    self_repetition(texts)
    rouge_l(texts, raw)
    vendi(raw)


if __name__ == "__main__":
    main()
