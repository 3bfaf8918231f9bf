"""N-grams of texts counted one at a time, with Python's Counter."""

from collections import Counter


def ngrams_of(text, n) -> list[tuple]:
    """The n-grams of a text, a list of tokens, in their order."""
    return [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]


def counted(texts, n) -> Counter:
    """How often each n-gram occurs within the texts.

    Example:
        >>> counted([["a", "b", "a", "b"], ["b"]], 2)
        Counter({('a', 'b'): 2, ('b', 'a'): 1})
    """
    return Counter(g for text in texts for g in ngrams_of(text, n))


def frequencies(texts, n) -> dict:
    """Counts over their total."""
    counts = counted(texts, n)
    return {ngram: count / counts.total() for ngram, count in counts.items()}
