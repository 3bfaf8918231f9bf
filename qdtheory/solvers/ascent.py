"""Local ascent from a model, within a budget of diversity."""

from collections.abc import Callable

import numpy as np

from qdtheory.world.numbers import MARGIN


def climb_from(
    scores: np.ndarray,
    spent: Callable[[np.ndarray], tuple[float, np.ndarray]],
    budget: float,
    start: np.ndarray,
) -> np.ndarray:
    """Maximise scores . q locally over distributions q with spent(q) <= budget.

    Args:
        scores: shape (N,), with a range of about 1.
        spent: the constraint function and its gradient, on a similar scale.
        budget: upper limit of the constraint.
        start: a distribution, feasible or not.

    Returns:
        A distribution; infeasible only if SLSQP fails.
    """
    from scipy.optimize import minimize  # late: slow to import

    whole = {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like}
    within = {
        "type": "ineq",
        "fun": lambda q: budget - MARGIN - spent(q)[0],
        "jac": lambda q: -spent(q)[1],
    }
    found = minimize(
        lambda q: -q @ scores,
        start,
        jac=lambda q: -scores,
        constraints=[whole, within],
        bounds=[(0, 1)] * start.size,
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-13},
    )
    q = np.clip(found.x, 0, 1)
    return q / q.sum() if q.sum() > 0 else start
