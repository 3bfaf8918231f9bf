r"""Is a quality-diversity pair compatible with a divergence (Theorem 3)?

A pair is divergence-compatible when the real distribution P is Pareto-optimal,
whatever P is. For $U = \sum Q_i f(P_i)$, $V = \sum g(Q_i)$ that is so for every
N >= 4 iff $g'' = w_0 f'$ with a constant $w_0 < 0$ and f strictly increasing. For
any differentiable pair, two gradients at P often suffice to beat it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.distributions import check_distribution, require_x64
from qdtheory.ngrams import NgramPair
from qdtheory.pairs import (
    LinearPair,
    Pair,
    ScalarFunction,
    SeparablePair,
    check_rationality,
)
from qdtheory.regularized_argmax import require_concave

# Relative error of a second derivative by automatic differentiation, with room.
RESIDUAL_TOLERANCE = 1e-9
# 1 + cosine of the gradients: below it, the gains of a step drown in rounding.
ANTIPARALLEL_TOLERANCE = 1e-6
NUM_SAMPLES = 64


@dataclass(frozen=True)
class Witness:
    """A distribution that beats the real one, checked in float64.

    Attributes:
        p: the real distribution, shape (N,).
        q: the model that beats it, shape (N,).
        quality_gain: U(Q; P) - U(P; P), positive.
        diversity_gain: V(Q) - V(P), positive.
    """

    p: Float[Array, " texts"]
    q: Float[Array, " texts"]
    quality_gain: float
    diversity_gain: float


@dataclass(frozen=True)
class Verdict:
    r"""What is known of a pair's compatibility, and what it rests on.

    Attributes:
        compatible: True, False, or None where the tests leave it open.
        reason: the theorem and its hypotheses, or what was tried.
        w0: the constant in $g'' = w_0 f'$, for a compatible separable pair.
        b0: the constant in $g' = w_0 f + b_0$.
        alpha: $w_0 / (w_0 - 1)$, the share of quality in
            $\Psi = \alpha U + (1 - \alpha) V$.
        divergence: the formula of $\Psi(P) - \Psi(Q)$.
        residual: the largest relative deviation from $g'' = w_0 f'$, or of the
            condition that the reason names.
        witness: for an incompatible pair, a distribution that beats P.
    """

    compatible: bool | None
    reason: str
    w0: float | None = None
    b0: float | None = None
    alpha: float | None = None
    divergence: str | None = None
    residual: float | None = None
    witness: Witness | None = None


def check_compatibility(
    pair: Pair,
    p: Float[ArrayLike, " texts"] | None = None,
    *,
    num_texts: int | None = None,
) -> Verdict:
    """Decide whether the real distribution can be beaten in both metrics at once.

    Separable pairs are decided for every P by Theorem 3, in its exact scope: for
    N >= 4 texts unless `num_texts` or `p` says 2 or 3. Any other differentiable
    pair is tested at `p`, or at random interior P of `num_texts` texts: the first-
    order test, then the second-order test. A pair is never called compatible
    because the tests found nothing.

    Args:
        pair: anything with `quality(q, p)` and `diversity(q)`, differentiable.
        p: the real distribution at which to test, shape (N,), without zeros; the
            verdict is then about this P alone, unless Theorem 3 settles all.
        num_texts: N, where no `p` is given.

    Returns:
        The verdict with its reason; "incompatible" always carries a witness.

    Raises:
        ValueError: `p` is no distribution or has zeros, its size is not
            `num_texts`, or a pair that is not separable comes with neither.

    References:
        Li et al. 2020, Theorem 3 and section 5, with its scope for N = 2 and 3.

    Example:
        >>> from qdtheory.pairs import CR_NRR, LL_NRR
        >>> verdict = check_compatibility(CR_NRR)
        >>> verdict.compatible, verdict.w0, round(verdict.alpha, 4)
        (True, -2.0, 0.6667)
        >>> check_compatibility(LL_NRR).compatible
        False
    """
    require_x64()
    if p is not None:
        p = check_distribution(p, "p", num_texts)
        if float(p.min()) == 0:
            raise ValueError(
                "p must be positive everywhere: at zeros the tests do not apply; "
                "leave out the texts of probability 0"
            )
        num_texts = p.size
    if num_texts is not None and num_texts < 1:
        raise ValueError(f"num_texts must be at least 1, got {num_texts}")
    if isinstance(pair, SeparablePair):
        return _check_separable(pair, p, num_texts)
    if num_texts is None:
        raise ValueError(
            "a pair that is not separable is tested at some P; pass p or num_texts"
        )
    return _check_at_points(pair, _points(p, num_texts), one_point=p is not None)


# --- Separable pairs: Theorem 3 -----------------------------------------------------


def _check_separable(
    pair: SeparablePair, p: Array | None, num_texts: int | None
) -> Verdict:
    if num_texts == 1:
        return Verdict(True, "With one text there is one distribution only.")
    w0, b0, residual = fit_theorem_3(pair.f, pair.g)
    increasing = _is_increasing(pair.f)
    if residual <= RESIDUAL_TOLERANCE and w0 < 0 and increasing:
        alpha = w0 / (w0 - 1)
        return Verdict(
            True,
            "Theorem 3: g'' = w0 f' with w0 < 0 and f strictly increasing on (0, 1), "
            "so P is Pareto-optimal for every P and any number of texts.",
            w0,
            b0,
            alpha,
            f"{alpha:.6g} * sum_i [F(Q_i) - F(P_i) - f(P_i) (Q_i - P_i)] with F' = f",
            residual,
        )
    small = _check_few_texts(pair, num_texts) if num_texts in (2, 3) else None
    if small is not None:
        return small
    suspects = _suspects(pair, num_texts or 4)
    points = suspects if p is None else _points(p, p.size)
    verdict = _check_at_points(pair, points, one_point=p is not None)
    return Verdict(
        verdict.compatible,
        verdict.reason,
        residual=residual,
        witness=verdict.witness,
    )


def fit_theorem_3(f: ScalarFunction, g: ScalarFunction) -> tuple[float, float, float]:
    r"""Fit $g' = w_0 f + b_0$ on (0, 1) and say how far it is from holding.

    Constants and linear terms of g are free, as $\sum_i Q_i = 1$.

    Args:
        f: twice differentiable on (0, 1).
        g: twice differentiable on (0, 1).

    Returns:
        $w_0$, $b_0$ and the largest relative deviation of g'' from $w_0 f'$ over
        1,000 points of (0, 1), infinite where a derivative is not finite.
    """
    x, f_slope, g_bend = _derivatives(f, g)
    if not (np.isfinite(f_slope).all() and np.isfinite(g_bend).all()):
        return np.nan, np.nan, np.inf
    middle = x.size // 2
    with np.errstate(divide="ignore", invalid="ignore"):
        w0 = float(g_bend[middle] / f_slope[middle])
        scale = np.maximum(np.abs(g_bend), np.abs(w0 * f_slope))
        deviation = np.abs(g_bend - w0 * f_slope) / np.where(scale > 0, scale, 1.0)
    if not np.isfinite(deviation).all():
        return np.nan, np.nan, np.inf
    b0 = float(jax.grad(g)(x[middle]) - w0 * f(x[middle]))
    # Where g' is steep, b0 is a small difference: -0.0 and rounding become 0.
    b0 = 0.0 if abs(b0) <= RESIDUAL_TOLERANCE * abs(w0) else b0
    return w0, b0, float(deviation.max())


def _derivatives(
    f: ScalarFunction, g: ScalarFunction
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The points of the grid, f' and g'' there."""
    x = _grid()
    slope, bend = jax.vmap(jax.grad(f))(x), jax.vmap(jax.grad(jax.grad(g)))(x)
    return x, np.asarray(slope), np.asarray(bend)


