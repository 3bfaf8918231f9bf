"""Functions of one variable that are known by their code only.

A formula is proved, code is tried: no seal rests on code. What is compiled or kept of a
function is kept by the object `Code`, of which each public call makes a new one (see
`qdtheory.pairs.base.renewed`), so that a global or an attribute that the code reads may
change between two calls.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from qdtheory.world.numbers import LEAST_PROBABILITY


@dataclass(frozen=True, eq=False)
class Code:
    """A function known by its code only, with limits at 0 where it gives no number.

    Its slopes at 0 are those next to it: what JAX differentiates at 0 itself, in a
    `where` or an `xlogy`, is not the limit.
    """

    function: Callable

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, x: ArrayLike) -> Array:
        """The value, which JAX can differentiate."""
        x = jnp.asarray(x, float)
        # A step into the domain, and at 0 itself one to the code's own value, if any.
        step = jnp.where(x < LEAST_PROBABILITY, LEAST_PROBABILITY - x, 0.0)
        value = self._in_64_bits(x + jax.lax.stop_gradient(step))
        end = self._in_64_bits(jnp.zeros(()))
        jump = jnp.where((x == 0) & ~jnp.isnan(end), end - value, 0.0)
        return value + jax.lax.stop_gradient(jump)

    def _in_64_bits(self, x: Array) -> Array:
        return jnp.asarray(self.function(x), float)


def only_tried(parts: Sequence[str]) -> str:
    """Say that nothing is proved of code, and what to do.

    >>> only_tried(["g"])
    'g is code, which is tried and not proved: for a proof write it as a formula'
    """
    many = len(parts) > 1
    said = "them as formulas" if many else "it as a formula"
    return (
        f"{' and '.join(parts)} {'are' if many else 'is'} code, which is tried and not "
        f"proved: for a proof write {said}"
    )
