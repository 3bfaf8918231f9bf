"""Confidence intervals for metrics of samples, with sentences as independent draws.

An interval is for the expectation of the metric over samples of these sizes, not for
its limit: for a biased plug-in estimator it covers the biased value. If references are
fixed inside the metric, the interval is conditional on them.

The jackknife suits every metric here. By the Efron-Stein inequality its variance
estimate is on average at least 1 - 1/S times the variance at S - 1 sentences; for
Self-BLEU of a few hundred to thousands of captions the standard error was 1.0 to 1.6
times the true one.

A jackknife interval can leave the metric's range. Clipped by `bounds` it covers the
expectation, which is in the range too, exactly when the original does. A transform
instead, such as the logit, is undefined where a metric is 0 or 1, as BLEU-4 often is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from qdtheory.support.records import Estimate
from qdtheory.text.checks import require_positive, require_whole
from qdtheory.text.corpus import Corpus, Texts, as_corpus
from qdtheory.text.defaults import LEVEL, NUM_GROUPS


def jackknife_interval(
    metric: Callable[..., Any],
    *corpora: Texts,
    level: float = LEVEL,
    num_groups: int | None = NUM_GROUPS,
    seed: int = 0,
    bounds: tuple[Any, Any] = (-np.inf, np.inf),
) -> Estimate:
    r"""Delete-a-group jackknife interval, which never repeats a sentence.

    Each corpus is split at random into G groups; $\theta_g$ is the metric without group
    g. $SE^2 = \sum \frac{G - 1}{G} \sum_g (\theta_g - \bar\theta)^2$, where the first
    sum is over the corpora; the interval is the value plus and minus SE times Student's
    quantile with G - 1 degrees of freedom, G of the corpus with the fewest groups. The
    metric is called G times per corpus.

    Args:
        metric: a function of the corpora that returns a number or an array, such as
            `bleu`, or `lambda c: bleu(c, references)` for fixed references.
        corpora: independent samples, each a `Corpus` or any input of `as_corpus`.
        level: the nominal coverage probability, in (0, 1).
        num_groups: G, at least 2 and at most the number of sentences of each corpus;
            None: leave one sentence out at a time.
        seed: seed of the random split.
        bounds: the metric's range, two numbers or two arrays of the metric's shape, to
            which the interval is clipped. The standard error is unaffected.

    Returns:
        The interval, elementwise if the metric returns an array.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; no corpus, a level outside (0, 1), or num_groups
            out of range.

    References:
        Tukey 1958; Kott 2001 (delete-a-group).

    Claims: N12.20.

    Example:
        >>> from qdtheory.text import self_bleu
        >>> texts = ["a b", "a c", "b c", "d e", "f"] * 8
        >>> found = jackknife_interval(lambda c: self_bleu(c, 2)[1], texts)
        >>> print(f"{found.value:.3f} +- {found.standard_error:.3f}")
        0.863 +- 0.038
        >>> few = jackknife_interval(
        ...     lambda c: self_bleu(c, 2)[1], texts[:9], num_groups=9, bounds=(0, 1)
        ... )
        >>> print(f"{few.value:.3f} in [{few.low:.3f}, {few.high:.3f}]")
        0.889 in [0.425, 1.000]
    """
    samples = samples_of(corpora, level)
    rng = np.random.default_rng(seed)
    groups = []
    for i, size in enumerate(map(len, samples)):
        number = size if num_groups is None else num_groups
        why = f", the sentences of corpus {i}"
        require_whole("num_groups", number, 2, size, why)
        groups.append(random_groups(size, number, rng))

    def without(i: int, x: np.ndarray) -> Any:
        return metric(*samples[:i], samples[i][x], *samples[i + 1 :])

    left_out = (
        np.array([without(i, group != g) for g in range(group.max() + 1)], float)
        for i, group in enumerate(groups)
    )
    variances, degrees = zip(*map(jackknife_variance, left_out))
    return interval_of(metric(*samples), sum(variances), min(degrees), level, bounds)


def random_groups(
    size: int, num_groups: int, seed: int | np.random.Generator = 0
) -> Int[np.ndarray, " sentences"]:
    """Deal sentences out to groups of equal size at random, or to one each if few."""
    rng = np.random.default_rng(seed)
    return rng.permutation(np.arange(size) % num_groups)


def jackknife_variance(left_out: Float[np.ndarray, "groups ..."]) -> tuple[Any, int]:
    """Variance of a metric from its values without each group, and its degrees."""
    degrees = len(left_out) - 1
    return degrees * left_out.var(axis=0), degrees


def summed_variance(*left_out: Float[np.ndarray, "_ ..."]) -> tuple[Any, Any]:
    """Add the variances of independent samples, with Welch and Satterthwaite's degrees.

    Example:
        >>> one, other = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 5.0])
        >>> print([round(float(x), 3) for x in summed_variance(one, other)])
        [5.333, 3.2]
    """
    estimates = [jackknife_variance(values) for values in left_out]
    variance = sum(x for x, _ in estimates)
    with np.errstate(invalid="ignore"):  # 0 / 0: no variance, any degrees
        degrees = variance**2 / sum(x**2 / degrees for x, degrees in estimates)
    return variance, np.where(variance > 0, degrees, np.inf)


def interval_of(
    value: Any,
    variance: Any,
    degrees: Any,
    level: float = LEVEL,
    bounds: tuple[Any, Any] = (-np.inf, np.inf),
    rates: Any = False,
) -> Estimate:
    """Student's interval around a value, with a longer end outwards for rates.

    A rate of repeats is skewed, as a count of few events is: where it comes out too
    small, so does its variance, and $|v| + m$ is too low. So its outer end is
    $|v| e^{m / |v|}$, that of the logarithm.

    Example:
        >>> found = interval_of(0.5, 0.01, degrees=19, rates=True)
        >>> print(f"{found.low:.3f} to {found.high:.3f}")
        0.291 to 0.760
    """
    from scipy.special import stdtrit  # late: slow to import

    error = np.sqrt(variance)
    margin = stdtrit(degrees, (1 + level) / 2) * error
    size = np.abs(value)
    with np.errstate(all="ignore"):  # of what is no rate
        outer = np.where(rates, size * np.expm1(margin / size), margin)
    below, above = (np.where(value < 0, *x) for x in ((outer, margin), (margin, outer)))
    low, high = (np.clip(end, *bounds) for end in (value - below, value + above))
    return Estimate(value, low, high, error)


def mean_interval(values: Float[np.ndarray, " n"], level: float = LEVEL) -> Estimate:
    """Student's interval for the mean of independent draws, two at least.

    Example:
        >>> found = mean_interval(np.array([1.0, 2.0, 3.0]))
        >>> print(f"{found.low:.2f} to {found.high:.2f}")
        -0.48 to 4.48
    """
    variance, degrees = values.var(ddof=1) / len(values), len(values) - 1
    return interval_of(values.mean(), variance, degrees, level)


def samples_of(corpora: tuple[Texts, ...], level: float) -> list[Corpus]:
    """Read samples and check the level of their interval."""
    if not corpora:
        raise ValueError("expected at least one corpus after the metric, got none")
    require_positive("level", level, below=1)
    return [as_corpus(texts) for texts in corpora]
