r"""Quality and diversity of conditional generation, and their discrepancies.

A conditional distribution is a matrix with a row $P(\cdot|c)$ for each condition c,
and weights $P(c)$. Quality is averaged over the conditions; diversity is either
averaged too, or that of the pooled texts, $V(\sum_c P(c)\, Q(\cdot|c))$.

Average diversity separates over the conditions, coupled by one Lagrange multiplier.
Under pooled diversity, quality is an optimal transport problem: assign the texts of a
given pooled distribution to the conditions with the highest quality. All upper bounds
here are by weak duality: for any prices b of the texts,
$\sum_{c,x} \pi_{cx} (r_{cx} - b_x) \le \sum_c P(c) \max_x (r_{cx} - b_x)$, with
$\pi_{cx} = P(c)\, Q(x|c)$ and $r_{cx}$ the quality of text x under condition c.
"""

from dataclasses import replace
from functools import partial
from typing import Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from qdtheory.argmax import require_concave
from qdtheory.bounds.bounds import Bounds
from qdtheory.bounds.duality import FEASIBLE, rounding, tangent_bound
from qdtheory.bounds.interior_point import Program, Tangent, follow_path, tangent_at
from qdtheory.distributions import as_distribution
from qdtheory.forms import Problem, expected_score
from qdtheory.formulas.code import only_tried
from qdtheory.frontier import maximise, weight_of
from qdtheory.functions import Function
from qdtheory.pairs import Pair, SummedPair, as_pair, form_of
from qdtheory.support.numbers import (
    CERTIFIED,
    CLOSED,
    EPS,
    NOISE,
    PerText,
    Scalar,
    TextArray,
)
from qdtheory.support.records import Record

# A distribution over texts in each row, one a condition, and P(c) of these.
Conditional: TypeAlias = Float[ArrayLike, "conditions texts"]
Weights: TypeAlias = Float[ArrayLike, " conditions"]
# p, the weights and the scores of the texts, checked.
Given: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]

ROOT = "A root in the multiplier that all conditions share"
PATH = "A convex problem, solved by an interior-point method"
PROGRAM = "A linear program over the models with the pooled distribution of P"


@runtime_checkable
class ScoredPair(Pair, Protocol):
    """A pair with quality linear in Q, hence with a score for each text."""

    def text_quality(self, p: PerText) -> TextArray:
        """Return the score of each text given the real `p`."""
        ...


def conditional_quality(
    pair: ScoredPair, q: Conditional, p: Conditional, weights: Weights
) -> Scalar:
    r"""Average quality $\sum_c P(c)\, U(Q(\cdot|c); P(\cdot|c))$.

    Args:
        pair: a pair with quality linear in Q; for a `SeparablePair` the sum is
            $\sum_c P(c) \sum_x Q(x|c)\, f(P(x|c))$.
        q: the model, one distribution per row, shape (conditions, texts).
        p: the real distributions, same shape.
        weights: P(c), positive.

    Returns:
        A scalar, finite or $-\infty$.

    Raises:
        ValueError: a row or the weights are not a distribution, or shapes differ.

    References:
        Li et al. 2020, section 7.

    Claims: N18.14.

    Example:
        >>> from qdtheory.pairs import CR_NRR
        >>> p, weights = np.array([[0.5, 0.5], [0.75, 0.25]]), np.array([0.5, 0.5])
        >>> float(conditional_quality(CR_NRR, p, p, weights))
        0.5625
    """
    p, weights = _as_conditional(p, weights)
    q, _ = _as_conditional(q, weights, "q", p.shape)
    scores = _scores(pair, p)
    return weights @ jnp.stack([expected_score(*rows) for rows in zip(q, scores)])


