r"""Is a quality-diversity pair compatible with a divergence (Theorem 3)?

A pair is divergence-compatible when the real distribution P is Pareto-optimal,
whatever P is. For $U = \sum Q_i f(P_i)$, $V = \sum g(Q_i)$ that is so for every
N >= 4 iff $g'' = w_0 f'$ with a constant $w_0 < 0$ and f strictly increasing. For
any differentiable pair, two gradients at P often suffice to beat it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import ArrayLike, Float

from qdtheory.distributions import check_distribution, require_x64
from qdtheory.expressions import formula_of, jet_of
from qdtheory.jets import Jet
from qdtheory.kernels import KernelPair, dominating_model, kernel_criterion
from qdtheory.local_tests import (
    Witness,
    examine,
    find_jump,
    is_strictly_concave,
    metrics_of,
)
from qdtheory.pairs import Pair, ScalarFunction, SeparablePair, check_rationality
from qdtheory.regularized_argmax import EPS
from qdtheory.theorem_3 import (
    Proof,
    fit_theorem_3,
    grid,
    prove_theorem_3,
    refute_theorem_3,
    search_convexity,
    search_fall,
)

# Relative error of a second derivative by automatic differentiation, with room.
RESIDUAL_TOLERANCE = 1e-9
NUM_SAMPLES = 64
# Probabilities drawn in all, so that many texts do not take minutes.
MAX_DRAWN = 2**18
AT_POINTS = f"at {grid().size} points"
BY_INTERVALS = "proved by interval arithmetic, to 1e-18 from the ends"
# Two texts, from evenly shared to nearly one alone.
SHARES = np.stack([np.arange(512, 1024), np.arange(512, 0, -1)]) / 1024
THEOREM = (
    "Theorem 3: every interior P is Pareto-optimal, for any number of texts, as "
    "g'' = w0 f' with w0 < 0 ({}) and f increases strictly on (0, 1) ({}); so g is "
    "strictly concave."
)


@dataclass(frozen=True)
class Verdict:
    r"""What is known of a pair's compatibility, and what it rests on.

    Attributes:
        compatible: True, False, or None where the tests leave it open.
        reason: the theorem and its hypotheses, or what was tried.
        w0: the constant in $g'' = w_0 f'$, for a compatible separable pair.
        b0: the constant in $g' = w_0 f + b_0$.
        alpha: $w_0 / (w_0 - 1)$, the share of quality in $\Psi$.
        exact: w0, b0 and alpha as text that SymPy reads, where they are proved.
        psi: the formula of $\Psi = \alpha U + (1 - \alpha) V$, greatest at Q = P.
        divergence: the formula of $\Psi(P) - \Psi(Q)$.
        residual: the largest relative deviation from $g'' = w_0 f'$ where nothing
            is proved, or of the condition that the reason names.
        witness: for an incompatible pair, a distribution that beats P.
    """

    compatible: bool | None
    reason: str
    w0: float | None = None
    b0: float | None = None
    alpha: float | None = None
    exact: dict[str, str] | None = None
    psi: str | None = None
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
    N >= 4 texts unless `num_texts` or `p` says 2 or 3. Where f and g are expressions
    or named functions, SymPy proves the condition and gives the divergence. Kernel
    pairs are decided by the signs of the kernel's eigenvalues, up to rounding. Any
    other differentiable pair is tested at `p`, or at random interior P of `num_texts`
    texts: the first-order test, then the second-order test. A pair is never called
    compatible because the tests found nothing.

    Args:
        pair: anything with `quality(q, p)` and `diversity(q)`, differentiable.
        p: the real distribution at which to test, shape (N,), without zeros; the
            verdict is then about this P alone, unless Theorem 3 settles all.
        num_texts: N, where no `p` is given.

    Returns:
        The verdict with its reason; "incompatible" always carries a witness.

    Raises:
        ValueError: `p` is no distribution or has zeros, its size is not
            `num_texts` or the kernel's, a pair of neither kind comes without both, or
            the pair is not defined or not differentiable where it is tested.

    References:
        Li et al. 2020, Theorem 3 and section 5, with its scope for N = 2 and 3.

    Example:
        >>> from qdtheory.pairs import CR_NRR, LL_NRR
        >>> verdict = check_compatibility(CR_NRR)
        >>> verdict.compatible, verdict.exact, verdict.divergence
        (True, {'w0': '-2', 'b0': '0', 'alpha': '2/3'}, 'sum_i [(P_i - Q_i)**2/3]')
        >>> check_compatibility(LL_NRR).compatible
        False
    """
    require_x64()
    if p is not None:
        p = np.asarray(check_distribution(p, "p", num_texts))
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
    if isinstance(pair, KernelPair):
        return _check_kernel(pair, p, num_texts)
    if num_texts is None:
        raise ValueError(
            "a pair that is neither separable nor of a kernel is tested at some P; "
            "pass p or num_texts"
        )
    points = _points(num_texts) if p is None else [p]
    return _check_at_points(pair, points, one_point=p is not None)


