r"""The Pareto frontier of linear quality and concave separable diversity (Theorem 2).

For a weight $w \le 0$ the Pareto-optimum maximises $V - w U$, where
$U = \sum_i Q_i \phi_i$ and $V = \sum_i g(Q_i)$. Its optimality conditions are
$g'(Q_i) = w \phi_i + b$ on the support and $g'(0) \le w \phi_i + b$ off it. All
functions use one solver, `argmax.py`, with one method per kind of g: `maximise` calls
it, in the section "The solver" below.
"""

from dataclasses import field
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from qdtheory.argmax import order_two_moments, require_concave, solver
from qdtheory.distributions import as_distribution
from qdtheory.forms import expected_score
from qdtheory.formulas.code import only_tried
from qdtheory.functions import Function
from qdtheory.pairs import Pair, SummedPair, as_pair, form_of, require_pair
from qdtheory.support.numbers import (
    EPS,
    LEAST_PROBABILITY,
    STATIC,
    TINY,
    Number,
    PerText,
    Scalar,
    TextArray,
    require,
    within,
)
from qdtheory.support.records import Record

# The largest weight below 0, where the frontier continues after a jump.
NEAREST_WEIGHT = -TINY
# Relative difference below which scores are tied: XLA may fuse a product into a sum
# and so compute the same score in two ways.
TIED = 4 * EPS
# Largest deviation from 1 of the sum of an optimum.
SOLVED = 1e-9
# Largest deviation from the conditions of an optimum, relative to their terms.
OPTIMAL = 1e-7
# Number of previous weights from which the next starting point is extrapolated.
NUM_NODES = 4


@jax.tree_util.register_dataclass
class ParetoOptimum(Record):
    r"""One point of the frontier; a batch of points under `jax.vmap`.

    Attributes:
        q: the distribution, shape (N,).
        w: its weight, at most 0; along the frontier dV/dU = w.
        b: the offset in $g'(Q_i) = w \phi_i + b$; not finite for $w = -\infty$.
        quality: the value of U.
        diversity: the value of V.
        residual: $|\sum_i Q_i - 1|$, the residual of the equation that fixes b.
    """

    q: Float[Array, "*batch texts"]
    w: Float[ArrayLike, "*batch"]
    b: Float[Array, "*batch"]
    quality: Float[Array, "*batch"]
    diversity: Float[Array, "*batch"]
    residual: Float[Array, "*batch"]


@jax.tree_util.register_dataclass
class ParetoFrontier(Record):
    r"""Points of the frontier, from the most diverse to the highest quality.

    Attributes:
        w: weights, from 0 down to B, or to $-\infty$ if B is infinite.
        alpha: $w / (w - 1)$, the share of quality in $\alpha U + (1 - \alpha) V$.
        b: offsets; for a search, the mean of $\nabla V - w \nabla U$ under Q.
        quality: U of each point, nondecreasing.
        diversity: V of each point, nonincreasing.
        residual: the largest $|\sum_i Q_i - 1|$ over the points; for a search, the
            largest first-order optimality gap, in units of quality.
        status: "exact" if g is proved to be strictly concave; "lower_bound" for points
            that better models may dominate: of a search, of code, or of a g that is
            not proved.
        q: for a search, the models found, shape (points, N); otherwise None, since
            `pareto_optimum` gives the model of each weight.
    """

    w: Float[Array, "*batch points"]
    alpha: Float[Array, "*batch points"]
    b: Float[Array, "*batch points"]
    quality: Float[Array, "*batch points"]
    diversity: Float[Array, "*batch points"]
    residual: Float[Array, "*batch"]
    status: Literal["exact", "lower_bound"] = field(metadata=STATIC)
    q: Float[Array, "*batch points texts"] | None = None


@jax.tree_util.register_dataclass
class FrontierSlopes(Record):
    """Derivatives with respect to w at a frontier point; diversity / quality = w.

    Attributes:
        quality: dU/dw.
        diversity: dV/dw.
        b: db/dw.
    """

    quality: Float[Array, "*batch"]
    diversity: Float[Array, "*batch"]
    b: Float[Array, "*batch"]


