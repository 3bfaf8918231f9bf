"""QDisc of a pair at P, and the certificate that no model gains more.

The result of a search is a lower bound. `certify` adds an upper bound that does not
trust the search, from the method that knows the pair's form.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import ArrayLike, PRNGKeyArray

from qdtheory.formulas.code import only_tried
from qdtheory.formulas.posed import Posed
from qdtheory.pairs import forms
from qdtheory.pairs.base import Pair
from qdtheory.pairs.bleu import BleuPair
from qdtheory.pairs.named import as_pair
from qdtheory.qdisc import cubic, quadratic, tails
from qdtheory.qdisc.bounds import Bounds
from qdtheory.qdisc.cubic import CubicCertificate
from qdtheory.qdisc.seal import seal
from qdtheory.qdisc.separable import ENVELOPE, envelope_bounds
from qdtheory.qdisc.solve import Discrepancy, solve_or_search
from qdtheory.solvers.search import NUM_STARTS, Method
from qdtheory.world.distributions import check_distribution, rounded
from qdtheory.world.numbers import MARGIN, PerText
from qdtheory.world.spaces import TextSpace


def quality_discrepancy(
    pair: Pair | str,
    p: PerText,
    *,
    method: Literal["exact"] | Method | None = None,
    num_starts: int = NUM_STARTS,
    key: PRNGKeyArray | None = None,
    certify: bool = False,
) -> Discrepancy:
    r"""QDisc and DRate of a pair at one real distribution.

    Exact if quality is linear in Q and diversity is $\sum_i g(Q_i)$ with g strictly
    concave on [0, 1], or concave up to a point and convex beyond. BLEU has this form
    when its order equals the single length of the texts: it then tests whether the
    text is among the references. A `ConcavePair` is solved as a convex problem, which
    bounds QDisc from both sides. A pair with code gets no seal, at best a lower bound.

    Args:
        pair: any pair that JAX can differentiate, or the name of one ("LL-SE").
        p: the real distribution, shape (N,).
        method: "exact"; "ascent" or "penalty", see `qdtheory.solvers.search`; None for
            "exact" or the convex problem if they apply, else "ascent".
        num_starts: number of starts in each round of "ascent".
        key: JAX random key of those starts; `jax.random.key(0)` if None.
        certify: bound the result of a search by `qdtheory.certify`.

    Returns:
        The discrepancies with the models that attain them.

    Raises:
        TypeError: "exact" for a pair without scores or without g, or `certify` for a
            pair for which no bound is known.
        ValueError: `p` is not a distribution, its own quality is not finite, a score
            is NaN or $+\infty$, the method is unknown, "exact" is requested for g of
            another shape, or a `ConcavePair` is not concave.

    References:
        Li et al. 2020, section 5; the exact solutions are ours.

    Claims: T3.10, N5.6, N5.7, N16.2.

    Example:
        >>> from qdtheory.pairs.named import CR_NRR, LL_NRR
        >>> p = np.array([0.6, 0.3, 0.1])
        >>> print(f"{quality_discrepancy(LL_NRR, p).qdisc:.6f}")
        0.013566
        >>> quality_discrepancy(CR_NRR, p).dominated_in is None
        True
    """
    posed = forms.pose(pair, p)
    if certify:
        bounding_method(posed.form)  # refuses before a search, not after it
    found = solve_or_search(posed, method=method, num_starts=num_starts, key=key)
    found = _certified(posed, found) if certify else found
    return replace(found, reason=found.reason + rounded(p, posed.p))


def certify(
    pair: Pair | str,
    p: PerText,
    found: Discrepancy | PerText | None = None,
    *,
    tolerance: float | None = None,
    max_steps: int | None = None,
) -> Bounds:
    """Bound QDisc from above, and improve the model that was found.

    By the method that the pair's form allows: branch and bound on the tails of the word
    counts for BLEU-1 on texts of one length; the doubly nonnegative relaxation for
    kernels and for BLEU of any order with one Self-BLEU reference; the cubic relaxation
    for BLEU of any order with two, on at most 64 texts, whose certificate `cubic_bound`
    checks; the concave envelope for sums of g(Q_i), where g is a formula with two
    bounded derivatives on [0, 1], NRR, or the g of single-token BLEU; a convex problem
    for a `VendiPair`. Code is refused.

    Args:
        pair: the pair, or its name, or that of the search.
        p: the real distribution, shape (N,), or that of the search.
        found: the result of `quality_discrepancy(pair, p)`; or a model to improve,
            shape (N,); P itself by default. The better it is, the sooner the bounds
            meet.
        tolerance: width at which to stop, as a share of the range of the finite
            scores, positive; 1e-6 by default. The doubly nonnegative relaxation and a
            convex problem take none, as they do not split.
        max_steps: number of splits at which to stop, 1000 by default, or of steps of
            the cubic relaxation, 3000 by default.

    Returns:
        The two bounds, with what shows the upper one as `evidence`; apart if the
        relaxation is not tight or the steps are exhausted. For a `Discrepancy`: that
        result with its `upper_bound`, and status "certified" if the bound exceeds
        `qdisc`, recomputed from the model, by at most 1e-5 of the range of the texts'
        scores; exact and certified results are returned unchanged.

    Raises:
        TypeError: no bound is known for the pair, or it has code.
        ValueError: `found` is the result of another pair or another distribution, `p`
            or a model is not a distribution, too many texts, a tolerance that is not
            positive or a limit where the method takes none, or a g whose shape
            interval arithmetic cannot determine.
        ImportError: the doubly nonnegative relaxation without cvxpy.
        RuntimeError: a model gains more than its bound, which would be a bug in this
            library.

    Claims: N8.4, N8.7, N17.6, N17.7, N17.8, N17.10, N17.13, N17.22, N17.23.

    Example:
        >>> from qdtheory import BleuPair, TextSpace
        >>> pair = BleuPair(TextSpace(vocab_size=2, lengths=2), 1, 2, 3)
        >>> p = np.array([0.4, 0.3, 0.2, 0.1])
        >>> certify(pair, p, quality_discrepancy(pair, p)).status
        'certified'
        >>> certify(pair, p).gap <= 1e-6
        True
    """
    posed = forms.pose(pair, p)
    _refuse_code(posed.form)
    limits: dict[str, Any] = {"tolerance": tolerance, "max_steps": max_steps}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    if tolerance is not None and not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    if isinstance(found, Discrepancy):
        _check_subject(as_pair(pair), posed.p, found)
        return _certified(posed, found, **limits)
    start = posed.p if found is None else found
    start = np.asarray(check_distribution(start, "found", posed.p.size))
    bounds = bounding_method(posed.form)[0](posed, start, **limits)
    return replace(bounds, reason=bounds.reason + rounded(p, posed.p))


def _certified(posed: Posed, found: Discrepancy, **limits: Any) -> Discrepancy:
    if found.status != "lower_bound":
        return found
    bound, method = bounding_method(posed.form)
    bounds = bound(posed, np.asarray(found.q), **limits)
    gain, q, dominated_in = posed.gain(found.q), found.q, found.dominated_in
    reason = found.reason
    # A difference within the margin of the local search is not an improvement.
    if bounds.qdisc > gain + MARGIN * posed.spread:
        gain, q, dominated_in = bounds.qdisc, bounds.q, "quality"
        reason += " A local search improved on it."
    gain, upper = max(gain, 0.0), bounds.upper_bound
    status, fault = seal(posed, np.asarray(q), gain, upper, "certified")
    reason += f" No seal: {fault}." if fault else ""
    return replace(
        found,
        qdisc=gain,
        q=q,
        dominated_in=dominated_in,
        upper_bound=upper,
        status=status,
        reason=f"{reason} Bounded by {method}.",
        steps=bounds.steps,
        evidence=bounds.evidence,
    )


def _refuse_code(form: forms.Form) -> None:
    if form.code:
        raise TypeError(f"there is no certificate: {only_tried(form.code)}")


def bounding_method(form: forms.Form) -> tuple[Callable[..., Bounds], str]:
    """Select what bounds QDisc from above, given the posed pair and a model."""
    _refuse_code(form)
    match form:
        case forms.Vendi():
            return _convex, "a convex problem"
        # For texts of one token the tails are the probabilities: a route of their own.
        case (
            forms.Separable(pair=BleuPair(max_order=1))
            | forms.Bleu(pair=BleuPair(max_order=1, space=TextSpace(lengths=(_,))))
        ):
            return _tails, tails.METHOD
        case forms.Kernel() | forms.Bleu(pair=BleuPair(num_self_references=1)):
            return _relaxed, quadratic.METHOD
        case forms.Separable():
            return envelope_bounds, ENVELOPE
        case forms.Bleu(pair=BleuPair(num_self_references=2)):
            return _cubic, cubic.METHOD
    raise TypeError(
        "an upper bound is known for BLEU of order 1 on texts of one length, for "
        "BLEU with one or two Self-BLEU references, for a KernelPair, for a "
        "VendiPair and for a diversity that sums g(Q_i); got "
        f"{forms.name_of(form.pair)}"
    )


def _tails(posed: Posed, start: np.ndarray, **limits: Any) -> Bounds:
    pair = posed.form.pair
    references = float(pair.num_references), float(pair.num_self_references)
    return tails.tail_bounds(posed, pair.space, references, start, **limits)


def _relaxed(posed: Posed, start: np.ndarray, **limits: Any) -> Bounds:
    _refuse_limits(limits)
    return quadratic.relaxed_bounds(posed, forms.quadratic_form(posed.form.pair), start)


def _cubic(posed: Posed, start: np.ndarray, **limits: Any) -> Bounds:
    return cubic.cubic_bounds(posed, posed.form.pair.table, start, **limits)


def _convex(posed: Posed, _: np.ndarray, **limits: Any) -> Bounds:
    _refuse_limits(limits)
    return solve_or_search(posed)


def _refuse_limits(limits: dict[str, Any]) -> None:
    if limits:
        raise ValueError(
            "a relaxation or a convex problem is solved once, to its own precision: "
            f"leave out {' and '.join(limits)}"
        )


def _check_subject(pair: Pair, p: ArrayLike, found: Discrepancy) -> None:
    """Raise if a result belongs to another problem."""
    advice = "call quality_discrepancy(pair, p, certify=True), which does both"
    if not _is_same(pair, found.pair):
        raise ValueError(
            f"found must be about this pair, {forms.name_of(pair)}; it is about "
            f"another one, {forms.name_of(found.pair)}; {advice}"
        )
    if not np.array_equal(np.asarray(p), np.asarray(found.p)):
        raise ValueError(
            f"found must be about this p; it is about another distribution; {advice}"
        )


def _is_same(a: Any, b: Any) -> bool:
    """Whether two pairs are equal, arrays by their entries."""
    if a is b:
        return True
    (leaves, form), (others, other_form) = map(jax.tree.flatten, (a, b))
    # A class unknown to JAX is a leaf, which cannot be compared.
    if type(a) is not type(b) or form != other_form or jax.tree_util.all_leaves([a]):
        return False
    return all(map(np.array_equal, leaves, others))


def cubic_bound(pair: BleuPair, p: PerText, certificate: CubicCertificate) -> float:
    """Upper bound on QDisc from a certificate of any origin.

    Args:
        pair: BLEU with two Self-BLEU references, on at most 64 texts.
        p: the real distribution, shape (num_texts,).
        certificate: certificate for this pair and distribution.

    Returns:
        Upper bound on the gain of models with V(Q) >= V(P).

    Raises:
        TypeError: another pair.
        ValueError: `p` is not a distribution, too many texts, or a certificate with a
            negative price, a matrix that is not positive semidefinite, or of another
            size.

    Claims: N17.20, N17.22, N17.23.

    Example:
        >>> from qdtheory.world.spaces import TextSpace
        >>> pair = BleuPair(TextSpace(vocab_size=2, lengths=1), 1, 2, 2)
        >>> zeros = np.zeros((2, 2, 2)), np.zeros((2, 2))
        >>> nothing = CubicCertificate(0.0, *zeros, floor=0.0)
        >>> print(f"{cubic_bound(pair, np.array([0.7, 0.3]), nothing):.2f}")
        0.12
    """
    match pair:
        case BleuPair(num_self_references=2):
            posed = forms.pose(forms.bleu_form(pair), p)
            return cubic.certificate_bound(posed, pair.table, certificate)
    raise TypeError(
        "a cubic certificate is for BLEU with two Self-BLEU references; got "
        f"{forms.name_of(pair)}"
    )