# --- Separable pairs: Theorem 3 -----------------------------------------------------


def _check_separable(
    pair: SeparablePair, p: np.ndarray | None, num_texts: int | None
) -> Verdict:
    f, g = _derivatives(pair)
    if num_texts == 1:
        return Verdict(True, "With one text there is one distribution only.")
    if (flat := _is_flat(f)) or _is_linear(g):
        metric = "quality, as f is flat" if flat else "diversity, as g is linear"
        return Verdict(
            None,
            f"All models have the same {metric}: none improves both, and P is Pareto-"
            "optimal if it is best in the other metric.",
        )
    theorem = _by_theorem_3(pair)
    if theorem.compatible:
        return theorem
    few = _check_few_texts(pair, num_texts) if num_texts in (2, 3) else None
    if few is not None:
        return few
    points = _suspects(pair, num_texts or 4) if p is None else [p]
    verdict = _check_at_points(pair, points, one_point=p is not None)
    reason = f"{verdict.reason} The hypotheses of Theorem 3 fail: {theorem.reason}."
    if num_texts not in (2, 3):
        reason += " With 2 or 3 texts more pairs are compatible than it says."
    return replace(verdict, reason=reason, residual=theorem.residual)


def _by_theorem_3(pair: SeparablePair) -> Verdict:
    """Compatible for every P and N, or else open for the hypothesis that fails."""
    w0, b0, residual = fit_theorem_3(pair.f, pair.g)
    increasing, missing_proof, proof = AT_POINTS, "", None
    f, g = formula_of(pair.f), formula_of(pair.g)
    if f is not None and g is not None:
        refutation = refute_theorem_3(f, g)
        if refutation is None and (proof := prove_theorem_3(f, g)) is None:
            missing_proof = "; no symbolic proof was found"
        if refutation is None and (proof or residual <= RESIDUAL_TOLERANCE):
            fall, proved = search_fall(f)
            refutation = None if fall is None else f"f falls at x = {float(fall):.6g}"
            increasing = BY_INTERVALS if proved else AT_POINTS
        if refutation is not None:
            failure = f"{refutation}, by interval arithmetic"
            return Verdict(None, failure, residual=residual)
    if increasing == AT_POINTS and (place := _fall(pair.f)) is not None:
        failure = f"f does not increase strictly near x = {place:.6g}"
    elif proof is not None:
        return _proved(proof, increasing)
    elif residual > RESIDUAL_TOLERANCE:
        failure = f"g'' = w0 f' is missed by a relative {residual:.1e}"
    elif w0 >= 0:
        failure = f"g'' = w0 f' with w0 = {w0:.6g}, which is not negative"
    elif (place := find_jump(pair.g)) is not None:
        failure = f"g jumps near x = {place:.6g}"
    else:
        known = f"to a relative {residual:.1e} {AT_POINTS}{missing_proof}"
        return _fitted(w0, b0, residual, known, increasing)
    return Verdict(None, failure, residual=residual)


