"""Train LSTMs of three sizes on 400 texts of an oracle; write ordering.csv.

    python notebooks/data/make_ordering.py

A row is one model at one number of epochs: the log-probabilities of all texts of the
space of notebook 15. An epoch is one step of Adam on the exact likelihood of the
training set; seven seeds each. About two minutes on one core.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
from lab.corpora.training import from_table, train
from tables import versions, write

import qdtheory as qd
from qdtheory.text import Corpus

SPACE = qd.TextSpace(vocab_size=3, lengths=(1, 2, 3, 4))
NUM_TEXTS = 400
HIDDEN_SIZES = (1, 4, 32)
EPOCHS = (10, 20, 50, 100, 200, 500, 1000)
NUM_SEEDS = 7
LEARNING_RATE = 0.01
KEY = 15


def rows(corpus: Corpus, hidden_size: int, seed: int) -> Iterator[list]:
    """One model along its training."""
    with TemporaryDirectory() as folder:
        for epochs in EPOCHS:
            model = train(
                corpus,
                epochs=epochs,
                embedding_size=hidden_size,
                hidden_size=hidden_size,
                learning_rate=LEARNING_RATE,
                batch_size=len(corpus),
                seed=seed,
                checkpoint=Path(folder, "checkpoint"),
            )
            log_q = np.log(model.probabilities(SPACE))
            yield [hidden_size, seed, epochs, *log_q.round(4).tolist()]


def main() -> None:
    """Draw the training set, train all models, then write the table in one go."""
    oracle_key, training_key = jax.random.split(jax.random.key(KEY))
    oracle = qd.LSTMLanguageModel.random(oracle_key, 4, sigma=0.5, end_token=3)
    drawn = np.asarray(qd.sample(training_key, oracle.probabilities(SPACE), NUM_TEXTS))
    corpus = from_table(SPACE.tokens[drawn], ("a", "b", "c"))
    table = []
    for hidden_size in HIDDEN_SIZES:
        for seed in range(NUM_SEEDS):
            table += rows(corpus, hidden_size, seed)
            print(f"hidden size {hidden_size}, seed {seed}", file=sys.stderr)
    counts = np.bincount(drawn, minlength=SPACE.num_texts)
    comments = [
        "python notebooks/data/make_ordering.py",
        f"{versions('jax', 'optax')}; Adam, rate {LEARNING_RATE}, full batch",
        f"oracle {oracle.fingerprint}; training set {qd.fingerprint(counts)}, "
        f"{NUM_TEXTS} texts",
    ]
    texts = [f"log_q_{i}" for i in range(SPACE.num_texts)]
    write("ordering.csv", comments, ["hidden_size", "seed", "epochs", *texts], table)


if __name__ == "__main__":
    main()
