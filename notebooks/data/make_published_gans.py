"""SeqGAN and RankGAN with their own discriminators; write published_gans.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_published_gans.py CHECKPOINTS

The setting, maximum likelihood and the metrics are those of seqgan_setting.py. The
discriminator is that of LantaoYu/SeqGAN, with filters of 12 widths, a highway layer and
dropout; the ranker of RankGAN has the same, without the last layer, as in
cookielee77/RankGan-NIPS2017, by two of the paper's authors. Both complete each prefix
16 times. Runs, each from the model of 120 epochs of maximum likelihood:

    D, ranker       before the generator moves: a step is a round of 3 epochs on as many
                    new texts of the model as there are training texts, 50 rounds
    SeqGAN          200 steps of the generator, 64 texts each, and after each 5 rounds
                    of 3 epochs of the discriminator
    RankGAN         the same with 32 texts, and the ranker: 5 rounds of 1 epoch
    temperature     the model of MLE at a temperature of tokens of step / 100
    SeqGAN-best     as SeqGAN, from the model of 5 epochs of maximum likelihood, which
                    is the best for the likelihood of real text: 10 rounds of the
                    discriminator (D-best), then 135 steps

The ranker of the repository compares a text with 16 training texts, drawn anew for each
batch: the sum of its 16 cosines is its score (gamma = 1), and its rank a softmax over
the batch, of the ranker's 64 texts, real and generated, when it learns, and of the 32
completions of the batch for the reward. The paper takes the mean over references and
human texts to compare with.

The columns judge_* are means over 4,992 texts each, of the model, of the training texts
and of test texts, which the judge has not seen: of the discriminator's opinion, a
probability, or of the cosine with 16 training texts; spread is the deviation of the
rewards of whole texts of a batch over their mean, 0 for a constant. Not as in the
repositories: the ranker begins as the discriminator does, and biases of the highway
layer at 0.

On an H200 a batch of the judges takes .43 milliseconds, a step of SeqGAN 2.1 seconds,
and all runs 15 minutes; on two cores .06 seconds, 5 minutes and two days. The table's
runs began from a checkpoint of MLE that two cores had made, with jax 0.10.2; 63 of the
9,984 training texts differ between the two, by rounding.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from make_reward_noise import cooled, followed, rewards
from seqgan_setting import (
    AT_ONCE,
    BATCH,
    COLUMNS,
    EPOCHS,
    NUM_TEST,
    NUM_TRAINING,
    Model,
    Seed,
    State,
    descend,
    epoch,
    first_model,
    optimiser,
    sample,
    write_runs,
)
from texygen_discriminator import (
    RULE,
    STEPS,
    first_discriminator,
    highway,
    penalty,
    widths,
)

FILTERS = dict.fromkeys([1, 6, 7, 8, 9, 10], 100) | {15: 160, 20: 160}
FILTERS = dict(sorted((FILTERS | dict.fromkeys([2, 3, 4, 5], 200)).items()))
WIDTH = 64
KEPT = 0.75
NUM_COMPLETIONS = 16
NUM_REFERENCES = 16
FIRST_ROUNDS, ROUNDS = 50, 5
BEST, BEST_ROUNDS, BEST_STEPS = 5, 10, 135
TEMPERATURES = 50, 60, 70, 80, 90
Parameters = dict[str, jax.Array]


# --- The filters --------------------------------------------------------------------


def greatest(d: Parameters, read: jax.Array) -> jax.Array:
    """The greatest answer of each filter, of embeddings (texts, length, width).

    Zeros fill all filters up to the longest, so that one product answers: it does six
    times the work in a fraction of a graphics card's steps.
    """
    num_texts, length, width = read.shape
    longest = max(widths(d))
    ahead = jnp.pad(read, ((0, 0), (0, longest - 1), (0, 0)))
    windows = jnp.stack([ahead[:, i : i + longest] for i in range(length)], axis=1)
    filters = [
        jnp.pad(d[f"w{n}"], ((0, (longest - n) * width), (0, 0))) for n in widths(d)
    ]
    found = windows.reshape(num_texts, length, -1) @ jnp.concatenate(filters, axis=1)
    reach = np.repeat(widths(d), [d[f"b{n}"].size for n in widths(d)])
    inside = np.arange(length)[:, None] + reach <= length
    return jnp.where(inside, found, -jnp.inf).max(axis=1)


def features(d: Parameters, tokens: jax.Array, key: jax.Array | None) -> jax.Array:
    """Of each text, with a key for dropout or without."""
    read = d["embeddings"][tokens]
    biases = jnp.concatenate([d[f"b{n}"] for n in widths(d)])
    # A graphics card multiplies in TF32 here, as it does unless told otherwise.
    with jax.default_matmul_precision("default"):
        y = highway(d, jax.nn.relu(greatest(d, read) + biases))
    return y if key is None else y * jax.random.bernoulli(key, KEPT, y.shape) / KEPT


# --- Judges -------------------------------------------------------------------------


def logits(d: Parameters, tokens: jax.Array, key: jax.Array | None) -> jax.Array:
    return features(d, tokens, key) @ d["out"] + d["out_bias"]


def d_loss(d: Parameters, tokens, real, references, key) -> jax.Array:
    """Of a batch, `real` 1 for real texts and 0 for generated ones."""
    chosen = jax.nn.log_softmax(logits(d, tokens, key))
    return penalty(d) - jnp.take_along_axis(chosen, real[:, None], axis=1).mean()


def d_worth(d: Parameters, tokens: jax.Array, references: jax.Array) -> jax.Array:
    """The opinion that each text is real."""
    return jax.nn.softmax(logits(d, tokens, None))[:, 1]


def cosines(found: jax.Array, references: jax.Array) -> jax.Array:
    """The sum of each text's cosines with the references, of features."""
    found, references = (
        y * jax.lax.rsqrt(jnp.maximum((y**2).sum(axis=1, keepdims=True), 1e-12))
        for y in (found, references)
    )
    return (found @ references.T).sum(axis=1)


