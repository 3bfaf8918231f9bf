r"""What a reward or a score of texts optimises: a divergence, or an implied truth.

A generator step on the reward $\rho(D^*)$ of the optimal discriminator
$D^* = P / (P + Q)$, held fixed, is the gradient of
$-D_\varphi(P, Q) = -\sum_i P_i\,\varphi(Q_i / P_i)$ with
$\varphi'(u) = -\rho(1 / (1 + u))$ and $\varphi(1) = 0$: for
$\nabla \sum_i P_i\,\varphi(Q_i / P_i) = \sum_i \varphi'(Q_i / P_i)\,\nabla Q_i$. So
rewards of D and $f$-divergences are the same thing, rising rewards and convex φ.

The objective is a sum of a quality and a diversity,
$\sum_i Q_i f(P_i) + \sum_i g(Q_i)$ for every P over three or more texts, iff
$\varphi''(u) = c / u$, iff $\rho(D) = c\,\mathrm{logit}\,D + \mathrm{const}$, and then
the pair is LL-SE: `check_reward` decides it for a formula of D.

Then the same of a benchmark of scores r and a diversity V: it takes the maximisers of
$r \cdot Q + \eta V(Q)$ for perfect, whatever the real P is. The last section asks where
a model rests that is trained by rewards of its samples.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, ArrayLike, Float

from qdtheory.bounds import interior_point
from qdtheory.distributions import (
    as_interior,
    require_finite,
    require_x64,
)
from qdtheory.forms import Functional, given_scores
from qdtheory.formulas.expressions import Expression, variable
from qdtheory.formulas.tracing import require_traceable
from qdtheory.functions import ScalarFunction, as_function
from qdtheory.proofs.shape import find_hole
from qdtheory.proofs.signs import find_sign, is_zero, number_sign, sign_of
from qdtheory.support.numbers import CLOSED, EPS, TINY, PerText, TextArray
from qdtheory.support.records import Record

# --- Rewards --------------------------------------------------------------------------
# Values of D at which rewards given as code are tried, close to both ends.
GRID = 1 / (1 + np.exp(np.linspace(-20, 20, 2001)))[::-1]
# SymPy takes seconds to minutes for integrals of longer terms.
MAX_DEGREE = 6
# Ratios Q / P at which φ is compared with its tangent at 1.
RATIOS = np.geomspace(1e-9, 1e9, 1801)
Recipe: TypeAlias = Callable[..., np.ndarray]
RewardStatus: TypeAlias = Literal[
    "pair", "divergence", "constant", "reversed", "another_optimum", "undecided"
]


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


def given_reward(reward: Reward | str | ScalarFunction) -> Reward:
    """Read a reward: the name of one, a formula of D, or a function of D.

    Args:
        reward: a name in `REWARDS`; a formula in D, written as an `Expression` is,
            such as "logit(D)"; or a function of D that JAX can trace.

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
        smooth, hole = find_hole(rho) if rho.is_smooth else (False, None)
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
    return Reward(name, rho, Integral(rho))


class RewardVerdict(Record):
    """What a generator optimises that is rewarded with a function of the optimal D.

    Attributes:
        reward: the name or formula.
        divergence: the divergence that it descends, in words; None if it has no name.
        phi: its φ as a formula of u = Q / P; None if no closed form was found.
        rises: whether the reward is proved to rise on all of (0, 1); None: not decided.
        falls_at: a D near which it falls, or None.
        is_pair: whether the objective is a quality-diversity pair, for every P; None:
            not decided.
        pair: the pair, such as "2 LL + 2 SE", or None.
        optimum: the models that the objective is greatest at, in words.
        status: "pair" and "divergence": it is greatest at Q = P alone, and is a pair
            or not known to be one; "constant": it is the same everywhere; "reversed":
            the reward falls everywhere; "another_optimum": some model was found to be
            better than P; "undecided": none was, on a grid.
    """

    reward: str
    divergence: str | None
    phi: str | None
    rises: bool | None
    falls_at: float | None
    is_pair: bool | None
    pair: str | None
    optimum: str
    status: RewardStatus