def average_diversity(pair: Pair, q: Conditional, weights: Weights) -> Scalar:
    r"""Average diversity $\sum_c P(c)\, V(Q(\cdot|c))$, as in Pairwise-BLEU.

    Args:
        pair: any pair.
        q: the model, one distribution per row.
        weights: P(c), positive.

    Returns:
        A scalar.

    Raises:
        ValueError: a row or the weights are not a distribution, or shapes differ.

    References:
        Li et al. 2020, section 7; Shen et al. 2019 (Pairwise-BLEU).

    Claims: N18.1.

    Example:
        >>> from qdtheory.pairs import CR_NRR
        >>> q, weights = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0.5, 0.5])
        >>> float(average_diversity(CR_NRR, q, weights))
        -0.75
    """
    q, weights = _as_conditional(q, weights, "q")
    return weights @ jnp.stack([pair.diversity(row) for row in q])


def pooled_diversity(pair: Pair, q: Conditional, weights: Weights) -> Scalar:
    r"""Pooled diversity $V(\sum_c P(c)\, Q(\cdot|c))$, as in Distinct-n of all texts.

    Args:
        pair: any pair.
        q: the model, one distribution per row.
        weights: P(c), positive.

    Returns:
        A scalar; for concave V at least `average_diversity`.

    Raises:
        ValueError: a row or the weights are not a distribution, or shapes differ.

    References:
        Li et al. 2020, section 7; Li et al. 2016 (Distinct-n).

    Claims: N18.1.

    Example:
        >>> from qdtheory.pairs import CR_NRR
        >>> q, weights = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0.5, 0.5])
        >>> float(pooled_diversity(CR_NRR, q, weights))
        -0.625
    """
    q, weights = _as_conditional(q, weights, "q")
    return pair.diversity(weights @ q)


# --- Discrepancies ------------------------------------------------------------------
class Prices(Record):
    r"""Multipliers from which the upper bound on conditional models follows.

    Attributes:
        w: the multiplier common to all conditions, dV/dU along the frontier at the
            model; 0 if P maximises diversity, minus infinity or close to it if the
            model maximises quality. None for `transport_bound`.
        conditions: $a_c$, shape (conditions,), of `transport_bound`.
        texts: $b_x$, shape (texts,), likewise, of mean 0 under the pooled
            distribution. $r_{cx} \le a_c + b_x$ everywhere, with equality on the
            support of the model, and on that of P if the gain is 0.
    """

    w: float | None = None
    conditions: Float[Array, " conditions"] | None = None
    texts: TextArray | None = None


def average_discrepancy(pair: SummedPair, p: Conditional, weights: Weights) -> Bounds:
    r"""Exact QDisc under average diversity, by root-finding in the multiplier w.

    U + V / |w| is a sum over the conditions with equal weights P(c) in both terms, so
    the Pareto-optimum of weight w is that of Theorem 2 in every condition.

    Args:
        pair: quality linear in Q, diversity $\sum_i g(Q_i)$ with g strictly concave.
        p: the real distributions, one per row.
        weights: P(c), positive.

    Returns:
        The bounds, which agree to about ten digits; the upper one is infinite unless
        g is proved to be strictly concave. The evidence is the common multiplier w.

    Raises:
        ValueError: bad distributions, g not strictly concave, or a real distribution
            whose own quality is not finite.

    Claims: N18.2, N18.3, N18.4, N18.22.

    Example:
        >>> from qdtheory.pairs import CR_NRR, LL_NRR
        >>> p, weights = np.array([[0.6, 0.4], [0.9, 0.1]]), np.array([0.5, 0.5])
        >>> round(average_discrepancy(CR_NRR, p, weights).qdisc, 9)
        0.0
        >>> print(f"{average_discrepancy(LL_NRR, p, weights).qdisc:.6f}")
        0.000899
    """
    pair = as_pair(pair)
    require_concave(pair.g)
    p, weights = (np.asarray(x) for x in _as_conditional(p, weights))
    scores = _finite_scores(pair, p)
    possible = np.isfinite(scores)
    most_diverse = possible / possible.sum(axis=1, keepdims=True)
    least = float(_average_diversity(pair, p, weights))

    def model(alpha: float) -> tuple[np.ndarray, float]:
        """The optimum at alpha, and its diversity in excess of P's."""
        q = most_diverse  # the limit at alpha = 0
        if alpha > 0:
            q = np.asarray(_optima(pair.g, scores, weight_of(alpha)))
        return q, float(_average_diversity(pair, q, weights)) - least

    if model(0.0)[1] <= 0:
        return _bounds(pair, p, 0.0, (p, weights, scores), f"{ROOT}.", Prices(w=0.0))
    low, high = 0.0, 1.0
    if model(1.0)[1] >= 0:  # mass only on the best texts of every condition
        low = 1.0
    # The lower end stays as diverse as P.
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if model(middle)[1] >= 0 else (low, middle)
    q, _ = model(low)
    w = weight_of(low)
    price = -1 / w
    rows = zip(scores, q, strict=True)
    heights = [tangent_bound(pair.g, u, price, x) for u, x in rows]
    paid = price * least
    quality = float(weights @ (np.where(p > 0, scores, 0.0) * p).sum(axis=1))
    bound = float(weights @ heights) - paid - quality
    sizes = abs(paid) + float(np.abs(heights).max())
    bound += rounding(p.size, pair.g.error) * sizes
    upper, reason = _if_concave(pair.g, bound, ROOT)
    return _bounds(pair, q, upper, (p, weights, scores), reason, Prices(w=w))


