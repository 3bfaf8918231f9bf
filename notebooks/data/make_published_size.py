"""Train MLE at the size of Montahaei et al.'s Table 4; write published_size.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_published_size.py CHECKPOINTS

SeqGAN's oracle of 5,000 words and its model, see seqgan_setting.py, with the paper's
49,984 training and 24,960 test texts (50,000 and 25,000 in whole batches). A row is an
epoch of maximum likelihood. Oracle-NLL, NLL and entropy are nats a text of 20 tokens,
as in the table; the Bhattacharyya distance is the paper's estimate, of as many texts of
the model, with limits that hold for all laws. The paper's oracle may be another draw of
such a network, its validation texts are not the test texts as here, and its GANs are
missing.

A run that was killed goes on after the last epoch. An epoch takes 30 seconds of CPU
time, a fifth of it to measure.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from seqgan_setting import (
    BATCH,
    RATES,
    Model,
    epoch,
    first_model,
    optimiser,
    run,
    sample,
    text_nats,
)
from tables import corpora, versions, write

from qdtheory.text import estimate_bhattacharyya

NUM_TRAINING, NUM_TEST = 781 * BATCH, 390 * BATCH
SEED, EPOCHS = 0, 16
COLUMNS = "epoch,oracle_nll,nll,entropy,bhattacharyya,low,high"


def measured(
    model: Model, oracle: Model, test: jax.Array, key: jax.Array
) -> list[float]:
    """A row but for the epoch, of the oracle's texts and as many of the model."""
    own = sample(model, key, len(test))
    under = [
        np.asarray(text_nats(q, x), float)
        for q, x in ((oracle, test), (model, test), (oracle, own), (model, own))
    ]
    found = estimate_bhattacharyya(*(-x for x in under))
    _, nll, oracle_nll, entropy = (float(x.mean()) for x in under)
    return [oracle_nll, nll, entropy, found.value, found.low, found.high]


def main() -> None:
    """Train, measuring after each epoch, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoints", type=Path, help="a folder")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    options = parser.parse_args()
    options.checkpoints.mkdir(parents=True, exist_ok=True)
    with np.load(corpora() / "seqgan_oracle.npz") as file:
        oracle = Model.from_arrays([file[name] for name in file.files])
    oracle = jax.tree.map(lambda a: a.astype(jnp.float32), oracle)
    keys = jax.random.split(jax.random.key(SEED), 4)
    texts = sample(oracle, keys[0], NUM_TRAINING + NUM_TEST)
    training, test = texts[:NUM_TRAINING], texts[NUM_TRAINING:]
    of_test = float(text_nats(oracle, test).mean())

    def advance(state, step):
        return epoch(state, training, jax.random.fold_in(keys[3], step))

    model = first_model(keys[2], oracle.vocab_size)
    state = model, optimiser("adam").init(model)
    stops = [*range(1, options.epochs + 1)]
    path = options.checkpoints / "published_size.npz"
    measure = partial(measured, oracle=oracle, test=test, key=keys[1])
    _, rows = run(path, state, stops, advance, measure)
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_published_size.py FOLDER",
        f"{versions('jax', 'optax', 'numpy')}; {NUM_TRAINING} training texts, "
        f"{NUM_TEST} test texts; Adam {RATES['adam']}; seed {SEED}; entropy of the "
        f"oracle {of_test:.4f} nats a text, of the test texts",
    )
    print(*comments, sep="\n", file=sys.stderr)
    write("published_size.csv", comments, COLUMNS.split(","), rows)


if __name__ == "__main__":
    main()
