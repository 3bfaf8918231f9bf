"""The small discriminator of geek-ai/Texygen, of filters of width 2 and 3.

It is trained on 624 batches at first and, as there, on 45 for each step of the
generator. LantaoYu/SeqGAN has filters of 12 widths and some 4,700 batches a step, see
make_published_gans.py.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import optax
from seqgan_setting import BATCH, Model, Seed, State, sample

FILTERS = {2: 100, 3: 200}
PENALTY = 0.2
NUM_FIRST_BATCHES, NUM_BATCHES = 624, 45
RULE = optax.adam(1e-4)
STEPS = 200
STOPS = range(25, STEPS + 1, 25)


def first_discriminator(
    key: jax.Array,
    vocab_size: int,
    filters: dict[int, int] = FILTERS,
    width: int = 32,
) -> State:
    """Parameters as Texygen and SeqGAN draw them, and the state of Adam.

    Args:
        key: of the draw.
        vocab_size: number of words.
        filters: how many of each width.
        width: of the embeddings.
    """
    words, *of_filters, lin, gate, out = jax.random.split(key, 4 + len(filters))
    total = sum(filters.values())

    def normal(key, *shape):
        return 0.1 * jax.random.truncated_normal(key, -2, 2, shape, jnp.float32)

    fans = {"lin": lin, "gate": gate}
    uniform = partial(jax.random.uniform, dtype=jnp.float32)
    d = (
        {"embeddings": uniform(words, (vocab_size, width), minval=-1, maxval=1)}
        | {
            f"w{n}": normal(key, n * width, filters[n])
            for n, key in zip(filters, of_filters)
        }
        | {f"b{n}": jnp.full(filters[n], 0.1, jnp.float32) for n in filters}
        | {
            name: uniform(key, (total, total), minval=-1, maxval=1) * (3 / total) ** 0.5
            for name, key in fans.items()
        }
        | {f"{name}_bias": jnp.zeros(total, jnp.float32) for name in fans}
        | {"out": normal(out, total, 2), "out_bias": jnp.full(2, 0.1, jnp.float32)}
    )
    return d, RULE.init(d)


def pooled(d: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
    """The greatest answer of each filter anywhere in a text, 0 if there is none."""
    read, found = d["embeddings"][tokens], []
    for n in widths(d):
        windows = [read[:, i : read.shape[1] - n + 1 + i] for i in range(n)]
        answers = jnp.concatenate(windows, axis=2) @ d[f"w{n}"] + d[f"b{n}"]
        found.append(jax.nn.relu(answers).max(axis=1))
    return jnp.concatenate(found, axis=1)


def widths(d: dict[str, jax.Array]) -> list[int]:
    """Of the filters."""
    return sorted(int(name[1:]) for name in d if name[0] == "w")


def highway(d: dict[str, jax.Array], y: jax.Array) -> jax.Array:
    """The layer after the filters."""
    gate = jax.nn.sigmoid(y @ d["gate"] + d["gate_bias"])
    return gate * jax.nn.relu(y @ d["lin"] + d["lin_bias"]) + (1 - gate) * y


def opinion(d: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
    """Two logits of each text, generated and real: filters, highway, linear layer."""
    return highway(d, pooled(d, tokens)) @ d["out"] + d["out_bias"]


def penalty(d: dict[str, jax.Array]) -> jax.Array:
    """What the loss adds for the size of the last layer."""
    size = (d["out"] ** 2).sum() + (d["out_bias"] ** 2).sum()
    return PENALTY * size / 2


@partial(jax.jit, static_argnums=4)
def discriminate(
    state: State,
    generator: Model,
    training: jax.Array,
    key: jax.Array,
    num_batches: int = NUM_BATCHES,
) -> State:
    """Train on batches of half real, half generated texts."""
    keys = jax.random.split(key)
    half = BATCH // 2
    length = training.shape[1]
    false = sample(generator, keys[0], -(-num_batches // 2) * BATCH, length)
    false = false[: num_batches * half].reshape(num_batches, half, length)
    rows = jax.random.randint(keys[1], (num_batches, half), 0, len(training))
    true = training[rows]
    labels = jnp.repeat(jnp.arange(2), half)

    def d_loss(d, tokens):
        chosen = jax.nn.log_softmax(opinion(d, tokens))[jnp.arange(BATCH), labels]
        return penalty(d) - chosen.mean()

    def one(carry, tokens):
        d, d_moments = carry
        step, d_moments = RULE.update(jax.grad(d_loss)(d, tokens), d_moments)
        return (jax.tree.map(jnp.add, d, step), d_moments), None

    return jax.lax.scan(one, state, jnp.concatenate([false, true], axis=1))[0]


def train_against(
    one: Seed,
    name: str,
    state: State,
    step: Callable[..., State],
    stops: Sequence[int] = STOPS,
) -> list[list]:
    """Rows of a run; its state begins with the generator and ends with the judge.

    A step is a function of the whole state, the training texts and a key.
    """
    judge = first_discriminator(one.keys[5], one.oracle.vocab_size)

    def advance(state, number):
        key = jax.random.fold_in(one.keys[5], number + 1)
        if number == 0:
            *own, d, d_moments = state
            first = own[0], one.training, key, NUM_FIRST_BATCHES
            state = *own, *discriminate((d, d_moments), *first)
        return step(state, one.training, key)

    return one.run(name, "adam", (*state, *judge), [*stops], advance)[1]
