"""Time exact training steps of an LSTM over all texts, and of eight seeds in one run.

    taskset -c 0 python benchmarks/rewards.py

One core is the case that the bar is about. The eight seeds are one `jax.vmap` of
`train`; the same numbers come from eight runs, one after the other.
"""

from functools import partial

import jax
import numpy as np
from lab.generators import train
from measure import peak, seconds

import qdtheory as qd

STEPS, RUNS, SEEDS = 50, 7, 8
SIZES = (4, 3), (4, 5)


def random_model(key, vocab_size: int) -> qd.LSTMLanguageModel:
    return qd.LSTMLanguageModel.random(key, vocab_size, sigma=0.1)


def measure(vocab_size: int, length: int) -> str:
    space = qd.TextSpace(vocab_size, length)
    p = qd.oracle(space, seed=0)
    keys = jax.random.split(jax.random.key(1), SEEDS)
    models = [random_model(key, vocab_size) for key in keys]
    together = jax.vmap(partial(random_model, vocab_size=vocab_size))(keys)

    def run(model):
        return train("logit D", model, space, p, STEPS, every=STEPS)

    compiling, _ = seconds(run, models[0])
    many = jax.jit(jax.vmap(run))
    found = many(together)
    for seed, model in enumerate(models[:2]):
        np.testing.assert_allclose(found.js[seed], run(model).js, rtol=1e-6)

    # Interleaved, so that other load on the machine meets both.
    one, all_seeds = [], []
    for _ in range(RUNS):
        one.append(seconds(run, models[0])[0] / STEPS)
        all_seeds.append(seconds(many, together)[0] / STEPS)
    ratio = min(all_seeds) / min(one)
    return (
        f"{space.num_texts:,} texts: a step {1e3 * min(one):.2f} ms at least, "
        f"{1e3 * np.median(one):.2f} in the median; {SEEDS} seeds {ratio:.1f} times "
        f"that; first call {compiling:.1f} s"
    )


def main() -> None:
    for vocab_size, length in SIZES:
        print(measure(vocab_size, length), flush=True)
    print(f"peak memory {peak():.0f} MB")


if __name__ == "__main__":
    main()
