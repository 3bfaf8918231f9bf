r"""Decide whether a quality-diversity pair is divergence-compatible (Theorem 3).

A pair is divergence-compatible if every real distribution P is Pareto-optimal. For
$U = \sum Q_i f(P_i)$, $V = \sum g(Q_i)$ and any N >= 4 this holds iff $g'' = w_0 f'$
with a constant $w_0 < 0$ and f is strictly increasing. This is the paper's
$g(x) = w_0 \int_0^x f(u) du + b_0 x$, differentiated twice; it allows $w_0 = 0$ and any
N (docs/errata.md says why not). For any other differentiable pair, the two gradients at
P often suffice to find a model that beats P.

`check_compatibility` tells the form, `_checked` chooses the proof for it, and what no
proof decides goes to `_check_points`, which looks for a witness.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import Literal, NoReturn, TypeAlias, cast

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from qdtheory import distributions, forms, pairs
from qdtheory.beaten import Witness
from qdtheory.formulas.code import only_tried
from qdtheory.formulas.expressions import Expression
from qdtheory.formulas.tracing import require_values
from qdtheory.pairs import BleuPair, Pair, PooledPair
from qdtheory.proofs import beyond_theorem_3 as beyond
from qdtheory.proofs import optimality, theorem_3
from qdtheory.proofs.kernel_criterion import (
    dominating_model,
    kernel_criterion,
    rounding_doubt,
)
from qdtheory.proofs.shape import why_not_smooth
from qdtheory.support.layout import Summary, number
from qdtheory.support.numbers import PerText
from qdtheory.support.records import Display, Record

# Numbers of texts tried for a pair with g'' = w0 f' whose f decreases somewhere.
MATCHED_SIZES = [4, 16]
NO_DEVIATION = "No deviation found"
BEATEN = "By Theorem 3 some P is beaten, too narrowly to be shown in float64"
AT_POINTS = f"at {theorem_3.GRID.size} points"
BY_INTERVALS = "proved by interval arithmetic"
THEOREM = (
    "Theorem 3: every interior P is Pareto-optimal, for any number of texts, as "
    "g'' = w0 f' with w0 < 0 ({}) and f increases strictly on (0, 1) ({}); so g is "
    "strictly concave."
)


VerdictStatus: TypeAlias = Literal[
    "compatible", "incompatible", "not_beaten_at_p", "conditional", "undecided"
]


class Verdict(Record, Display):
    r"""The verdict on a pair's compatibility, with its evidence.

    Attributes:
        compatible: True if every interior P is Pareto-optimal, over as many texts as
            were asked for; False if the witness beats one, the given P if there is
            one; None if neither is shown.
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
        status: `compatible` in words, or "not_beaten_at_p": the given P is
            Pareto-optimal, which says nothing of other P; or, of two metrics by their
            names, "conditional": compatible over those texts that the reason names.
        other_p: what holds for other P where the given one is not beaten or undecided:
            "incompatible" if one of them is beaten, else "undecided".
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
    status: VerdictStatus = cast(VerdictStatus, None)  # filled in
    other_p: Literal["incompatible", "undecided"] | None = None

    def summary(self) -> Summary:
        """Status and reason, constants with their exact values, and a witness."""
        title, not_beaten = self.status, self.status == "not_beaten_at_p"
        if not_beaten or self.other_p == "incompatible":
            here = "not beaten" if not_beaten else "undecided"
            title = f"at this P: {here}; for other P: {self.other_p}"
        facts = {key: number(getattr(self, key)) for key in ("w0", "b0", "alpha")}
        for key, exact in (self.exact or {}).items():
            facts[key] = exact if exact == facts[key] else f"{exact} = {facts[key]}"
        facts |= {"Psi": self.psi or "", "Psi(P) - Psi(Q)": self.divergence or ""}
        if (beats := self.witness) is not None:
            names = "real P", "better Q", "quality gain", "diversity gain"
            facts |= dict(zip(names, map(number, vars(beats).values())))
        facts["residual"] = number(self.residual)
        return title, [self.reason], [x for x in facts.items() if x[1]]

    def __post_init__(self) -> None:
        if self.status is None:
            words = {True: "compatible", False: "incompatible", None: "undecided"}
            object.__setattr__(self, "status", words[self.compatible])

    def __bool__(self) -> NoReturn:
        """Refuse: an undecided verdict is neither true nor false."""
        raise TypeError(
            "a verdict has three values; write verdict.compatible is True, is False "
            "(beaten) or is None (undecided)"
        )


