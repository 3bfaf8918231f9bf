"""BLEU beyond the closed form: from draws, and with pooled counts."""

import math
from collections import Counter
from itertools import combinations_with_replacement

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from qdtheory.bleu import require_references
from qdtheory.bleu_formula import (
    Matches,
    Smoothing,
    bleu_of_matches,
    closest_length,
    matches,
    require_smoothing,
)
from qdtheory.distributions import as_distributions, require_positive
from qdtheory.ngrams import ngram_matrix
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import PerText
from qdtheory.support.records import Estimate


def estimate_bleu(
    candidates: Int[ArrayLike, "draws length"],
    references: Int[ArrayLike, "draws references other_length"],
    max_order: int = 4,
    smoothing: Smoothing = None,
) -> Estimate:
    """Expected BLEU by Monte Carlo, for spaces too large to enumerate.

    Each draw is one candidate with its own references; for Self-BLEU, draw both from
    the model. Conventions as in `expected_bleu`.

    Args:
        candidates: tokens, shape (S, L), -1 after the end of a text.
        references: tokens, shape (S, n, L'), -1 after the end of a text.
        max_order: highest order of the n-grams.
        smoothing: None, or "epsilon".

    Returns:
        The means of BLEU-1 to BLEU-max_order with their standard errors, and Student's
        intervals at level 0.95.

    Raises:
        ValueError: wrong shapes, fewer than two draws, different numbers of draws, an
            empty text, or a bad max_order or smoothing.

    Example:
        >>> candidates = np.array([[0, 1, 1], [0, 0, 1]])
        >>> references = np.array([[[0, 1, 1]], [[1, 1, 1]]])
        >>> estimate_bleu(candidates, references, max_order=2).value.round(4).tolist()
        [0.6667, 0.5]
    """
    from scipy.special import stdtrit  # late: slow to import

    texts, others = np.asarray(candidates), np.asarray(references)
    require_positive(max_order=max_order)
    require_smoothing(smoothing)
    if texts.ndim != 2 or others.ndim != 3 or len(texts) != len(others):
        raise ValueError(
            "candidates must have shape (draws, length) and references (draws, "
            f"references, length), got {texts.shape} and {others.shape}"
        )
    if len(texts) < 2:
        raise ValueError(f"a standard error needs at least 2 draws, got {len(texts)}")
    length, lengths = ((x >= 0).sum(axis=-1) for x in (texts, others))
    if lengths.size == 0 or min(length.min(), lengths.min()) == 0:
        raise ValueError("no text may be empty, and each draw needs a reference")
    clipped = np.array(
        [_clipped_matches(texts, others, n) for n in range(1, max_order + 1)]
    )
    # The closest length, the shorter on ties.
    ascending = np.sort(lengths, axis=1)
    nearest = np.abs(ascending - length[:, None]).argmin(axis=1)
    closest = ascending[np.arange(len(ascending)), nearest]
    scores = bleu_of_matches(matches(clipped, length, closest), smoothing)
    mean, error = scores.mean(axis=1), scores.std(axis=1, ddof=1) / len(texts) ** 0.5
    margin = stdtrit(len(texts) - 1, 0.975) * error
    return Estimate(mean, mean - margin, mean + margin, error)


def _clipped_matches(texts: np.ndarray, others: np.ndarray, n: int) -> np.ndarray:
    """Count the clipped n-gram matches of each text with its references."""
    if n > min(texts.shape[1], others.shape[2]):
        return np.zeros(len(texts), int)
    own, theirs = (
        np.lib.stride_tricks.sliding_window_view(x, n, axis=-1) for x in (texts, others)
    )
    whole = own[..., -1] >= 0
    same = (own[:, :, None] == own[:, None]).all(axis=-1)
    # A text's j-th occurrence of an n-gram needs a reference with at least j.
    occurrence = np.tril(same).sum(axis=-1)
    equal = (own[:, None, :, None] == theirs[:, :, None]).all(axis=-1)
    most = equal.sum(axis=-1).max(axis=1)
    return (whole & (most >= occurrence)).sum(axis=1)


