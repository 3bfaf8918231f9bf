r"""Decide whether a quality-diversity pair is divergence-compatible (Theorem 3).

A pair is divergence-compatible if every real distribution P is Pareto-optimal. For
$U = \sum Q_i f(P_i)$, $V = \sum g(Q_i)$ and any N >= 4 this holds iff
$g'' = w_0 f'$ with a constant $w_0 < 0$ and f is strictly increasing. For any other
differentiable pair, the two gradients at P often suffice to find a model that beats P.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from qdtheory.pairs.base import Pair
from qdtheory.pairs.formulas import Expression, formula_of, jet_of
from qdtheory.pairs.jets import Jet
from qdtheory.pairs.kernel import KernelPair
from qdtheory.pairs.scalar_functions import ScalarFunction
from qdtheory.pairs.separable import SeparablePair
from qdtheory.theory.beyond_theorem_3 import (
    keeps_order_with_one_text,
    orders_three_texts,
    orders_two_texts,
)
from qdtheory.theory.domains import SMOOTH, check_smooth, find_hole
from qdtheory.theory.kernel_criterion import dominating_model, kernel_criterion
from qdtheory.theory.optimality import Metrics, examine, find_jump, metrics_of
from qdtheory.theory.sign_proofs import (
    Sign,
    find_peak,
    find_sign,
    is_zero,
    number_sign,
    sign_of,
)
from qdtheory.theory.theorem_3 import (
    EXACT_POINTS,
    Proof,
    fit_theorem_3,
    grid,
    prove_theorem_3,
    refute_theorem_3,
)
from qdtheory.theory.witness import Witness
from qdtheory.world.distributions import check_distribution, require_x64
from qdtheory.world.numbers import EPS

# Relative error of a second derivative by automatic differentiation, with a margin.
RESIDUAL_TOLERANCE = 1e-9
NUM_SAMPLES = 64
# Total number of probabilities drawn, so that many texts do not take minutes.
MAX_DRAWN = 2**18
# Numbers of texts tried for a pair with g'' = w0 f' whose f decreases somewhere.
MATCHED_SIZES = [4, 16]
# Largest kernel on which Gaussian elimination is run in rational arithmetic.
MAX_ELIMINATED = 32
STATEMENTS = ("matched", "concave")
NO_DEVIATION = "No deviation found"
BEATEN = "By Theorem 3 some P is beaten, too narrowly to be shown in float64"
AT_POINTS = f"at {grid().size} points"
BY_INTERVALS = "proved by interval arithmetic"
THEOREM = (
    "Theorem 3: every interior P is Pareto-optimal, for any number of texts, as "
    "g'' = w0 f' with w0 < 0 ({}) and f increases strictly on (0, 1) ({}); so g is "
    "strictly concave."
)


@dataclass(frozen=True)
class Verdict:
    r"""The verdict on a pair's compatibility, with its evidence.

    Attributes:
        compatible: True, False, or None if the tests are inconclusive.
        reason: the theorem and its hypotheses, or what was tested.
        w0: the constant in $g'' = w_0 f'$, for a compatible separable pair.
        b0: the constant in $g' = w_0 f + b_0$.
        alpha: $w_0 / (w_0 - 1)$, the share of quality in $\Psi$.
        exact: w0, b0 and alpha as SymPy expressions in text form, if proved.
        psi: the formula of $\Psi = \alpha U + (1 - \alpha) V$, maximal at Q = P.
        divergence: the formula of $\Psi(P) - \Psi(Q)$.
        residual: the largest relative deviation from $g'' = w_0 f'$, where nothing
            is proved, or from the condition named in the reason.
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
    stated: str | None = None,
) -> Verdict:
    """Decide whether the real distribution can be beaten in both metrics at once.

    Separable pairs are decided for every P by Theorem 3, in its exact scope: N >= 4
    texts, unless `num_texts` or `p` specifies 2 or 3. If f and g are expressions or
    named functions, "compatible" is a proof: SymPy proves the condition and derives
    the divergence, ball arithmetic proves that f is defined and increasing on all of
    (0, 1), and the gains of a witness are proved to be positive. For functions given
    as code, the result is a witness, with gains above the rounding error of their
    precision, or "no deviation found", unless `stated` adds to it. Kernel pairs are
    decided by the signs of the kernel's eigenvalues. Any other differentiable pair is
    tested at `p`, or at random interior P of `num_texts` texts, by the first-order
    test and then the second-order test. A pair is never called compatible merely
    because the tests found nothing.

    Args:
        pair: a differentiable pair with `quality(q, p)` and `diversity(q)`.
        p: the real distribution to test at, shape (N,), without zeros; the verdict
            then holds for this P only, unless Theorem 3 covers every P.
        num_texts: N, if no `p` is given.
        stated: a property of functions given as code that the caller vouches for and
            that the verdict then relies on. "matched": f and g are smooth on (0, 1),
            f increases strictly and g'' = w0 f' with w0 < 0; checked at points.
            "concave": U is linear and V concave in the model, so that gradients
            antiparallel at `p`, up to rounding, prove that it is Pareto-optimal.

    Returns:
        The verdict with its reason; "incompatible" always comes with a witness.

    Raises:
        ValueError: `p` is not a distribution or has zeros, its size is not
            `num_texts` or the kernel's, a pair that is neither separable nor a kernel
            comes without both, `stated` is unknown, or the pair is undefined or not
            differentiable at a point tested.

    References:
        Li et al. 2020, Theorem 3 and section 5, with its scope for N = 2 and 3.

    Claims: T3.1, T3.2, T3.3, T3.4, T3.5, T3.7, T3.9, T3.11, N6.4.

    Example:
        >>> from qdtheory.pairs.named import CR_NRR, LL_NRR
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
    if stated is not None and stated not in STATEMENTS:
        raise ValueError(f"stated must be one of {STATEMENTS}, got {stated!r}")
    if isinstance(pair, SeparablePair):
        return _check_separable(pair, p, num_texts, stated)
    if isinstance(pair, KernelPair):
        return _check_kernel(pair, p, num_texts)
    if num_texts is None:
        raise ValueError(
            "a pair that is neither separable nor of a kernel is tested at some P; "
            "pass p or num_texts"
        )
    points = _points(num_texts) if p is None else [p]
    metrics = metrics_of(pair, stated_concave=stated == "concave")
    return _check_at_points(metrics, points, one_point=p is not None)


# --- Separable pairs: Theorem 3 -----------------------------------------------------
def _check_separable(
    pair: SeparablePair, p: np.ndarray | None, num_texts: int | None, stated: str | None
) -> Verdict:
    formulas = formula_of(pair.f), formula_of(pair.g)
    # Floats may overflow even if a formula is proved to be smooth.
    smooth = all(h is not None and find_hole(h)[0] for h in formulas)
    f, g = _derivatives(pair, check=not smooth)
    if num_texts == 1:
        return Verdict(True, "With one text there is one distribution only.")
    if formulas[0] is None or formulas[1] is None:
        flat, linear = _is_flat(f), _is_linear(g)
    else:
        x = _symbol()
        slope, bend = (
            formulas[0].symbolic(x).diff(x),
            formulas[1].symbolic(x).diff(x, 2),
        )
        flat, linear = is_zero(slope), is_zero(bend)
    if flat or linear:
        metric = "quality, as f is flat" if flat else "diversity, as g is linear"
        return Verdict(
            None,
            f"All models have the same {metric}: none improves both, and P is Pareto-"
            "optimal if it is best in the other metric.",
        )
    f, g = formulas
    if f is None or g is None:
        return _check_code(pair, p, num_texts, stated)
    return _check_formulas(pair, f, g, p, num_texts)


def _check_formulas(
    pair: SeparablePair,
    f: Expression,
    g: Expression,
    p: np.ndarray | None,
    num_texts: int | None,
) -> Verdict:
    """Try to prove compatibility for every P, then search for a witness."""
    rough = [why for h, name in ((f, "f"), (g, "g")) if (why := check_smooth(h, name))]
    proof = prove_theorem_3(f, g)
    if not rough and (verdict := _by_proofs(f, g, proof, num_texts)) is not None:
        return verdict
    failures = [*rough, *_failures(f, g, proof)]
    sizes = [num_texts] if num_texts else [4] if proof is None else MATCHED_SIZES
    if p is None:
        points = itertools.chain.from_iterable(
            _suspects(pair, f, g, size) for size in sizes
        )
    else:
        points = iter([p])
    beaten = "differs" in failures[0] and sizes[0] > 3
    verdict = _check_at_points(
        metrics_of(pair),
        points,
        one_point=p is not None,
        otherwise=BEATEN if beaten else NO_DEVIATION,
    )
    reason = f"{verdict.reason} Theorem 3: {'; '.join(failures)}."
    if num_texts not in (2, 3):
        reason += " With 2 or 3 texts more pairs are compatible than it says."
    return replace(verdict, reason=reason)


def _by_proofs(
    f: Expression, g: Expression, proof: Proof | None, num_texts: int | None
) -> Verdict | None:
    """Prove compatibility for every P by one of four theorems; f and g are smooth."""
    if proof is not None and _increases(f).value == 1:
        return _proved(proof)
    if num_texts == 2 and orders_two_texts(f, g):
        return Verdict(
            True,
            "With two texts: f(t) > f(1 - t) for t > 1/2, and g(t) + g(1 - t) falls "
            f"strictly there ({BY_INTERVALS}), so quality and diversity move "
            "oppositely and every interior P is Pareto-optimal. Theorem 3 does not "
            "hold for it from N = 4 on.",
        )
    if num_texts != 2 and proof is not None and keeps_order_with_one_text(f):
        return Verdict(
            True,
            "Every interior P of three texts or more is Pareto-optimal: g'' = w0 f' "
            "with w0 < 0 (proved symbolically), and f falls only where one text alone "
            f"can be, so little that sum F(Q_i), F' = f, is pseudoconvex "
            f"({BY_INTERVALS}). No weighted sum of U and V need be greatest at P.",
            w0=float(proof.w0),
            b0=float(proof.b0),
        )
    if num_texts == 3 and orders_three_texts(f, g):
        return Verdict(
            True,
            "With three texts: the points (f(P_i), g'(P_i)) lie on one falling line "
            "for every P (proved symbolically), and f increases and g is strictly "
            f"concave ({BY_INTERVALS}). Theorem 3 does not hold for it from N = 4 on.",
        )
    return None


def _symbol() -> Any:
    """The positive SymPy symbol x in which formulas are written."""
    import sympy

    return sympy.Symbol("x", positive=True)


def _increases(f: Expression) -> Sign:
    x = _symbol()
    return sign_of(f.symbolic(x).diff(x), x)


def _failures(f: Expression, g: Expression, proof: Proof | None) -> Iterator[str]:
    """List the hypotheses of Theorem 3 that fail or are not proved."""
    if proof is None:
        refuted = refute_theorem_3(f, g)
        if refuted is not None:
            yield f"{refuted}, by interval arithmetic"
            return
        yield "no symbolic proof of g'' = w0 f' with w0 < 0 was found"
    found = _increases(f)
    if found.value in (-1, 0):
        yield "f does not increase, by interval arithmetic"
    elif found.value is None:
        x = _symbol()
        fall = find_sign(f.symbolic(x).diff(x), x, -1)
        if fall is not None:
            yield f"f falls at x = {float(fall):.6g}, by interval arithmetic"
        elif found.place is not None:
            yield f"that f increases was not proved near x = {float(found.place):.6g}"


def _check_code(
    pair: SeparablePair, p: np.ndarray | None, num_texts: int | None, stated: str | None
) -> Verdict:
    """Check functions given as code: find a witness, unless the fit holds."""
    w0, b0, residual = fit_theorem_3(pair.f, pair.g)
    if (place := _fall(pair.f)) is not None:
        failure = f"f does not increase strictly near x = {place:.6g}"
    elif residual > RESIDUAL_TOLERANCE:
        failure = f"g'' = w0 f' is missed by a relative {residual:.1e}"
    elif w0 >= 0:
        failure = f"g'' = w0 f' with w0 = {w0:.6g}, which is not negative"
    elif (place := find_jump(pair.g)) is not None:
        failure = f"g jumps near x = {place:.6g}"
    else:
        return _fitted(w0, b0, residual, stated == "matched")
    concave = stated == "concave"
    points = _code_suspects(pair, num_texts or 4) if p is None else iter([p])
    metrics = metrics_of(pair, stated_concave=concave)
    verdict = _check_at_points(metrics, points, one_point=p is not None)
    reason = f"{verdict.reason} Theorem 3 {AT_POINTS}: {failure}."
    if num_texts not in (2, 3):
        reason += " With 2 or 3 texts more pairs are compatible than it says."
    return replace(verdict, reason=reason, residual=residual)


def _derivatives(pair: SeparablePair, *, check: bool = False) -> tuple[Jet, Jet]:
    """Evaluate f and g on the grid; all that the theorem needs must be finite."""
    x = grid()
    f, g = jet_of(pair.f, x), jet_of(pair.g, x)
    needed = [(f.value, "f"), (f.slope, "f'")]
    needed += [(g.value, "g"), (g.slope, "g'"), (g.bend, "g''")]
    for values, name in needed:
        if check and not (finite := np.isfinite(values)).all():
            raise ValueError(
                f"{name} is not finite at x = {x[~finite][0]:.6g}; f and g {SMOOTH}"
            )
    return f, g


def _is_flat(h: Jet) -> bool:
    """Whether a function is constant on the grid, up to rounding."""
    noise = 8 * EPS * np.abs(h.value).max()
    return not h.slope.any() and bool(np.ptp(h.value) <= noise)


def _is_linear(h: Jet) -> bool:
    """Whether a function is linear on the grid, up to rounding."""
    line = grid() * h.slope
    noise = 8 * EPS * max(np.abs(h.value).max(), np.abs(line).max())
    return not h.bend.any() and bool(np.ptp(h.value - line) <= noise)


def _proved(proof: Proof) -> Verdict:
    return Verdict(
        True,
        THEOREM.format("proved symbolically", BY_INTERVALS),
        float(proof.w0),
        float(proof.b0),
        float(proof.alpha),
        {name: str(getattr(proof, name)) for name in ("w0", "b0", "alpha")},
        f"({proof.alpha}) U + ({proof.rest}) V",
        proof.divergence,
    )


def _fitted(w0: float, b0: float, residual: float, stated: bool) -> Verdict:
    """Verdict for code that fits at all points: proved only if the caller states it."""
    known = f"to a relative {residual:.1e} {AT_POINTS}"
    if stated:
        reason = THEOREM.format(
            f"stated by the caller, and found {known}", "stated by the caller"
        )
    else:
        reason = (
            f"No deviation found: g'' = w0 f' with w0 < 0 holds {known}, and f "
            "increases there. Functions known by code are tried at points only, which "
            "proves nothing between them; give them as formulas, or state what is "
            'known of them (stated="matched").'
        )
    alpha = w0 / (w0 - 1)
    return Verdict(
        True if stated else None,
        reason,
        w0,
        b0,
        alpha,
        None,
        f"{alpha:.6g} U + {1 - alpha:.6g} V",
        f"{alpha:.6g} * sum_i [F(Q_i) - F(P_i) - f(P_i) (Q_i - P_i)] with F' = f",
        residual,
    )


def _fall(f: ScalarFunction) -> float | None:
    """First grid point at which f does not increase from the previous one."""
    x, jet = grid(), jet_of(f, grid())
    falls = (jet.slope[1:] < 0) | (np.diff(jet.value) < 0)
    # A slope of 0 at a single point is allowed: (x - 1/2)**3 increases strictly.
    falls |= (jet.slope[1:] == 0) & (jet.slope[:-1] == 0)
    return float(x[1:][falls][0]) if falls.any() else None


# --- P at which a separable pair is likely to be beaten -------------------------------
def _suspects(
    pair: SeparablePair, f: Expression, g: Expression, num_texts: int
) -> Iterator[np.ndarray]:
    """Generate interior P for a pair that no theorem proves to be compatible."""
    yield from _code_suspects(pair, num_texts, 4)
    x = _symbol()
    score, slope = f.symbolic(x), g.symbolic(x).diff(x)
    fall = find_sign(score.diff(x), x, -1)
    places = [fall, find_sign(slope.diff(x), x, 1)]
    # Where (f, g') is farthest from the line through two ordinary points.
    ends = [{x: t} for t in EXACT_POINTS[1:3]]
    run = score.subs(ends[1]) - score.subs(ends[0])
    if number_sign(run) in (1, -1):
        rise = slope.subs(ends[1]) - slope.subs(ends[0])
        off = slope - slope.subs(ends[0]) - rise / run * (score - score.subs(ends[0]))
        places += find_peak(off, x)
    rng = np.random.default_rng(2)
    for place in places:
        if place is None:
            continue
        yield from _around(float(place), num_texts, rng)
        if place == fall and 2 * place < 1 and num_texts > 2:
            # Put two texts there: separating them gains diversity at no cost in U.
            rest = rng.dirichlet(np.ones(num_texts - 2)) + 1e-6
            rest = (1 - 2 * float(place)) * rest / rest.sum()
            yield np.r_[float(place), float(place), rest]
    yield from itertools.islice(_points(num_texts), 4, None)


def _code_suspects(
    pair: SeparablePair, num_texts: int, num_random: int | None = None
) -> Iterator[np.ndarray]:
    """Generate P at grid points where f decreases or g is convex, then random P."""
    f, g = _derivatives(pair)
    wrong = grid()[(f.slope <= 0) | (g.bend >= 0)]
    rng = np.random.default_rng(1)
    for i in np.linspace(0, wrong.size - 1, 8 if wrong.size else 0).astype(int):
        yield from _around(float(wrong[i]), num_texts, rng)
    yield from itertools.islice(_points(num_texts), num_random)


def _around(
    place: float, num_texts: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Generate P with one text of this probability, the others sharing the rest."""
    for _ in range(4):
        rest = rng.dirichlet(np.ones(num_texts - 1)) + 1e-6
        yield np.r_[place, (1 - place) * rest / rest.sum()]