def pooled_discrepancy(pair: SummedPair, p: Conditional, weights: Weights) -> Bounds:
    r"""QDisc under pooled diversity, a convex problem, with a lower and an upper bound.

    The iterates of the interior-point method are as diverse as P, so their gains are
    lower bounds. With m the pooled model and $\eta$ the price of diversity,
    the text prices $b_x = -\eta g'(m_x)$ give an upper bound on the gain.

    Args:
        pair: quality linear in Q, diversity $\sum_i g(Q_i)$ with g strictly concave.
        p: the real distributions, one per row.
        weights: P(c), positive.

    Returns:
        The bounds; the lower one is at least that of `transport_bound`, the upper one
        infinite unless g is proved to be strictly concave. The evidence is w.

    Raises:
        ValueError: bad distributions, g not strictly concave, or a quality that is
            not finite.

    Claims: N18.11, N18.12, N18.14, N18.15, N18.16.

    Example:
        >>> from qdtheory.pairs import CR_NRR
        >>> p = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
        >>> found = pooled_discrepancy(CR_NRR, p, np.array([0.5, 0.5]))
        >>> print(f"{found.qdisc:.6f} {found.upper_bound:.6f}")
        0.064305 0.064305
    """
    pair = as_pair(pair)
    require_concave(pair.g)
    p, weights = (np.asarray(x) for x in _as_conditional(p, weights))
    scores = np.asarray(_scores(pair, p))
    if not np.isfinite(scores).all():
        raise ValueError(
            "pooled_discrepancy needs a finite quality of every text under every "
            "condition; give all texts some probability, or use transport_bound"
        )
    uniform = np.full_like(p, 1 / p.shape[1])
    real, most = (float(pooled_diversity(pair, q, weights)) for q in (p, uniform))
    unit = float(np.ptp(scores))
    if (
        unit == 0
        or most - real <= NOISE * abs(pair.g.compiled_jet(weights @ p).value).sum()
    ):
        # Only one pooled distribution is left.
        return replace(transport_bound(pair, p, weights), evidence=Prices(w=0.0))

    best, gain, upper, price = p, 0.0, np.inf, np.inf
    rows, columns = _sums(*p.shape)
    tangent = partial(_pooled_tangent, pair.g, columns)
    start = tangent((weights[:, None] * (p + uniform) / 2).ravel())
    program = Program(tangent, scores.ravel(), real, rows, weights)
    for at, price in follow_path(program, start, unit):
        # Concave V lies below its tangent at the pooled model.
        heights = scores + price * (at.ends - real).reshape(p.shape)
        bound = weights @ heights.max(axis=1) - (weights[:, None] * p * scores).sum()
        q = at.x.reshape(p.shape) / weights[:, None]
        q = q / q.sum(axis=1, keepdims=True)
        upper, found = min(upper, float(bound)), _gain(q, (p, weights, scores))
        if found > gain:
            best, gain = q, found
        if upper - gain <= CLOSED * unit:
            break
    upper, reason = _if_concave(pair.g, upper, PATH)
    return _bounds(
        pair, best, upper, (p, weights, scores), reason, Prices(w=-1 / price)
    )


