"""Train MaliGAN and CoT on SeqGAN's oracle; write oracle_gans.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_oracle_gans.py CHECKPOINTS

The setting, maximum likelihood and the metrics are those of seqgan_setting.py; with the
folder of make_reward_noise.py its MLE models are found there. Runs:

    MaliGAN         200 steps from the MLE model; a text's reward is its share of the
                    batch's D / (1 - D), less the mean share
    MaliGAN-D       the same with D in place of D / (1 - D), as geek-ai/Texygen has it
    CoT             no MLE: the mediator learns from as many real as generated texts and
                    the generator descends to it, a step each; sizes and rates of
                    desire2020/CoT, which goes on for 200,000 steps

The discriminator is that of texygen_discriminator.py, without dropout. The mediator's
recurrent weights begin at normal numbers like all others, not at orthogonal ones.

On two processors with other work, an epoch of MLE took 6 seconds, a step of MaliGAN 1.0
and one of CoT 0.34, so that CoT's own 200,000 steps would be some 19 hours.

SeqGAN and RankGAN with the discriminator of LantaoYu/SeqGAN, of 12 widths of filters,
are in make_published_gans.py. Not run: LeakGAN, which has the same filters.
"""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import optax
from seqgan_setting import (
    BATCH,
    LENGTH,
    NUM_TRAINING,
    Model,
    Seed,
    State,
    descend,
    first_model,
    hidden_states,
    optimiser,
    sample,
    weighted_nll,
    write_runs,
)
from texygen_discriminator import discriminate, opinion, train_against

MALIGAN_SEEDS = 2
COT_STEPS = range(250, 3001, 250)
KEPT = 0.5  # of the mediator's hidden units
GENERATOR_RULE, MEDIATOR_RULE = (optax.adam(r, 0.9, 0.95) for r in (1e-3, 3e-3))


def shares(name: str, logits: jax.Array) -> jax.Array:
    """The rewards of a batch, which sum to 0, of the discriminator's two logits."""
    real = jax.nn.log_softmax(logits)[:, 1]
    worth = logits[:, 1] - logits[:, 0] if name == "MaliGAN" else real
    share = jax.nn.softmax(worth)
    return share - share.mean()


@partial(jax.jit, static_argnums=0)
def maligan_step(name: str, state: State, training: jax.Array, key: jax.Array) -> State:
    """One step of the generator, then the discriminator's batches."""
    generator, moments, *judge = state
    keys = jax.random.split(key)
    tokens = sample(generator, keys[0], BATCH, training.shape[1])
    rewards = shares(name, opinion(judge[0], tokens))
    scale = jnp.broadcast_to(rewards[:, None], tokens.shape)
    generator, moments = descend(optimiser("adam"), generator, moments, tokens, scale)
    return generator, moments, *discriminate((*judge,), generator, training, keys[1])


def maligan(one: Seed, model: Model, name: str) -> list[list]:
    """MaliGAN from the MLE model."""
    state = model, optimiser("adam").init(model)
    return train_against(one, name, state, partial(maligan_step, name))


def divergence(generator: Model, mediator: Model, tokens: jax.Array) -> jax.Array:
    """Mean of KL(q, m) of the next word, after prefixes that are held fixed."""

    def position(at):
        logits = [
            h @ model.output_weights + model.output_biases
            for h, model in zip(at, (generator, mediator))
        ]
        log_q, log_m = map(jax.nn.log_softmax, logits)
        return (jnp.exp(log_q) * (log_q - log_m)).sum(axis=1).mean()

    states = hidden_states(generator, tokens), hidden_states(mediator, tokens)
    return jax.lax.map(position, states).mean()


def mediator_loss(mediator: Model, tokens: jax.Array, key: jax.Array) -> jax.Array:
    """Mean of -log m per token, with half of the hidden units left out."""
    h = hidden_states(mediator, tokens)
    h = h * jax.random.bernoulli(key, KEPT, h.shape) / KEPT
    scale = jnp.full(tokens.T.shape, 1 / tokens.size, h.dtype)
    weights, biases = mediator.output_weights, mediator.output_biases
    return weighted_nll(h, weights, biases, tokens.T, scale)


@jax.jit
def cot_step(state: State, real: jax.Array, key: jax.Array) -> State:
    """One step of the generator, then one of the mediator."""
    generator, moments, mediator, m_moments = state
    keys = jax.random.split(key, 3)
    tokens = sample(generator, keys[0], BATCH)
    slope = jax.grad(divergence)(generator, mediator, tokens)
    step, moments = GENERATOR_RULE.update(slope, moments)
    generator = jax.tree.map(jnp.add, generator, step)
    both = jnp.concatenate([real, sample(generator, keys[1], BATCH)])
    slope = jax.grad(mediator_loss)(mediator, both, keys[2])
    step, m_moments = MEDIATOR_RULE.update(slope, m_moments)
    return generator, moments, jax.tree.map(jnp.add, mediator, step), m_moments


def cot(one: Seed) -> list[list]:
    """Rows of a run from nothing."""
    keys = jax.random.split(jax.random.fold_in(one.keys[5], 0))
    generator = first_model(one.keys[2], one.oracle.vocab_size)
    mediator = first_model(keys[0], one.oracle.vocab_size, 64)
    batches = one.training.reshape(-1, BATCH, LENGTH)

    def advance(state, step):
        real = batches[step % (NUM_TRAINING // BATCH)]
        return cot_step(state, real, jax.random.fold_in(keys[1], step))

    moments = GENERATOR_RULE.init(generator), MEDIATOR_RULE.init(mediator)
    state = generator, moments[0], mediator, moments[1]
    return one.run("CoT", "adam", state, [*COT_STEPS], advance)[1]


def runs(seeds: list[Seed]) -> Iterator[list[list]]:
    """MaliGAN seed by seed, then CoT."""
    for one in seeds:
        model, rows = one.mle()
        yield [["oracle", "", one.seed, 0, *one.measure(one.oracle)], *rows]
        for name in ("MaliGAN", "MaliGAN-D"):
            yield maligan(one, model, name)
    yield cot(seeds[0])


if __name__ == "__main__":
    write_runs(__doc__, "oracle_gans", MALIGAN_SEEDS, runs)
