"""A pair of metrics applied to classes of texts in place of texts."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.metrics.draws import class_distribution
from qdtheory.pairs.named import LL_SE
from qdtheory.pairs.separable import SeparablePair
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ClusterPair:
    """A separable pair applied to classes of texts, as a pair on texts.

    With LL-SE its diversity is *semantic entropy*, if a class holds the texts of one
    meaning, and its quality the log-likelihood of a text's class. It does not see how a
    model spreads its mass within a class.

    Args:
        classes: the class of each text, whole numbers from 0 without gaps, shape (N,).
        pair: applied to the distributions over classes.

    Raises:
        ValueError: the classes are not such numbers.

    References:
        Kuhn, Gal and Farquhar 2023 for semantic entropy.

    Claims: N25.16, N25.17.

    Example:
        >>> pair = ClusterPair([0, 0, 1])
        >>> pair.name
        'LL-SE on 2 classes'
        >>> q = np.array([0.25, 0.25, 0.5])
        >>> float(pair.diversity(q)) == float(np.log(2))
        True
    """

    classes: Sequence[int] | np.ndarray = field(metadata=STATIC)
    pair: SeparablePair = LL_SE

    def __post_init__(self) -> None:
        classes = np.asarray(self.classes)
        whole = classes.ndim == 1 and classes.size and classes.dtype.kind in "iu"
        if not whole or set(classes.tolist()) != set(range(classes.max() + 1)):
            raise ValueError(
                "classes must be one whole number a text, from 0 without gaps"
            )
        # Hashable, as a key of compiled functions.
        object.__setattr__(self, "classes", tuple(classes.tolist()))

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return max(self.classes) + 1

    @property
    def name(self) -> str:
        """Display name: the pair's name and the number of classes."""
        return f"{self.pair.name} on {self.num_classes} classes"

    def text_quality(self, p: Float[ArrayLike, " texts"]) -> Float[Array, " texts"]:
        """Return the score of each text, that of its class, shape (N,)."""
        return self.pair.text_quality(self._over(p, "p"))[np.array(self.classes)]

    def quality(
        self, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
    ) -> Float[Array, ""]:
        """Quality of the classes of the model `q` given those of the real `p`."""
        return self.pair.quality(self._over(q, "q"), self._over(p, "p"))

    def diversity(self, q: Float[ArrayLike, " texts"]) -> Float[Array, ""]:
        """Diversity of the classes of the model `q`."""
        return self.pair.diversity(self._over(q, "q"))

    def _over(self, q: ArrayLike, name: str) -> Array:
        q = check_distribution(q, name, len(self.classes))
        return class_distribution(q, np.array(self.classes), self.num_classes)