VENDI = Verdict(
    True,
    "Klein's inequality: U + V at P exceeds that at Q by the quantum relative entropy "
    "of their density matrices, which is at least 0. Up to rounding, the kernel is "
    "positive semidefinite with ones on the diagonal.",
    w0=-1.0,
    alpha=1 / 2,
    psi="(1/2) U + (1/2) V",
    divergence="quantum_relative_entropy(Q, P, kernel) / 2",
)


def check_compatibility(
    pair: Pair | str,
    p: PerText | None = None,
    *,
    num_texts: int | None = None,
) -> Verdict:
    """Decide whether the real distribution can be beaten in both metrics at once.

    Separable pairs are decided for every P by Theorem 3, in its exact scope: N >= 4
    texts, unless `num_texts` or `p` specifies 2 or 3. If f and g are formulas or named
    functions, "compatible" is a proof: SymPy proves the condition and derives the
    divergence, ball arithmetic proves that f is defined and increasing on all of
    (0, 1), and the gains of a witness are proved to be positive. Kernel pairs are
    decided by the signs of the kernel's eigenvalues, a `PooledPair` on its classes,
    BLEU of one length by a classification of its settings, with a witness where it is
    beaten, and a `VendiPair` is compatible. Code is tried, at `p` or at likely and
    random interior P, by the first-order test and then the second-order test: the
    result is a witness, with gains above the rounding error of its precision, or
    undecided. A pair is never called compatible merely because the tests found
    nothing.

    Args:
        pair: a differentiable pair with `quality(q, p)` and `diversity(q)`, or the
            name of one ("LL-SE").
        p: the real distribution to test at, shape (N,), without zeros. Unless a
            theorem covers every P, the pair is then called incompatible if this P is
            beaten, and never compatible: at best "not_beaten_at_p".
        num_texts: N, if no `p` is given.

    Returns:
        The verdict with its reason; "incompatible" always comes with a witness.

    Raises:
        TypeError: `p` is traced by a caller's `jax.jit`, or JAX cannot trace the pair.
        ValueError: `p` is not a distribution or has zeros, its size is not
            `num_texts` or the kernel's, a pair that is neither separable nor a kernel
            comes without both, or the pair is undefined or not differentiable at a
            point tested.

    References:
        Li et al. 2020, Theorem 3 and section 5, with its scope for N = 2 and 3. "If"
        is machine-checked: `theorem_3_if` and `P_is_Pareto_optimal` in
        proofs/Theorem3.v; an incompatible pair, `LL_NRR_is_not_compatible` in
        proofs/Counterexample.v.

    Claims: T3.1, T3.2, T3.4, T3.5, T3.7, T3.9, T3.11, N6.4.

    Example:
        >>> from qdtheory.pairs import CR_NRR, LL_NRR
        >>> verdict = check_compatibility(CR_NRR)
        >>> verdict.compatible, verdict.exact, verdict.divergence
        (True, {'w0': '-2', 'b0': '0', 'alpha': '2/3'}, 'sum_i [(P_i - Q_i)**2/3]')
        >>> check_compatibility(LL_NRR).compatible
        False
    """
    distributions.require_x64()
    require_values(p)
    note = ""
    if p is not None:
        why = ": at zeros the tests do not apply"
        given, p = p, np.asarray(distributions.as_interior(p, why, num_texts))
        num_texts, note = p.size, distributions.rounding_note(given, p)
    if num_texts is not None:
        distributions.require_positive(num_texts=num_texts)
    form = pairs.form_of(pair)
    verdict = _checked(form, p, num_texts)
    if form.code and verdict.compatible is None:
        note = f" {only_tried(form.code)}.{note}"
    return replace(verdict, reason=verdict.reason + note) if note else verdict