def _grid() -> np.ndarray:
    return np.concatenate(
        [np.geomspace(1e-6, 1e-3, 25)[:-1], np.arange(1, 1000) / 1000]
    )


def _is_increasing(f: ScalarFunction) -> bool:
    values = np.asarray(jax.vmap(f)(_grid()))
    slopes = np.asarray(jax.vmap(jax.grad(f))(_grid()))
    return bool(
        (slopes >= 0).all() and (values[1:] >= values[:-1]).all() and slopes.any()
    )


def _check_few_texts(pair: SeparablePair, num_texts: int | None) -> Verdict | None:
    """N = 2 and 3, where pairs outside Theorem 3 can be compatible too."""
    if num_texts == 2:
        if not check_rationality(pair).rational:
            return None
        return Verdict(
            True,
            "With two texts every rational pair is compatible: quality and diversity "
            "move oppositely. Theorem 3 does not hold for it from N = 4 on.",
        )
    residual, slopes = _chord_law(pair)
    falling = residual <= RESIDUAL_TOLERANCE and slopes.max() < 0
    if not (falling and _is_strictly_concave(pair.g)):
        return None
    return Verdict(
        True,
        "With three texts: the points (f(P_i), g'(P_i)) lie on one falling line for "
        "every P, and g is strictly concave. Theorem 3 does not hold for it from "
        "N = 4 on.",
        residual=residual,
    )


