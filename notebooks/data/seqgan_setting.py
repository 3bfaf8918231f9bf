"""SeqGAN's setting: its oracle of 5,000 words, its model, maximum likelihood, runs.

The oracle is 15 arrays of LantaoYu/SeqGAN, in FOLDER/seqgan_oracle.npz with FOLDER the
environment variable QDTHEORY_DATA. Sizes are that repository's: texts of 20 words,
embedding and hidden size 32, 9,984 training texts, batches of 64, Adam .01, gradients
clipped at norm 5, 120 epochs of maximum likelihood. Each seed draws its own training
texts, its own test texts and its own model.

Metrics are nats per token, over 4,992 texts: of the model under the oracle, of the
oracle under the model, of the model under itself.

A run that was killed goes on where its file in a folder of checkpoints stands, and ends
as if it had not been. Arithmetic is in float32: in float64 the metrics of a model
differ by less than 1e-5.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tables import corpora, versions, write

import qdtheory as qd
from qdtheory.lstm import lstm_step

LENGTH, BATCH = 20, 64
NUM_TRAINING, NUM_TEST = 156 * BATCH, 78 * BATCH
EPOCHS = 120
CLIP = 5.0
RATES = {"adam": 0.01, "sgd": 0.1}
# Batches that a graphics card goes through together; a processor takes them in turn.
AT_ONCE = None if jax.default_backend() == "cpu" else NUM_TRAINING // BATCH
COLUMNS = "run,optimiser,seed,step,oracle_nll,nll_test,entropy"

Model = qd.LSTMLanguageModel
State = Any


# --- The model ----------------------------------------------------------------------


def read_first(model: Model) -> int:
    """The token that the model reads before a text."""
    return 0 if model.end_token is None else model.end_token


def in_text(model: Model, tokens: jax.Array) -> jax.Array:
    """Which tokens count: all, or those up to the first end token, with it."""
    if model.end_token is None:
        return jnp.ones(tokens.shape, bool)
    ends = tokens == model.end_token
    return jnp.cumsum(ends, axis=-1) == ends


def closed(model: Model, tokens: jax.Array) -> jax.Array:
    """The texts with nothing but end tokens after the first."""
    if model.end_token is None:
        return tokens
    return jnp.where(in_text(model, tokens), tokens, model.end_token)


def hidden_states(model: Model, tokens: jax.Array) -> jax.Array:
    """Teacher-forced, one before each token, shape (length, texts, hidden)."""
    read = jnp.roll(tokens.T, 1, axis=0).at[0].set(read_first(model))
    gates = model.embeddings[read] @ model.input_weights + model.gate_biases
    zeros = jnp.zeros((tokens.shape[0], model.recurrent_weights.shape[0]), gates.dtype)

    def position(state, gate_input):
        state = lstm_step(model, state, gate_input)
        return state, state[0]

    return jax.lax.scan(position, (zeros, zeros), gates)[1]


@jax.custom_vjp
def weighted_nll(h, weights, biases, tokens, scale):
    """Sum of -scale log q over tokens, of hidden states and output parameters."""
    return _nll_and_slopes(h, weights, biases, tokens, scale)[0]


def _nll_and_slopes(h, weights, biases, tokens, scale):
    # Logits are made once for the loss and its slopes, and for one position at a time.
    # The largest logit is not subtracted, which would double the time: |h| < 1 keeps
    # them far from 88, where float32 overflows, and `checked` would notice.
    rows = weights.T

    def position(sums, at):
        h, token, scale = at
        odds = jnp.exp(h @ weights + biases)
        total = odds.sum(axis=1)
        chosen = (h * rows[token]).sum(axis=1) + biases[token]
        share = scale / total
        slope_h = (odds @ rows) * share[:, None] - scale[:, None] * rows[token]
        slopes = (h * share[:, None]).T @ odds, share @ odds
        loss = (scale * (jnp.log(total) - chosen)).sum()
        return jax.tree.map(jnp.add, sums, (loss, *slopes)), slope_h

    zeros = jnp.zeros((), h.dtype), jnp.zeros_like(weights), jnp.zeros_like(biases)
    sums, slope_h = jax.lax.scan(position, zeros, (h, tokens, scale))
    loss, slope_rows, slope_biases = sums[0], sums[1].T, sums[2]
    down = -scale[..., None] * h
    slope_rows = slope_rows.at[tokens.ravel()].add(down.reshape(-1, h.shape[-1]))
    slope_biases = slope_biases.at[tokens.ravel()].add(-scale.ravel())
    return loss, (slope_h, slope_rows.T, slope_biases)


weighted_nll.defvjp(
    _nll_and_slopes,
    lambda slopes, by: (*jax.tree.map(lambda slope: by * slope, slopes), None, None),
)


def loss(model: Model, tokens: jax.Array, scale: jax.Array) -> jax.Array:
    h = hidden_states(model, tokens)
    scale = scale * in_text(model, tokens)
    return weighted_nll(h, model.output_weights, model.output_biases, tokens.T, scale.T)


def draw(logits: jax.Array, uniform: jax.Array) -> jax.Array:
    """The word at a quantile of each row, found in a block and then inside it."""
    width = 100
    odds = jnp.exp(logits).reshape(len(logits), -1, width)
    totals = jnp.cumsum(odds.sum(axis=2), axis=1)
    target = totals[:, -1] * (1 - uniform)
    block = (totals < target[:, None]).sum(axis=1)
    inside = jnp.cumsum(jnp.take_along_axis(odds, block[:, None, None], 1)[:, 0], 1)
    before = jnp.take_along_axis(totals, block[:, None], axis=1)[:, 0] - inside[:, -1]
    rest = jnp.minimum(target - before, inside[:, -1])
    return block * width + (inside < rest[:, None]).sum(axis=1)


def write_on(model: Model, inputs: jax.Array, carry: Any, uniform: jax.Array) -> Any:
    """One step of sampling: the state, the next gate input and the token."""
    state, gate_input = carry
    state = lstm_step(model, state, gate_input)
    logits = state[0] @ model.output_weights + model.output_biases
    token = draw(logits, uniform)
    return (state, inputs[token]), token


@partial(jax.jit, static_argnums=(2, 3))
def sample(
    model: Model, key: jax.Array, num_texts: int, length: int = LENGTH
) -> jax.Array:
    """Texts, in batches of 64, shape (num_texts, length)."""
    inputs = model.embeddings @ model.input_weights + model.gate_biases
    zeros = jnp.zeros((BATCH, model.recurrent_weights.shape[0]), inputs.dtype)
    first = inputs[read_first(model)]
    start = (zeros, zeros), jnp.broadcast_to(first, (BATCH, inputs.shape[1]))

    def batch(key):
        uniform = jax.random.uniform(key, (length, BATCH), inputs.dtype)
        step = partial(write_on, model, inputs)
        return jax.lax.scan(step, start, uniform)[1].T

    keys = jax.random.split(key, num_texts // BATCH)
    texts = jax.lax.map(batch, keys, batch_size=AT_ONCE)
    return closed(model, texts.reshape(num_texts, length))


@jax.jit
def token_nats(model: Model, tokens: jax.Array) -> jax.Array:
    """-log q of each token, 0 of those that do not count, shape (texts, length)."""

    def batch(tokens):
        h = hidden_states(model, tokens)

        def position(at):
            h, token = at
            logits = h @ model.output_weights + model.output_biases
            chosen = jnp.take_along_axis(logits, token[:, None], axis=1)[:, 0]
            return jnp.log(jnp.exp(logits).sum(axis=1)) - chosen

        return jax.lax.map(position, (h, tokens.T)).T

    batches = tokens.reshape(-1, BATCH, tokens.shape[1])
    found = jax.lax.map(batch, batches, batch_size=AT_ONCE).reshape(tokens.shape)
    return jnp.where(in_text(model, tokens), found, 0)


def text_nats(model: Model, tokens: jax.Array) -> jax.Array:
    """-log q of each text."""
    return token_nats(model, tokens).sum(axis=1)


def nats(model: Model, tokens: jax.Array) -> jax.Array:
    """Mean of -log q per token."""
    return token_nats(model, tokens).mean()


def first_model(key: jax.Array, vocab_size: int, size: int = 32) -> Model:
    model = Model.random(key, vocab_size, size, size, sigma=0.1)
    return jax.tree.map(lambda a: a.astype(jnp.float32), model)


def optimiser(name: str) -> optax.GradientTransformation:
    step = {"adam": optax.adam, "sgd": optax.sgd}[name](RATES[name])
    return optax.chain(optax.clip_by_global_norm(CLIP), step)


def descend(rule, model, moments, tokens, scale):
    """One step of an optimiser on a weighted batch."""
    slope = jax.grad(loss)(model, tokens, scale)
    step, moments = rule.update(slope, moments)
    return jax.tree.map(jnp.add, model, step), moments


# --- Runs ---------------------------------------------------------------------------


@jax.jit
def epoch(state: State, training: jax.Array, key: jax.Array) -> State:
    """All batches of maximum likelihood, shuffled."""
    order = jax.random.permutation(key, len(training)).reshape(-1, BATCH)
    shape = BATCH, training.shape[1]
    scale = jnp.full(shape, 1 / (shape[0] * shape[1]), jnp.float32)
    rule = optimiser("adam")

    def one(state, rows):
        return descend(rule, *state, training[rows], scale), None

    return jax.lax.scan(one, state, order)[0]


def run(
    path: Path,
    state: State,
    stops: list[int],
    advance: Callable[[State, int], State],
    measure: Callable[[Model], list[float]],
) -> tuple[State, list[list]]:
    """Go to each stop and measure there; a checkpoint file holds state and rows."""
    leaves, structure = jax.tree.flatten(state)
    rows: list[list] = []
    if path.exists():
        with np.load(path) as file:
            rows = json.loads(str(file["rows"]))
            leaves = [jnp.asarray(file[f"arr_{i}"]) for i in range(len(leaves))]
        state = jax.tree.unflatten(structure, leaves)
    done, start = (rows[-1][0] if rows else 0), time.perf_counter()
    for stop in stops:
        if rows and stop <= done:
            continue
        for step in range(done, stop):
            state = advance(state, step)
        done = stop
        rows.append([stop, *measure(state[0])])
        save(path, state, rows)
        words = ", ".join(f"{x:.4f}" for x in rows[-1][1:])
        seconds = time.perf_counter() - start
        print(f"{path.stem}, step {stop}: {words}; {seconds:.0f} s", file=sys.stderr)
    return state, rows


def save(path: Path, state: State, rows: list[list]) -> None:
    """Replace the file in one go: a killed process leaves the old one."""
    if not np.isfinite(rows[-1]).all():
        raise FloatingPointError(f"{path.stem} gave {rows[-1]}")
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        np.savez(file, *jax.tree.leaves(state), rows=json.dumps(rows))
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


class Seed:
    """What the runs of one seed share."""

    def __init__(
        self,
        oracle: Model,
        seed: int,
        folder: Path,
        num_training: int = NUM_TRAINING,
        num_test: int = NUM_TEST,
    ):
        self.oracle, self.seed, self.folder = oracle, seed, folder
        self.keys = jax.random.split(jax.random.key(seed), 6)
        texts = sample(oracle, self.keys[0], num_training + num_test)
        self.training, self.test = texts[:num_training], texts[num_training:]

    def measure(self, model: Model) -> list[float]:
        own = sample(model, self.keys[1], NUM_TEST)
        found = nats(self.oracle, own), nats(model, self.test), nats(model, own)
        return [float(x) for x in found]

    def run(self, name, rule, state: State, stops: list[int], advance, measure=None):
        path = self.folder / f"{name}_{rule}_{self.seed}.npz"
        state, rows = run(path, state, stops, advance, measure or self.measure)
        return state, [[name, rule, self.seed, *row] for row in rows]

    def mle(self) -> tuple[Model, list[list]]:
        model = first_model(self.keys[2], self.oracle.vocab_size)
        state = model, optimiser("adam").init(model)

        def advance(state, step):
            return epoch(state, self.training, jax.random.fold_in(self.keys[3], step))

        stops = [1, 5, *range(10, EPOCHS + 1, 10)]
        state, rows = self.run("MLE", "adam", state, stops, advance)
        return state[0], rows


def begun(doc: str) -> tuple[Model, Path]:
    """The oracle, and the folder of checkpoints that the command line names."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("checkpoints", type=Path, help="a folder")
    folder = parser.parse_args().checkpoints
    folder.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_default_matmul_precision", "highest")
    with np.load(corpora() / "seqgan_oracle.npz") as file:
        oracle = Model.from_arrays([file[name] for name in file.files])
    return jax.tree.map(lambda a: a.astype(jnp.float32), oracle), folder


def write_runs(
    doc: str,
    name: str,
    num_seeds: int,
    runs: Callable[[list[Seed]], Iterator[list[list]]],
    columns: str = COLUMNS,
    more: tuple[str, ...] = (),
) -> None:
    """Read the command line, go through all runs and write the table after each.

    Args:
        doc: the script's docstring.
        name: of the script, make_NAME.py, and of the table, NAME.csv.
        num_seeds: number of seeds.
        runs: hands out the rows of one run after another.
        columns: of the table.
        more: lines of provenance.
    """
    oracle, folder = begun(doc)
    comments = (
        f"QDTHEORY_DATA=FOLDER python notebooks/data/make_{name}.py FOLDER",
        f"{versions('jax', 'optax', 'numpy')}; {NUM_TRAINING} training texts, "
        f"{NUM_TEST} test texts; Adam {RATES['adam']}, SGD {RATES['sgd']}",
        *more,
    )
    table: list[list] = []
    for rows in runs([Seed(oracle, seed, folder) for seed in range(num_seeds)]):
        table += rows
        write(f"{name}.csv", comments, columns.split(","), table)