def pareto_optimum(pair: SummedPair, p: PerText, w: Number) -> ParetoOptimum:
    r"""The Pareto-optimum of weight w: $Q_i = g'^{-1}(\min(g'(0), w \phi_i + b))$.

    In closed form for the Shannon entropy (softmax) and Tsallis orders 1.5 and 2 (one
    sort); by safeguarded root-finding for other strictly concave g. Differentiable in
    p and w; works under `jax.jit` and `jax.vmap`, where an optimum that would raise
    an error is NaN instead.

    Args:
        pair: quality linear in Q, diversity $\sum_i g(Q_i)$ with g strictly concave.
        p: the real distribution, shape (N,).
        w: the weight, in $[-\infty, 0]$. 0 gives the maximiser of V, uniform over all
            texts; $-\infty$ gives the uniform distribution over the modes.

    Returns:
        The optimum with both metrics. Texts of score $-\infty$ have probability 0
        for every w < 0, so the frontier jumps at w = 0.

    Raises:
        TypeError: the pair has no scores or no g.
        ValueError: `p` is not a distribution, w > 0 or NaN, a score is NaN or
            $+\infty$, all are $-\infty$, g is not concave, or g is so flat near 0
            that 64 bits do not determine Q.

    References:
        Li et al. 2020, Theorem 2, extended to both ends; regularised argmax and
        entmax: Martins & Astudillo 2016, Peters et al. 2019. That an optimum keeps
        the order and the ties of P, Lemma 1, is machine-checked: `lemma_1_order` and
        `lemma_1_ties` in proofs/Theorem1.v.

    Claims: L1.1, L2.1, T2.1, T2.2, T2.10, T2.11, T2.13, T2.14.

    Example:
        >>> from qdtheory.pairs import LL_SE
        >>> p = np.array([0.64, 0.36])
        >>> print(pareto_optimum(LL_SE, p, -0.5).q.round(4))
        [0.5714 0.4286]
    """
    pair = as_pair(pair)
    scores = _scores(pair, p)
    require("a number", w=w)
    if not isinstance(w, Tracer) and not w <= 0:
        raise ValueError(
            f"w must be at most 0, got {w}; for the share alpha of quality use "
            "w = alpha / (alpha - 1)"
        )
    weight = jnp.asarray(w, dtype=float)
    q, b = maximise(pair.g, scores, weight)
    residual = require_solved(jnp.abs(q.sum() - 1))
    _require_optimal(pair.g, scores, q, weight, b)
    q = jnp.where(residual <= SOLVED, q, jnp.nan)
    quality, diversity = expected_score(q, scores), pair.g.total(q)
    return ParetoOptimum(q, weight, b, quality, diversity, residual)


def pareto_frontier(
    pair: Pair | str, p: PerText, num_points: int = 200
) -> ParetoFrontier:
    r"""The frontier on a grid uniform in $\alpha = w / (w - 1)$, ends included.

    It starts at w = 0 and ends at w = B, or at $w = -\infty$ if B is infinite. If some
    text has score $-\infty$, the first point (U = $-\infty$) is isolated and the
    second is the limit $w \to 0^-$, uniform over the other texts. Only a few vectors
    of length N are held in memory at a time.

    Of other pairs `qd.search.search_frontier` finds points.

    Args:
        pair: quality linear in Q, diversity $\sum_i g(Q_i)$ with g strictly concave; or
            the name of one ("LL-SE").
        p: the real distribution, shape (N,).
        num_points: at least 3.

    Returns:
        Weights, offsets and both metrics; `pareto_optimum(pair, p, w)` gives the
        distribution at any weight. If all finite scores are equal, the points
        coincide.

    Raises:
        TypeError: the pair has no scores or no g.
        ValueError: as for `pareto_optimum`, or fewer than 3 points.

    References:
        Li et al. 2020, Theorem 2 and figure 1.

    Claims: T2.3, T2.8, T2.9, T2.12.

    Example:
        >>> from qdtheory.pairs import CR_NRR
        >>> frontier = pareto_frontier(CR_NRR, np.array([0.5, 0.3, 0.2]), 3)
        >>> print(frontier.w.round(4))
        [  0.      -0.8333 -10.    ]
        >>> print(frontier.diversity.round(4))
        [-0.3333 -0.3414 -1.    ]
    """
    summed: Any = as_pair(pair)
    within(num_points=num_points, low=3)
    scores, g = _scores(summed, p), summed.g
    w = _weight_grid(scores, saturation_weight_of(g, scores), num_points)
    b, quality, diversity, residual = _sweep(g, _descending(scores), w)
    alpha = jnp.where(jnp.isinf(w), 1.0, jnp.abs(w / (w - 1)))
    solved = require_solved(residual.max())
    proved = not form_of(summed).code and g.is_concave()
    status = "exact" if proved else "lower_bound"
    return ParetoFrontier(w, alpha, b, quality, diversity, solved, status)


