"""QDisc of a pair at P, and the certificate that no model gains more.

The result of a search is a lower bound. `certify` adds an upper bound that does not
trust the search, from the method that knows the pair's form.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import ArrayLike, Float, PRNGKeyArray

from qdtheory.formulas.posed import Posed
from qdtheory.pairs.base import Pair
from qdtheory.pairs.forms import (
    Concave,
    form_of,
    has_tails,
    is_cubic,
    is_quadratic,
    name_of,
    pose,
    score_error,
    separable_form,
)
from qdtheory.qdisc.bounds import Bounds
from qdtheory.qdisc.cubic import cubic_interval
from qdtheory.qdisc.quadratic import quadratic_interval
from qdtheory.qdisc.seal import seal
from qdtheory.qdisc.separable import separable_interval
from qdtheory.qdisc.solve import Discrepancy, solve_or_search
from qdtheory.qdisc.tails import bleu_1_interval
from qdtheory.solvers.search import NUM_STARTS, Method
from qdtheory.world.numbers import MARGIN


def quality_discrepancy(
    pair: Pair,
    p: Float[ArrayLike, " texts"],
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
    bounds QDisc from both sides.

    Args:
        pair: any pair that JAX can differentiate.
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
    posed = pose(pair, p)
    if certify and separable_form(pair) is None:
        bounding_method(pair)  # refuses before a search, not after it
    found = solve_or_search(posed, method=method, num_starts=num_starts, key=key)
    return _certified(posed, found) if certify else found


def certify(
    pair: Pair, p: Float[ArrayLike, " texts"], found: Discrepancy
) -> Discrepancy:
    """Add an upper bound to the QDisc that a search found, and improve its model.

    Uses `bleu_1_interval` for BLEU of order 1 on texts of one length,
    `quadratic_interval` for kernels and for BLEU of any order with one Self-BLEU
    reference, `qdtheory.qdisc.separable_interval` for sums of g(Q_i), and
    `qdtheory.qdisc.cubic_interval` for BLEU of any order with two Self-BLEU references.

    Args:
        pair: the pair of the search.
        p: the real distribution of the search, shape (N,).
        found: the result of `quality_discrepancy(pair, p)`.

    Returns:
        The result with `upper_bound`, and status "certified" if the bound exceeds
        `qdisc`, recomputed from the model, by at most 1e-5 of the range of the texts'
        scores; exact and certified results are returned unchanged.

    Raises:
        TypeError: no bound is known for the pair.
        ValueError: `found` is the result of another pair or another distribution.
        ImportError: the quadratic case without cvxpy.
        RuntimeError: a model gains more than its bound, which would be a bug in this
            library.

    Claims: N17.13.

    Example:
        >>> from qdtheory import BleuPair, TextSpace
        >>> pair = BleuPair(TextSpace(vocab_size=2, lengths=2), 1, 2, 3)
        >>> p = np.array([0.4, 0.3, 0.2, 0.1])
        >>> certify(pair, p, quality_discrepancy(pair, p)).status
        'certified'
    """
    _check_subject(pair, p, found)
    return _certified(pose(pair, p), found)


def _certified(posed: Posed, found: Discrepancy) -> Discrepancy:
    if found.status != "lower_bound":
        return found
    interval, method = bounding_method(posed.pair)
    bounds = interval(posed.pair, posed.p, found.q)
    gain, q, dominated_in = posed.gain(found.q), found.q, "quality"
    reason = found.reason
    # A difference within the margin of the local search is not an improvement.
    if bounds.qdisc > gain + MARGIN * posed.spread:
        gain, q = bounds.qdisc, bounds.q
        reason += " A local search improved on it."
    else:
        dominated_in = found.dominated_in
    gain, upper = max(gain, 0.0), bounds.upper_bound
    error = score_error(posed.pair, posed.p)
    status, fault = seal(posed, np.asarray(q), gain, upper, "certified", error)
    reason += f" No seal: {fault}." if fault else ""
    return replace(
        found,
        qdisc=gain,
        q=q,
        dominated_in=dominated_in,
        upper_bound=upper,
        status=status,
        reason=f"{reason} Bounded by {method}.",
    )


def bounding_method(pair: Pair) -> tuple[Callable[..., Bounds], str]:
    """Select the method that bounds QDisc of a pair from above.

    Args:
        pair: any pair.

    Returns:
        A function of the pair, P and a starting model, and the method's name.

    Raises:
        TypeError: no bound is known for the pair.

    Example:
        >>> from qdtheory import KernelPair
        >>> bounding_method(KernelPair(np.eye(2)))[1]
        'the doubly nonnegative relaxation'
    """
    if isinstance(form_of(pair), Concave):
        return _convex_interval, "a convex problem, if V is concave as the pair states"
    if has_tails(pair):
        return bleu_1_interval, "branch and bound"
    if is_quadratic(pair):
        return quadratic_interval, "the doubly nonnegative relaxation"
    if separable_form(pair) is pair:
        return separable_interval, "the concave envelope and branch and bound"
    if is_cubic(pair):
        return cubic_interval, "the cubic relaxation"
    raise TypeError(
        "an upper bound is known for BLEU of order 1 on texts of one length, for "
        "BLEU with one or two Self-BLEU references, for a KernelPair, for a "
        "ConcavePair and for a diversity that sums g(Q_i); got "
        f"{name_of(pair)}"
    )


def _convex_interval(pair: Pair, p: np.ndarray, _: ArrayLike) -> Bounds:
    """Bounds from the convex problem, which needs no starting model."""
    return solve_or_search(Posed(form_of(pair), p))


def _check_subject(pair: Pair, p: ArrayLike, found: Discrepancy) -> None:
    """Raise if a result belongs to another problem."""
    advice = "call quality_discrepancy(pair, p, certify=True), which does both"
    if not _is_same(pair, found.pair):
        raise ValueError(
            f"found must be about this pair, {name_of(pair)}; it is about another one, "
            f"{name_of(found.pair)} (functions count as the same if they are one "
            f"object); {advice}"
        )
    if not np.array_equal(np.asarray(p), np.asarray(found.p)):
        raise ValueError(
            f"found must be about this p; it is about another distribution; {advice}"
        )


def _is_same(a: Any, b: Any) -> bool:
    """Whether two pairs are equal: arrays by their entries, functions by identity."""
    if a is b:
        return True
    (leaves, form), (others, other_form) = map(jax.tree.flatten, (a, b))
    # A class unknown to JAX is a leaf, which cannot be compared.
    if type(a) is not type(b) or form != other_form or jax.tree_util.all_leaves([a]):
        return False
    return all(map(np.array_equal, leaves, others))
