r"""Rewards of a discriminator, and the divergences that they make a generator descend.

A generator step on the reward $\rho(D^*)$ of the optimal discriminator
$D^* = P / (P + Q)$, held fixed, is the gradient of
$-D_\varphi(P, Q) = -\sum_i P_i\,\varphi(Q_i / P_i)$ with
$\varphi'(u) = -\rho(1 / (1 + u))$ and $\varphi(1) = 0$: for
$\nabla \sum_i P_i\,\varphi(Q_i / P_i) = \sum_i \varphi'(Q_i / P_i)\,\nabla Q_i$. So
rewards of D and $f$-divergences are the same thing, rising rewards and convex φ.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import xlogy
from jaxtyping import Array, ArrayLike, Float

from qdtheory.formulas.expressions import Expression, variable
from qdtheory.formulas.scalar_functions import ScalarFunction
from qdtheory.formulas.shape import find_hole
from qdtheory.formulas.signs import find_sign, is_zero
from qdtheory.formulas.tracing import require_traceable
from qdtheory.world.distributions import check_distribution

# Values of D at which rewards given as code are tried, close to both ends.
GRID = 1 / (1 + np.exp(np.linspace(-20, 20, 2001)))[::-1]


@dataclass(frozen=True)
class Reward:
    r"""A reward of the discriminator's output, with its divergence.

    Attributes:
        name: display name.
        of_discriminator: $\rho$, of the probability D that a text is real.
        phi: $\varphi$, of the ratio Q / P of a text, with
            $\varphi'(u) = -\rho(1 / (1 + u))$ and $\varphi(1) = 0$. Models descend
            $\sum_i P_i\,\varphi(Q_i / P_i)$.
        divergence: that sum in words, if it has a name.

    Example:
        >>> reward = REWARDS["logit D"]
        >>> float(reward.of_discriminator(0.75).round(6)), reward.divergence
        (1.098612, 'KL(Q, P)')
    """

    name: str
    of_discriminator: ScalarFunction
    phi: ScalarFunction
    divergence: str | None = None

    @property
    def formula(self) -> Expression | None:
        """The reward as a formula of D; None if it is known by its code only."""
        rho = self.of_discriminator
        return rho if isinstance(rho, Expression) else None


def _named(name: str, formula: str, phi: ScalarFunction, divergence: str) -> Reward:
    return Reward(name, Expression(formula, "D"), phi, divergence)


# Each φ in its own form, not by integration: they check each other.
REWARDS: dict[str, Reward] = {
    reward.name: reward
    for reward in (
        _named("D", "D", lambda u: -jnp.log((1 + u) / 2), "KL(P, M)"),
        _named(
            "log D",
            "log(D)",
            lambda u: (1 + u) * jnp.log(1 + u) - u + 1 - 2 * jnp.log(2),
            "2 KL(M, P)",
        ),
        _named(
            "-log(1-D)",
            "-log(1 - D)",
            lambda u: xlogy(u, u) - (1 + u) * jnp.log(1 + u) + 2 * jnp.log(2),
            "2 JS(P, Q)",
        ),
        _named("D/(1-D)", "D/(1 - D)", lambda u: -jnp.log(u), "KL(P, Q)"),
        _named("logit D", "log(D/(1 - D))", lambda u: xlogy(u, u) - u + 1, "KL(Q, P)"),
        _named("(D/(1-D))**2", "(D/(1 - D))**2", lambda u: 1 / u - 1, "sum P^2/Q - 1"),
    )
}


def optimal_discriminator(
    q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
) -> Float[Array, " texts"]:
    r"""The probability that a text is real, $D^* = P / (P + Q)$, for equal shares.

    Args:
        q: the model, shape (N,).
        p: the real distribution, positive, shape (N,).

    Returns:
        Probabilities, shape (N,).

    Raises:
        ValueError: `q` and `p` are not distributions of one size, or `p` has zeros.

    References:
        Goodfellow et al. 2014, Proposition 1.

    Example:
        >>> q, p = np.array([0.75, 0.25]), np.array([0.25, 0.75])
        >>> optimal_discriminator(q, p).tolist()
        [0.25, 0.75]
    """
    p = check_positive_everywhere(p)
    q = check_distribution(q, "q", p.size)
    return p / (p + q)


def reward_objective(
    reward: Reward, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
) -> Float[Array, ""]:
    r"""The objective that a step ascends, $-\sum_i P_i\,\varphi(Q_i / P_i)$.

    Args:
        reward: see `REWARDS` and `given_reward`.
        q: the model, shape (N,).
        p: the real distribution, positive, shape (N,).

    Returns:
        A scalar, 0 at Q = P and otherwise negative if the reward rises.

    Raises:
        ValueError: `q` and `p` are not distributions of one size, or `p` has zeros.

    References:
        Nowozin et al. 2016 (f-GAN), for the divergence of each reward.

    Claims: N20.1, N20.2, N20.3, N20.7.

    Example:
        >>> q, p = np.array([0.75, 0.25]), np.array([0.25, 0.75])
        >>> float((reward_objective(REWARDS["logit D"], q, p) / np.log(3)).round(12))
        -0.5
    """
    p = check_positive_everywhere(p)
    q = check_distribution(q, "q", p.size)
    return -(p * reward.phi(q / p)).sum()


def optimal_rewards(
    reward: Reward, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
) -> Float[Array, " texts"]:
    r"""The reward of each text at the optimal discriminator, $\rho(P / (P + Q))$.

    Computed as $-\varphi'(Q / P)$ where φ has a formula of its own: $1 - D$ would lose
    the digits of $Q / P$ at a text that the model all but lacks.

    Args:
        reward: see `REWARDS` and `given_reward`.
        q: the model, shape (N,).
        p: the real distribution, shape (N,); a text that it lacks has D = 0.

    Returns:
        Rewards, shape (N,).

    Raises:
        ValueError: `q` and `p` are not distributions of one size, or `p` has zeros and
            the reward is not finite at D = 0.

    Claims: N20.1, N20.8.

    Example:
        >>> q, p = np.array([0.75, 0.25]), np.array([0.25, 0.75])
        >>> optimal_rewards(REWARDS["D"], q, p).tolist()
        [0.25, 0.75]
    """
    p = check_rewarded(reward, p)
    q = check_distribution(q, "q", p.size)
    lacking = p == 0
    positive = jnp.where(lacking, 1.0, p)
    if isinstance(reward.phi, _Integral):
        rewards = jnp.vectorize(reward.of_discriminator)(positive / (positive + q))
    else:
        rewards = -jax.vmap(jax.grad(reward.phi))(q / positive)
    return jnp.where(lacking, reward.of_discriminator(jnp.zeros(())), rewards)


def given_reward(reward: Reward | str | ScalarFunction) -> Reward:
    """Read a reward: the name of one, a formula of D, or a function of D.

    Args:
        reward: a name in `REWARDS`; a formula in D (D, numbers, log, exp, sqrt,
            + - * / ** and parentheses); or a function of D that JAX can trace.

    Returns:
        The reward. Its φ is an integral by quadrature if it is none of `REWARDS`,
        accurate for ratios Q / P from e^-40 to e^40.

    Raises:
        TypeError: it is none of these, or JAX cannot trace the function.
        ValueError: the formula cannot be read, or the reward is not finite for every D
            in (0, 1), or it falls somewhere.

    Example:
        >>> float(given_reward("2*log(D)").phi(3.0).round(6))
        4.317766
        >>> given_reward("D*(1 - D)")
        Traceback (most recent call last):
        ...
        ValueError: the reward D*(1 - D) falls, at D = 0.75 for one; a text that \