def _checked(form: forms.Form, p: np.ndarray | None, num_texts: int | None) -> Verdict:
    if form.num_texts is not None:
        if num_texts not in (None, form.num_texts):
            raise ValueError(f"the pair is of {form.num_texts} texts, got {num_texts}")
        num_texts = form.num_texts
    match form:
        case forms.Separable(f=f, g=g) if f is not None:
            functions = theorem_3.read_functions(f, g)
            return _check_separable(functions, p, num_texts)
        case forms.Kernel(pair=of_kernel):
            return _check_kernel(of_kernel.kernel, p)
        case forms.Vendi():
            return VENDI
        case forms.Pooled(pair=pool) if pool.one_length and pool.map.shape[1] == 1:
            return _check_classes(pool, p)
        case forms.Pooled(pair=pool) if pool.one_length:
            size = pool.num_outcomes
            verdict = _checked(pairs.form_of(pool.pair), None, size)
            if verdict.compatible:  # if not, no text may have what the witness needs
                return replace(verdict, reason=f"On the {pool.of}: {verdict.reason}")
        case forms.Bleu(pair=bleu) if (verdict := _classified(bleu, p)) is not None:
            return verdict
    if num_texts is None:
        raise ValueError(
            "a pair that is neither separable nor of a kernel is tested at some P; "
            "pass p or num_texts"
        )
    trial = np.full(num_texts, 1 / num_texts) if p is None else p
    pairs.require_traceable_form(form, trial)
    quality, diversity = form.pair.quality, form.pair.diversity
    metrics = optimality.CodeMetrics(quality, diversity, _is_concave(form))
    return _check_points(metrics, p, beyond.random_points(num_texts))


def _is_concave(form: forms.Form) -> bool:
    """Whether U is proved to be linear and V concave in the model."""
    match form:
        case forms.Pooled(pair=PooledPair(one_length=True, pair=inner)):
            return _is_concave(pairs.form_of(inner))
        case forms.Separable(g=g, code=()):
            return g.is_concave()
    return False


# --- Separable pairs: Theorem 3 -------------------------------------------------------
def _check_separable(
    functions: theorem_3.Functions,
    p: np.ndarray | None,
    num_texts: int | None,
) -> Verdict:
    if num_texts == 1:
        return Verdict(True, "With one text there is one distribution only.")
    if (metric := functions.constant_metric()) is not None:
        return Verdict(
            None,
            f"All models have the same {metric}: none improves both, and P is Pareto-"
            "optimal if it is best in the other metric.",
        )
    if functions.formulas is None or not functions.smooth:
        return _try_out(functions, p, num_texts)
    return _check_formulas(functions, *functions.formulas, p, num_texts)


def _check_formulas(
    functions: theorem_3.Functions,
    f: Expression,
    g: Expression,
    p: np.ndarray | None,
    num_texts: int | None,
) -> Verdict:
    """Try to prove compatibility for every P, then search for a witness."""
    rough = [
        why for h, name in ((f, "f"), (g, "g")) if (why := why_not_smooth(h, name))
    ]
    proof = theorem_3.prove_theorem_3(f, g)
    if not rough and (verdict := _by_proofs(f, g, proof, num_texts)) is not None:
        return verdict
    failures = [*rough, *theorem_3.open_hypotheses(f, g, proof)]
    sizes = [num_texts] if num_texts else [4] if proof is None else MATCHED_SIZES
    if p is not None:  # Theorem 3 is the same over any four texts or more
        sizes = [min(p.size, 4)]
    beaten = "differs" in failures[0] and sizes[0] > 3
    verdict = _check_points(
        optimality.FormulaMetrics(f, g),
        p,
        chain(*(beyond.likely_points(functions, size) for size in sizes)),
        BEATEN if beaten else NO_DEVIATION,
    )
    return _explained(verdict, f"Theorem 3: {'; '.join(failures)}.", num_texts)


