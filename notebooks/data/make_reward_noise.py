"""Train on rewards that say nothing, with SeqGAN's oracle; write reward_noise.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_reward_noise.py CHECKPOINTS

The setting and the metrics are those of seqgan_setting.py. After maximum likelihood
(MLE) come 200 steps on a reward, from a fresh state of Adam. Runs:

    MLE             maximum likelihood; a step is an epoch
    temperature     the MLE model at a temperature of tokens of step / 100
    constant        every text is rewarded with 1
    uniform         with a uniform number in (0, 1), independent of the text
    centred         the same less 1/2
    sign            with 1 or -1, at random
    SeqGAN-k        with its own discriminator's opinion of k completions of each prefix
    oracle          the oracle itself

The discriminator is that of texygen_discriminator.py. LantaoYu/SeqGAN's own, and 16
completions take minutes a step, see make_published_gans.py. There are two seeds with 4
completions.

All runs take some 165 minutes of CPU time and less than 1 GB.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from seqgan_setting import (
    AT_ONCE,
    BATCH,
    RATES,
    Model,
    Seed,
    State,
    closed,
    descend,
    optimiser,
    read_first,
    run,
    sample,
    write_on,
    write_runs,
)
from texygen_discriminator import STEPS, discriminate, opinion, train_against

from qdtheory.lstm import lstm_step

TEMPERATURES = 80, 85, 90, 95, 105
REWARDS = {
    "constant": lambda key: jnp.ones(BATCH, jnp.float32),
    "uniform": lambda key: jax.random.uniform(key, (BATCH,), jnp.float32),
    "centred": lambda key: jax.random.uniform(key, (BATCH,), jnp.float32) - 0.5,
    "sign": lambda key: jax.random.rademacher(key, (BATCH,), jnp.float32),
}
STALE = 0.8
# Seeds by the number of completions.
GAN_SEEDS = {1: 5, 4: 2}


@partial(jax.jit, static_argnums=(0, 1))
def reward_step(reward: str, rule: str, state: State, key: jax.Array) -> State:
    """One step of REINFORCE on a reward that says nothing, as SeqGAN sums its loss."""
    keys = jax.random.split(key)
    tokens = sample(state[0], keys[0], BATCH)
    scale = jnp.broadcast_to(REWARDS[reward](keys[1])[:, None], tokens.shape)
    return descend(optimiser(rule), *state, tokens, scale)


def cooled(model: Model, temperature: float) -> Model:
    return replace(
        model,
        output_weights=model.output_weights / temperature,
        output_biases=model.output_biases / temperature,
    )


def noise(one: Seed, model: Model) -> list[list]:
    """All rewards that say nothing, by both optimisers, and temperatures."""
    table, stops = [], [25, 50, 100, 150, STEPS]
    for rule in RATES:
        for reward in REWARDS:
            # The same texts would be drawn first: runs are compared in pairs.
            def advance(state, step, reward=reward, rule=rule):
                key = jax.random.fold_in(one.keys[4], step)
                return reward_step(reward, rule, state, key)

            state = model, optimiser(rule).init(model)
            table += one.run(reward, rule, state, stops, advance)[1]
    # Nothing is trained: the state is the model at the next temperature.
    path = one.folder / f"temperature_{one.seed}.npz"
    rows = run(
        path,
        (model,),
        [*TEMPERATURES],
        lambda state, step: (cooled(model, (step + 1) / 100),),
        one.measure,
    )[1]
    return table + [["temperature", "", one.seed, *row] for row in rows]


# --- SeqGAN -------------------------------------------------------------------------


def completions(model: Model, tokens: jax.Array, key: jax.Array) -> jax.Array:
    """Texts that go on after 1, 2, .. tokens, shape (length - 1, texts, length)."""
    length = tokens.shape[1]
    inputs = model.embeddings @ model.input_weights + model.gate_biases
    zeros = jnp.zeros((len(tokens), model.recurrent_weights.shape[0]), inputs.dtype)
    read = jnp.roll(tokens.T, 1, axis=0).at[0].set(read_first(model))

    def position(state, token):
        state = lstm_step(model, state, inputs[token])
        return state, state

    states = jax.lax.scan(position, (zeros, zeros), read)[1]

    def complete(at):
        given, key, state = at
        uniform = jax.random.uniform(key, (length, len(tokens)), inputs.dtype)

        def step(s, carry):
            *carry, texts = carry
            carry, token = write_on(model, inputs, carry, uniform[s])
            return *carry, texts.at[:, s].set(token.astype(texts.dtype))

        start = state, inputs[tokens[:, given - 1]], tokens
        return closed(model, jax.lax.fori_loop(given, length, step, start)[2])

    # The state after all given tokens but the last, which is the gate input.
    before = jax.tree.map(lambda x: x[: length - 1], states)
    keys = jax.random.split(key, length - 1)
    return jax.lax.map(complete, (jnp.arange(1, length), keys, before))


def rewards(
    worth: Callable[[jax.Array], jax.Array],
    model: Model,
    tokens: jax.Array,
    key: jax.Array,
    num_completions: int,
) -> jax.Array:
    """Of each token: the mean worth of completions after it, shape (texts, length).

    Args:
        worth: of each text of a batch.
        model: that completes the texts.
        tokens: the texts.
        key: of the completions.
        num_completions: of each prefix.
    """

    def once(key):
        ends = jax.lax.map(worth, completions(model, tokens, key))
        return jnp.vstack([ends, worth(tokens)]).T

    keys = jax.random.split(key, num_completions)
    many = jax.lax.map(once, keys, batch_size=AT_ONCE)
    return many.mean(axis=0)


def followed(stale: Model, model: Model) -> Model:
    """The model of the completions, one step further.

    The repository mixes all parameters but the embeddings, which it copies.
    """
    mixed = jax.tree.map(lambda a, b: STALE * a + (1 - STALE) * b, stale, model)
    return replace(mixed, embeddings=model.embeddings)


@partial(jax.jit, static_argnums=0)
def gan_step(num_completions: int, state: State, training: jax.Array, key: jax.Array):
    """One step of the generator, then the discriminator's batches."""
    generator, moments, stale, *judge = state
    keys = jax.random.split(key, 3)
    tokens = sample(generator, keys[0], BATCH, training.shape[1])

    def real(texts):
        return jax.nn.softmax(opinion(judge[0], texts))[:, 1]

    earned = rewards(real, stale, tokens, keys[1], num_completions)
    generator, moments = descend(optimiser("adam"), generator, moments, tokens, earned)
    stale = followed(stale, generator)
    judge = discriminate((*judge,), generator, training, keys[2])
    return generator, moments, stale, *judge


def seqgan(one: Seed, model: Model, num_completions: int) -> list[list]:
    """SeqGAN from the MLE model."""
    state = model, optimiser("adam").init(model), model
    step = partial(gan_step, num_completions)
    return train_against(one, f"SeqGAN-{num_completions}", state, step)


def runs(seeds: list[Seed]) -> Iterator[list[list]]:
    """Seed by seed, then SeqGAN."""
    models = []
    for one in seeds:
        model, rows = one.mle()
        models.append(model)
        yield [["oracle", "", one.seed, 0, *one.measure(one.oracle)], *rows]
        yield noise(one, model)
    for number, num_seeds in GAN_SEEDS.items():
        for one, model in list(zip(seeds, models))[:num_seeds]:
            yield seqgan(one, model, number)


if __name__ == "__main__":
    write_runs(__doc__, "reward_noise", 5, runs)
