"""MS-Jaccard: overlap of the n-gram multisets of two corpora."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from qdtheory.text.corpus import Texts, as_corpus
from qdtheory.text.defaults import MAX_ORDER
from qdtheory.text.ngrams import Countable, check_order, ngram_counts, shared_ngrams


def jaccard_index(candidates: Countable, references: Countable, n: int) -> float:
    r"""Jaccard index of the n-gram multisets of two corpora, counted per sentence.

    $J_n = \sum_g \min(a_g, b_g) / \sum_g \max(a_g, b_g)$, where $a_g$, $b_g$ are the
    counts of g in the two corpora divided by their numbers of sentences. Empty
    sentences have no n-grams but count as sentences.

    Args:
        candidates: a `Corpus`, list of strings, list of token lists, or table.
        references: real text in the same form.
        n: the order, at least 1.

    Returns:
        A number in [0, 1]; 1 iff the counts per sentence are equal.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`; or strings against token ids.

    References:
        Montahaei et al. 2019, equation 1.

    Example:
        >>> jaccard_index(["a b", "a c"], ["a b c"], 2)
        0.2
    """
    q, p = ngram_counts(candidates, n), ngram_counts(references, n)
    a, b = q.counts / len(q.corpus), p.counts / len(p.corpus)
    rows, others = shared_ngrams(q, p)
    common = np.minimum(a[rows], b[others]).sum()
    return float(common / (a.sum() + b.sum() - common))


def ms_jaccard(
    candidates: Texts, references: Texts, max_order: int = MAX_ORDER
) -> Float[np.ndarray, " orders"]:
    r"""Geometric means of the Jaccard indices of orders 1 to n.

    $\mathrm{MSJ}_n = (J_1 \cdots J_n)^{1/n}$. Symmetric; increases with the number of
    sentences and depends on their lengths: only compare samples of equal size.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists.
        references: real text in the same form.
        max_order: highest order of the n-grams, at least 1.

    Returns:
        MS-Jaccard-1 to MS-Jaccard-max_order, each in [0, 1]; 1 for equal corpora.

    Raises:
        TypeError: see `ngram_counts`.
        ValueError: see `ngram_counts`; or strings against token ids.

    References:
        Montahaei et al. 2019, section 3.2.1.

    Example:
        >>> ms_jaccard(["a b", "a c"], ["a b c"], max_order=2).round(4).tolist()
        [0.6667, 0.3651]
    """
    check_order(max_order, "max_order")
    left, right = as_corpus(candidates), as_corpus(references)
    orders = range(1, max_order + 1)
    return geometric_means([jaccard_index(left, right, n) for n in orders])


def geometric_means(values: Sequence[float]) -> Float[np.ndarray, " values"]:
    """Running geometric means.

    Args:
        values: nonnegative numbers.

    Returns:
        The geometric mean of the first k values, for each k.

    Example:
        >>> geometric_means([4.0, 1.0, 0.0]).round(12).tolist()
        [4.0, 2.0, 0.0]
    """
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    return np.exp(np.cumsum(logs) / np.arange(1, len(values) + 1))
