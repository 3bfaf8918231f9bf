"""Time all models of generators.csv on one oracle of 64 texts, eight seeds in one run.

    python benchmarks/generators.py

Eight random starts of each model see the real distribution, mapped by `jax.vmap`. The
CPU time of all threads stands beside the time, for machines that have other work.
"""

import sys
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "notebooks" / "data"))
import make_generators as table

import qdtheory as qd

SEEDS = 8


def drawn(draw, oracle: int, times: int = SEEDS):
    """Eight random models where the table has the same one twice."""
    del oracle, times
    return jax.vmap(draw)(jax.random.split(jax.random.key(0), SEEDS))


def main() -> None:
    table.drawn = drawn
    p = qd.oracle(table.SPACE, seed=0)
    seen = jnp.stack(SEEDS * [p])
    start, cpu, count = time.perf_counter(), time.process_time(), 0
    for kind in (table.discrete, table.continuous, table.autoencoders):
        found = list(kind(0, p, seen))
        js = [jax.vmap(partial(qd.jensen_shannon_divergence, p))(x.q) for x in found]
        median = np.median(js, axis=1)
        count += len({each.model for each in found})
        print(
            f"{kind.__name__}: {len(found)} laws, JS {median.min():.1e} to "
            f"{median.max():.1e}; {time.perf_counter() - start:.0f} s so far",
            flush=True,
        )
    print(
        f"{count} models, {SEEDS} seeds: {time.perf_counter() - start:.0f} s, "
        f"{time.process_time() - cpu:.0f} s of CPU time"
    )


if __name__ == "__main__":
    main()