def saturation_weight(pair: SummedPair, p: PerText) -> Scalar:
    r"""B of Theorem 2, the weight below which the optimum is constant.

    $B = [g'(1/M) - g'(0)] / [\phi_{(1)} - \phi_{(2)}]$, where M is the number of modes
    and $\phi_{(1)} > \phi_{(2)}$ are the two greatest distinct scores.

    Args:
        pair: quality linear in Q, diversity $\sum_i g(Q_i)$ with g strictly concave.
        p: the real distribution, shape (N,).

    Returns:
        B, in $[-\infty, 0)$; $-\infty$ if $g'(0) = \infty$; NaN (undefined) if all
        finite scores are equal, so that the optimum is constant.

    Raises:
        TypeError: the pair has no scores or no g.
        ValueError: as for `pareto_optimum`, or g is code, whose g'(0) is not known.

    References:
        Li et al. 2020, Theorem 2 (3).

    Claims: T2.6, T2.7.

    Example:
        >>> from qdtheory.pairs import CR_NRR
        >>> float(saturation_weight(CR_NRR, np.array([0.5, 0.3, 0.2])))
        -10.0
    """
    pair = as_pair(pair)
    scores = _scores(pair, p)
    if pair.g.formula is None:
        raise ValueError(f"B rests on g'(0): {only_tried(['g'])}")
    return saturation_weight_of(pair.g, scores)


def frontier_slopes(pair: SummedPair, p: PerText, w: Number) -> FrontierSlopes:
    r"""Derivatives of U, V and b along the frontier.

    Let $\bar\phi$ be the mean of the scores on the support with weights
    $1/g''(Q_i)$. Then $dU/dw = \sum_i (\phi_i - \bar\phi)^2 / g''(Q_i)$,
    $dV/dw = w\, dU/dw$ and $db/dw = -\bar\phi$.

    Args:
        pair: quality linear in Q, diversity $\sum_i g(Q_i)$ with g strictly concave.
        p: the real distribution, shape (N,).
        w: a finite weight below 0.

    Returns:
        The three derivatives; one-sided where a text enters or leaves the support.

    Raises:
        TypeError: the pair has no scores or no g.
        ValueError: as for `pareto_optimum`, or w not in $(-\infty, 0)$.

    References:
        Li et al. 2020, proof of Theorem 2 (2), gives db/dw.

    Claims: T2.4, T2.5.

    Example:
        >>> from qdtheory.pairs import LL_SE
        >>> slopes = frontier_slopes(LL_SE, np.array([0.64, 0.36]), -0.5)
        >>> float((slopes.diversity / slopes.quality).round(6))
        -0.5
    """
    within(w=w, low=-np.inf, high=0, ends="()")
    pair = as_pair(pair)
    scores = _scores(pair, p)
    weight = jnp.asarray(w, dtype=float)
    return FrontierSlopes(*_slopes(pair.g, scores, weight))


