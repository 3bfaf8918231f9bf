"""The bootstrap, which the sample wing does without: it repeats sentences.

It draws with replacement, so that sentences of a resample match themselves word for
word. A metric that compares the sentences of one sample (Self-BLEU, distinct, NRR, CND)
takes that for repetition: the interval for Self-BLEU of 500 captions lies 13 to 60
standard deviations above the value. A mean over candidates, such as BLEU against fixed
references, is not affected.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from qdtheory.support.records import Estimate
from qdtheory.text.checks import require_whole
from qdtheory.text.corpus import Texts
from qdtheory.text.defaults import LEVEL
from qdtheory.text.intervals import samples_of


def bootstrap_interval(
    metric: Callable[..., Any],
    *corpora: Texts,
    level: float = LEVEL,
    num_resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Percentile bootstrap interval, resampling sentences with replacement.

    For means over sentences, such as `bleu` with fixed references. Invalid for metrics
    that compare the sentences of one sample with each other, such as `self_bleu`,
    `negative_repetition_rate` and `cnd`: resamples contain duplicates, so the interval
    need not even contain the value. Use `jackknife_interval` for these.

    Args:
        metric: a function of the corpora that returns a number or an array.
        corpora: independent samples, each a `Corpus` or any input of `as_corpus`.
        level: the nominal coverage probability, in (0, 1).
        num_resamples: number of resamples, at least 2.
        seed: seed of the resampling.

    Returns:
        The interval, elementwise if the metric returns an array.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; no corpus, a level outside (0, 1), or fewer than 2
            resamples.

    References:
        Efron and Tibshirani 1993, chapter 13.

    Claims: N12.21.

    Example:
        >>> texts = ["a b", "a c", "b c", "d e", "f"] * 8
        >>> found = bootstrap_interval(lambda c: c.lengths.mean(), texts)
        >>> print(f"{found.value:.1f} in [{found.low:.2f}, {found.high:.2f}]")
        1.8 in [1.68, 1.90]
    """
    samples = samples_of(corpora, level)
    require_whole("num_resamples", num_resamples, 2)
    rng = np.random.default_rng(seed)
    resamples = (
        [sample[rng.integers(len(sample), size=len(sample))] for sample in samples]
        for _ in range(num_resamples)
    )
    values = np.array([metric(*resample) for resample in resamples], float)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Estimate(metric(*samples), low, high, values.std(axis=0, ddof=1))
