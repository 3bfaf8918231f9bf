"""A pair of metrics applied to n-gram distributions in place of whole texts."""

from dataclasses import dataclass, field
from typing import Any

import jax
from jaxtyping import Array, ArrayLike, Float

from qdtheory.pairs.named import CR_NRR
from qdtheory.pairs.separable import SeparablePair
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC
from qdtheory.world.spaces import TextSpace, pool_to_distribution


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NgramPair:
    """A separable pair applied to n-gram distributions, as a pair on texts.

    Args:
        space: the texts.
        n: order, 1 .. max_length.
        pair: applied to `space.ngram_distribution(q, n)` and that of p.
        ngrams: the table `space.ngrams(n)`, filled in; an array field, so that
            compiled code takes it as an argument.

    Raises:
        ValueError: `n` is out of range, or `ngrams` is a table of another order.

    References:
        Li et al. 2020, section 5.2.

    Claims: N2.8, N4.4, N9.3, N9.5, N14.12.

    Example:
        >>> import numpy as np
        >>> from qdtheory import TextSpace
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> pair = NgramPair(space, 1)
        >>> p = np.array([0.5, 0.0, 0.0, 0.5])
        >>> float(pair.quality(p, p)), float(pair.diversity(p))
        (0.5, -0.5)
    """

    space: TextSpace = field(metadata=STATIC)
    n: int = field(metadata=STATIC)
    pair: SeparablePair = CR_NRR
    ngrams: Any = None

    def __post_init__(self) -> None:
        if self.ngrams is None:
            object.__setattr__(self, "ngrams", self.space.ngrams(self.n))
        width = self.space.max_length - self.n + 1
        shape = getattr(self.ngrams, "shape", ())
        if len(shape) == 2 and shape[1] != width:
            raise ValueError(
                f"ngrams must be the table of {self.n}-grams, {width} to a text, got "
                f"{shape[1]}; leave it out and it is filled in"
            )

    @property
    def name(self) -> str:
        """Display name: the pair's name and the order."""
        return f"{self.pair.name} on {self.n}-grams"

    def quality(
        self, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
    ) -> Float[Array, ""]:
        """Quality of the n-gram distribution of `q` given that of `p`.

        Args:
            q: the model, distribution over texts, shape (num_texts,).
            p: the real distribution, shape (num_texts,).

        Returns:
            A scalar.

        Raises:
            ValueError: `q` or `p` is not a distribution over this space.
        """
        return self.pair.quality(self._distribution(q, "q"), self._distribution(p, "p"))

    def diversity(self, q: Float[ArrayLike, " texts"]) -> Float[Array, ""]:
        """Diversity of the n-gram distribution of `q`.

        Args:
            q: the model, distribution over texts, shape (num_texts,).

        Returns:
            A scalar.

        Raises:
            ValueError: `q` is not a distribution over this space.
        """
        return self.pair.diversity(self._distribution(q, "q"))

    def _distribution(self, q: ArrayLike, name: str) -> Array:
        q = check_distribution(q, name, self.space.num_texts)
        return pool_to_distribution(self.ngrams, q, self.space.vocab_size**self.n)

    def text_quality(self, p: Float[ArrayLike, " texts"]) -> Float[Array, " texts"]:
        r"""Return the score of each text, the mean of $f(P_g)$ over its n-grams.

        Args:
            p: the real distribution over texts, shape (num_texts,).

        Returns:
            Scores, shape (num_texts,); `text_quality(p) @ q` is the quality.

        Raises:
            ValueError: the space has several lengths, so that quality is a ratio of
                two linear functions of q and texts have no scores.
        """
        if len(self.space.lengths) > 1:
            raise ValueError(
                "with texts of several lengths the n-gram quality is not linear in q; "
                "use quality(q, p), or a space of one length"
            )
        scores = self.pair.text_quality(self._distribution(p, "p"))
        return scores[self.ngrams].mean(axis=1)
