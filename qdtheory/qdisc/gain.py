"""What every result on QDisc holds: a gain, the model that attains it, and a bound."""

from jaxtyping import Array, Float

from qdtheory.world.records import Record


class Gain(Record):
    """A gain in quality over P at no loss of diversity, between its two bounds.

    Attributes:
        qdisc: the gain of `q`, at least 0: a lower bound on QDisc.
        upper_bound: upper bound on the gain of every such model; infinite if none is
            known.
        q: the model, shape (N,), or (conditions, texts) for conditional generation.
    """

    qdisc: float
    upper_bound: float
    q: Float[Array, "..."]