def _chord_law(pair: SeparablePair) -> tuple[float, np.ndarray]:
    """How far (f, g') at P_1, P_2, P_3 are from one line, and the lines' slopes."""
    weights = np.arange(1, 60)
    i, j = np.meshgrid(weights, weights)
    i, j = i[(i < j) & (i + j < 60)], j[(i < j) & (i + j < 60)]
    p = np.stack([i, j, 60 - i - j], axis=1) / 60
    p = p[p[:, 1] < p[:, 2]]
    f = np.asarray(jax.vmap(jax.vmap(pair.f))(p))
    slope = np.asarray(jax.vmap(jax.vmap(jax.grad(pair.g)))(p))
    df, dg = np.diff(f, axis=1), np.diff(slope, axis=1)
    cross = df[:, 0] * dg[:, 1] - df[:, 1] * dg[:, 0]
    scale = np.abs(df[:, 0] * dg[:, 1]) + np.abs(df[:, 1] * dg[:, 0])
    return float((np.abs(cross) / scale).max()), dg.sum(axis=1) / df.sum(axis=1)


# --- Any differentiable pair: first and second order -------------------------------


def _points(p: Array | None, num_texts: int) -> Iterator[Array]:
    """The given P, or interior ones at random, from nearly uniform to peaked."""
    if p is not None:
        yield p
        return
    rng = np.random.default_rng(0)
    for concentration in np.tile([3.0, 1.0, 10.0, 0.5], NUM_SAMPLES // 4):
        draw = rng.dirichlet(np.full(num_texts, concentration)) + 1e-6
        yield jnp.asarray(draw / draw.sum())


def _suspects(pair: SeparablePair, num_texts: int) -> Iterator[Array]:
    """Interior P for a pair outside Theorem 3, the likeliest to be beaten first."""
    x, f_slope, g_bend = _derivatives(pair.f, pair.g)
    with np.errstate(invalid="ignore"):
        wrong = (f_slope <= 0) | (g_bend >= 0)
    places = np.linspace(0, wrong.sum() - 1, 8).astype(int) if wrong.any() else []
    rng = np.random.default_rng(1)
    for x1 in x[wrong][places]:
        # One text where f falls or g bends the wrong way, the others share the rest.
        for _ in range(4):
            rest = rng.dirichlet(np.ones(num_texts - 1)) + 1e-6
            yield jnp.asarray(np.r_[x1, (1 - x1) * rest / rest.sum()])
    yield from _points(None, num_texts)


def _check_at_points(
    pair: Pair, points: Iterator[Array], *, one_point: bool
) -> Verdict:
    """The two tests at each P; the first witness ends the search."""
    concave = _is_concave(pair)
    findings = []
    residual = None
    batch = jnp.stack(list(points))
    slopes = jax.vmap(
        lambda p: (
            _zero_sum(jax.grad(lambda q: pair.quality(q, p))(p)),
            _zero_sum(jax.grad(pair.diversity)(p)),
        )
    )(batch)
    for p, u, v in zip(batch, *slopes, strict=True):
        finding, witness, residual = _test_point(pair, p, u, v, concave)
        if witness is not None:
            where = "at the given P" if one_point else f"at a P of {p.size} texts"
            return Verdict(
                False, f"{finding} {where}.", residual=residual, witness=witness
            )
        findings.append(finding)
    if one_point:
        settled = findings[0] == _OPTIMAL
        return Verdict(
            True if settled else None,
            f"{findings[0]} at the given P.",
            residual=residual,
        )
    kinds = "; ".join(sorted(set(findings)))
    return Verdict(
        None, f"No witness at {len(findings)} random P, which proves nothing: {kinds}."
    )


_OPTIMAL = (
    "The gradients are antiparallel, U is linear and V concave: P is Pareto-optimal"
)


def _test_point(
    pair: Pair, p: Array, u: Array, v: Array, concave: bool
) -> tuple[str, Witness | None, float | None]:
    norm_u, norm_v = float(np.linalg.norm(u)), float(np.linalg.norm(v))
    if not (np.isfinite(norm_u) and np.isfinite(norm_v)):
        raise ValueError("a gradient of the pair is not finite at an interior P")
    floor = 1e-12 * p.size
    if norm_u <= floor or norm_v <= floor:
        return "A gradient vanishes, which leaves it open", None, None
    # 1 + cosine, without the cancellation of a sum with -1.
    gap = float(np.sum((u / norm_u + v / norm_v) ** 2) / 2)
    if gap > ANTIPARALLEL_TOLERANCE:
        witness = _best_step(pair, p, u / norm_u + v / norm_v, jnp.zeros_like(p))
        if witness is not None:
            return "First-order test: a step improves both", witness, gap
    if gap > ANTIPARALLEL_TOLERANCE**2:
        return "The gradients are too close to antiparallel to tell", None, gap
    if concave:
        return _OPTIMAL, None, gap
    return _second_order(pair, p, u, norm_u / norm_v, gap)


def _second_order(
    pair: Pair, p: Array, u: Array, eta: float, gap: float
) -> tuple[str, Witness | None, float]:
    """Curvature of U + eta V where the gradients cancel, across 1 and u."""
    bend_u = jax.hessian(lambda q: pair.quality(q, p))(p)
    bend_v = jax.hessian(pair.diversity)(p)
    basis = np.linalg.svd(np.stack([np.ones(p.size), np.asarray(u)]))[2][2:]
    if basis.size == 0:
        return "No direction is left to test", None, gap
    bend = basis @ np.asarray(bend_u + eta * bend_v) @ basis.T
    values, vectors = np.linalg.eigh((bend + bend.T) / 2)
    noise = 1e-9 * max(1.0, float(np.abs(bend).max()))
    if values[-1] > noise:
        d = jnp.asarray(vectors[:, -1] @ basis)
        # Along P + t d + t^2 e / 2 with e along u, the two gains are made equal.
        shift = (eta * (d @ bend_v @ d) - d @ bend_u @ d) / 2
        witness = _best_step(pair, p, d, shift * u / (u @ u))
        if witness is not None:
            return "Second-order test: a curve improves both", witness, gap
    if values[-1] < -noise:
        return "P is locally optimal, which says nothing of distant models", None, gap
    return "Both orders vanish, which leaves it open", None, gap


def _best_step(pair: Pair, p: Array, d: Array, e: Array) -> Witness | None:
    """The step along P + t d + t^2 e / 2 whose lesser gain is largest, if positive."""
    sizes = np.geomspace(1, 1e-9, 55)
    t = np.concatenate([sizes, -sizes])[:, None]
    q = p + t * d + t * t * e / 2
    # Steps that leave the simplex stay at P: one shape is compiled once.
    q = jnp.where(q.min(axis=1, keepdims=True) >= 0, q, p)
    q = q / q.sum(axis=1, keepdims=True)
    u0, v0 = pair.quality(p, p), pair.diversity(p)
    gains = np.stack(
        [
            jax.vmap(lambda model: pair.quality(model, p))(q) - u0,
            jax.vmap(pair.diversity)(q) - v0,
        ]
    )
    best = int(np.nan_to_num(gains.min(axis=0), nan=-np.inf).argmax())
    # Each metric is a sum of N terms; its rounding is far below this.
    noise = 1e-14 * max(1.0, abs(float(u0)), abs(float(v0)))
    if not gains[:, best].min() > noise:
        return None
    return Witness(p, q[best], float(gains[0, best]), float(gains[1, best]))


def _zero_sum(gradient: Array) -> Array:
    return gradient - gradient.mean()


def _is_concave(pair: Pair) -> bool:
    """Whether U is linear and V concave in Q, as far as the pair's kind tells."""
    if isinstance(pair, NgramPair):
        if len(pair.space.lengths) > 1:
            return False
        pair = pair.pair
    if not isinstance(pair, SeparablePair | LinearPair):
        return False
    return _is_strictly_concave(pair.g)


def _is_strictly_concave(g: ScalarFunction) -> bool:
    try:
        require_concave(g)
    except ValueError:
        return False
    return True