def transport_bound(pair: ScoredPair, p: Conditional, weights: Weights) -> Bounds:
    r"""Maximum gain in quality at the pooled distribution of P, by a linear program.

    A lower bound on QDisc under every pooled diversity, which is unchanged. Maximise
    $\sum_{c,x} \pi_{cx} r_{cx}$ over $\pi \ge 0$ subject to
    $\sum_x \pi_{cx} = P(c)$ and $\sum_c \pi_{cx} = \sum_c P(c)\, P(x|c)$.

    Args:
        pair: a pair with quality linear in Q; its diversity is not used.
        p: the real distributions, one per row.
        weights: P(c), positive.

    Returns:
        The gain, the model that attains it, with the pooled distribution of P to
        1e-10, and an upper bound on the gain of all such models. The evidence is the
        dual prices $a_c$ and $b_x$ that bound it.

    Raises:
        ValueError: bad distributions, or a real distribution whose own quality is not
            finite.
        RuntimeError: the program was not solved.

    References:
        Villani 2009, chapter 5, for the potentials.

    Claims: N18.8, N18.9, N18.10, N18.11, N18.13, N18.17.

    Example:
        >>> from qdtheory.pairs import CR_NRR
        >>> p = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
        >>> plan = transport_bound(CR_NRR, p, np.array([0.5, 0.5]))
        >>> print(f"{plan.qdisc:.4f}")
        0.0600
        >>> bool(abs(plan.q.mean(axis=0) - p.mean(axis=0)).max() < 1e-12)
        True
    """
    from scipy.optimize import linprog  # late: slow to import

    pair = as_pair(pair)
    p, weights = (np.asarray(x) for x in _as_conditional(p, weights))
    scores = _finite_scores(pair, p)
    pooled, possible = weights @ p, np.isfinite(scores)
    rows, columns = _sums(*p.shape)
    # The part that all conditions share moves no text, but would hide the rest of
    # nearly equal conditions from the solver's tolerances.
    values = np.where(possible, scores, 0.0)
    values -= (shared := weights @ values)
    unit = np.abs(values).max() or 1.0
    found = linprog(
        -(values / unit).ravel(),
        A_eq=np.vstack([rows, columns]),
        b_eq=np.concatenate([weights, pooled]),
        bounds=[(0, None if x else 0) for x in possible.ravel()],
        options=FEASIBLE,
    )
    if found.x is None:
        raise RuntimeError(f"the linear program was not solved: {found.message}")
    q = np.maximum(found.x, 0).reshape(p.shape)
    q /= q.sum(axis=1, keepdims=True)
    text_potentials = shared - unit * found.eqlin.marginals[len(p) :]
    text_potentials -= pooled @ text_potentials
    # The smallest feasible potentials given these: the bound holds for any.
    condition_potentials = (scores - text_potentials).max(axis=1)
    real = float(conditional_quality(pair, p, p, weights))
    prices = Prices(
        conditions=jnp.asarray(condition_potentials), texts=jnp.asarray(text_potentials)
    )
    upper = float(weights @ condition_potentials) - real
    return _bounds(pair, q, upper, (p, weights, scores), f"{PROGRAM}.", prices)