def rank_loss(
    d: Parameters, tokens, real, references, key, gamma: float = 1.0
) -> jax.Array:
    """The mean log rank of generated texts less that of real ones."""
    found = features(d, jnp.concatenate([tokens, references]), key)
    close = cosines(found[: len(tokens)], found[len(tokens) :])
    ranks = jax.nn.log_softmax(gamma * close)
    share = real / real.sum() - (1 - real) / (1 - real).sum()
    return -(ranks * share).sum()


def closeness(d: Parameters, tokens: jax.Array, references: jax.Array) -> jax.Array:
    """The sum of each text's cosines with the references."""
    found = features(d, jnp.concatenate([tokens, references]), None)
    return cosines(found[: len(tokens)], found[len(tokens) :])


def rank_worth(
    d: Parameters, tokens: jax.Array, references: jax.Array, gamma: float = 1.0
) -> jax.Array:
    """The rank of each text among those of the batch."""
    return jax.nn.softmax(gamma * closeness(d, tokens, references))


class Judge(NamedTuple):
    """A discriminator or a ranker: functions of parameters, texts and references."""

    loss: Callable[..., jax.Array]
    worth: Callable[..., jax.Array]
    measure: Callable[..., jax.Array]
    num_texts: int  # of a step of the generator
    epochs: int  # of a round
    completions: int = NUM_COMPLETIONS  # of each prefix


D = Judge(d_loss, d_worth, d_worth, BATCH, 3)
RANKER = Judge(rank_loss, rank_worth, closeness, 32, 1)


