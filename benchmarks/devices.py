"""Time a batch of oracles on two host devices against one, the rows sharded.

    python benchmarks/devices.py [NUM_ORACLES]

QDisc of BLEU-2 by search, all texts of 3 tokens over 4 words, two references each. Both
sides run in turns in this process, which has two devices of one core each; the best of
five runs counts, and on a busy machine neither side has its core.
"""

import os
import sys
import time
from functools import partial

os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
)
import jax
import jax.numpy as jnp
import numpy as np

import qdtheory as qd
from qdtheory.solvers.devices import over_devices
from qdtheory.solvers.search import _row_search

SPACE, RUNS = qd.TextSpace(vocab_size=4, lengths=3), 5


def seconds(function) -> tuple[float, qd.solvers.Search]:
    start = time.perf_counter()
    found = jax.block_until_ready(function())
    return time.perf_counter() - start, found


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 16
    p = jnp.stack([qd.oracle(SPACE, seed) for seed in range(number)])
    batch = p, jax.random.split(jax.random.key(0), number)
    pair, devices = qd.BleuPair(SPACE, 2, 2, 2), jax.devices()
    solve = _row_search(64)  # the default number of starts
    sides = [
        partial(over_devices, solve, batch, pair, devices=devices[:k]) for k in (1, 2)
    ]
    for side in sides:
        side()  # compiles
    times = np.empty((RUNS, 2))
    for run in range(RUNS):
        for k, side in enumerate(sides):
            times[run, k], found = seconds(side)
            if k == 0:
                alone = found
        np.testing.assert_allclose(found.gain, alone.gain, rtol=1e-9)
    one, two = times.min(axis=0)
    print(
        f"{number} oracles: {two:.2f} s on two devices, {one:.2f} s on one, "
        f"{two / one:.2f} times its time; between runs "
        f"{(times[:, 1] / times[:, 0]).min():.2f} to "
        f"{(times[:, 1] / times[:, 0]).max():.2f}"
    )


if __name__ == "__main__":
    main()
