"""Verdicts of `doctor`: their level, pairs that it must tell, time and memory.

    QDTHEORY_DATA=FOLDER python benchmarks/text_doctor.py [level | bars | large]

FOLDER holds coco60/train.txt and texygen/test_emnlp.txt; the reviews are installed.

* `level`: 200 runs on sound pairs, CR-n with NRR-n and the sides of a squared MMD, of
  2,000 to 10,000 texts drawn from captions, news or reviews.
* `bars`: four pairs on all sentences of the reviews. NLTK and rouge-score measure the
  witness, against sentences that `doctor` has not had.
* `large`: BLEU-2 with Self-BLEU-2 on 50,000 sentences.
"""

from collections.abc import Callable
from itertools import cycle, pairwise, product
from os import environ
from pathlib import Path

import numpy as np
from lab.corpora import imdb
from measure import peak, run, seconds

from qdtheory import text

NUM_RUNS, SIZES = 200, (2_000, 5_000, 10_000)
LEVEL = 0.05
# Widths of the kernel that compares lengths in letters, and the longest.
WIDTH, LONGEST = 20, 400
HELD_OUT, LOT, NUM_LOTS = 40_000, 500, 40
# Texts of a lot that NLTK scores, which takes its time.
FEW = 150


def features(texts: list[str]) -> np.ndarray:
    """The sum of the texts' features, whose inner product is the kernel."""
    lengths = np.bincount([min(len(x), LONGEST) for x in texts], minlength=LONGEST + 1)
    return np.convolve(lengths, np.ones(WIDTH))


def likeness(texts: list[str], references: list[str]) -> float:
    """The quality of a squared MMD."""
    of_all = features(texts) @ features(references)
    return float(of_all / len(texts) / len(references))


def spread(texts: list[str]) -> float:
    """Its diversity: a text with itself is no pair."""
    size, own = len(texts), features(texts)
    return float((WIDTH * size - own @ own) / size / (size - 1))


SOUND = (("CR-1", "NRR-1"), ("CR-2", "NRR-2"), ("CR-3", "NRR-3"), (likeness, spread))


def corpora() -> list[list[str]]:
    """Captions, news and reviews."""
    names = "coco60/train.txt", "texygen/test_emnlp.txt"
    files = (Path(environ["QDTHEORY_DATA"], name) for name in names)
    lines = [file.read_text(encoding="utf-8").splitlines() for file in files]
    return [*lines, reviews()]


def reviews() -> list[str]:
    return [" ".join(sentence) for sentence in imdb(None)]


def level() -> None:
    """How often a sound pair is said to be beaten."""
    kinds, found = corpora(), []
    settings = cycle(product(SOUND, range(len(kinds)), SIZES))
    for seed, (pair, kind, size) in zip(range(NUM_RUNS), settings):
        texts = kinds[kind]
        rows = np.random.default_rng(seed).choice(len(texts), size, replace=False)
        some = [texts[i] for i in rows]
        found.append(text.doctor(*pair, some, calls=150, seed=seed).beaten)
    beaten, unsaid = found.count(True), found.count(None)
    print(
        f"sound pairs: {beaten} of {NUM_RUNS} beaten at level {LEVEL}, {unsaid} unsaid"
    )


def bleu_of(n: int) -> tuple[Callable, Callable]:
    """BLEU-n and minus Self-BLEU-n of lots, by NLTK."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    weights, smooth = [1 / n] * n, SmoothingFunction().method1

    def one(candidate: str, references: list[list[str]]) -> float:
        words = candidate.split()
        return float(sentence_bleu(references, words, weights, smooth))  # type: ignore

    def bleu(texts: list[str], references: list[str]) -> float:
        real = [x.split() for x in references]
        return float(np.mean([one(x, real) for x in texts[:FEW]]))

    def negative_self_bleu(texts: list[str]) -> float:
        own = [x.split() for x in texts]
        scores = (one(x, own[:i] + own[i + 1 :]) for i, x in enumerate(texts[:FEW]))
        return -float(np.mean([*scores]))

    return bleu, negative_self_bleu


def rouge_and_distinct() -> tuple[Callable, Callable]:
    """ROUGE-L by rouge-score, and distinct bigrams by a set."""
    from rouge_score import rouge_scorer

    scorer = rouge_scorer.RougeScorer(["rougeL"], tokenizer=Words())

    def rouge(texts: list[str], references: list[str]) -> float:
        pairs = zip(texts * 5, np.roll(references, 1).tolist() * 5)
        scores = [scorer.score(a, b)["rougeL"].fmeasure for a, b in pairs]
        return float(np.mean(scores))

    def distinct(texts: list[str]) -> float:
        words = [x.split() for x in texts]
        pairs = [pair for x in words for pair in pairwise(x)]
        return len(set(pairs)) / len(pairs)

    return rouge, distinct


class Words:
    """Cuts at white space, for rouge-score."""

    def tokenize(self, sentence: str) -> list[str]:
        """Words."""
        return sentence.split()


def bars() -> None:
    """Verdicts on all reviews, and gains of witnesses by others' code."""
    texts = reviews()
    order = np.random.default_rng(0).permutation(len(texts))
    unseen = [texts[i] for i in order[:HELD_OUT]]
    seen = [texts[i] for i in order[HELD_OUT:]]
    outside = {
        ("CR-2", "NRR-2"): None,
        ("BLEU-2", "Self-BLEU-2"): bleu_of(2),
        ("BLEU-4", "Self-BLEU-4"): bleu_of(4),
        ("ROUGE-L", "distinct-2"): rouge_and_distinct(),
    }
    for pair, others in outside.items():
        taken, found = seconds(text.doctor, *pair, seen)
        print(
            f"{' with '.join(pair)}: {found.verdict}, p = {found.p_value:.1g}", end=""
        )
        print(f", {taken:.0f} s")
        if others and found.beaten:
            confirmed(found.witness, unseen, *others)


def confirmed(witness, unseen: list[str], quality, diversity) -> None:
    """Gains over lots of unseen text, against references of unseen text."""
    gains = []
    for k in range(min(NUM_LOTS, len(witness) // LOT)):
        drawn = witness[k * LOT : (k + 1) * LOT]
        fresh, real = (
            unseen[(2 * k + i) * LOT : (2 * k + i + 1) * LOT] for i in range(2)
        )
        gains.append(
            [
                quality([*drawn], real) - quality(fresh, real),
                diversity([*drawn]) - diversity(fresh),
            ]
        )
    means, errors = np.mean(gains, 0), np.std(gains, 0, ddof=1) / len(gains) ** 0.5
    shown = ", ".join(f"{m:+.4f} +- {e:.4f}" for m, e in zip(means, errors))
    print(f"  by others' code on unseen sentences: {shown}")
    print("  confirmed" if (means > 0).all() else "  NOT CONFIRMED")


def large() -> None:
    """Time and memory."""
    texts = reviews()[:50_000]
    taken, found = seconds(text.doctor, "BLEU-2", "Self-BLEU-2", texts)
    print(f"50,000 sentences: {found.verdict}, {taken:.0f} s, {peak():.0f} MB")


if __name__ == "__main__":
    run({"level": level, "bars": bars, "large": large})