@partial(jax.jit, static_argnums=(0, 1))
def judge_round(
    judge: Judge,
    epochs: int,
    state: State,
    generator: Model,
    training: jax.Array,
    key: jax.Array,
) -> State:
    """Epochs on the training texts and as many new ones of the generator, shuffled."""
    keys = jax.random.split(key, 3)
    false = sample(generator, keys[0], *training.shape)
    texts = jnp.concatenate([false, training])
    real = (jnp.arange(len(texts)) >= len(training)).astype(jnp.int32)
    order = jax.random.permutation(keys[1], len(texts)).reshape(-1, BATCH)

    def one(carry, at):
        rows, key = at
        d, moments = carry
        keys = jax.random.split(key)
        chosen = jax.random.randint(keys[0], (NUM_REFERENCES,), 0, len(training))
        batch = texts[rows], real[rows], training[chosen], keys[1]
        step, moments = RULE.update(jax.grad(judge.loss)(d, *batch), moments)
        return (jax.tree.map(jnp.add, d, step), moments), None

    order = jnp.tile(order, (epochs, 1))
    return jax.lax.scan(one, state, (order, jax.random.split(keys[2], len(order))))[0]


@partial(jax.jit, static_argnums=0)
def generator_step(
    judge: Judge,
    generator: Model,
    moments: State,
    stale: Model,
    d: Parameters,
    training: jax.Array,
    key: jax.Array,
):
    """One step on the judge's rewards; the model of the completions follows it."""
    keys = jax.random.split(key, 3)
    tokens = sample(generator, keys[0], BATCH, training.shape[1])[: judge.num_texts]
    chosen = jax.random.randint(keys[1], (NUM_REFERENCES,), 0, len(training))
    references = training[chosen]

    def worth(texts):
        return judge.worth(d, texts, references)

    earned = rewards(worth, stale, tokens, keys[2], judge.completions)
    rule = optimiser("adam")
    generator, moments = descend(rule, generator, moments, tokens, earned)
    return generator, moments, followed(stale, generator)


# --- Runs ---------------------------------------------------------------------------


@partial(jax.jit, static_argnums=0)
def views(judge: Judge, d: Parameters, texts: jax.Array, references: jax.Array):
    """The judge's mean view of texts; a cosine is a mean over references."""

    def batch(tokens):
        return judge.measure(d, tokens, references)

    batches = texts.reshape(-1, BATCH, texts.shape[1])
    found = jax.lax.map(batch, batches, batch_size=AT_ONCE).mean()
    return found if judge is D else found / NUM_REFERENCES


@partial(jax.jit, static_argnums=0)
def spread(judge: Judge, d: Parameters, texts: jax.Array, references: jax.Array):
    """Of the rewards in a batch, their deviation over their mean."""

    def batch(tokens):
        worth = judge.worth(d, tokens, references)
        return worth.std() / worth.mean()

    batches = texts.reshape(-1, judge.num_texts, texts.shape[1])
    return jax.lax.map(batch, batches, batch_size=AT_ONCE).mean()


def measure(one: Seed, judge: Judge, pair: tuple[Model, Parameters]) -> list[float]:
    """The generator's metrics, the judge's views of three sets, and its spread."""
    generator, d = pair
    own = sample(generator, one.keys[1], NUM_TEST)
    sets = own, one.training[:NUM_TEST], one.test
    references = one.training[-NUM_REFERENCES:]
    seen = [float(views(judge, d, texts, references)) for texts in sets]
    seen.append(float(spread(judge, d, own, references)))
    return [*one.measure(generator), *seen]


def in_turn(one: Seed, judge: Judge, name, state, stops, advance):
    """New rows at each stop, so that the table can be written there; last the state."""
    seen = 0
    for i in range(len(stops)):
        state, rows = one.run(
            *(name, "adam", state, stops[: i + 1], advance),
            partial(measure, one, judge),
        )
        yield rows[seen:]
        seen = len(rows)
    return state


