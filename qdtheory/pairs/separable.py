"""Pairs of two scalar functions, f of P and g of Q."""

from dataclasses import dataclass, field

import jax
from jaxtyping import Array, ArrayLike, Float

from qdtheory.formulas.expressions import Expression
from qdtheory.formulas.scalar_functions import (
    ScalarFunction,
    evaluate,
    scalar_function,
)
from qdtheory.pairs.base import LinearPair, set_fields
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC


@jax.tree_util.register_dataclass
@dataclass(frozen=True, init=False)
class SeparablePair:
    r"""Separable pair of Li et al.: $U = \sum_i Q_i f(P_i)$, $V = \sum_i g(Q_i)$.

    Args:
        f: a scalar function on [0, 1], applied to P: a formula in x ("log(x)"), the
            name of one ("LL"), or code that JAX can trace; it may be $-\infty$ at 0.
        g: a scalar function on [0, 1], applied to Q, likewise.
        name: display name; made of f and g by default.

    Raises:
        TypeError: JAX cannot trace f or g to one real number.
        ValueError: a text is neither a formula nor a name; see `Expression`.

    References:
        Li et al. 2020, section 3.1.

    Claims: E5.1, E5.2, E5.3.

    Example:
        >>> import numpy as np
        >>> pair = SeparablePair("x", "-x**2")
        >>> pair.name, float(pair.quality(np.array([1.0, 0]), np.array([0.75, 0.25])))
        ('f = x, g = -x**2', 0.75)
        >>> SeparablePair("CR", "NRR").name
        'CR-NRR'
    """

    f: ScalarFunction = field(metadata=STATIC)
    g: ScalarFunction = field(metadata=STATIC)
    name: str = field(default="", metadata=STATIC)

    def __init__(
        self, f: ScalarFunction | str, g: ScalarFunction | str, name: str = ""
    ) -> None:
        f, g = scalar_function(f, "f"), scalar_function(g, "g")
        set_fields(self, f=f, g=g, name=name or _name_of(f, g))

    def text_quality(self, p: Float[ArrayLike, " texts"]) -> Float[Array, " texts"]:
        """Return the score f(P_i) of each text; see `LinearPair.text_quality`."""
        return evaluate(self.f, check_distribution(p))

    # Shared by all pairs with scores and a separable diversity.
    quality = LinearPair.quality
    diversity = LinearPair.diversity


def _name_of(f: ScalarFunction, g: ScalarFunction) -> str:
    names = [getattr(h, "__name__", type(h).__name__) for h in (f, g)]
    if isinstance(f, Expression) or isinstance(g, Expression):
        return "f = {}, g = {}".format(*names)
    return "-".join(names)
