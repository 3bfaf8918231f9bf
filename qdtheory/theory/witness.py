"""A model that beats P in quality and diversity: the proof of a refutation."""

from jaxtyping import Array, Float

from qdtheory.world.records import Record


class Witness(Record):
    """A distribution that beats the real one in both metrics.

    For formulas both gains are proved to be positive in 77-digit ball arithmetic, for
    the exact values of the floats; for code they exceed its rounding error.

    Attributes:
        p: the real distribution, shape (N,).
        q: the model that beats it, shape (N,).
        quality_gain: U(Q; P) - U(P; P), positive.
        diversity_gain: V(Q) - V(P), positive.
    """

    p: Float[Array, " texts"]
    q: Float[Array, " texts"]
    quality_gain: float
    diversity_gain: float