# --- Kernel pairs -------------------------------------------------------------------
def _check_kernel(
    pair: KernelPair, p: np.ndarray | None, num_texts: int | None
) -> Verdict:
    size = len(pair.kernel)
    if num_texts not in (None, size):
        raise ValueError(f"the kernel is of {size} texts, got {num_texts}")
    found = kernel_criterion(pair.kernel)
    if found.compatible and (doubt := _kernel_doubt(pair.kernel, found)):
        return Verdict(None, f"{NO_DEVIATION}: {found.reason} {doubt}")
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


def _kernel_doubt(kernel: Float[ArrayLike, "texts texts"], found) -> str | None:
    """Why rounding leaves the criterion undecided, if exact arithmetic does too."""
    kernel = np.asarray(kernel)
    noise = 64 * len(kernel) * EPS * float(np.abs(kernel).max())
    if found.num_negative:
        near = found.greatest > found.level - noise
        return "The level is that entry, up to rounding." if near else None
    if found.least_eigenvalue > noise or _is_semidefinite(kernel):
        return None
    return "An eigenvalue is 0 up to rounding, and its sign was not shown."


def _is_semidefinite(kernel: np.ndarray) -> bool:
    """Whether d'Kd >= 0 for all zero-sum d, in exact rational arithmetic."""
    from flint import fmpq

    if len(kernel) > MAX_ELIMINATED:
        return False
    exact = [
        [fmpq(*float(x).as_integer_ratio()) for x in row]
        for row in (kernel + kernel.T) / 2
    ]
    # Gaussian elimination in the basis e_i - e_N: no pivot may be negative, and if a
    # pivot is 0 so is the rest of its row.
    last = exact[-1]
    rows = [
        [x - last[j] - row[-1] + last[-1] for j, x in enumerate(row[:-1])]
        for row in exact[:-1]
    ]
    for k, pivots in enumerate(rows):
        if pivots[k] < 0 or (pivots[k] == 0 and any(pivots[k + 1 :])):
            return False
        if pivots[k] == 0:
            continue
        for row in rows[k + 1 :]:
            factor = row[k] / pivots[k]
            for j in range(k, len(row)):
                row[j] -= factor * pivots[j]
    return True