def check_reward(reward: Reward | str) -> RewardVerdict:
    r"""Find what a reward of the optimal discriminator optimises.

    Args:
        reward: a reward with a formula, a name in `REWARDS`, or a formula of D.

    Returns:
        The verdict. Signs and identities in it are proved, but for the optimum of a
        reward that falls, which is judged on a grid of ratios Q / P.

    Raises:
        TypeError: it is neither a reward nor text.
        ValueError: the formula cannot be read, the reward is not finite for every D in
            (0, 1), or it has no formula.

    References:
        That the logit alone is a pair is ours, and machine-checked: `logit_is_LL_SE`
        and `only_the_logit` in proofs/LogitTheorem.v.

    Claims: N20.6.

    Example:
        >>> verdict = check_reward("2*log(D) - 2*log(1 - D) + 1")
        >>> verdict.divergence, verdict.is_pair, verdict.pair
        ('2 KL(Q, P)', True, '2 LL + 2 SE')
        >>> check_reward("D*(1 - D)").falls_at
        0.75
    """
    read = read_reward(reward)
    if read.formula is None:
        raise ValueError(f"{read.name} is code; the proofs need a formula of D")
    x = variable()
    _, slope, _ = read.formula.derivatives()
    falls = None if is_zero(slope) else find_sign(slope, x, -1)
    sign = sign_of(slope, x)
    rises = False if falls is not None or sign.value == 0 else sign.value == 1 or None
    # c of rho = c logit D + const, whose slope is c / (D (1 - D)).
    weight = _constant(slope * x * (1 - x), x)
    if weight is not None:
        is_pair = number_sign(weight) == 1
    else:
        is_pair = False if _differs(slope, x) else None
    status, optimum = _optimum(read, rises, sign.value)
    return RewardVerdict(
        reward=read.name,
        divergence=_name(slope, x),
        phi=_closed_form(read.formula, read.phi),
        rises=rises,
        falls_at=None if falls is None else float(falls),
        is_pair=is_pair,
        pair=f"{_times(weight, 'LL')} + {_times(weight, 'SE')}" if is_pair else None,
        optimum=optimum,
        status="pair" if is_pair else status,
    )


@dataclass(frozen=True)
class Integral:
    r"""φ of a reward by Gauss-Legendre quadrature.

    $\varphi(u) = -\int_1^u \rho(1 / (1 + v))\,dv$, as an integral over $t = \log v$.
    """

    reward: ScalarFunction

    def __call__(self, u: ArrayLike) -> Array:
        """Return φ at ratios u > 0, of any shape."""
        nodes, weights = np.polynomial.legendre.leggauss(200)
        s, weights = (1 + nodes) / 2, weights / 2
        log_u = jnp.log(jnp.asarray(u, float))[..., None]
        t = log_u * s
        values = jnp.vectorize(self.reward)(jax.nn.sigmoid(-t)) * jnp.exp(t)
        return -(log_u * weights * values).sum(axis=-1)


def _constant(h: Any, x: Any) -> Any:
    """The value of a formula that is proved not to depend on x, or None."""
    import sympy

    if not is_zero(h.diff(x)):
        return None
    return sympy.nsimplify(sympy.simplify(h.subs(x, sympy.Rational(1, 2))))


def _differs(slope: Any, x: Any) -> bool:
    """Whether x (1 - x) times the slope is proved to differ at two places."""
    import sympy

    h = slope * x * (1 - x)
    places = [sympy.Rational(n, 7) for n in (1, 2, 3, 5, 6)]
    gaps = (number_sign(h.subs(x, a) - h.subs(x, places[0])) for a in places[1:])
    return any(gap in (1, -1) for gap in gaps)


def _times(weight: Any, name: str) -> str:
    if abs(weight) == 1:
        return name if weight == 1 else f"-{name}"
    return f"({weight}) {name}" if weight.is_Add else f"{weight} {name}"


def _name(slope: Any, x: Any) -> str | None:
    """The divergence, if the reward is one of `REWARDS` up to scale and shift."""
    for known in REWARDS.values():
        if known.formula is None or known.divergence is None:
            continue
        scale = _constant(slope / known.formula.derivatives()[1], x)
        if scale:
            factor, name = re.findall(r"^(\d*) ?(.*)", known.divergence)[0]
            name = f"({name})" if " - " in name and scale != 1 else name
            return _times(scale * int(factor or 1), name)
    return None