def _try_out(
    functions: theorem_3.Functions, p: np.ndarray | None, num_texts: int | None
) -> Verdict:
    """Find a witness of code, or of formulas with a kink, unless the fit holds."""
    fit = theorem_3.fit_theorem_3(functions.f, functions.g)
    if fit.violation is None:
        return _fitted(fit)
    if functions.formulas is not None:
        metrics = optimality.FormulaMetrics(*functions.formulas)
    else:
        metrics = optimality.CodeMetrics(*functions.metrics)
    points = beyond.likely_points(functions, num_texts or 4)
    verdict = _check_points(metrics, p, points)
    why = f"Theorem 3 {AT_POINTS}: {fit.violation}."
    return replace(_explained(verdict, why, num_texts), residual=fit.residual)


def _explained(verdict: Verdict, why: str, num_texts: int | None) -> Verdict:
    """Add to a verdict from points why Theorem 3 does not decide it."""
    if num_texts not in (2, 3):
        why += (
            " With exactly 2 or 3 texts the pair may still be compatible; ask with "
            "that number of texts."
        )
    return replace(verdict, reason=f"{verdict.reason} {why}")


def _by_proofs(
    f: Expression, g: Expression, proof: theorem_3.Proof | None, num_texts: int | None
) -> Verdict | None:
    """Prove compatibility for every P by one of four theorems; f and g are smooth.

    Theorem 3; and, of the pairs that it leaves out, three kinds in `proofs`.
    """
    if proof is not None and theorem_3.increases(f).value == 1:
        return _proved(proof)
    if num_texts == 2 and beyond.orders_two_texts(f, g):
        return Verdict(
            True,
            "With two texts: f(t) > f(1 - t) for t > 1/2, and g(t) + g(1 - t) falls "
            f"strictly there ({BY_INTERVALS}), so quality and diversity move "
            "oppositely and every interior P is Pareto-optimal. Theorem 3 does not "
            "hold for it from N = 4 on.",
        )
    if num_texts != 2 and proof is not None and beyond.keeps_order_with_one_text(f):
        return Verdict(
            True,
            "Every interior P of three texts or more is Pareto-optimal: g'' = w0 f' "
            "with w0 < 0 (proved symbolically), and f falls only where one text alone "
            f"can be, so little that sum F(Q_i), F' = f, is pseudoconvex "
            f"({BY_INTERVALS}). No weighted sum of U and V need be greatest at P.",
            w0=float(proof.w0),
            b0=float(proof.b0),
        )
    if num_texts == 3 and beyond.orders_three_texts(f, g):
        return Verdict(
            True,
            "With three texts: the points (f(P_i), g'(P_i)) lie on one falling line "
            "for every P (proved symbolically), and f increases and g is strictly "
            f"concave ({BY_INTERVALS}). Theorem 3 does not hold for it from N = 4 on.",
        )
    return None


def _proved(proof: theorem_3.Proof) -> Verdict:
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


def _fitted(fit: theorem_3.Fit) -> Verdict:
    """Verdict for what fits at all points, which proves nothing between them."""
    alpha = fit.w0 / (fit.w0 - 1)
    return Verdict(
        None,
        f"{NO_DEVIATION}: g'' = w0 f' with w0 < 0 holds to a relative "
        f"{fit.residual:.1e} {AT_POINTS}, and f increases there.",
        fit.w0,
        fit.b0,
        alpha,
        psi=f"{alpha:.6g} U + {1 - alpha:.6g} V",
        divergence=(
            f"{alpha:.6g} * sum_i [F(Q_i) - F(P_i) - f(P_i) (Q_i - P_i)] with F' = f"
        ),
        residual=fit.residual,
    )


# --- Kernel pairs ---------------------------------------------------------------------
def _check_kernel(kernel: ArrayLike, p: np.ndarray | None) -> Verdict:
    found = kernel_criterion(kernel)
    if found.compatible and (doubt := rounding_doubt(kernel, found)):
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
    witness = dominating_model(kernel, p)
    if witness is None:
        reason = f"{found.reason} Near the given P no model beats it."
        return Verdict(None, reason, other_p="incompatible")
    reason = f"{found.reason} The given P is dominated."
    return Verdict(False, reason, witness=witness)