@partial(jax.jit, static_argnums=0)
def _slopes(g: Function, scores: Array, w: Array) -> tuple[Array, Array, Array]:
    q, _ = maximise(g, scores, w)
    q_slope, b_slope = _implicit(g, q, w, scores, jnp.zeros_like(scores), 1.0)
    marginal = jax.vmap(jax.grad(g))(q)
    diversity = jnp.where(q > 0, marginal * q_slope, 0.0).sum()
    return expected_score(q_slope, scores), diversity, b_slope


def kkt_residual(pair: SummedPair, p: PerText, optimum: ParetoOptimum) -> Scalar:
    r"""Largest violation of the KKT conditions at a point of weight w.

    The maximum of $|g'(Q_i) - w \phi_i - b|$ on the support,
    $g'(0) - w \phi_i - b$ off it, and $|\sum_i Q_i - 1|$. For strictly concave g and
    w < 0, zero means Pareto-optimal.

    Args:
        pair: quality linear in Q, diversity $\sum_i g(Q_i)$.
        p: the real distribution, shape (N,).
        optimum: the point, with finite w and b.

    Returns:
        A nonnegative scalar, in the units of g'.

    Raises:
        TypeError: the pair has no scores or no g.
        ValueError: `p` is not a distribution, or the optimum differs from it in size.

    References:
        Li et al. 2020, Theorem 4 (the conditions), in Lemma 2's notation.

    Claims: T2.1, T3.6.
    """
    pair = as_pair(pair)
    scores = _scores(pair, p)
    q = as_distribution(optimum.q, "optimum.q", scores.size)
    return _kkt_violation(pair.g, scores, q, optimum.w, optimum.b)


@partial(jax.jit, static_argnums=0)
def _kkt_violation(g: Function, scores: Array, q: Array, w: Array, b: Array) -> Array:
    # Where Q_i is 0, the slope at the smallest positive float stands for g'(0).
    slopes = jax.vmap(jax.grad(g))(jnp.where(q > 0, q, LEAST_PROBABILITY))
    gaps = slopes - jnp.where(w == 0, 0.0, w * scores) - b
    stationarity = jnp.where(q > 0, jnp.abs(gaps), jnp.maximum(gaps, 0.0)).max()
    return jnp.maximum(stationarity, jnp.abs(q.sum() - 1))


# --- The solver -----------------------------------------------------------------------
def _scores(pair: SummedPair, p: ArrayLike) -> Array:
    if not isinstance(pair, SummedPair):
        require_pair(pair)
        raise TypeError(
            "the frontier needs a pair with a score for each text and a diversity "
            f"that sums g(Q_i), a SeparablePair or LinearPair; got a "
            f"{type(pair).__name__} (for n-grams, take the pair on their "
            "distributions; qd.search.search_frontier finds points for any pair)"
        )
    require_concave(pair.g)
    scores = pair.text_quality(p)
    if not isinstance(scores, Tracer):
        values = np.asarray(scores)
        if (np.isnan(values) | (values == np.inf)).any():
            raise ValueError(
                "every text needs a score that is finite or -inf; the pair's quality "
                "gives NaN or +inf at this p"
            )
        if (values == -np.inf).all():
            raise ValueError("every text has score -inf, so no quality is finite")
    return scores


def require_solved(residual: Float[Array, "..."]) -> Float[Array, "..."]:
    """Raise if the probabilities of an optimum do not sum to 1; pass traced values."""
    if not isinstance(residual, Tracer) and not residual <= SOLVED:
        raise ValueError(
            f"the probabilities of the optimum miss the sum 1 by {residual:.1e}: g is "
            "too flat near 0, or w too large, for 64 bits; bend g there, for example "
            "by adding -1e-3 * x**2, or take a smaller weight"
        )
    return residual


