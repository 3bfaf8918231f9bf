"""Measure Montahaei et al. 2019's row "Real Data" of COCO; write real_row.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_real_row.py

FOLDER holds coco60/train.txt and coco60/test.txt of the repository Danial-Alh/FastBLEU,
whose author is one of the paper's. Sentences with a word that train.txt has less often
than "min_count" are dropped. The paper does not say which number that is, nor how many
sentences a Self-BLEU takes. About a minute on one core.

    MS-Jaccard  of the first sentences of train.txt and all of test.txt
    BLEU        the same; candidates are the first 10,000. Then of the first 10,000 of
                test.txt, with other numbers of references out of train.txt
    Self-BLEU   of the first sentences of train.txt
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from tables import corpora, versions, write

from qdtheory import text
from qdtheory.text import Corpus

MIN_COUNTS = (1, 3, 5)
NUM_TRAINING = 40_000  # as in the paper, section 4.1
NUM_CANDIDATES = 10_000
REFERENCE_SIZES = (22_000, 24_000, 26_000)
SELF_BLEU_SIZES = (5_000, 6_000, 10_000, 20_000)
MAX_ORDER = 5


def with_words(corpus: Corpus, known: set[str]) -> Corpus:
    """The sentences all of whose words are known."""
    return corpus[np.array([known.issuperset(sentence) for sentence in corpus])]


def rows(min_count: int, train: Corpus, test: Corpus) -> Iterator[list]:
    """The three metrics, a row for each order."""
    counts = Counter(word for sentence in train for word in sentence)
    known = {word for word, count in counts.items() if count >= min_count}
    train, test = with_words(train, known)[:NUM_TRAINING], with_words(test, known)
    one, other = train[:NUM_CANDIDATES], test[:NUM_CANDIDATES]
    found = {
        ("MS-Jaccard", len(train), len(test)): text.ms_jaccard(train, test, MAX_ORDER),
        ("BLEU", len(one), len(test)): text.bleu(one, test, MAX_ORDER),
    }
    for size in REFERENCE_SIZES:
        found["BLEU", len(other), size] = text.bleu(other, train[:size], MAX_ORDER)
    for size in SELF_BLEU_SIZES:
        found["Self-BLEU", size, size - 1] = text.self_bleu(train[:size], MAX_ORDER)
    for (metric, size, references), values in found.items():
        for n, value in enumerate(values, start=1):
            yield [min_count, metric, n, size, references, float(value)]


def main() -> None:
    """Measure, then write the table in one go."""
    train, test = (
        text.read_corpus(corpora() / f"coco60/{name}.txt", tokenizer="whitespace")
        for name in ("train", "test")
    )
    table = [row for k in MIN_COUNTS for row in rows(k, train, test)]
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_real_row.py",
        f"{versions('numpy')}; smoothing epsilon",
    )
    columns = "min_count,metric,order,candidates,references,value"
    write("real_row.csv", comments, columns.split(","), table)


if __name__ == "__main__":
    main()
