"""Scalar functions of one probability: LL, CR, SE, NRR and the Tsallis entropies."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, ArrayLike

# A scalar function that JAX can trace.
ScalarFunction = Callable[[Any], Array]


@partial(jax.jit, static_argnums=0)
def _apply(h: ScalarFunction, x: Array) -> Array:
    return jax.vmap(h)(x)


def value_at_zero(h: ScalarFunction) -> float:
    """Return h(0) as a Python float, even while JAX is tracing."""
    with jax.ensure_compile_time_eval():
        return float(_apply(h, jnp.zeros(1))[0])


# Named by the paper's abbreviations, hence not lower case.
def LL(x: ArrayLike) -> Array:
    r"""Log-likelihood, $f(x) = \log x$ in nats; U is the negative cross-entropy."""
    return jnp.log(x)


def CR(x: ArrayLike) -> Array:
    """Coverage rate, f(x) = x."""
    return jnp.asarray(x)


def SE(x: ArrayLike) -> Array:
    r"""Shannon entropy, $g(x) = -x \log x$ in nats."""
    return entr(jnp.asarray(x))


def NRR(x: ArrayLike) -> Array:
    """Negative repetition rate, g(x) = -x^2."""
    return -jnp.square(x)


@dataclass(frozen=True)
class Tsallis:
    r"""Tsallis entropy of order a, $g(x) = (x - x^a) / (a - 1)$.

    Order 2 is Simpson's diversity index SDI = NRR + 1; as a tends to 1 it tends to
    the Shannon entropy SE.

    Args:
        order: a, positive and finite, not 1.

    Raises:
        ValueError: the order is not positive and finite, or is 1 (use `SE`).

    Claims: N2.4, N2.5, N9.2.

    Example:
        >>> float(Tsallis(2.0)(0.5))
        0.25
    """

    order: float

    def __post_init__(self) -> None:
        if not 0 < self.order < np.inf:
            raise ValueError(f"order must be positive and finite, got {self.order}")
        if self.order == 1:
            raise ValueError("order 1 is the Shannon entropy; use qdtheory.SE")

    @property
    def __name__(self) -> str:
        return f"Tsallis({self.order:g})"

    def __call__(self, x: ArrayLike) -> Array:
        """g(x)."""
        x = jnp.asarray(x)
        return (x - x**self.order) / (self.order - 1)


@dataclass(frozen=True)
class _Simpson(Tsallis):
    order: float = 2.0

    @property
    def __name__(self) -> str:
        return "SDI"


SDI = _Simpson()