# --- Any pair: the local tests at some P --------------------------------------------
def _points(num_texts: int) -> Iterator[np.ndarray]:
    """Draw random interior P, from nearly uniform to peaked."""
    rng = np.random.default_rng(0)
    num_samples = np.clip(MAX_DRAWN // num_texts, 1, NUM_SAMPLES)
    for concentration in np.resize([3.0, 1.0, 10.0, 0.5], num_samples):
        draw = rng.dirichlet(np.full(num_texts, concentration)) + 1e-6
        yield draw / draw.sum()


def _check_at_points(
    metrics: Metrics,
    points: Iterable[np.ndarray],
    *,
    one_point: bool,
    otherwise: str = NO_DEVIATION,
) -> Verdict:
    """Apply the two tests at each P, up to the first witness."""
    with np.errstate(all="ignore"):  # formulas may overflow
        return _test_points(metrics, points, one_point, otherwise)


def _test_points(
    metrics: Metrics, points: Iterable[np.ndarray], one_point: bool, otherwise: str
) -> Verdict:
    findings = []
    for p in points:
        finite = np.isfinite(metrics.gradients(p)).all()
        if metrics.exact and not (one_point or finite):
            continue  # floats overflow here, although the formulas are defined
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
        text = f"{finding.text} at the given P."
        return Verdict(
            True if finding.optimal else None,
            text if finding.optimal else f"{NO_DEVIATION}: {text}",
            residual=finding.gap,
        )
    kinds = "; ".join(sorted({finding.text for finding in findings}))
    return Verdict(
        None,
        f"{otherwise}: no witness at {len(findings)} P, likely and random ones, which "
        f"proves nothing: {kinds}.",
    )
