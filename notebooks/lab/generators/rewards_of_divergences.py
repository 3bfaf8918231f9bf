"""The reward of a divergence: the way back from an f-divergence to a reward of D."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from qdtheory.formulas.expressions import Expression, variable
from qdtheory.formulas.tracing import require_traceable
from qdtheory.formulas.trees import names
from qdtheory.functions import ScalarFunction
from qdtheory.rewards import Reward, given_reward


def reward_of_divergence(phi: str | ScalarFunction) -> Reward:
    r"""The reward that makes a generator descend a given $f$-divergence.

    Solves $\varphi'(u) = -\rho(1 / (1 + u))$: $\rho(D) = -\varphi'((1 - D) / D)$.

    Args:
        phi: φ of the ratio u = Q / P, convex: a formula in u, or a function that JAX
            can differentiate.

    Returns:
        The reward, with φ less its value at 1.

    Raises:
        TypeError: it is neither, or JAX cannot trace the function.
        ValueError: the formula cannot be read or has an absolute value, or φ is not
            convex, as its reward falls.

    References:
        Nowozin et al. 2016, Table 2, for the derivatives.

    Claims: N20.4.

    Example:
        >>> reward = reward_of_divergence("(u - 1)**2")
        >>> float(reward.of_discriminator(0.25))
        -4.0
    """
    if isinstance(phi, str):
        given: ScalarFunction = Expression(phi, "u")
        if "where" in names(given._tree):  # a formula takes its signs on (0, 1) alone
            raise ValueError(f"phi is without absolute values as a text, got {phi}")
    elif callable(phi):
        given = phi
        require_traceable(given, np.array(0.5), name="phi(u)")
    else:
        raise TypeError(f"expected a formula in u or a function of u, got {phi!r:.60}")
    name = getattr(given, "__name__", "phi")
    rho = _reward_formula(given) if isinstance(given, Expression) else None
    found = given_reward(rho.text if rho else _MinusSlope(given, name))
    return Reward(found.name, found.of_discriminator, _Shifted(given), None)


@dataclass(frozen=True)
class _MinusSlope:
    """The reward of a φ given as code."""

    phi: ScalarFunction
    __name__: str

    def __call__(self, d: ArrayLike) -> Array:
        return -jax.grad(self.phi)((1 - d) / d)


@dataclass(frozen=True)
class _Shifted:
    """φ less its value at 1."""

    phi: ScalarFunction

    def __call__(self, u: ArrayLike) -> Array:
        return jnp.vectorize(self.phi)(u) - self.phi(jnp.ones(()))


def _reward_formula(phi: Expression) -> Expression | None:
    """The reward as a formula; None if it has no short one."""
    import sympy

    _, slope, _ = phi.derivatives()
    d = sympy.Symbol("D", positive=True)
    try:
        rho = sympy.simplify(-slope.subs(variable(), (1 - d) / d))
        return Expression(str(rho), "D")
    except ValueError:  # a constant such as E, or a long formula
        return None