def expected_corpus_bleu(
    space: TextSpace,
    q: PerText,
    p: PerText,
    max_order: int = 4,
    num_references: int = 2,
    num_candidates: int = 2,
    smoothing: Smoothing = None,
) -> Float[Array, " orders"]:
    r"""Expected BLEU of several candidates with pooled counts (corpus BLEU).

    All candidates share the references. Given these the candidates are independent,
    so their counts are convolved, once for each of the $\binom{N + n - 1}{n}$
    multisets of references: for small spaces only. The result is a polynomial of
    degree `num_candidates` in q.

    Estimated by `qd.text.bleu(..., smoothing=None, aggregate="pooled")`.

    Args:
        space: the texts.
        q: the model, shape (num_texts,).
        p: the real distribution, shape (num_texts,).
        max_order: highest order of the n-grams.
        num_references: n.
        num_candidates: m.
        smoothing: None, or "epsilon".

    Returns:
        BLEU-1 to BLEU-max_order, each in [0, 1]; for one candidate equal to
        `expected_bleu`.

    Raises:
        ValueError: as in `expected_bleu`, or more than a million multisets.

    References:
        Li et al. 2020, section 5.1, which pools m candidates.

    Claims: N7.21.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> p = np.array([0.5, 0.5])
        >>> expected_corpus_bleu(space, p, p, max_order=1, num_candidates=3).tolist()
        [0.75]
    """
    require_positive(max_order=max_order)
    require_smoothing(smoothing)
    require_references("num_references", num_references)
    require_references("num_candidates", num_candidates)
    q, p = map(np.asarray, as_distributions(space.num_texts, q=q, p=p))
    multisets = math.comb(space.num_texts + num_references - 1, num_references)
    if multisets > 10**6:
        raise ValueError(
            f"pooled BLEU sums over {multisets:,} multisets of references, 1,000,000 "
            "at most; take fewer references, or expected_bleu for one candidate"
        )
    longest = min(max_order, space.max_length)
    tables = [ngram_matrix(space, n) for n in range(1, longest + 1)]
    total = np.zeros(max_order)
    for multiset in combinations_with_replacement(np.flatnonzero(p), num_references):
        references = np.array(multiset)
        against = _against(references, tables, space.text_lengths, max_order)
        pooled, chances = _pooled(against, q, num_candidates)
        times = map(math.factorial, Counter(multiset).values())
        orderings = math.factorial(num_references) / math.prod(times)
        scores = bleu_of_matches(pooled, smoothing) @ chances
        total += orderings * p[references].prod() * scores
    return jnp.asarray(total)


def _against(
    references: np.ndarray, tables: list[np.ndarray], lengths: np.ndarray, orders: int
) -> Matches:
    """Matches of every text of a space with references from it."""
    clipped = np.zeros((orders, len(lengths)), int)
    for row, counts in zip(clipped, tables):
        most = counts[:, references].max(axis=1, keepdims=True)
        row[:] = np.minimum(counts, most).sum(axis=0)
    closest = closest_length(lengths, np.unique(lengths[references])).astype(int)
    return matches(clipped, lengths, closest)


def _pooled(
    matches: Matches, q: np.ndarray, num_candidates: int
) -> tuple[Matches, np.ndarray]:
    """Sums of the statistics of several texts from q, and their probabilities."""
    rows = np.vstack([*matches])
    sizes = tuple(num_candidates * rows.max(axis=1) + 1)
    numbers = np.asarray(np.ravel_multi_index(tuple(rows), sizes))
    sums, chances = _sum_of_draws(numbers, q, num_candidates)
    *digits, length, closest = np.unravel_index(sums, sizes)
    counts, possible = np.split(np.array(digits), 2)
    return Matches(counts, possible, length, closest), chances


def _sum_of_draws(
    values: np.ndarray, q: np.ndarray, num_draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distribution of a sum of i.i.d. integers."""
    kinds, kind = np.unique(values, return_inverse=True)
    chance = np.bincount(kind, q)
    sums, chances = kinds, chance
    for _ in range(num_draws - 1):
        sums, where = np.unique(sums[:, None] + kinds, return_inverse=True)
        chances = np.bincount(where.ravel(), np.outer(chances, chance).ravel())
    return sums, chances