def _closed_form(rho: Expression, phi: ScalarFunction) -> str | None:
    """φ with its linear term left out, if SymPy integrates each term of the reward."""
    import sympy

    x, u = variable(), sympy.Symbol("u", positive=True)
    # Forced, as log(x/(1 - x)) is no difference to SymPy; the end of this checks it.
    split = sympy.expand_log(rho.symbolic(x), force=True)
    terms = sympy.Add.make_args(sympy.expand_mul(split))
    if not all(_is_short(term, x) for term in terms):
        return None
    of_ratio = [sympy.simplify(term.subs(x, 1 / (1 + u))) for term in terms]
    whole = sum(sympy.integrate(-_split_logs(term), u) for term in of_ratio)
    whole = sympy.expand(_split_logs(sympy.expand(whole)))
    bent = sum(t for t in sympy.Add.make_args(whole) if t.diff(u, 2) != 0)
    found = sympy.collect(bent, list(sympy.sympify(bent).atoms(sympy.log)))
    found = found - sympy.sympify(found).subs(u, 1)
    # Another route: by quadrature, with the linear term.
    at = np.array([0.3, 0.7, 2.0, 5.0])
    try:
        gap = np.array([complex(found.subs(u, v)) for v in at]) - np.asarray(phi(at))
    except TypeError:  # an integral that SymPy did not solve
        return None
    line = gap[0] / (at[0] - 1) * (at - 1)
    return str(found) if np.abs(gap - line).max() <= 1e-9 else None


def _is_short(term: Any, x: Any) -> bool:
    """Whether SymPy integrates a term at once: powers, and one logarithm at most."""
    import sympy

    log_of, powers = None, {}
    for factor in sympy.Mul.make_args(term):
        base, exponent = factor.as_base_exp()
        if base in (x, 1 - x) and exponent.is_Rational and abs(exponent) <= MAX_DEGREE:
            powers[base] = exponent
        elif isinstance(base, sympy.log) and exponent == 1 and log_of is None:
            log_of = base.args[0]
        elif factor.has(x):
            return False
    a, b = (sympy.sympify(powers.get(base, 0)) for base in (x, 1 - x))
    if log_of is None:  # an integral of u^b (1 + u)^(-a - b)
        return b.is_Integer or a + b == 0 or max(a.q, b.q) <= 2
    if log_of in (x, 1 - x):
        return all(power.is_Integer and power >= 0 for power in (a, b))
    return not powers and log_of.is_polynomial(x) and sympy.degree(log_of, x) == 1


def _split_logs(h: Any) -> Any:
    """Write logarithms of fractions as differences."""
    import sympy

    fractions = h.replace(sympy.log, lambda a: sympy.log(sympy.together(a)))
    return sympy.expand_log(fractions, force=True)


def _optimum(
    reward: Reward, rises: bool | None, sign: int | None
) -> tuple[RewardStatus, str]:
    """The models that the objective is greatest at."""
    if sign == 0:
        return "constant", "every Q: the reward is constant"
    if rises:
        return "divergence", "Q = P alone"
    if sign == -1:
        return "reversed", "the rarest text alone, for a reward that falls everywhere"
    # Q = P is best for every P iff phi(u) >= phi'(1) (u - 1), phi's tangent at u = 1.
    above = np.asarray(reward.phi(RATIOS))
    tangent = float(reward.of_discriminator(0.5)) * (1 - RATIOS)
    below = above - tangent < -1e-9 * (1 + np.abs(above))
    if not below.any():
        return "undecided", "Q = P, judged on a grid"
    worst = RATIOS[np.argmin((above - tangent) / (1 + RATIOS))]
    better = f"not Q = P: some model with Q = {worst:.2g} P on a text is better"
    return "another_optimum", better


# --- Implied truths -------------------------------------------------------------------
class ImpliedTruths(Record):
    r"""The family of distributions that no model beats, by the price of diversity.

    Attributes:
        prices: $\eta$, quality per unit of diversity, ascending.
        p: the distributions, one a price, shape (prices, N).
        quality: U of each.
        diversity: V of each.
        gap: the most by which a model can exceed it in $U + \eta V$, by weak duality.
    """

    prices: Float[Array, " prices"]
    p: Float[Array, "prices texts"]
    quality: Float[Array, " prices"]
    diversity: Float[Array, " prices"]
    gap: Float[Array, " prices"]


