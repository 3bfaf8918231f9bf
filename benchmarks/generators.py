"""Time all models of training_noise.csv, eight seeds in one run, on one oracle.

    python benchmarks/generators.py

Eight random starts of each model see the real distribution, mapped by `jax.vmap`, and
are trained exactly. The CPU time of all threads stands beside the time, for machines
that have other work.
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
import make_training_noise as noise

import qdtheory as qd


def main() -> None:
    p = qd.oracle(table.SPACE, seed=0)
    seen = jnp.stack(noise.SEEDS * [p])
    divergence = jax.jit(jax.vmap(partial(qd.jensen_shannon_divergence, p)))
    start, cpu, js = time.perf_counter(), time.process_time(), {}
    for name, objective, before, steps in noise.models(0, p):
        found = table.trained(objective, before, p, seen, steps)
        js[name] = float(np.median(divergence(table.laws(found))))
        taken = time.process_time() - cpu
        print(f"{name}: JS {js[name]:.1e}, {taken:.0f} s of CPU so far", flush=True)
    print(
        f"{len(js)} models, {noise.SEEDS} seeds: {time.perf_counter() - start:.0f} s, "
        f"{time.process_time() - cpu:.0f} s of CPU time"
    )


if __name__ == "__main__":
    main()
