"""Time the Pareto frontier against one SciPy root-finder a weight.

    python benchmarks/frontier.py

The baseline is what one writes from Theorem 2: for each weight, `brentq` finds b
with sum(Q) = 1, where Q = g'^-1(min(g'(0), w phi + b)) is one vectorised NumPy
expression. It runs on some of the weights and its time is scaled to all of them.
Peak memory is that of our side, read before the baseline starts.
"""

import resource
import sys
import time
from collections.abc import Callable

import jax
import numpy as np
from scipy.optimize import brentq

import qdtheory as qd

jax.config.update("jax_enable_x64", True)
NUM_WEIGHTS = 200


def entropy_and_repetition(x):
    """g(x) = -x^2 - x log x, whose derivative has no closed inverse."""
    return qd.NRR(x) + qd.SE(x)


def invert_nrr(slopes: np.ndarray) -> np.ndarray:
    """Probabilities q with -2 q = slope, or 0."""
    return np.maximum(-slopes / 2, 0)


def slope(q: np.ndarray) -> np.ndarray:
    return -2 * q - np.log(q) - 1


def curvature(q: np.ndarray) -> np.ndarray:
    return -2 - 1 / q


def invert_by_newton(slopes: np.ndarray) -> np.ndarray:
    """Probabilities q with g'(q) = slope, by Newton steps in log q from the uniform q.

    In log q this g' is concave and falls, so that from the second step on Newton's
    points fall to the root and need no bracket.
    """
    z = np.full_like(slopes, -np.log(slopes.size))
    for _ in range(50):
        q = np.exp(z)
        step = (slope(q) - slopes) / (curvature(q) * q)
        # The first step may pass q = 1, far beyond which exp overflows.
        z = np.minimum(z - step, 1.0)
        if np.abs(step).max() < 1e-12:
            break
    return np.exp(z)


def by_brentq(
    invert: Callable, slope: Callable, scores: np.ndarray, w: float
) -> tuple[float, float]:
    """(b, U) at one weight."""
    line = w * scores
    # The largest probability lies in [1/N, 1]: that brackets b.
    low, high = (slope(q) - line.min() for q in (1.0, 1 / scores.size))
    b = brentq(
        lambda b: invert(line + b).sum() - 1, low, high, xtol=1e-10 / scores.size
    )
    return b, float(invert(line + b) @ scores)


def compare(
    name: str,
    pair: qd.SeparablePair,
    num_texts: int,
    invert: Callable,
    slope: Callable,
    every: int,
    runs: int,
    bar: float,
) -> None:
    p = np.random.default_rng(0).exponential(size=num_texts)
    p /= p.sum()
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        frontier = jax.block_until_ready(qd.pareto_frontier(pair, p, NUM_WEIGHTS))
        times.append(time.perf_counter() - start)
    first, warm = times[0], times[1:]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    scores = np.asarray(pair.text_quality(p))
    w, quality = np.asarray(frontier.w), np.asarray(frontier.quality)
    chosen = [i for i in range(every // 2, NUM_WEIGHTS, every) if -np.inf < w[i] < 0]
    start = time.perf_counter()
    points = [by_brentq(invert, slope, scores, w[i]) for i in chosen]
    baseline = (time.perf_counter() - start) * NUM_WEIGHTS / len(chosen)
    np.testing.assert_allclose([u for _, u in points], quality[chosen], rtol=1e-9)

    ours = float(np.median(warm))
    print(
        f"{name}, N = {num_texts:,}: ours {ours:.2f} s ({min(warm):.2f} to "
        f"{max(warm):.2f}; first call {first:.2f} s), brentq {baseline:.0f} s, scaled "
        f"from {len(chosen)} weights, ratio {baseline / ours:.0f} (bar {bar:g}); "
        f"peak memory {peak:.0f} MB",
        flush=True,
    )


def main(case: str) -> None:
    if case == "closed":
        compare(
            "CR-NRR",
            qd.CR_NRR,
            1_000_000,
            invert_nrr,
            lambda q: -2 * q,
            every=10,
            runs=5,
            bar=100,
        )
    else:
        for f in (qd.CR, qd.LL):
            compare(
                f"{f.__name__} and g = -x^2 - x log x",
                qd.SeparablePair(f, entropy_and_repetition),
                100_000,
                invert_by_newton,
                slope,
                every=10,
                runs=3,
                bar=10,
            )


if __name__ == "__main__":
    # One process a case, so that each has its own peak memory.
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        import subprocess

        for case in ("closed", "open"):
            subprocess.run([sys.executable, __file__, case], check=True)
