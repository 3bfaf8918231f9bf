"""A pair of metrics applied to what texts hold, n-grams or classes."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, ArrayLike

from qdtheory.pairs.base import SeparablePair, is_concrete, require_pair, set_fields
from qdtheory.pairs.named import CR_NRR
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC, PerText, Scalar, TextArray
from qdtheory.world.spaces import TextSpace, pool_to_distribution


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PooledPair:
    """A separable pair applied to distributions of what texts hold, as a pair on texts.

    On classes of texts, the diversity of LL-SE is *semantic entropy*, if a class holds
    the texts of one meaning, and its quality the log-likelihood of a text's class: it
    does not see how a model spreads its mass within a class. On n-grams, made by
    `ngram_pair`, the pair sees their expected counts, divided by the total.

    Args:
        pair: applied to the distributions of classes or n-grams.
        map: the class of each text, shape (N,), or the n-grams of each text, shape
            (N, positions), with -1 past its end; whole numbers from 0 without gaps. An
            array field, so that compiled code takes it as an argument.
        of: what the numbers stand for, in the pair's name.
        num_outcomes: their number, filled in.
        one_length: whether each text holds equally many, filled in.

    Raises:
        ValueError: the map has no such numbers.

    References:
        Kuhn, Gal and Farquhar 2023 for semantic entropy; Li et al. 2020, section 5.2,
        for n-grams.

    Claims: N2.8, N9.3, N9.5, N14.12, N25.16, N25.17.

    Example:
        >>> from qdtheory import LL_SE
        >>> pair = PooledPair(LL_SE, [0, 0, 1])
        >>> pair.name
        'LL-SE on 2 classes'
        >>> q = np.array([0.25, 0.25, 0.5])
        >>> float(pair.diversity(q)) == float(np.log(2))
        True
    """

    pair: SeparablePair
    map: Any
    of: str = field(default="classes", metadata=STATIC)
    num_outcomes: int = field(default=0, metadata=STATIC)
    one_length: bool = field(default=True, metadata=STATIC)

    def __post_init__(self) -> None:
        if not is_concrete(self.map):
            return
        require_pair(self.pair)
        held = np.asarray(self.map)
        whole = held.ndim in (1, 2) and held.size and held.dtype.kind in "iu"
        kept = held[held >= 0] if whole and held.ndim == 2 else held
        numbers = np.unique(kept) if whole else kept
        if not whole or not np.array_equal(numbers, np.arange(numbers.size or 1)):
            raise ValueError(
                f"{self.of} must be one whole number a text, or a row of them, from 0 "
                "without gaps"
            )
        set_fields(
            self,
            map=held.reshape(len(held), -1),
            num_outcomes=numbers.size,
            one_length=bool((held >= 0).all()),
        )

    @property
    def name(self) -> str:
        """Display name: the pair's name and what it is applied to."""
        number = f"{self.num_outcomes} " if self.of == "classes" else ""
        return f"{self.pair.name} on {number}{self.of}"

    def text_quality(self, p: PerText) -> TextArray:
        r"""Return the score of each text, the mean of $f(P_g)$ over what it holds.

        Raises:
            ValueError: the texts hold different numbers of n-grams, so that quality is
                a ratio of two linear functions of q and texts have no scores.
        """
        if not self.one_length:
            raise ValueError(
                "with texts of several lengths the n-gram quality is not linear in q; "
                "use quality(q, p), or a space of one length"
            )
        scores = self.pair.text_quality(self._distribution(p, "p"))
        return scores[self.map].mean(axis=1)

    def quality(self, q: PerText, p: PerText) -> Scalar:
        """Quality of what `q` holds given what `p` holds."""
        return self.pair.quality(self._distribution(q, "q"), self._distribution(p, "p"))

    def diversity(self, q: PerText) -> Scalar:
        """Diversity of what `q` holds."""
        return self.pair.diversity(self._distribution(q, "q"))

    def _distribution(self, q: ArrayLike, name: str) -> Array:
        q = check_distribution(q, name, len(self.map))
        return pool_to_distribution(self.map, q, self.num_outcomes)


def ngram_pair(space: TextSpace, n: int, pair: SeparablePair = CR_NRR) -> PooledPair:
    """A separable pair applied to n-gram distributions, as a pair on texts.

    Args:
        space: the texts.
        n: order, 1 .. max_length.
        pair: applied to `space.ngram_distribution(q, n)` and that of p.

    Returns:
        The pair.

    Raises:
        ValueError: `n` is out of range.

    References:
        Li et al. 2020, section 5.2.

    Claims: N4.4.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> pair = ngram_pair(space, 1)
        >>> p = np.array([0.5, 0.0, 0.0, 0.5])
        >>> pair.name, float(pair.quality(p, p)), float(pair.diversity(p))
        ('CR-NRR on 1-grams', 0.5, -0.5)
    """
    return PooledPair(pair, space.ngrams(n), f"{n}-grams")
