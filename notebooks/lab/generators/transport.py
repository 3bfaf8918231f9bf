r"""Wasserstein distances by linear programming, and the critic of a WGAN.

$W_1(Q, P) = \max_f \mathrm{E}_P f - \mathrm{E}_Q f$ over the functions f of texts with
$f(x) - f(y) \le d(x, y)$. The maximiser is a WGAN's critic and the reward of each text.
Whatever the solver returns is first made feasible, so that the two sides of weak
duality bound the distance, and refused unless they meet.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float
from scipy import sparse

from lab.generators.adversarial import Adversarial
from lab.generators.models import Model, prefix_distribution, refuse
from qdtheory.distributions import as_distribution, as_distributions
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import (
    PerText,
    Scalar,
    TextArray,
    one_of,
    within,
)
from qdtheory.support.records import Record

# Primal and dual values may differ by this share of the greatest cost.
DUALITY_GAP = 1e-8
GROUNDS = "hamming", "prefix"


@jax.tree_util.register_dataclass
class Coupling(Record):
    r"""An optimal plan between two weighted sets of points.

    Attributes:
        plan: the mass that goes from each point to each, shape (K, N).
        source_potential: u, shape (K,).
        target_potential: v, shape (N,), with $u_k + v_j \le$ cost.
        value: the cost of the plan, at most 1e-8 of the greatest cost above
            $\sum_k a_k u_k + \sum_j b_j v_j$, which no plan undercuts.
    """

    plan: Float[Array, "*runs sources targets"]
    source_potential: Float[Array, "*runs sources"]
    target_potential: Float[Array, "*runs targets"]
    value: Float[Array, "*runs"]


def optimal_transport(
    cost: Float[ArrayLike, "sources targets"],
    a: Float[ArrayLike, " sources"],
    b: Float[ArrayLike, " targets"],
) -> Coupling:
    r"""The cheapest plan that moves the masses a to the masses b.

    It can be used inside compiled functions, and the value can be differentiated: its
    derivative by the cost is the plan, by the masses the potentials.

    Args:
        cost: cost of a unit of mass from each source to each target, shape (K, N).
        a: masses of the sources, a distribution, shape (K,).
        b: masses of the targets, a distribution, shape (N,).

    Raises:
        ValueError: the masses are not distributions, or there is not one finite cost
            for each source and target.
        RuntimeError: the linear program was not solved to 1e-8 of the greatest cost.

    References:
        Peyré and Cuturi 2019, sections 2.3 and 2.5.

    Example:
        >>> points = np.array([0.0, 1.0, 2.0])
        >>> cost = abs(points[:, None] - points)
        >>> a, b = np.array([0.5, 0.5, 0]), np.array([0, 0.5, 0.5])
        >>> found = optimal_transport(cost, a, b)
        >>> float(found.value.round(9))
        1.0
    """
    a, b = as_distribution(a, "a"), as_distribution(b, "b")
    cost = jnp.asarray(cost, float)
    if cost.shape != (a.size, b.size):
        raise ValueError(
            f"cost must have a row for each of {a.size} sources and a column for each "
            f"of {b.size} targets, got shape {cost.shape}"
        )
    refuse(~jnp.isfinite(cost), "cost must be finite; leave out what is out of reach")
    shapes = [cost.shape, a.shape, b.shape]
    plan, u, v = _outside_jax(_transport, shapes, cost, a, b)
    fixed_a, fixed_b = jax.lax.stop_gradient((a, b))
    value = (plan * cost).sum() + u @ (a - fixed_a) + v @ (b - fixed_b)
    return Coupling(plan, u, v, value)


def sorted_plan(
    x: Float[ArrayLike, " m"],
    a: Float[ArrayLike, " m"],
    y: Float[ArrayLike, " n"],
    b: Float[ArrayLike, " n"],
) -> Float[Array, "m n"]:
    r"""The optimal transport plan between two weighted point sets on a line.

    Mass moves in order: for every convex cost of the distance the plan pairs equal
    quantiles, and $W_1 = \sum_{ij} \pi_{ij} |x_i - y_j|$.

    Args:
        x: points, shape (m,).
        a: their weights, with sum 1.
        y: points, shape (n,).
        b: their weights, with sum 1.

    Returns:
        $\pi$, shape (m, n), with row sums a and column sums b.

    References:
        Villani 2009, chapter 2.

    Claims: N23.9.

    Example:
        >>> x, y, half = np.array([1.0, 0.0]), np.array([2.0, 5.0]), np.full(2, 0.5)
        >>> sorted_plan(x, half, y, half).tolist()
        [[0.0, 0.5], [0.5, 0.0]]
    """
    (low_x, high_x), (low_y, high_y) = _quantiles(x, a), _quantiles(y, b)
    high = jnp.minimum(high_x[:, None], high_y)
    return jnp.maximum(high - jnp.maximum(low_x[:, None], low_y), 0)


def wasserstein_distance(
    q: PerText, p: PerText, space: TextSpace, ground: str = "hamming"
) -> Scalar:
    r"""The least mean distance between a text of Q and one of P, over all couplings.

    Args:
        q: the model, shape (num_texts,).
        p: the real distribution, shape (num_texts,).
        space: the texts.
        ground: the distance of two texts. "hamming": the number of positions where they
            differ, for texts of one length, by linear programming with constraints for
            neighbours only, as the distance is that of a graph. "prefix": the
            number of tokens from the first difference on, where the distance is
            $\frac12 \sum_l \sum_s |P_l(s) - Q_l(s)|$, over the first l
            tokens; of several lengths, the end of a text is a token.

    Returns:
        A scalar, in tokens.

    Raises:
        ValueError: `q` and `p` are not distributions over the space, the ground is
            another one, or texts differ in length for Hamming's.
        RuntimeError: the linear program was not solved to 1e-8.

    References:
        Arjovsky et al. 2017 (WGAN), equation 2, for the dual form.

    Claims: N22.11.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> q, p = np.array([1.0, 0, 0, 0]), np.array([0, 0, 0.5, 0.5])
        >>> grounds = "hamming", "prefix"
        >>> [float(wasserstein_distance(q, p, space, d).round(9)) for d in grounds]
        [1.5, 2.0]
    """
    q, p = as_distributions(space.num_texts, q=q, p=p)
    return (p - q) @ wasserstein_critic(q, p, space, ground)


def wasserstein_critic(
    q: PerText,
    p: PerText,
    space: TextSpace,
    ground: str = "hamming",
    penalty: float | None = None,
) -> TextArray:
    r"""The critic of a WGAN: f with $\mathrm{E}_P f - \mathrm{E}_Q f = W_1(Q, P)$.

    With a gradient penalty $\lambda$ it maximises $\mathrm{E}_P f - \mathrm{E}_Q f -
    \lambda\,\mathrm{E} \int (|f'| - 1)^2$ without a constraint, where the integral
    follows the path in the prefix tree from a text of P to one of Q. An edge lies on
    it with probability $m = P_l (1 - Q_l) + Q_l (1 - P_l)$, so that
    $|f'| = 1 + |P_l - Q_l| / (2 \lambda m)$. The penalised critic of Hamming's distance
    is left out: the two-sided penalty makes its problem non-concave on a graph with
    circles.

    Args:
        q: the model, shape (num_texts,).
        p: the real distribution, shape (num_texts,).
        space: the texts.
        ground: as in `wasserstein_distance`.
        penalty: λ, positive, for the ground "prefix"; None: the constraint.

    Returns:
        The value of each text, shape (num_texts,); real ones have the higher mean.

    Raises:
        ValueError: as in `wasserstein_distance`, or the penalty is not positive or
            comes with Hamming's distance.
        RuntimeError: the linear program was not solved to 1e-8.

    References:
        Arjovsky et al. 2017 (WGAN); Gulrajani et al. 2017 (WGAN-GP), equation 3, whose
        penalty follows segments between samples.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> q, p = np.array([0.75, 0.25]), np.array([0.5, 0.5])
        >>> wasserstein_critic(q, p, space, "prefix").tolist()
        [-0.5, 0.5]
    """
    q, p = as_distributions(space.num_texts, q=q, p=p)
    require_ground(space, ground, penalty)
    if ground == "hamming":
        (negative,) = _outside_jax(partial(_potential, space), [q.shape], q, p)
        return -negative
    q, p = prefix_distribution(space, q), prefix_distribution(space, p)
    slope = jnp.sign(p - q)
    if penalty is not None:
        crossed = p * (1 - q) + q * (1 - p)
        slope += (p - q) / (2 * penalty * jnp.where(crossed > 0, crossed, 1))
    return slope.sum(axis=1) / 2


@dataclass(frozen=True)
class WGAN(Adversarial):
    """An objective of `train`: to ascend the optimal critic, that is, to descend W1.

    Attributes:
        ground: as in `wasserstein_distance`.
        penalty: as in `wasserstein_critic`.

    References:
        Arjovsky et al. 2017 (WGAN), Theorem 3; Gulrajani et al. 2017 (WGAN-GP).
    """

    ground: str = "hamming"
    penalty: float | None = None

    def start(self, model: Model, space: TextSpace, p: Array) -> Any:
        """Check the ground; there is no state, as each step's critic is optimal."""
        require_ground(space, self.ground, self.penalty)
        return ()

    def rewards(
        self, state: Any, model: Model, shares: Array, space: TextSpace, p: Array
    ) -> tuple[Array, Any]:
        """The critic's values are the rewards of texts."""
        q = model.probabilities(space)
        return wasserstein_critic(q, p, space, self.ground, self.penalty), state


def require_ground(space: TextSpace, ground: str, penalty: float | None) -> None:
    """Raise unless the distance between texts and a gradient penalty fit the space."""
    one_of(GROUNDS, ground=ground)
    if ground == "hamming":
        space.only_length("Hamming's distance", 'take ground="prefix"')
    if penalty is None:
        return
    if ground == "hamming":
        raise ValueError(
            "the penalised critic is solved on the prefix tree only; take "
            'ground="prefix", or no penalty'
        )
    within(penalty=penalty, low=0, ends="()")


def _quantiles(x: ArrayLike, a: ArrayLike) -> tuple[Array, Array]:
    """The interval of quantiles that each point fills."""
    x, a = jnp.asarray(x), jnp.asarray(a)
    order = jnp.argsort(x)
    high = jnp.zeros_like(a).at[order].set(jnp.cumsum(a[order]))
    return high - a, high


def _outside_jax(function: Any, shapes: list[tuple], *arrays: Array) -> list[Array]:
    """Call a function of NumPy arrays, also from inside compiled code."""
    arrays = jax.lax.stop_gradient(arrays)
    if any(isinstance(array, Tracer) for array in arrays):
        results = [jax.ShapeDtypeStruct(shape, float) for shape in shapes]
        return jax.pure_callback(function, results, *arrays, vmap_method="sequential")
    return [jnp.asarray(result) for result in function(*arrays)]


def _transport(*arrays: Any) -> list[np.ndarray]:
    cost, a, b = map(np.asarray, arrays)
    if not np.isfinite(cost).all():  # a run that diverged goes on with NaN
        return [np.full(x.shape, np.nan) for x in (cost, a, b)]
    sums = _sums(*cost.shape)
    x, dual = _minimise(cost.ravel(), sums, np.concatenate([a, b]))
    plan = x.clip(0).reshape(cost.shape)
    # Scaled down to masses that fit, then filled up: a plan whose sums are a and b.
    plan *= _at_most_1(a, plan.sum(axis=1))[:, None]
    plan *= _at_most_1(b, plan.sum(axis=0))
    rows, columns = a - plan.sum(axis=1), b - plan.sum(axis=0)
    if (missing := rows.sum()) > 0:
        plan += np.outer(rows, columns / missing)
    u = (cost - dual[len(a) :]).min(axis=1)
    v = (cost - u[:, None]).min(axis=0)
    least = float(a @ u + b @ v)
    _require_gap(float((cost * plan).sum()), least, float(abs(cost).max()))
    return [plan, u, v]


def _potential(space: TextSpace, *arrays: Any) -> list[np.ndarray]:
    """The potential f with E_Q f - E_P f = W1, f(x) - f(y) <= 1 for neighbours."""
    q, p = map(np.asarray, arrays)
    if not np.isfinite(q).all():  # as above
        return [np.full_like(q, np.nan)]
    flow = _flows(space)
    if not flow.shape[1]:
        return [np.zeros_like(q)]  # there is one text only
    x, f = _minimise(np.ones(flow.shape[1]), flow, q - p)
    f = f / max(1, (flow.T @ f).max())
    f = f - f.mean()
    # What the flow leaves undone goes at most from one end of a text to the other.
    undone = abs(q - p - flow @ x.clip(0)).sum() / 2
    value = x.clip(0).sum() + undone * space.max_length
    _require_gap(float(value), float((q - p) @ f), space.max_length)
    return [f]


def _minimise(
    cost: np.ndarray, matrix: Any, sums: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The least cost @ x for x >= 0 and matrix @ x = sums, with the multipliers.

    The last equation, which follows from the others, is left out: their rounding would
    make it false.
    """
    from scipy.optimize import linprog  # late: slow to import

    tight = {f"{side}_feasibility_tolerance": 1e-10 for side in ("primal", "dual")}
    settings = {"method": "highs-ds", "options": {"presolve": False, **tight}}
    found = linprog(cost, A_eq=matrix[:-1], b_eq=sums[:-1], **settings)
    if found.x is None:
        raise RuntimeError(f"the linear program was not solved: {found.message}")
    return found.x, np.append(found.eqlin.marginals, 0)


def _require_gap(upper: float, lower: float, scale: float) -> None:
    if not upper - lower <= DUALITY_GAP * scale:
        raise RuntimeError(
            f"the linear program was not solved: the distance lies in [{lower:.12g}, "
            f"{upper:.12g}], and bounds must meet within {DUALITY_GAP:g} of "
            f"{scale:.6g}, the greatest cost"
        )


def _at_most_1(wanted: np.ndarray, given: np.ndarray) -> np.ndarray:
    return np.divide(wanted, given, np.ones_like(given), where=given > wanted)


@lru_cache(maxsize=16)
def _sums(num_sources: int, num_targets: int) -> Any:
    """The map from a plan to its sums over targets, then over sources."""
    rows = sparse.kron(sparse.eye_array(num_sources), np.ones((1, num_targets)))
    columns = sparse.kron(np.ones((1, num_sources)), sparse.eye_array(num_targets))
    return sparse.vstack([rows, columns]).tocsr()


@lru_cache(maxsize=16)
def _flows(space: TextSpace) -> Any:
    """The map from flows between texts that differ in one place to what leaves each."""
    size, texts = space.vocab_size, np.arange(space.num_texts)
    pairs = [
        np.stack([texts, texts + (token - space.tokens[:, t]) * size**place])
        for t, place in enumerate(reversed(range(space.max_length)))
        for token in range(size)
    ]
    ways = np.concatenate(pairs, axis=1)
    leaves, enters = ways[:, ways[0] != ways[1]]
    one: Any = sparse.eye_array(space.num_texts, format="csc")
    return (one[:, leaves] - one[:, enters]).tocsr()