def _derivatives(pair: SeparablePair) -> tuple[Jet, Jet]:
    """Check that all the theorem needs is finite; return f and g on the grid."""
    x = grid()
    f, g = jet_of(pair.f, x), jet_of(pair.g, x)
    needed = [(f.value, "f"), (f.slope, "f'")]
    needed += [(g.value, "g"), (g.slope, "g'"), (g.bend, "g''")]
    for values, name in needed:
        if not (finite := np.isfinite(values)).all():
            raise ValueError(
                f"{name} is not finite at x = {x[~finite][0]:.6g}; f and g must be "
                "defined and smooth on all of (0, 1)"
            )
    return f, g


def _is_flat(h: Jet) -> bool:
    """Whether a function stays the same over the grid, to within rounding."""
    noise = 8 * EPS * np.abs(h.value).max()
    return not h.slope.any() and bool(np.ptp(h.value) <= noise)


def _is_linear(h: Jet) -> bool:
    """Whether a function is linear over the grid, to within rounding."""
    line = grid() * h.slope
    noise = 8 * EPS * max(np.abs(h.value).max(), np.abs(line).max())
    return not h.bend.any() and bool(np.ptp(h.value - line) <= noise)


def _proved(proof: Proof, increasing: str) -> Verdict:
    return Verdict(
        True,
        THEOREM.format("proved symbolically", increasing),
        float(proof.w0),
        float(proof.b0),
        float(proof.alpha),
        {name: str(getattr(proof, name)) for name in ("w0", "b0", "alpha")},
        f"({proof.alpha}) U + ({proof.rest}) V",
        proof.divergence,
    )


def _fitted(
    w0: float, b0: float, residual: float, known: str, increasing: str
) -> Verdict:
    alpha = w0 / (w0 - 1)
    return Verdict(
        True,
        THEOREM.format(known, increasing),
        w0,
        b0,
        alpha,
        None,
        f"{alpha:.6g} U + {1 - alpha:.6g} V",
        f"{alpha:.6g} * sum_i [F(Q_i) - F(P_i) - f(P_i) (Q_i - P_i)] with F' = f",
        residual,
    )


def _fall(f: ScalarFunction) -> float | None:
    """Where f does not rise from one point of the grid to the next."""
    x, jet = grid(), jet_of(f, grid())
    falls = (jet.slope[1:] < 0) | (np.diff(jet.value) < 0)
    # A slope of 0 at one point is no stretch: (x - 1/2)**3 increases strictly.
    falls |= (jet.slope[1:] == 0) & (jet.slope[:-1] == 0)
    return float(x[1:][falls][0]) if falls.any() else None


def _check_few_texts(pair: SeparablePair, num_texts: int | None) -> Verdict | None:
    """N = 2 and 3, where pairs outside Theorem 3 can be compatible too."""
    if num_texts == 2:
        shared = jet_of(pair.g, SHARES).value.sum(axis=0)
        rises = np.diff(shared) > 8 * EPS * np.abs(shared[1:])  # where g jumps
        if rises.any() or not check_rationality(pair).rational:
            return None
        return Verdict(
            True,
            "With two texts every rational pair is compatible, as quality and "
            "diversity move oppositely; it is rational at pairs of 1,023 "
            "probabilities. Theorem 3 does not hold for it from N = 4 on.",
        )
    residual, slopes = _chord_law(pair)
    falling = residual <= RESIDUAL_TOLERANCE and slopes.max() < 0
    if not (falling and is_strictly_concave(pair.g)):
        return None
    return Verdict(
        True,
        "With three texts: the points (f(P_i), g'(P_i)) lie on one falling line, at "
        f"{slopes.size} P to a relative {residual:.1e}, and g is strictly concave. "
        "Theorem 3 does not hold for it from N = 4 on.",
        residual=residual,
    )


