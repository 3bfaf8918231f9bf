r"""Metrics of k draws, estimated without bias from n >= k samples.

The same names in `lab.metrics` and `qdtheory` give the expectations. A class is a
sentence, so that equal sentences are one class, or a label, such as the number of a
cluster that a classifier of meaning has put a sample in.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from qdtheory.text.checks import require_whole
from qdtheory.text.ngrams import expected_distinct

SAMPLES = ", the number of samples"


def class_counts(classes: Iterable[Any]) -> Counter[Hashable]:
    """Count the samples of each class; a list of tokens is a class as a tuple is."""
    if isinstance(classes, str):
        raise TypeError("classes: expected one class a sample, got a single string")
    counts: Counter[Hashable] = Counter(
        tuple(c) if isinstance(c, list) else c for c in classes
    )
    if not counts:
        raise ValueError("classes: expected at least one sample, got none")
    return counts


def _chance_unseen(n: int | np.ndarray, counts: np.ndarray, draws: int) -> np.ndarray:
    """Chances, shape (draws + 1, classes), that 0, 1, ... of n contain no sample."""
    steps = np.arange(draws)[:, None]
    ratios = np.maximum(n - counts - steps, 0) / (n - steps)
    return np.concatenate([np.ones((1, len(counts))), np.cumprod(ratios, axis=0)])


def distinct_k(classes: Iterable[Any], k: int) -> float:
    r"""Expected number of different classes among k samples, without bias.

    $\sum_c 1 - \binom{n - n_c}{k} / \binom{n}{k}$, the mean over all subsets of k of
    the n samples: the estimator of rarefaction curves, and of pass@k.

    Args:
        classes: one class a sample: labels, strings, token lists, or a `Corpus`.
        k: number of draws, from 1 to n.

    Returns:
        A number in [1, k]; its expectation is `metrics.distinct_k(q, k)`.

    Raises:
        TypeError: a single string.
        ValueError: k is not a whole number from 1 to the number of samples.

    References:
        Hurlbert 1971; Zhang et al. 2025 (NoveltyBench) take n = k.

    Claims: N25.4.

    Example:
        >>> round(distinct_k(["heads", "heads", "tails"], 2), 6)
        1.666667
    """
    counts = np.array(list(class_counts(classes).values()))
    n = int(counts.sum())
    require_whole("k", k, 1, n, SAMPLES)
    return expected_distinct(*np.unique(counts, return_counts=True), n, k)


def utility_k(
    classes: Sequence[Any],
    utilities: Float[ArrayLike, " samples"] | Sequence[int | float],
    k: int,
    patience: int | float = 0.8,
) -> float:
    r"""Mean utility of k samples to a reader who wants each answer once, without bias.

    The mean of NoveltyBench's utility_k over all sequences of k of the n samples.
    Unequal utilities within a class are replaced by their mean.

    Args:
        classes: one class a sample, as in `distinct_k`.
        utilities: the utility of each sample, shape (n,).
        k: number of draws, from 1 to n.
        patience: p, in [0, 1].

    Returns:
        A number; its expectation is `metrics.utility_k(q, utilities, k, patience)`.

    Raises:
        TypeError: a single string.
        ValueError: k is not a whole number from 1 to the number of samples, the
            utilities are not one a sample, or the patience is not in [0, 1].

    References:
        Zhang et al. 2025 (NoveltyBench), with n = k.

    Claims: N25.5.

    Example:
        >>> utility_k(["a", "a", "b"], [1, 1, 0], 2, patience=1)
        0.5
    """
    counts = class_counts(classes)
    values = np.asarray(utilities, float)
    sizes = np.array(list(counts.values()))
    n = int(sizes.sum())
    require_whole("k", k, 1, n, SAMPLES)
    if values.shape != (n,):
        raise ValueError(
            f"utilities: expected one a sample, shape ({n},), got {values.shape}"
        )
    if not 0 <= patience <= 1:
        raise ValueError(f"patience must be in [0, 1], got {patience}")
    number = {c: i for i, c in enumerate(counts)}
    index = [number[tuple(c) if isinstance(c, list) else c] for c in classes]
    means = np.bincount(index, values) / sizes
    weights = float(patience) ** np.arange(k)
    # Draw i + 1 is of class c, the i draws before it are not.
    first = _chance_unseen(n, sizes, k)[:-1] * sizes / (n - np.arange(k)[:, None])
    return float(weights @ (first @ means) / weights.sum())


def pass_at_k(
    num_samples: ArrayLike | Sequence[int],
    num_correct: ArrayLike | Sequence[int],
    k: int,
) -> float:
    r"""pass@k, the mean over problems of $1 - \binom{n - c}{k} / \binom{n}{k}$.

    Args:
        num_samples: n of each problem, or one number for all.
        num_correct: c of each problem, how many of its samples are right.
        k: number of draws, from 1 to the least n.

    Returns:
        A number in [0, 1]; its expectation is `metrics.pass_at_k(successes, k)`.

    Raises:
        ValueError: k is not a whole number from 1 to n, or c is not from 0 to n.

    References:
        Chen et al. 2021 (Codex), equation 1.

    Claims: N25.6.

    Example:
        >>> pass_at_k(10, [1, 0], 5)
        0.25
    """
    n, c = np.broadcast_arrays(np.atleast_1d(num_samples), np.atleast_1d(num_correct))
    require_whole("k", k, 1, int(n.min()), SAMPLES)
    if ((c < 0) | (c > n)).any():
        raise ValueError("num_correct: expected numbers from 0 to num_samples")
    return float((1 - _chance_unseen(n, c, k)[-1]).mean())


def semantic_entropy(classes: Iterable[Any]) -> float:
    r"""Entropy of the frequencies of classes of meaning, in nats.

    Biased downwards, by about (C - 1) / 2n for C classes of which none is rare. No
    estimator from n samples is unbiased: the expectation of each is a polynomial in q,
    and the entropy is none.

    Args:
        classes: one class a sample, as in `distinct_k`.

    Returns:
        A number from 0 to the log of the number of classes.

    Raises:
        TypeError: a single string.

    References:
        Kuhn, Gal and Farquhar 2023, equation 4, with the frequencies of classes.

    Claims: N25.16.

    Example:
        >>> round(semantic_entropy(["yes", "yes", "no", "no"]), 6)
        0.693147
    """
    counts = np.array(list(class_counts(classes).values()))
    shares = counts / counts.sum()
    return float(abs(shares @ np.log(shares)))
