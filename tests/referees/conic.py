"""QDisc by cvxpy, which shares nothing with the library."""

import cvxpy as cp

# Of one distribution, in what cvxpy knows to be concave.
DIVERSITIES = {
    "SE": lambda q: cp.sum(cp.entr(q)),
    "NRR": lambda q: -cp.sum_squares(q),
}


def most_gained(scores, p, diversity):
    """The most quality gained over P, a distribution or a row of them, by Clarabel.

    It stops at a gap of 1e-8, relatively.
    """
    q = cp.Variable(p.shape, nonneg=True)
    sums = cp.sum(q, axis=1) if p.ndim > 1 else cp.sum(q)
    limits = [sums == 1, diversity(q) >= diversity(p).value]
    gain = cp.sum(cp.multiply(scores, q - p))
    return cp.Problem(cp.Maximize(gain), limits).solve(solver=cp.CLARABEL)