def implied_truths(
    scores: PerText | Sequence[int | float],
    diversity: Functional | str,
    prices: Float[ArrayLike, " prices"] | Sequence[int | float],
) -> ImpliedTruths:
    r"""The maximisers of $U + \eta V$, which a benchmark of U and V takes for perfect.

    Args:
        scores: r, the quality of each text, finite, shape (N,).
        diversity: V, maps a distribution to a scalar; strictly concave, twice
            differentiable at positive Q, JAX-traceable. Or g, a formula in x or a name,
            for $V = \sum_i g(Q_i)$.
        prices: $\eta$, positive, shape (prices,).

    Returns:
        One distribution a price, with a bound on its distance from the optimum.

    Raises:
        TypeError: the scores are not numbers.
        ValueError: a score or a price is not finite, a price is not positive, or V is
            not concave or lacks derivatives.

    References:
        Boyd and Vandenberghe 2004, section 4.7.4, for the scalarisation.

    Claims: N25.7.

    Example:
        >>> found = implied_truths([0.0, 1.0], "-x*log(x)", [1.0])
        >>> print(found.p.round(4))  # the softmax of the scores
        [[0.2689 0.7311]]
    """
    require_x64()
    r = given_scores(scores)
    eta = np.sort(np.asarray(prices, dtype=float))
    require_finite(r, "scores")
    if eta.ndim != 1 or not eta.size or not ((eta > 0) & (eta < np.inf)).all():
        raise ValueError("prices must be positive numbers, one or more")
    if isinstance(diversity, str):
        diversity = as_function(diversity, "g").total
    # Each price by the problem r . Q / eta + V(Q), with eta times its value.
    # A new object, by which compiled code is kept: the old one may do something else.
    face = interior_point.face_of(partial(diversity), r)
    start = face.tangent(np.full(r.size, 1 / r.size))
    found = [_best(face.program(r / x, -np.inf), start, r / x) for x in eta]
    points = np.array([at.x for at, _ in found])
    values, gaps = [at.value for at, _ in found], eta * [gap for _, gap in found]
    return ImpliedTruths(*map(jnp.asarray, (eta, points, points @ r, values, gaps)))


def _best(
    program: interior_point.Program, start: interior_point.Tangent, u: np.ndarray
) -> tuple[interior_point.Tangent, float]:
    """Maximise u . x + V(x), with the most by which its tangent exceeds the value.

    V is concave: with the slope s = u + V'(x) none exceeds x by more than
    max_i s_i - s . x.
    """
    unit = float(np.ptp(u)) + max(float(np.ptp(start.slope)), EPS * start.size)
    best, least = start, np.inf
    for at, _ in interior_point.follow_path(program, start, unit):
        gap = float((u - u @ at.x + at.slope).max())
        if gap < least:
            best, least = at, gap
            interior_point.require_semidefinite(at)
        if least <= CLOSED * unit:
            break
    return best, least


# --- Rewards of samples ---------------------------------------------------------------
# Of answer i: the expected reward R of its sample beside k - 1 others, and the slope
# of the set's expected score in q_i, each up to a factor and a constant that all
# answers share. If the score is the mean reward, sum q R, its slope is R + q R'.
RECIPES: dict[str, tuple[Recipe, ...]] = {
    "reward": 2 * (lambda q, at: at.r + 0 * q,),
    "reward x unlike": (lambda q, at: at.r * (1 - q), lambda q, at: at.r * (1 - 2 * q)),
    "reward / cluster": (
        lambda q, at: at.r * sum((1 - q) ** j for j in range(at.k)) / at.k,
        lambda q, at: at.r * (1 - q) ** (at.k - 1),
    ),
    "entropy bonus": 2 * (lambda q, at: at.r - at.eta * np.log(q),),
    "KL penalty": 2 * (lambda q, at: at.r - at.eta * np.log(q / at.p),),
    "pass@k": 2 * (lambda q, at: at.r * (1 - q) ** (at.k - 1),),
    "pass@1 + pass@k": (
        lambda q, at: at.r * (1 + (1 - q) ** (at.k - 1)),
        lambda q, at: at.r * (1 + at.k * (1 - q) ** (at.k - 1)),
    ),
    "match 2:1": (lambda q, at: 2 * at.p - q, lambda q, at: 2 * at.p - 2 * q),
    "match 1:1": (lambda q, at: at.p - q, lambda q, at: at.p - 2 * q),
}


