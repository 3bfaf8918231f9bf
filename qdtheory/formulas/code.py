"""Functions of one variable that are given by their code only.

A formula is proved, code is tried: no seal rests on code. What is compiled or kept of a
function is kept by an object that holds it. Each public call traces the function anew,
and takes another object if it does something else than before (`as_it_is_now`), so that
a global or an attribute that it reads may change between two calls.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from qdtheory.support.numbers import LEAST_PROBABILITY


@dataclass(frozen=True, eq=False)
class Code:
    """A function given by its code only, with limits at 0 where it gives no number.

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
        # Evaluated from LEAST_PROBABILITY on, with steps that no derivative sees: of x
        # to there, and at 0 itself of the value to the code's own, if it has one.
        step = jnp.where(x < LEAST_PROBABILITY, LEAST_PROBABILITY - x, 0.0)
        value = self._in_64_bits(x + jax.lax.stop_gradient(step))
        end = self._in_64_bits(jnp.zeros(()))
        jump = jnp.where((x == 0) & ~jnp.isnan(end), end - value, 0.0)
        return value + jax.lax.stop_gradient(jump)

    def _in_64_bits(self, x: Array) -> Array:
        # An integer, such as that of `lambda x: 0`, has no derivative in JAX.
        return jnp.asarray(self.function(x), float)


def as_it_is_now(make: Callable, function: Callable, *arguments: ArrayLike) -> Any:
    """An object that holds a function, the same one for as long as its trace is.

    So what JAX compiles for the object is used again as long as it is right.
    """
    try:
        trace = _trace(function, *arguments)
        return make(function) if trace is None else _kept(make, function, trace)
    except Exception:  # not traceable at these arguments, or not hashable
        return make(function)


@lru_cache(maxsize=64)
def _kept(make: Callable, function: Callable, trace: tuple) -> Any:
    return make(function)


def _trace(function: Callable, *arguments: ArrayLike) -> tuple | None:
    """The operations of a function and its slope, and all numbers in them.

    None if it calls back to Python, which may do anything.
    """

    def both(first: Array, *rest: Array) -> tuple[Array, Array]:
        # A custom derivative is code of its own, which may change alone.
        value, slope = jax.value_and_grad(lambda x: jnp.sum(function(x, *rest)))(first)
        return function(first, *rest), value + slope

    closed = jax.make_jaxpr(both)(*arguments)
    operations = str(closed)
    if closed.effects or "callback" in operations:
        return None
    # The rule of a custom derivative is written as its address; its slope was traced.
    return re.sub(" at 0x[0-9a-f]+", "", operations), *_numbers(closed)


def _numbers(closed: Any) -> Iterator[bytes]:
    """The constants of a list of operations, which are not written in full."""
    for constant in getattr(closed, "consts", ()):
        yield np.asarray(constant).tobytes()
    for equation in getattr(closed, "jaxpr", closed).eqns:
        for operand in equation.invars:
            if hasattr(operand, "val"):  # a literal, no variable
                yield np.asarray(operand.val).tobytes()
        for part in equation.params.values():
            for inner in part if isinstance(part, tuple) else (part,):
                # The bodies of loops, branches and compiled functions.
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield from _numbers(inner)


def only_tried(parts: Sequence[str]) -> str:
    """Say that nothing is proved of code, and what to do.

    >>> only_tried(["g"])
    'g is code, which is tried and not proved: for a proof write it as a formula'
    >>> only_tried(["f", "g"])[:16], only_tried(["f", "g"])[-22:]
    ('f and g are code', 'write them as formulas')
    """
    many = len(parts) > 1
    form = "them as formulas" if many else "it as a formula"
    return (
        f"{' and '.join(parts)} {'are' if many else 'is'} code, which is tried and not "
        f"proved: for a proof write {form}"
    )
