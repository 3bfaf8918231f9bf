"""Measure Montahaei et al. 2019's rows "Real Data"; write real_row.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_real_row.py

FOLDER holds coco60/train.txt and coco60/test.txt of the repository Danial-Alh/FastBLEU,
whose author is one of the paper's, for its Table 1; and texygen/test_emnlp.txt of the
repository geek-ai/Texygen for its Table 2. The film reviews of Table 3 install with the
package, a third of those that the paper had. About two minutes on one core.

Of captions, sentences with a word that train.txt has less often than "min_count" are
dropped: the paper does not say which. Of news and reviews, words below it are unknown,
as in the paper; but where it counts them in all its text, we count in ours. Of news
there are 10,000 sentences, where the paper has 500,000; two thirds of what its rule
keeps stand for training, one third for the test. Nor does the paper say how many
sentences a Self-BLEU takes.

    MS-Jaccard  of the training sentences and all of the test
    BLEU        the same; candidates are the first 10,000 at most. Of captions also of
                the first 10,000 of the test, with other numbers of references
    Self-BLEU   of the first sentences for training
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from lab.corpora import imdb, prepare
from make_table2 import WORD
from tables import corpora, versions, write

from qdtheory import text
from qdtheory.text import Corpus

MIN_COUNTS = (1, 3, 5)
NUM_TRAINING = 40_000  # as in the paper, section 4.1
NUM_REVIEWS = 20_000  # likewise, for training; half as many for the test
NUM_CANDIDATES = 10_000
REFERENCE_SIZES = (22_000, 24_000, 26_000)
SELF_BLEU_SIZES = (5_000, 6_000, 10_000, 20_000)
MAX_ORDER = 5
# 150 of 500,000 sentences, and more.
NEWS_COUNTS = (3, 10)
# A third of the paper's count for a third of its reviews, its own, and one between.
REVIEW_COUNTS = (17, 30, 50)
NEWS = {"rare": "unk", "max_unknown": 3, "min_length": 20, "max_length": 40}
REVIEWS = {"rare": "unk", "max_unknown": 4, "min_length": 5, "max_length": 40}


def with_words(corpus: Corpus, known: set[str]) -> Corpus:
    """The sentences all of whose words are known."""
    return corpus[np.array([known.issuperset(sentence) for sentence in corpus])]


def measured(train: Corpus, test: Corpus) -> dict[tuple[str, int, int], np.ndarray]:
    """All metrics of training sentences against those of the test."""
    one = train[:NUM_CANDIDATES]
    found = {
        ("MS-Jaccard", len(train), len(test)): text.ms_jaccard(train, test, MAX_ORDER),
        ("BLEU", len(one), len(test)): text.bleu(one, test, MAX_ORDER),
    }
    for size in SELF_BLEU_SIZES:
        if size <= len(train):
            found["Self-BLEU", size, size - 1] = text.self_bleu(train[:size], MAX_ORDER)
    return found


def rows(
    corpus: str, min_count: int, found: dict[tuple[str, int, int], np.ndarray]
) -> Iterator[list]:
    """A row for each order."""
    for (metric, size, references), values in found.items():
        for n, value in enumerate(values, start=1):
            yield [corpus, min_count, metric, n, size, references, float(value)]


def captions(min_count: int, train: Corpus, test: Corpus) -> Iterator[list]:
    """Table 1; BLEU also with references out of the training sentences."""
    counts = Counter(word for sentence in train for word in sentence)
    known = {word for word, count in counts.items() if count >= min_count}
    train, test = with_words(train, known)[:NUM_TRAINING], with_words(test, known)
    found, other = measured(train, test), test[:NUM_CANDIDATES]
    for size in REFERENCE_SIZES:
        found["BLEU", len(other), size] = text.bleu(other, train[:size], MAX_ORDER)
    return rows("COCO", min_count, found)


def main() -> None:
    """Measure, then write the table in one go."""
    train, test = (
        text.read_corpus(corpora() / f"coco60/{name}.txt", tokenizer="whitespace")
        for name in ("train", "test")
    )
    table = [row for k in MIN_COUNTS for row in captions(k, train, test)]
    lines = (corpora() / "texygen/test_emnlp.txt").read_text("utf-8").splitlines()
    words = [WORD.findall(line.lower()) for line in lines]
    for k in NEWS_COUNTS:
        news = prepare(words, min_count=k, **NEWS, seed=0)
        third = len(news) // 3
        found = measured(news[: 2 * third], news[2 * third : 3 * third])
        table += rows("news", k, found)
    for k in REVIEW_COUNTS:
        source = imdb(sentences_per_review=2)
        real = prepare(source, min_count=k, **REVIEWS, seed=0)
        test = real[NUM_REVIEWS : NUM_REVIEWS * 3 // 2]
        table += rows("IMDB", k, measured(real[:NUM_REVIEWS], test))
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_real_row.py",
        f"{versions('numpy')}; smoothing epsilon; news and reviews shuffled, seed 0",
    )
    columns = "corpus,min_count,metric,order,candidates,references,value"
    write("real_row.csv", comments, columns.split(","), table)


if __name__ == "__main__":
    main()
