"""Time the Frechet distance against one covariance and one eigendecomposition.

    python benchmarks/frechet.py

10,000 candidates and 10,000 references of 384 features, float32, correlated as those
of sentences are. Both sides run on one thread and are compared by their CPU time. The
peak memory is that of the process with both samples.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is imported

from time import process_time

import numpy as np
from lab import corpora
from measure import peak, seconds

ROUNDS = 7


def main() -> None:
    rng = np.random.default_rng(0)
    scales = np.exp(-np.arange(384) / 100)
    mixing = rng.normal(size=(384, 384)) * scales[:, None]
    a, b = (
        (rng.normal(size=(10_000, 384)) @ mixing).astype(np.float32) for _ in range(2)
    )

    def unit() -> None:
        np.linalg.eigh(np.cov(a.astype(float), rowvar=False))

    sides = lambda: corpora.frechet_distance(a, b), unit
    times = [
        [seconds(side, clock=process_time)[0] for side in sides] for _ in range(ROUNDS)
    ]
    ours, other = np.min(times[1:], axis=0)
    print(
        f"Frechet distance, 10,000 and 10,000 x 384: {ours:.3f} s, "
        f"{ours / other:.1f} times a covariance and an eigendecomposition "
        f"({other:.3f} s), peak {peak():.0f} MB"
    )


if __name__ == "__main__":
    main()
