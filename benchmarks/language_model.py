"""Time the probabilities of all texts against a scan over every text.

    python benchmarks/language_model.py

The baseline is one compiled `vmap` of a `lax.scan` over the tokens, which reads
every prefix again for each text that begins with it.
"""

import jax
import jax.numpy as jnp
import numpy as np
from measure import peak, seconds

import qdtheory as qd

VOCAB_SIZE, LENGTH, RUNS = 6, 6, 15


def scan_every_text(model: qd.LSTMLanguageModel, tokens: jax.Array) -> jax.Array:
    """The same recurrence, written down once more, one text at a time."""

    def probability(text):
        def read(carry, token):
            h, c, x = carry
            gates = x @ model.input_weights + h @ model.recurrent_weights
            i, f, o, cell = jnp.split(gates + model.gate_biases, 4)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(cell)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            logits = h @ model.output_weights + model.output_biases
            return (h, c, model.embeddings[token]), jax.nn.log_softmax(logits)[token]

        zeros = jnp.zeros(model.recurrent_weights.shape[0])
        start = (zeros, zeros, model.embeddings[0])
        return jnp.exp(jax.lax.scan(read, start, text)[1].sum())

    return jax.vmap(probability)(tokens)


def main() -> None:
    space = qd.TextSpace(VOCAB_SIZE, LENGTH)
    model = qd.LSTMLanguageModel.random(jax.random.key(0), VOCAB_SIZE)
    tokens = jnp.asarray(space.tokens)
    baseline = jax.jit(scan_every_text)

    compiling, _ = seconds(model.probabilities, space)
    expected = baseline(model, tokens)
    np.testing.assert_allclose(model.probabilities(space), expected, rtol=1e-11)

    # Interleaved, so that other load on the machine meets both.
    ours, theirs = [], []
    for _ in range(RUNS):
        theirs.append(seconds(baseline, model, tokens)[0])
        ours.extend(seconds(model.probabilities, space)[0] for _ in range(3))
    ratio = np.median(theirs) / np.median(ours)
    print(
        f"{space.num_texts:,} texts: tree {1e3 * np.median(ours):.1f} ms (least "
        f"{1e3 * min(ours):.1f}), scan {1e3 * np.median(theirs):.0f} ms (least "
        f"{1e3 * min(theirs):.0f}), ratio {ratio:.0f} (of the least "
        f"{min(theirs) / min(ours):.0f}); first call {compiling:.1f} s; "
        f"peak memory {peak():.0f} MB"
    )


if __name__ == "__main__":
    main()
