r"""The noise family: real text with a share of random sentences.

The family $Q = (1 - \epsilon) P + \epsilon M$, with M random words, needs no training
and gains diversity as $\epsilon$ grows. If it has higher quality than other real text
of equal diversity, the pair of metrics prefers noise to real text; the difference is a
lower bound on QDisc.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from qdtheory.support.records import Record
from qdtheory.text.checks import require_positive, require_whole
from qdtheory.text.corpus import Corpus, Texts, as_corpus
from qdtheory.text.ngrams import Countable, ngram_counts

Quality: TypeAlias = Callable[[Corpus, Corpus], float]
Diversity: TypeAlias = Callable[[Corpus], float]
Shares: TypeAlias = Sequence[float | int] | Float[np.ndarray, " shares"]

# The paper's 0, .2, .4 and .6, and smaller ones: near 0 the chord to .2 lies below the
# curve by more than the discrepancy of CR and NRR.
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
# Ref-Ratio's unit is the quality lost between share 0 and this share.
REF_SHARE = 0.2


@dataclass(frozen=True, eq=False, repr=False)
class NoiseFamily:
    """Corpora with increasing shares of noise, made by `noise_family`.

    Attributes:
        shares: shares of noise, increasing from 0.
        corpora: one corpus per share.
    """

    shares: Float[np.ndarray, " shares"]
    corpora: tuple[Corpus, ...]

    def __repr__(self) -> str:
        return f"NoiseFamily({len(self.shares)} shares of {self.corpora[0]})"


class NoiseDiscrepancy(Record):
    """Result of `noise_discrepancy`: the noise curve, and real text for comparison.

    Attributes:
        shares: shares of noise, increasing.
        quality: U of the family at these shares.
        diversity: V of the family at these shares.
        candidate_quality: U of the candidates.
        candidate_diversity: V of the candidates.
        qdisc: U of the curve at the candidates' diversity minus their own U; None if
            the curve does not attain that diversity.
        drate: qdisc divided by the range of quality.
        self_ratio: qdisc divided by the candidates' quality.
        ref_ratio: qdisc divided by the quality lost to a noise share of 0.2.
        reason: why qdisc or a ratio is missing; None if none is.
    """

    shares: Float[np.ndarray, " shares"]
    quality: Float[np.ndarray, " shares"]
    diversity: Float[np.ndarray, " shares"]
    candidate_quality: float
    candidate_diversity: float
    qdisc: float | None
    drate: float | None
    self_ratio: float | None
    ref_ratio: float | None
    reason: str | None = None


def add_noise(
    texts: Texts, share: float, *, length: int | None = 5, seed: int = 0
) -> Corpus:
    """Replace a share of the sentences by words drawn uniformly from the vocabulary.

    For a fixed seed, the sentences replaced at one share are also replaced at larger
    shares, by the same noise, so that curves over shares are smooth.

    Args:
        texts: a `Corpus`, or any input of `as_corpus`.
        share: share of the sentences, in [0, 1], rounded to a whole number of them.
        length: tokens per random sentence; None: as many as in the one it replaces.
        seed: seed of the choice of sentences and words.

    Returns:
        A corpus of as many sentences over the same vocabulary; the texts themselves at
        share 0.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; or a share outside [0, 1], a length below 1.

    References:
        Li et al. 2020, section 6.2, with length 5 and L; with the
        order of the n-grams in its preprint.

    Example:
        >>> list(add_noise(["a b c", "b a"], 0.5, length=None))
        [('b', 'b', 'a'), ('b', 'a')]
    """
    if not isinstance(share, Real) or not 0 <= share <= 1:
        raise ValueError(f"share: expected a number from 0 to 1, got {share!r}")
    require_whole("length", length, optional=True)
    corpus = as_corpus(texts)
    size = len(corpus)
    rng = np.random.default_rng(seed)
    is_hit = rng.permutation(size) < round(share * size)
    lengths = corpus.lengths if length is None else np.full(size, length)
    ends = np.cumsum(lengths)
    noise = rng.integers(corpus.vocab_size, size=ends[-1], dtype=np.int32)
    tokens = np.concatenate([corpus.tokens, noise])
    offsets = np.concatenate([corpus.offsets, corpus.num_tokens + ends])
    both = Corpus(tokens, offsets, corpus.vocabulary, tokenizer=corpus.tokenizer)
    return both[np.arange(size) + size * is_hit]


def noise_family(
    texts: Texts, *, shares: Shares = SHARES, length: int | None = 5, seed: int = 0
) -> NoiseFamily:
    """Build corpora of real text with increasing shares of noise.

    Args:
        texts: a `Corpus`, or any input of `as_corpus`. The paper draws from its
            references with replacement, `references[rng.integers(size, size=size)]`.
        shares: shares of noise, increasing from 0 to at most 1 and including 0.2.
        length: see `add_noise`.
        seed: see `add_noise`.

    Returns:
        The family, which can be reused so that metrics cache values per corpus.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `add_noise`; or other shares.

    References:
        Li et al. 2020, section 6.2.

    Example:
        >>> family = noise_family(["a b c"] * 10, shares=(0, 0.2, 0.4))
        >>> family
        NoiseFamily(3 shares of Corpus(10 sentences, 30 tokens, vocab_size=3, \
empty_lines=0))
        >>> [corpus.num_tokens for corpus in family.corpora]
        [30, 34, 38]
    """
    corpus = as_corpus(texts)
    grid = np.asarray(shares, float)
    rises = grid.ndim == 1 and (np.diff(grid) > 0).all() and (grid[-1:] <= 1).all()
    if not rises or grid[:1].tolist() != [0] or REF_SHARE not in grid:
        raise ValueError(
            f"shares: expected numbers that increase from 0 to at most 1, {REF_SHARE} "
            f"among them, got {shares!r}"
        )
    noisy = (add_noise(corpus, x, length=length, seed=seed) for x in grid.tolist())
    return NoiseFamily(grid, tuple(noisy))


def noise_discrepancy(
    quality: Quality,
    diversity: Diversity,
    candidates: Texts,
    references: Texts,
    *,
    family: NoiseFamily | None = None,
    quality_range: float = 1.0,
) -> NoiseDiscrepancy:
    r"""Lower bound on QDisc of real text, from noisy text of equal diversity.

    U and V of a noise family trace a curve; QDisc is estimated as its U at the
    candidates' V, interpolated linearly between adjacent shares and never extrapolated,
    minus the candidates' U. If several segments attain that V, the best is used.

    Args:
        quality: U, a function of candidates and references.
        diversity: V, a function of candidates.
        candidates: real text with as many sentences as the family, as diversity
            depends on their number.
        references: other real text, against which quality is measured.
        family: None: that of the references, as in the paper, which scores it against
            the sentences it is made of; use a family of third real text to avoid this.
        quality_range: DRate's unit, the range of U over all Pareto-optima; 1 for BLEU,
            `highest_coverage` for the coverage rate.

    Returns:
        The curve and the discrepancies.

    Raises:
        TypeError: see `as_corpus`; or a metric does not return a number.
        ValueError: see `as_corpus`; or the sets differ in size, a metric is not finite,
            or the range is not positive and finite.

    References:
        Li et al. 2020, section 6.2 and Table 2.

    Example:
        >>> from qdtheory.text.ngrams import coverage_rate, negative_repetition_rate
        >>> found = noise_discrepancy(
        ...     lambda c, r: coverage_rate(c, r, 1),
        ...     lambda c: negative_repetition_rate(c, 1),
        ...     candidates=["a b a b", "b a b b"] * 10,
        ...     references=["a a b", "a b a"] * 10,
        ... )
        >>> 0.05 < found.qdisc < 0.1
        True
    """
    candidates, references = as_corpus(candidates), as_corpus(references)
    family = noise_family(references) if family is None else family
    size = len(family.corpora[0])
    if len(candidates) != size:
        raise ValueError(
            f"expected as many candidates as sentences in the family, got "
            f"{len(candidates)} and {size}; diversity depends on the number, so cut "
            "the larger set"
        )
    require_positive("quality_range", quality_range)

    def measured(texts: Corpus, name: str) -> tuple[float, float]:
        u = _number(quality(texts, references), f"quality of {name}")
        return u, _number(diversity(texts), f"diversity of {name}")

    own_quality, own_diversity = measured(candidates, "the candidates")
    shares = family.shares
    noisy = zip(shares, family.corpora, strict=True)
    curve = [measured(corpus, f"noise with share {x:g}") for x, corpus in noisy]
    u, v = np.transpose(curve)
    best = _quality_at(v, u, own_diversity)
    qdisc = None if best is None else best - own_quality
    units = {
        "drate": float(quality_range),
        "self_ratio": own_quality,
        "ref_ratio": float(u[0] - u[shares == REF_SHARE].item()),
    }
    ratios = {
        name: None if qdisc is None or unit <= 0 else qdisc / unit
        for name, unit in units.items()
    }
    lacking = [name for name, unit in units.items() if unit <= 0]
    reason = f"no {' and no '.join(lacking)}: its unit is not positive"
    if qdisc is None:
        reason = (
            f"the candidates' diversity {own_diversity:.6g} is outside the curve's, "
            f"{v.min():.6g} to {v.max():.6g}"
        )
    return NoiseDiscrepancy(
        shares=shares,
        quality=u,
        diversity=v,
        candidate_quality=own_quality,
        candidate_diversity=own_diversity,
        qdisc=qdisc,
        reason=reason if qdisc is None or lacking else None,
        **ratios,
    )


def highest_coverage(references: Countable, n: int) -> float:
    r"""Coverage rate of the best single reference sentence, DRate's unit for CR.

    $\max_s \frac{1}{T_s} \sum_g c_s(g)\, p(g)$, with $c_s(g)$ the count of g among the
    $T_s$ n-grams of sentence s, and p the pooled frequencies.

    Args:
        references: real text: a `Corpus`, list of strings, list of token lists, or
            table.
        n: the order, at least 1.

    Returns:
        A number in (0, 1].

    Raises:
        TypeError, ValueError: see `ngram_counts`.

    References:
        Li et al. 2020, section 6.2.

    Example:
        >>> highest_coverage(["a a a", "a b c"], 1)
        0.6666666666666666
    """
    table = ngram_counts(references, n)
    held = table.postings
    covered = held.counts * table.frequencies[held.ngram]
    covered = np.bincount(held.sentence, covered, len(table.corpus))
    return float((covered / np.maximum(table.corpus.lengths - n + 1, 1)).max())


def _quality_at(
    v: Float[np.ndarray, " shares"], u: Float[np.ndarray, " shares"], level: float
) -> float | None:
    """Greatest U at which the piecewise linear curve attains this V, or None."""
    ends = [sorted(ij, key=v.__getitem__) for ij in pairwise(range(len(v)))]
    around = [ij for ij in ends if v[ij[0]] <= level <= v[ij[1]]]
    values = [np.interp(level, v[ij], u[ij]) for ij in around]
    return float(max(values)) if values else None


def _number(value: float, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(
            f"{name}: expected the metric to return a number, got a "
            f"{type(value).__name__}"
        )
    if not np.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, got {value}")
    return float(value)
