"""Four models at the size of Montahaei et al.'s Table 4; write published_size.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_published_size.py CHECKPOINTS

SeqGAN's oracle of 5,000 words and its model, see seqgan_setting.py, with the paper's
49,984 training and 24,960 test texts (50,000 and 25,000 in whole batches). A row is an
epoch of maximum likelihood, or 25 steps of a GAN that begins after the last epoch.
Oracle-NLL, NLL and entropy are nats a text of 20 tokens, as in the table; the
Bhattacharyya distance is the paper's estimate, of as many texts of the model, with
limits that hold for all laws.

As the paper says, the GANs are those of geek-ai/Texygen: the discriminator of
texygen_discriminator.py, 16 completions of each prefix for SeqGAN and RankGAN; its
ranker has the same filters, takes the mean of 16 cosines and learns from 46 batches a
step. The paper's oracle may be another draw of such a network, its validation texts are
not the test texts as here, and how many steps it has is not said.

A run that was killed goes on from its last record. An epoch takes 30 seconds of CPU
time, a fifth of it to measure; a step of MaliGAN .6, of SeqGAN 1.6, of RankGAN 1.8.
"""

from collections.abc import Sequence
from functools import partial

import jax
import numpy as np
from lab.corpora import estimate_bhattacharyya
from make_oracle_gans import maligan_step
from make_published_gans import (
    NUM_COMPLETIONS,
    NUM_REFERENCES,
    Judge,
    closeness,
    generator_step,
    judge_round,
    rank_loss,
    rank_worth,
)
from make_reward_noise import gan_step
from seqgan_setting import (
    BATCH,
    RATES,
    Model,
    Seed,
    State,
    begun,
    epoch,
    first_model,
    optimiser,
    sample,
    text_nats,
)
from tables import versions, write
from texygen_discriminator import (
    NUM_BATCHES,
    NUM_FIRST_BATCHES,
    STOPS,
    first_discriminator,
    train_against,
)

NUM_TRAINING, NUM_TEST = 781 * BATCH, 390 * BATCH
SEED, EPOCHS = 0, 16
COLUMNS = "model,step,oracle_nll,nll,entropy,bhattacharyya,low,high"
GAMMA = 1 / NUM_REFERENCES  # of a mean
RANKER = Judge(
    partial(rank_loss, gamma=GAMMA),
    partial(rank_worth, gamma=GAMMA),
    closeness,
    BATCH,
    1,
)


class AtSize(Seed):
    """The texts of the paper's size, and its metrics in nats a text."""

    def measure(self, model: Model) -> list[float]:
        """Of the oracle's texts and as many of the model."""
        own = sample(model, self.keys[1], len(self.test))
        pairs = (self.oracle, self.test), (model, self.test), (self.oracle, own)
        under = [np.asarray(text_nats(*x), float) for x in (*pairs, (model, own))]
        found = estimate_bhattacharyya(*(-x for x in under))
        _, nll, oracle_nll, entropy = (float(x.mean()) for x in under)
        return [oracle_nll, nll, entropy, found.value, found.low, found.high]


def maximum_likelihood(one: Seed) -> tuple[Model, list[list]]:
    """The model after all epochs, and a row of each."""

    def advance(state, step):
        return epoch(state, one.training, jax.random.fold_in(one.keys[3], step))

    model = first_model(one.keys[2], one.oracle.vocab_size)
    state = model, optimiser("adam").init(model)
    state, rows = one.run("MLE", "adam", state, [*range(1, EPOCHS + 1)], advance)
    return state[0], rows


def rankgan(
    one: Seed, model: Model, ranker: Judge = RANKER, stops: Sequence[int] = STOPS
) -> list[list]:
    """RankGAN with a small ranker, as `train_against` has the others."""

    def taught(d: State, generator: Model, key: jax.Array, num_batches: int) -> State:
        keys, half = jax.random.split(key), -(-num_batches // 2)
        shape = (half * BATCH,)
        rows = jax.random.randint(keys[0], shape, 0, len(one.training))
        return judge_round(ranker, 1, d, generator, one.training[rows], keys[1])

    def advance(state, number):
        *own, d, d_moments = state
        keys = jax.random.split(jax.random.fold_in(one.keys[5], number + 1), 3)
        if number == 0:
            first = NUM_FIRST_BATCHES
            d, d_moments = taught((d, d_moments), own[0], keys[2], first)
        own = generator_step(ranker, *own, d, one.training, keys[0])
        return *own, *taught((d, d_moments), own[0], keys[1], NUM_BATCHES)

    judge = first_discriminator(one.keys[5], one.oracle.vocab_size)
    state = model, optimiser("adam").init(model), model, *judge
    return one.run("RankGAN", "adam", state, [*stops], advance)[1]


def main() -> None:
    """Train all, then write the table."""
    oracle, folder = begun(__doc__)
    one = AtSize(oracle, SEED, folder, NUM_TRAINING, NUM_TEST)
    model, table = maximum_likelihood(one)
    state = model, optimiser("adam").init(model)
    step = partial(gan_step, NUM_COMPLETIONS)
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_published_size.py FOLDER",
        f"{versions('jax', 'optax', 'numpy')}; {NUM_TRAINING} training texts, "
        f"{NUM_TEST} test texts; Adam {RATES['adam']}; seed {SEED}; entropy of the "
        f"oracle {float(text_nats(oracle, one.test).mean()):.4f} nats a text, of the "
        "test texts",
    )
    for rows in (
        lambda: train_against(one, "MaliGAN", state, partial(maligan_step, "MaliGAN")),
        lambda: train_against(one, "SeqGAN", (*state, model), step),
        lambda: rankgan(one, model),
    ):
        table += rows()
        shown = [[row[0], *row[3:]] for row in table]
        write("published_size.csv", comments, COLUMNS.split(","), shown)


if __name__ == "__main__":
    main()