def learn(one: Seed, judge: Judge, name: str, model: Model, num_rounds: int):
    """The judge's rounds before the generator moves: rows, and last both."""
    d, moments = first_discriminator(
        jax.random.fold_in(one.keys[5], 1), one.oracle.vocab_size, FILTERS, WIDTH
    )
    keys = jax.random.fold_in(one.keys[5], 2)

    def advance(state, number):
        (generator, d), moments = state
        key = jax.random.fold_in(keys, number)
        state = judge_round(judge, 3, (d, moments), generator, one.training, key)
        return (generator, state[0]), state[1]

    stops = [1, *range(5, num_rounds + 1, 5)]
    state = (model, d), moments
    return (yield from in_turn(one, judge, name, state, stops, advance))


def play(
    one: Seed, judge: Judge, name: str, learnt: State, num_steps: int = STEPS
) -> Iterator[list[list]]:
    """Steps of the generator, each followed by rounds of the judge."""
    (model, d), d_moments = learnt
    keys = jax.random.fold_in(one.keys[5], 3)

    def advance(state, number):
        (generator, d), moments, stale, d_moments = state
        key, *more = jax.random.split(jax.random.fold_in(keys, number), 1 + ROUNDS)
        own = generator, moments, stale
        own = generator_step(judge, *own, d, one.training, key)
        judged = d, d_moments
        for key in more:
            judged = judge_round(judge, judge.epochs, judged, own[0], one.training, key)
        return (own[0], judged[0]), *own[1:], judged[1]

    state = (model, d), optimiser("adam").init(model), model, d_moments
    stops = [*range(5, num_steps + 1, 5)]
    yield from in_turn(one, judge, name, state, stops, advance)


def best(one: Seed) -> Model:
    """The model of MLE after the epoch that is the best for real text, as in `mle`."""
    model = first_model(one.keys[2], one.oracle.vocab_size)
    state = model, optimiser("adam").init(model)
    for step in range(BEST):
        state = epoch(state, one.training, jax.random.fold_in(one.keys[3], step))
    return state[0]


def runs(seeds: list[Seed]) -> Iterator[list[list]]:
    """Maximum likelihood, both judges and their generators, and variants."""
    (one,) = seeds
    model, rows = one.mle()
    before = [["oracle", "", one.seed, 0, *one.measure(one.oracle)], *rows]
    for t in TEMPERATURES:
        metrics = one.measure(cooled(model, t / 100))
        before.append(["temperature", "", one.seed, t, *metrics])
    yield [[*row, *[None] * 4] for row in before]
    learnt = yield from learn(one, D, "D", model, FIRST_ROUNDS)
    yield from play(one, D, "SeqGAN", learnt)
    ranker = yield from learn(one, RANKER, "ranker", model, FIRST_ROUNDS)
    yield from play(one, RANKER, "RankGAN", ranker)
    early = yield from learn(one, D, "D-best", best(one), BEST_ROUNDS)
    yield from play(one, D, "SeqGAN-best", early, BEST_STEPS)


if __name__ == "__main__":
    write_runs(
        __doc__,
        "published_gans",
        1,
        runs,
        f"{COLUMNS},judge_model,judge_training,judge_test,spread",
        (
            f"as published: {EPOCHS} epochs of MLE, judges {FIRST_ROUNDS} rounds of 3 "
            f"epochs, {STEPS} steps, {NUM_COMPLETIONS} completions, after a step "
            f"{ROUNDS} rounds of {D.epochs} epochs (ranker: {RANKER.epochs}), "
            f"{ROUNDS * D.epochs * 2 * NUM_TRAINING // BATCH} batches (ranker: "
            f"{ROUNDS * RANKER.epochs * 2 * NUM_TRAINING // BATCH})",
            f"SeqGAN-best: from epoch {BEST} of MLE, D {BEST_ROUNDS} rounds, "
            f"{BEST_STEPS} steps; one seed; on {jax.devices()[0].device_kind}",
        ),
    )