looks more real must be worth more
    """
    reward = read_reward(reward)
    if reward.formula is None:
        slopes = np.asarray(jax.vmap(jax.grad(reward.of_discriminator))(GRID))
        falls = GRID[np.argmin(slopes)] if slopes.min() < -1e-12 else None
    else:
        _, slope, _ = reward.formula.derivatives()
        falls = None if is_zero(slope) else find_sign(slope, variable(), -1)
    if falls is not None:
        raise ValueError(
            f"the reward {reward.name} falls, at D = {float(falls):.6g} for one; a "
            "text that looks more real must be worth more"
        )
    return reward


def read_reward(reward: Reward | str | ScalarFunction) -> Reward:
    """Read a reward as `given_reward` does, without asking whether it rises."""
    if isinstance(reward, Reward):
        return reward
    if isinstance(reward, str):
        if reward in REWARDS:
            return REWARDS[reward]
        rho: ScalarFunction = Expression(reward, "D")
        smooth, hole = find_hole(rho)
    elif callable(reward):
        rho = reward
        require_traceable(rho, np.array(0.5), name="the reward of D")
        finite = np.isfinite(np.asarray(jax.vmap(rho)(GRID)))
        smooth, hole = bool(finite.all()), GRID[np.argmin(finite)]
    else:
        raise TypeError(
            "expected a reward, the name of one, a formula of D or a function of D; "
            f"got {reward!r:.60}"
        )
    name = reward if isinstance(reward, str) else getattr(rho, "__name__", "reward")
    if not smooth:
        near = "" if hole is None else f"; it is not near D = {float(hole):.6g}"
        raise ValueError(
            f"the reward {name} must be finite and smooth for every D in (0, 1){near}"
        )
    return Reward(name, rho, _Integral(rho))


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
        ValueError: the formula cannot be read, or φ is not convex, as its reward falls.

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
    elif callable(phi):
        given = phi
        require_traceable(given, np.array(0.5), name="phi(u)")
    else:
        raise TypeError(f"expected a formula in u or a function of u, got {phi!r:.60}")
    name = getattr(given, "__name__", "phi")
    rho = _reward_formula(given) if isinstance(given, Expression) else None
    found = given_reward(rho.text if rho else _MinusSlope(given, name))
    return Reward(found.name, found.of_discriminator, _Shifted(given), None)


def check_positive_everywhere(
    p: Float[ArrayLike, " texts"], size: int | None = None
) -> Array:
    """Check a real distribution that must have no zeros."""
    p = check_distribution(p, "p", size)
    if not isinstance(p, Tracer) and np.asarray(p).min() == 0:
        raise ValueError(
            "p must be positive everywhere: the optimal discriminator is certain of a "
            "text that P lacks, and its reward may be infinite; leave such texts out"
        )
    return p


def check_rewarded(
    reward: Reward, p: Float[ArrayLike, " texts"], name: str = "p"
) -> Array:
    """Check a distribution, without zeros if the reward is infinite at D = 0."""
    p = check_distribution(p, name)
    if not isinstance(p, Tracer) and np.asarray(p).min() == 0:
        with np.errstate(all="ignore"):
            least = float(reward.of_discriminator(jnp.zeros(())))
        if not np.isfinite(least):
            raise ValueError(
                f"{name} must be positive everywhere for the reward {reward.name}, "
                f"which is {least} at a text that is never real, where D = 0; mix in a "
                "little of the uniform distribution, or take a reward such as D"
            )
    return p


@dataclass(frozen=True)
class _Integral:
    """φ of a reward by Gauss-Legendre quadrature, over t with v = e^t."""

    reward: ScalarFunction

    def __call__(self, u: ArrayLike) -> Array:
        nodes, weights = np.polynomial.legendre.leggauss(200)
        s, weights = (1 + nodes) / 2, weights / 2
        log_u = jnp.log(jnp.asarray(u, float))[..., None]
        t = log_u * s
        values = jnp.vectorize(self.reward)(jax.nn.sigmoid(-t)) * jnp.exp(t)
        return -(log_u * weights * values).sum(axis=-1)


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