class ImpliedLaw(Record):
    """Where a model rests that is trained by a recipe.

    Attributes:
        set_credit: the law that is best for the set's score, shape (N,).
        own_credit: the law at which no sample's own reward says to move, shape (N,).
    """

    set_credit: TextArray
    own_credit: TextArray


def implied_law(
    recipe: str,
    scores: PerText | Sequence[int | float],
    p: PerText | Sequence[int | float] | None = None,
    *,
    num_samples: int = 8,
    price: float = 0.1,
) -> ImpliedLaw:
    r"""Where training rests by a reward of samples, under set credit and own credit.

    A model of one prompt draws k answers from q, which has a parameter for each. Set
    credit follows $\partial J / \partial q_i$ of the set's expected score J. Own
    credit, as in REINFORCE, holds the expected reward $R_i(q)$ of a sample fixed: it
    rests where $R_i(q)$ is the same for all answers in use and no greater for others.
    A part of J that is a mean over tuples of d samples has slope $d R_i$: own credit
    divides the weight of such a part by d.

    Args:
        recipe: a name in `RECIPES`. "pass@k": in a share of the prompts in proportion
            to its score an answer is the one that is right. "match 2:1": a sample is
            paid 2 if it is the human's answer, less 1 if it is another sample's; "match
            1:1": 1, less 1.
        scores: r, the reward of each answer, nonnegative, shape (N,).
        p: people's frequencies, shape (N,), or None: 1/N. Of use to the KL penalty, as
            the model before training, positive, and to "match".
        num_samples: k, at least 2.
        price: $\eta$ of the entropy bonus and the KL penalty, positive.

    Returns:
        The two laws, to 1e-12.

    Raises:
        ValueError: no such recipe, or an argument outside its domain.

    References:
        Williams 1992, for REINFORCE; the laws are ours.

    Claims: N24.33, N24.34.

    Example:
        >>> rests = implied_law("reward x unlike", [1, 0.8, 0.5, 0.1])
        >>> print(np.round(rests.set_credit, 3), np.round(rests.own_credit, 3))
        [0.382 0.353 0.265 0.   ] [0.529 0.412 0.059 0.   ]
    """
    r = np.asarray(scores, float)
    if recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}; got {recipe!r}")
    if r.ndim != 1 or r.size < 2 or not ((r >= 0) & (r < np.inf)).all() or not r.any():
        raise ValueError("scores must be two or more numbers from 0 on, one above 0")
    if num_samples < 2 or num_samples % 1 or not 0 < price < np.inf:
        raise ValueError("num_samples must be whole, at least 2, and price positive")
    real = np.full(r.size, 1 / r.size) if p is None else np.asarray(p, float)
    real = np.asarray(as_interior(real, size=r.size))
    at = SimpleNamespace(r=r, p=real, k=num_samples, eta=price)
    own, of_set = (_rest(partial(h, at=at), r.size) for h in RECIPES[recipe])
    return ImpliedLaw(set_credit=jnp.asarray(of_set), own_credit=jnp.asarray(own))


def _rest(h: Callable[..., np.ndarray], size: int) -> np.ndarray:
    """The law at which h_i(q_i) is one level on the support and no greater elsewhere.

    No h_i rises: one bisection for the chances at which they fall below a level, and
    one for the level at which the chances add up to 1.
    """

    def chances(level: float) -> np.ndarray:
        q = np.full(size, 0.5)
        for step in 0.5 ** np.arange(2, 62):
            q = np.where(h(q) > level, q + step, q - step)
        return q

    least, most = h(np.ones(size)).min(), h(np.full(size, TINY)).max()
    least -= most - least or abs(most) or 1.0
    for _ in range(100):
        level = (least + most) / 2
        full = chances(level).sum() > 1
        least, most = (level, most) if full else (least, level)
    below, above = chances(least), chances(most)
    # They differ by more than rounding only where h is level, as a plain reward is.
    return above + (1 - above.sum()) / (below.sum() - above.sum()) * (below - above)
