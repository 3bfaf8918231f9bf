"""Can JAX trace what a user gives as code, and is an argument traced already?"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float


def require_values(p: Any, name: str = "p") -> None:
    """Raise if an array is traced, so that its values cannot be followed."""
    if isinstance(p, Tracer):
        raise TypeError(
            f"{name} is traced, but its values decide what is done next: call this "
            "outside jax.jit, jax.vmap and jax.grad"
        )


def require_traceable(
    function: Callable, *arguments: Float[np.ndarray, "..."], name: str
) -> None:
    """Raise unless JAX traces a function to one number and differentiates it twice."""

    # In a function of its own: JAX keeps weak references, which built-ins lack.
    def of_first(x):
        return function(x, *arguments[1:])

    def twice_differentiated(x):
        return jax.jvp(jax.grad(of_first), (x,), (x,))

    try:
        output = jax.eval_shape(of_first, arguments[0])
        if _is_number(output):
            jax.eval_shape(twice_differentiated, arguments[0])
    except Exception as error:
        _call(function, arguments, name)
        raise TypeError(
            f"JAX cannot trace {name} ({type(error).__name__}): write it with "
            "jax.numpy, without float(), sets or conditions on values; scores that "
            "other code computed go into LinearPair(scores, g)"
        ) from None
    if not _is_number(output):
        shape, dtype = (getattr(output, x, None) for x in ("shape", "dtype"))
        got = type(output).__name__ if shape is None else f"shape {shape} of {dtype}"
        raise TypeError(f"{name} must return one real number, got {got}")


def _call(function: Callable, arguments: tuple, name: str) -> None:
    try:
        function(*arguments)
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        given = " and ".join(
            f"an array of shape {x.shape}" if x.shape else "a number" for x in arguments
        )
        raise TypeError(
            f"{name} stops at {given} with {said:.200}; it must return one real number"
        ) from error


def _is_number(shaped: Any) -> bool:
    """Whether a result of `jax.eval_shape` is one real number."""
    if getattr(shaped, "shape", None) != ():
        return False
    return jnp.issubdtype(shaped.dtype, jnp.floating)
