"""Time n-gram tables of all IMDB sentences against collections.Counter.

    python benchmarks/text_ngrams.py

Both sides start from the same prepared corpus. The ratio is what counts: it is
measured in one run, so that it hardly depends on the machine.
"""

import time
from collections import Counter

from lab.corpora import imdb, prepare
from measure import least, seconds

from qdtheory.text import Corpus, ngram_counts


def count_by_hand(sentences: list[tuple], n: int) -> Counter:
    return Counter(
        ngram
        for sentence in sentences
        for ngram in zip(*(sentence[k:] for k in range(n)), strict=False)
    )


def main() -> None:
    corpus: Corpus = prepare(
        imdb(None), min_count=50, rare="unk", max_unknown=4, min_length=5, max_length=40
    )
    sentences = list(corpus)
    print(corpus)
    print("n  table [s]  Counter [s]  ratio  half the corpus [s]")
    for n in (1, 2, 3, 4, 6):
        table, half = (
            least(ngram_counts, part, n, rounds=3, clock=time.perf_counter)[0]
            for part in (corpus, corpus[: len(corpus) // 2])
        )
        counter, _ = seconds(count_by_hand, sentences, n)
        print(
            f"{n}  {table:9.3f}  {counter:11.3f}  {counter / table:5.1f}  {half:9.3f}"
        )


if __name__ == "__main__":
    main()