# --- Behind them --------------------------------------------------------------------
def _as_conditional(
    p: ArrayLike,
    weights: ArrayLike,
    name: str = "p",
    shape: tuple[int, ...] | None = None,
) -> tuple[Array, Array]:
    """Check both and return them as JAX arrays."""
    if jnp.ndim(p) != 2:
        raise ValueError(
            f"{name} must be a matrix with a distribution over the texts in each row, "
            f"one a condition; got shape {jnp.shape(p)}"
        )
    if shape is not None and jnp.shape(p) != shape:
        raise ValueError(
            f"{name} must have the shape of p, {shape}, got {jnp.shape(p)}; what is "
            "compared must be over the same conditions and texts"
        )
    p = p if isinstance(p, Tracer) else np.asarray(p)  # JAX slices slowly
    for c, row in enumerate(p):
        as_distribution(row, f"{name}[{c}]")
    if jnp.shape(weights) != (len(p),):
        raise ValueError(
            f"weights must hold P(c) of each of the {len(p)} conditions, "
            f"the rows of {name}; got shape {jnp.shape(weights)}"
        )
    weights = as_distribution(weights, "weights")
    if not isinstance(weights, Tracer) and float(weights.min()) == 0:
        raise ValueError(
            "weights must be positive; leave out the conditions of probability 0, got "
            f"one at index {int(weights.argmin())}"
        )
    return jnp.asarray(p), weights


def _bounds(
    pair: ScoredPair,
    q: np.ndarray,
    upper: float,
    given: Given,
    reason: str,
    evidence: Prices,
) -> Bounds:
    """Bounds on conditional models: certified where they meet, as `seal` has it."""
    p, weights, scores = given
    gain = max(_gain(q, given), 0.0)
    upper = max(upper, gain)  # below the gain by rounding only
    finite = np.isfinite(scores)
    values = np.where(finite, scores, 0.0)
    most = float(weights @ (scores.max(axis=1) - (p * values).sum(axis=1)))
    sizes = float(weights @ ((p + q) * np.abs(values)).sum(axis=1))
    unit, rounding = min(np.ptp(scores[finite]), most), 4 * p.size * EPS * sizes
    met = upper - gain <= max(CERTIFIED * unit, rounding)
    if code := form_of(pair).code:
        reason += f" No seal: {only_tried(code)}."
    status = "certified" if met and not code else "lower_bound"
    return Bounds(gain, upper, jnp.asarray(q), status, reason, evidence=evidence)


def _if_concave(g: Function, upper: float, method: str) -> tuple[float, str]:
    """A bound that assumes g to be strictly concave, if that is proved; the reason."""
    if g.is_concave():
        return upper, f"{method}: g is strictly concave, proved."
    return np.inf, f"{method}: g is strictly concave, which is not proved."


def _scores(pair: ScoredPair, p: Array | np.ndarray) -> Array:
    """The quality r of each text under each condition."""
    return jnp.stack([pair.text_quality(row) for row in p])


def _finite_scores(pair: ScoredPair, p: np.ndarray) -> np.ndarray:
    """The same, after checking that the quality of P itself is finite."""
    return np.stack([Problem(form_of(pair), row).scores for row in p])


def _gain(q: np.ndarray, given: Given) -> float:
    """U(Q) - U(P), if neither has mass on texts of score minus infinity."""
    p, weights, scores = given
    rise = (q - p) * np.where(np.isfinite(scores), scores, 0.0)
    return float(weights @ rise.sum(axis=1))


@partial(jax.jit, static_argnums=0)
def _optima(g: Function, scores: Array, w: Array) -> Array:
    """The Pareto-optimum of one weight in every condition."""
    q = jax.vmap(lambda row: maximise(g, row, w)[0])(scores)
    return q / q.sum(axis=1, keepdims=True)


# Compiled, hence without input checks on values.
_average_diversity = jax.jit(average_diversity)


def _sums(conditions: int, texts: int) -> tuple[np.ndarray, np.ndarray]:
    """Matrices that sum a flattened coupling over texts and over conditions."""
    over_texts = np.kron(np.eye(conditions), np.ones(texts))
    return over_texts, np.tile(np.eye(texts), conditions)


def _pooled_tangent(g: Function, columns: np.ndarray, x: np.ndarray) -> Tangent:
    """Diversity of the pooled texts, as a function of a flattened coupling."""
    jet = g.compiled_jet(columns @ x)
    hessian = columns.T @ (jet.curvature[:, None] * columns)
    return tangent_at(x, float(jet.value.sum()), jet.slope @ columns, hessian)