def _require_optimal(g: Function, scores: Any, q: Any, w: Any, b: Any) -> None:
    """Raise if the answer misses its own conditions; pass traced values."""
    if any(isinstance(x, Tracer) for x in (scores, q, w, b)) or not -np.inf < w < 0:
        return
    scores, q = np.asarray(scores), np.asarray(q)
    finite = np.isfinite(scores)
    line = float(w) * scores[finite] + float(b)
    slopes = g.jet(np.maximum(q[finite], LEAST_PROBABILITY)).slope
    told = q[finite] >= LEAST_PROBABILITY
    gaps = np.where(told, np.abs(slopes - line), slopes - line)
    size = np.abs(slopes) + abs(float(w)) * np.abs(scores[finite]) + abs(float(b))
    if (missed := gaps > OPTIMAL * size.max()).any() or np.isnan(gaps).any():
        worst = int(np.nanargmax(gaps))
        raise ValueError(
            f"the optimum misses g'(Q_i) = w f(P_i) + b by {gaps[worst]:.1e} at Q_i = "
            f"{q[finite][worst]:.3g} ({missed.sum()} texts): 64 bits do not determine "
            "it; write g without differences of nearly equal numbers, or take a "
            "smaller weight"
        )


def weight_of(alpha: float) -> float:
    r"""Weight of the Pareto-optimum that maximises $\alpha U + (1 - \alpha) V$.

    This is $(1 - \alpha)(V - w U)$ with $w = \alpha / (\alpha - 1)$.
    """
    return -np.inf if alpha == 1 else min(NEAREST_WEIGHT, alpha / (alpha - 1))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
@partial(jax.jit, static_argnums=0)
def maximise(
    g: Function, scores: PerText, w: Float[ArrayLike, ""]
) -> tuple[TextArray, Scalar]:
    r"""The Pareto-optimum of weight w for given scores, without input checks.

    Scores computed inside a user's compiled function may differ by a rounding error
    from use to use, so `score_gaps` decides which are equal.
    """
    gaps = score_gaps(scores)
    solve, guess = solver(g, gaps)
    at_end = (w == 0) | jnp.isinf(w)
    q, _ = solve(jnp.where(at_end, NEAREST_WEIGHT, w), guess)
    q = jnp.select([w == 0, jnp.isinf(w)], _ends(gaps), q)
    return q, _offset(g, q.max(), jnp.asarray(w), jnp.asarray(scores))


@maximise.defjvp
def _maximise_jvp(g, primals, tangents):
    scores, w = primals
    q, b = maximise(g, scores, w)
    return (q, b), _implicit(g, q, w, scores, *tangents)


def _implicit(g, q, w, scores, scores_dot, w_dot):
    r"""Differentiate $g'(Q_i) = w \phi_i + b$ and $\sum_i Q_i = 1$ on the support.

    $g''(Q_i)\,\dot Q_i = w \dot\phi_i + \dot w \phi_i + \dot b$, with $\dot b$ such
    that the $\dot Q_i$ sum to 0.
    """
    support = (q > 0) & jnp.isfinite(scores)
    curvature = jax.vmap(jax.grad(jax.grad(g)))(jnp.where(support, q, 0.5))
    weight = jnp.where(support, 1 / curvature, 0.0)
    scores, scores_dot = (jnp.where(support, s, 0.0) for s in (scores, scores_dot))
    line_dot = w * scores_dot + w_dot * scores
    b_dot = -(weight * line_dot).sum() / weight.sum()
    return weight * (line_dot + b_dot), b_dot


@jax.jit
def score_gaps(scores: PerText) -> TextArray:
    """Gap from the greatest score to each score; 0 for differences due to rounding."""
    scores = jnp.asarray(scores)
    best = scores.argmax()
    gaps = scores[best] - scores
    tied = gaps <= TIED * jnp.abs(scores[best])
    return jnp.where(tied | (jnp.arange(scores.size) == best), 0.0, gaps)


def _ends(gaps: Array) -> tuple[Array, Array]:
    """Q at w = 0, uniform over all texts, and at w = -infinity, over the modes."""
    modes = gaps == 0
    return jnp.full_like(gaps, 1 / gaps.size), modes / modes.sum()