def _chord_law(pair: SeparablePair) -> tuple[float, np.ndarray]:
    """How far (f, g') at P_1, P_2, P_3 are from one line, and the lines' slopes."""
    weights = np.arange(1, 60)
    i, j = np.meshgrid(weights, weights)
    i, j = i[(i < j) & (i + j < 60)], j[(i < j) & (i + j < 60)]
    p = np.stack([i, j, 60 - i - j], axis=1) / 60
    p = p[p[:, 1] < p[:, 2]]
    df = np.diff(jet_of(pair.f, p).value, axis=1)
    dg = np.diff(jet_of(pair.g, p).slope, axis=1)
    cross = df[:, 0] * dg[:, 1] - df[:, 1] * dg[:, 0]
    scale = np.abs(df[:, 0] * dg[:, 1]) + np.abs(df[:, 1] * dg[:, 0])
    with np.errstate(all="ignore"):  # a constant f
        return float((np.abs(cross) / scale).max()), dg.sum(axis=1) / df.sum(axis=1)


# --- Kernel pairs -------------------------------------------------------------------


def _check_kernel(
    pair: KernelPair, p: np.ndarray | None, num_texts: int | None
) -> Verdict:
    size = len(pair.kernel)
    if num_texts not in (None, size):
        raise ValueError(f"the kernel is of {size} texts, got {num_texts}")
    found = kernel_criterion(pair.kernel)
    if found.compatible and found.num_negative == 0:
        return Verdict(
            True,
            found.reason,
            w0=-2.0,
            alpha=2 / 3,
            psi="(2/3) U + (1/3) V",
            divergence="squared_mmd(kernel, Q, P) / 3",
        )
    if found.compatible or p is None:
        return Verdict(found.compatible, found.reason, witness=found.witness)
    witness = dominating_model(pair.kernel, p)
    if witness is None:
        return Verdict(None, f"{found.reason} Near the given P no model beats it.")
    reason = f"{found.reason} The given P is dominated."
    return Verdict(False, reason, witness=witness)


# --- Any pair: the local tests at some P --------------------------------------------


def _points(num_texts: int) -> Iterator[np.ndarray]:
    """Interior P at random, from nearly uniform to peaked."""
    rng = np.random.default_rng(0)
    num_samples = np.clip(MAX_DRAWN // num_texts, 1, NUM_SAMPLES)
    for concentration in np.resize([3.0, 1.0, 10.0, 0.5], num_samples):
        draw = rng.dirichlet(np.full(num_texts, concentration)) + 1e-6
        yield draw / draw.sum()


def _suspects(pair: SeparablePair, num_texts: int) -> Iterator[np.ndarray]:
    """Interior P for a pair outside Theorem 3, the likeliest to be beaten first."""
    f, g = _derivatives(pair)
    wrong = grid()[(f.slope <= 0) | (g.bend >= 0)]
    f, g = formula_of(pair.f), formula_of(pair.g)
    if wrong.size == 0 and f is not None and g is not None:
        found = search_fall(f)[0], search_convexity(g)
        wrong = np.array([float(x) for x in found if x is not None])
    rng = np.random.default_rng(1)
    places = np.linspace(0, wrong.size - 1, 8 if wrong.size else 0).astype(int)
    for x1 in wrong[places]:
        # One text where f falls or g bends the wrong way, the others share the rest.
        for _ in range(4):
            rest = rng.dirichlet(np.ones(num_texts - 1)) + 1e-6
            yield np.r_[x1, (1 - x1) * rest / rest.sum()]
    yield from _points(num_texts)


def _check_at_points(
    pair: Pair, points: Iterable[np.ndarray], *, one_point: bool
) -> Verdict:
    """The two tests at each P; the first witness ends the search."""
    metrics = metrics_of(pair)
    findings = []
    for p in points:
        finding = examine(metrics, p)
        if finding.witness is not None:
            where = "at the given P" if one_point else f"at a P of {p.size} texts"
            return Verdict(
                False,
                f"{finding.text} {where}.",
                residual=finding.gap,
                witness=finding.witness,
            )
        findings.append(finding)
    if one_point:
        finding = findings[0]
        return Verdict(
            True if finding.optimal else None,
            f"{finding.text} at the given P.",
            residual=finding.gap,
        )
    kinds = "; ".join(sorted({finding.text for finding in findings}))
    return Verdict(
        None, f"No witness at {len(findings)} random P, which proves nothing: {kinds}."
    )
