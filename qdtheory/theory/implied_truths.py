r"""The real distributions that a benchmark takes for perfect.

Let quality be the mean of scores r that do not depend on the real distribution, such
as a reward or the chance to be right, and diversity V be concave. A model that nothing
beats in both maximises $U + \eta V$ for a price $\eta \ge 0$: for interior P, iff
$r = -\eta \nabla V(P) + c$. So whatever people write, scores and diversity fix a family
with one parameter, and a model that has learnt another distribution can be beaten.
"""

from collections.abc import Sequence
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.formulas.posed import Functional, given_scores, total_diversity
from qdtheory.formulas.scalar_functions import scalar_function
from qdtheory.solvers.interior_point import (
    Program,
    Tangent,
    face_of,
    follow_path,
    require_semidefinite,
)
from qdtheory.world.distributions import check_finite, require_x64
from qdtheory.world.numbers import CLOSED, EPS, PerText
from qdtheory.world.records import Record


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
    check_finite(r, "scores")
    if eta.ndim != 1 or not eta.size or not ((eta > 0) & (eta < np.inf)).all():
        raise ValueError("prices must be positive numbers, one or more")
    if isinstance(diversity, str):
        diversity = partial(total_diversity, scalar_function(diversity, "g"))
    face = face_of(partial(diversity), r)  # what is compiled of it is kept by object
    start = face.tangent(np.full(r.size, 1 / r.size))
    found = [_best(face.program(r / x, -np.inf), start, r / x) for x in eta]
    points = np.array([at.x for at, _ in found])
    values, gaps = [at.value for at, _ in found], eta * [gap for _, gap in found]
    return ImpliedTruths(*map(jnp.asarray, (eta, points, points @ r, values, gaps)))


def _best(program: Program, start: Tangent, u: np.ndarray) -> tuple[Tangent, float]:
    """Maximise u . x + V(x), with the most by which its tangent exceeds the value."""
    unit = float(np.ptp(u)) + max(float(np.ptp(start.slope)), EPS * start.size)
    best, least = start, np.inf
    for at, _ in follow_path(program, start, unit):
        gap = float((u - u @ at.x + at.slope).max())
        if gap < least:
            best, least = at, gap
            require_semidefinite(at)
        if least <= CLOSED * unit:
            break
    return best, least