def _offset(g: Function, largest: Array, w: Array, scores: Array) -> Array:
    """The b of g'(Q_i) = w phi_i + b, from the text of greatest score."""
    slope = jnp.vectorize(jax.grad(g))(largest)
    return slope - jnp.where(w == 0, 0.0, w * scores.max())


def _descending(scores: Array) -> Array:
    """Sort the scores, which changes no metric; by NumPy, as XLA is slow on a CPU."""
    if isinstance(scores, Tracer):
        return jnp.sort(scores, descending=True)
    return jnp.asarray(np.sort(np.asarray(scores))[::-1])


@partial(jax.jit, static_argnums=0)
def _sweep(g: Function, scores: Array, w: Array) -> tuple[Array, ...]:
    """Compute (b, U, V, residual) at every weight of a grid, ends included.

    The scores are in descending order.
    """
    gaps = score_gaps(scores)

    def metrics(q):
        residual = jnp.abs(q.sum() - 1)
        return q.max(), expected_score(q, scores), g.total(q), residual

    if g.order == 2:
        largest, quality, squares, residual = order_two_moments(scores, w[1:-1])
        linear = g(1.0) + 1  # g(x) = linear * x - x^2, and the Q_i sum to 1
        points = largest, quality, linear - squares, residual
    else:
        solve, guess = solver(g, gaps)

        def point(past, now):
            (nodes, guesses), (weight, oldest) = past, now
            q, guess = solve(weight, _interpolate(nodes, guesses, weight))
            past = nodes.at[oldest].set(weight), guesses.at[oldest].set(guess)
            return past, metrics(q)

        # Initialise as if the optimum were uniform at some weights above 0.
        past = jnp.arange(1.0, NUM_NODES + 1), jnp.tile(guess, (NUM_NODES, 1))
        inner = w[1:-1], jnp.arange(w.size - 2) % NUM_NODES
        points = jax.lax.scan(point, past, inner)[1]
    first, last = (metrics(q) for q in _ends(gaps))
    largest, *rest = (jnp.hstack(values) for values in zip(first, points, last))
    return _offset(g, largest, w, scores), *rest


def _interpolate(nodes: Array, values: Array, w: Array) -> Array:
    """Lagrange interpolation at w, from values at distinct nodes."""
    itself = jnp.eye(nodes.size, dtype=bool)
    apart = jnp.where(itself, 1.0, nodes[:, None] - nodes)
    return jnp.where(itself, 1.0, (w - nodes) / apart).prod(axis=1) @ values


@partial(jax.jit, static_argnums=0)
def saturation_weight_of(g: Function, scores: PerText) -> Scalar:
    """B of `saturation_weight` for given scores, without input checks."""
    gaps = score_gaps(scores)
    least = jnp.where(gaps > 0, gaps, jnp.inf).min()
    fall = jax.grad(g)(1 / (gaps == 0).sum()) - g.at_zero[1]
    return jnp.where(jnp.isinf(least), jnp.nan, fall / least)


@partial(jax.jit, static_argnums=2)
def _weight_grid(scores: Array, lowest: Array, num_points: int) -> Array:
    """Weights from 0 to `lowest`, B of Theorem 2, uniform in alpha."""
    alpha_end = jnp.where(jnp.isfinite(lowest), lowest / (lowest - 1), 1.0)
    jump = (scores == -jnp.inf).any()
    plain = jnp.linspace(0.0, 1.0, num_points)
    after_jump = jnp.concatenate([jnp.zeros(1), jnp.linspace(0.0, 1.0, num_points - 1)])
    alpha = alpha_end * jnp.where(jump, after_jump, plain)
    w = jnp.where(alpha == 0, 0.0, -alpha / (1 - alpha))
    w = w.at[1].set(jnp.where(jump, NEAREST_WEIGHT, w[1]))
    return w.at[-1].set(jnp.where(jnp.isfinite(lowest), lowest, -jnp.inf))
