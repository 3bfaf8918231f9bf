"""How much a sample repeats its n-grams, as the papers count them."""

import numpy as np

from qdtheory.text.corpus import Texts, as_corpus
from qdtheory.text.defaults import MAX_ORDER
from qdtheory.text.ngrams import Countable, distinct, ngram_counts, require_order


def ngram_diversity(candidates: Texts, max_order: int = MAX_ORDER) -> float:
    """N-gram diversity, the sum of Distinct-1 to Distinct-n.

    Decreases with sample size, as Distinct-n does: only compare samples of equal size.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists.
        max_order: n, at least 1.

    Returns:
        A number in (0, n].

    Raises:
        TypeError, ValueError: see `distinct`.

    References:
        Padmakumar and He 2024; Shaib et al. 2024, whose code also counts n-grams that
        run from one text into the next.

    Claims: N25.18.

    Example:
        >>> ngram_diversity(["a b a b", "b a"], 2)
        0.8333333333333333
    """
    require_order(max_order, "max_order")
    corpus = as_corpus(candidates)
    return sum(distinct(corpus, n) for n in range(1, max_order + 1))


def self_repetition(candidates: Countable, n: int = MAX_ORDER) -> float:
    r"""Self-repetition score, how many n-grams of a text the other texts contain.

    The mean over texts x of $\log(1 + \sum_g (d_g - 1))$, where g runs over the
    distinct n-grams of x and $d_g$ texts contain g. Increases with sample size.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        n: the order, at least 1.

    Returns:
        Nats, at least 0; a text of fewer than n tokens adds 0.

    Raises:
        TypeError, ValueError: see `ngram_counts`.

    References:
        Salkar et al. 2022; Shaib et al. 2024.

    Claims: N25.18.

    Example:
        >>> round(self_repetition(["a b c", "a b d"], 2), 6)
        0.693147
    """
    table = ngram_counts(candidates, n)
    held = table.postings
    others = held.num_sentences[held.ngram] - 1
    others = np.bincount(held.sentence, others, len(table.corpus))
    return float(np.log1p(others).mean())