# --- Pairs on classes, and BLEU -------------------------------------------------------
def _check_classes(pair: PooledPair, p: np.ndarray | None) -> Verdict:
    """Decide the pair of the classes, and spread a witness over their texts."""
    classes = np.asarray(pair.map)[:, 0]
    real = None if p is None else np.bincount(classes, p)
    number = pair.num_outcomes
    verdict = _checked(pairs.form_of(pair.pair), real, number)
    verdict = replace(verdict, reason=f"On the {pair.of}: {verdict.reason}")
    if (beaten := verdict.witness) is None:
        return verdict
    # Mass is shared within a class as by the given P.
    within = np.ones(classes.size) if p is None else p
    share = within / np.bincount(classes, within)[classes]
    spread = (jnp.asarray(np.asarray(x)[classes] * share) for x in (beaten.p, beaten.q))
    return replace(
        verdict, witness=replace(beaten, **dict(zip("pq", spread, strict=True)))
    )


def _classified(pair: BleuPair, p: np.ndarray | None) -> Verdict | None:
    """The verdict on BLEU by its classification; None if a witness is to be found."""
    (length, *others), order = pair.space.lengths, pair.max_order
    if pair.smoothing is not None or others or order > length:
        return None
    r, k = int(pair.num_references), int(pair.num_self_references)
    if order == 1 and (why := bleu_1_setting(pair.space.vocab_size, r, k)) is not None:
        return Verdict(
            True,
            why,
            w0=-2 / k,
            alpha=2 / (2 + k),
            psi=f"({2 / (2 + k):.6g}) U + ({k / (2 + k):.6g}) V",
        )
    return _check_kernel(pairs.quadratic_form(pair)[0], p) if r == k == 1 else None


def bleu_1_setting(vocab_size: int, r: int, k: int) -> str | None:
    r"""Why BLEU-1 and Self-BLEU on texts of two tokens or more are compatible, if so.

    Texts of one length L over |V| words, order n, r references from P, k from Q, no
    smoothing. Then BLEU and negative Self-BLEU are compatible iff one of these holds:

    * |V| = 1, where there is one model, or n > L, where both metrics are 0;
    * r = k = 1, and n = 1 or n = L;
    * |V| = 2, n = 1, L >= 2, and neither r nor k exceeds 2;
    * |V| = 2, L = 1, and k <= 3.

    *Three texts without a common n-gram* (three words, or 0...0, 1...1 and 0101... for
    n >= 2). On models of these alone BLEU is that of single tokens,
    $f(x) = 1 - (1 - x)^r$ and $g(x) = -x + x (1 - x)^k$. If every interior P is
    Pareto-optimal, the gradients of U and V are antiparallel there and, by continuity,
    on the boundary, so the points $(f(P_i), g'(P_i))$ lie on one line for all P on the
    three texts. Where one of the three is 0, f and g' vanish, so that
    $h(x) = g'(x) / f(x)$ is h(1 - x).
    At 0 and 1 this gives r = k = 1 or r = 2k >= 4; in the latter case the next terms,
    $(k + 1) / 4$ against 2 for k = 2 and 0 for k > 2, differ. So r = k = 1. ∎

    *One reference, 1 < n < L.* Let M = L - n + 1, let h be M - n + 1, or for M < n any
    number between 0 and M, and x_s the text that starts at s in 0^M 1^M 0^M 1^M... The
    n-grams that begin in the arcs from 0, h, M and M + h differ: 0^n, 0^i 1^(n-i), 1^n,
    1^i 0^(n-i), or all 2M. So BLEU of x_0 and x_M is 0, as is that of x_h and x_{M+h}.
    At a distance of t texts share all but t of their m-grams, for each m, so that their
    BLEU exceeds 1 - t / M. The four others sum to S > 2. With d = 1, -1, 1, -1 on the
    four texts d'Kd = 4 - 2S < 0, and Kd sums to 2 - S on x_0 and x_M and to S - 2 on
    the others: both signs, so that some P is beaten (`kernel_criterion`). ∎

    *Two words, n = 1.* Let $F_t$ be the chance that a text has at most t ones. BLEU-1
    is 1 minus the distance, over L, from the number of ones to the interval that the
    references span. So $U = c(P) - \frac1L \sum_t F_t(Q)\,[(1 - F_t)^r - F_t^r](P)$ and
    $V = -1 + \frac1L \sum_t v(F_t(Q))$, $v(F) = (1 - F) F^k + F (1 - F)^k$. For L >= 2
    two of the F are free, and compatibility needs v' proportional to $(1 - F)^r - F^r$.
    Divided by 1 - 2F and with y = F(1 - F), these are 2, 1, 1 - 4y for k = 1, 2, 3,
    negative at y = 1/4 for k > 3, and 1, 1, 1 - y, ... for r = 1, 2, 3, ..., positive
    at y = 1/4 and not constant from r = 3 on. So r, k <= 2, and then v is concave. ∎

    Claims: N25.20, N25.21, N25.22.
    """
    if r == k == 1:
        return (
            "BLEU-1 with one reference: the kernel of common words is an inner product "
            "of the answers to 'does the text hold this word t times?', so U + V / 2 "
            "is greatest at Q = P."
        )
    if vocab_size == 2 and max(r, k) <= 2:
        return (
            "BLEU-1 on two words: with F_t the chance of at most t ones, U is linear "
            "and V concave in F, and their gradients at Q = P are 2 F_t - 1 and "
            f"{'2 (1 - 2 F_t)' if k == 1 else '1 - 2 F_t'}, over L."
        )
    return None


