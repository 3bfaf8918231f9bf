"""Time the exact QDisc of a concave-convex pair against a search from many starts.

    python benchmarks/discrepancy.py

Single-token BLEU over 64 texts with ten references and |C| = 1001: g is concave up
to 2 / 1001 and convex beyond. The baseline is SLSQP, with gradients, from 40 random
starts, as one writes it with SciPy alone; what it misses is printed too.
"""

from collections.abc import Callable, Iterable

import numpy as np
from measure import seconds
from scipy.optimize import minimize

import qdtheory as qd

NUM_TEXTS, NUM_REFERENCES, NUM_SELF_REFERENCES = 64, 10, 1000
NUM_STARTS, RUNS = 40, 3


def g(x: np.ndarray) -> np.ndarray:
    return -x + x * (1 - x) ** NUM_SELF_REFERENCES


def slope(x: np.ndarray) -> np.ndarray:
    k = NUM_SELF_REFERENCES
    return -1 + (1 - x) ** k - k * x * (1 - x) ** (k - 1)


def by_slsqp(
    scores: np.ndarray,
    g: Callable,
    slope: Callable,
    p: np.ndarray,
    starts: Iterable[np.ndarray],
    slack: float = 1e-9,
    **options: float,
) -> float:
    """The best gain of a model as diverse as P up to a slack, by local searches."""
    least, best = g(p).sum(), 0.0
    constraints = [
        {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like},
        {"type": "ineq", "fun": lambda q: g(q).sum() - least, "jac": slope},
    ]
    for start in starts:
        q = minimize(
            lambda q: -q @ scores,
            start,
            jac=lambda q: -scores,
            constraints=constraints,
            bounds=[(0, 1)] * p.size,
            method="SLSQP",
            options=options,
        ).x
        q = np.clip(q, 0, 1) / np.clip(q, 0, 1).sum()
        if g(q).sum() >= least - slack:
            best = max(best, float((q - p) @ scores))
    return best


def by_search(p: np.ndarray, rng: np.random.Generator) -> float:
    """QDisc by SLSQP alone."""
    starts = (p, *rng.dirichlet(np.full(p.size, 0.3), NUM_STARTS - 1))
    return by_slsqp(1 - (1 - p) ** NUM_REFERENCES, g, slope, p, starts)


def main() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(NUM_TEXTS))
    pair = qd.pairs.single_token_bleu_pair(NUM_REFERENCES, NUM_SELF_REFERENCES)
    first, _ = seconds(qd.quality_discrepancy, pair, p)
    ours, theirs = [], []
    for _ in range(RUNS):
        ours.append(seconds(qd.quality_discrepancy, pair, p))
        theirs.append(seconds(by_search, p, rng))
    (our_time, exact), (their_time, found) = min(ours), min(theirs)
    print(
        f"N = {NUM_TEXTS}, |C| = {NUM_SELF_REFERENCES + 1}: ours {our_time:.2f} s "
        f"(first call, compilation included, {first:.2f}; bar 1 s), QDisc "
        f"{exact.qdisc:.6f}; "
        f"SLSQP from {NUM_STARTS} starts {their_time:.1f} s, QDisc {found:.6f}; "
        f"ratio {their_time / our_time:.0f}"
    )


if __name__ == "__main__":
    main()
