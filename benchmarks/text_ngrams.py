"""Time n-gram tables of all IMDB sentences against collections.Counter.

    python benchmarks/text_ngrams.py

Both sides start from the same prepared corpus. The ratio is what counts: it is
measured in one run, so that it hardly depends on the machine.
"""

import time
from collections import Counter

from qdtheory.text import Corpus, imdb, ngram_counts, prepare


def count_by_hand(sentences: list[tuple], n: int) -> Counter:
    return Counter(
        ngram
        for sentence in sentences
        for ngram in zip(*(sentence[k:] for k in range(n)), strict=False)
    )


def seconds(function, *arguments) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def main() -> None:
    corpus: Corpus = prepare(
        imdb(None), min_count=50, rare="unk", max_unknown=4, min_length=5, max_length=40
    )
    sentences = list(corpus)
    print(corpus)
    print("n  table [s]  Counter [s]  ratio  half the corpus [s]")
    for n in (1, 2, 3, 4, 6):
        table = min(seconds(ngram_counts, corpus, n) for _ in range(3))
        half = min(
            seconds(ngram_counts, corpus[: len(corpus) // 2], n) for _ in range(3)
        )
        counter = seconds(count_by_hand, sentences, n)
        print(
            f"{n}  {table:9.3f}  {counter:11.3f}  {counter / table:5.1f}  {half:9.3f}"
        )


if __name__ == "__main__":
    main()