# --- Any pair: the optimality conditions at some P ------------------------------------
@np.errstate(all="ignore")  # formulas may overflow
def _check_points(
    metrics: optimality.Metrics,
    p: np.ndarray | None,
    likely: Iterable[np.ndarray],
    otherwise: str = NO_DEVIATION,
) -> Verdict:
    """The verdict that the optimality conditions allow, at P or for every P."""
    # Floats overflow at some P although formulas are defined there; and where code is
    # not defined, nobody asked if another P was given.
    if metrics.exact or p is not None:
        likely = (x for x in likely if optimality.why_undefined(metrics, x) is None)
    if p is None:
        return _for_every_p(metrics, likely, otherwise)
    return _at_p(metrics, p, likely, otherwise)


def _for_every_p(
    metrics: optimality.Metrics, likely: Iterable[np.ndarray], otherwise: str
) -> Verdict:
    """Incompatible, with the first likely P that is beaten; else undecided."""
    texts = []
    for p in likely:
        found = optimality.examine(metrics, p)
        if found.witness is not None:
            return _beaten(found, f"at a P of {p.size} texts")
        texts.append(found.text)
    if not texts:
        return Verdict(None, f"{otherwise}: float64 overflows at every P tried.")
    return Verdict(
        None,
        f"{otherwise}: no witness at {len(texts)} P, likely and random ones, which "
        f"proves nothing: {'; '.join(sorted(set(texts)))}.",
    )


def _at_p(
    metrics: optimality.Metrics,
    p: np.ndarray,
    likely: Iterable[np.ndarray],
    otherwise: str,
) -> Verdict:
    """The verdict on one P; what is found at likely P is told beside it."""
    found = optimality.examine(metrics, p)
    if found.witness is not None:
        return _beaten(found, "at the given P")
    other = _for_every_p(metrics, likely, otherwise)
    reason = f"{found.text} at the given P."
    if not found.optimal:
        reason = f"{NO_DEVIATION}: {reason}"
    if other.compatible is False:
        reason += f" Other P are beaten. {other.reason}"
    return Verdict(
        None,
        reason,
        residual=found.gap,
        status="not_beaten_at_p" if found.optimal else "undecided",
        other_p="undecided" if other.compatible is None else "incompatible",
    )


def _beaten(found: optimality.Finding, where: str) -> Verdict:
    reason = f"{found.text} {where}."
    return Verdict(False, reason, residual=found.gap, witness=found.witness)
