"""Time drawing texts from SeqGAN's 5,000-word model against a categorical draw.

    python benchmarks/sampling.py

The baseline draws each word by `jax.random.categorical` on the logits, which adds noise
to each of them. Ours, of `notebooks/data/seqgan_setting.py`, exponentiates them and
searches one uniform number, first among sums of blocks and then inside a block. Both
use the same recurrence, in float32.
"""

import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from measure import peak, seconds

from qdtheory.lstm import LSTMLanguageModel, lstm_step

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "notebooks/data"))
ours = import_module("seqgan_setting")
RUNS = 7


@partial(jax.jit, static_argnums=2)
def categorical(model: LSTMLanguageModel, key: jax.Array, num_texts: int) -> jax.Array:
    inputs = model.embeddings @ model.input_weights + model.gate_biases
    zeros = jnp.zeros((num_texts, model.recurrent_weights.shape[0]), inputs.dtype)
    start = (zeros, zeros), jnp.broadcast_to(inputs[0], (num_texts, inputs.shape[1]))

    def step(carry, key):
        state, gate_input = carry
        state = lstm_step(model, state, gate_input)
        logits = state[0] @ model.output_weights + model.output_biases
        token = jax.random.categorical(key, logits)
        return (state, inputs[token]), token

    return jax.lax.scan(step, start, jax.random.split(key, ours.LENGTH))[1].T


def clocks() -> np.ndarray:
    """Wall-clock and processor time."""
    return np.array([time.perf_counter(), time.process_time()])


def main() -> None:
    model = ours.first_model(jax.random.key(0), 5000)
    model = jax.tree.map(lambda a: 10 * a, model)  # as sharp as the oracle
    key = jax.random.key(1)
    for num_texts in (64, 512):
        both = ours.sample, categorical
        drawn = [np.asarray(f(model, key, num_texts)) for f in both]
        words = [np.bincount(x.ravel(), minlength=5000) / x.size for x in drawn]
        # Two samples of the same words: in a hundred of the commonest they agree.
        top = np.argsort(words[0] + words[1])[-100:]
        shares = [float(share[top].sum()) for share in words]
        assert abs(shares[0] - shares[1]) < 0.1, shares
        times = np.array(
            [
                [seconds(f, model, key, num_texts, clock=clocks)[0] for f in both]
                for _ in range(RUNS)
            ]
        )
        wall, cpu = np.median(times, axis=0).T
        print(
            f"{num_texts} texts of 20 words: blocks {1e3 * wall[0]:.0f} ms, "
            f"categorical {1e3 * wall[1]:.0f} ms, ratio {wall[1] / wall[0]:.1f}; "
            f"by CPU time {cpu[1] / cpu[0]:.1f}"
        )
    print(f"peak memory {peak():.0f} MB")


if __name__ == "__main__":
    main()
