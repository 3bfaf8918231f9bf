r"""Train `qdtheory.LSTMLanguageModel` on a corpus, by maximum likelihood.

The result is an `LSTMLanguageModel` with an end token, which can be sampled, scored
and, over a small vocabulary, enumerated like an oracle.
"""

import hashlib
import json
import os
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Int

from qdtheory.lstm import LSTMLanguageModel, log_next_token, lstm_step
from qdtheory.support.packages import required
from qdtheory.text.checks import require_positive, require_whole
from qdtheory.text.containers import Token
from qdtheory.text.corpus import Corpus, Texts, as_corpus, prefix_sums, slices

with required("training", "train"):
    import optax

# Initial standard deviation of all parameters: gates near 1/2, nearly uniform softmax.
INITIAL_SIGMA = 0.1
# Texts of a batch are padded to a common length; XLA compiles one step per multiple of
# this.
WIDTH = 8

State: TypeAlias = tuple[LSTMLanguageModel, optax.OptState]


@dataclass(frozen=True)
class Progress:
    """Progress of a training run after some steps, each of one batch."""

    step: int
    num_steps: int
    tokens_per_second: float  # in the interval, with ends
    training_nll: float  # mean over the interval, in nats per predicted token
    validation_nll: float | None  # of the current model; None without validation texts

    def __str__(self) -> str:
        nll = self.validation_nll
        held_out = "" if nll is None else f", validation {nll:.4f}"
        return (
            f"step {self.step:,} of {self.num_steps:,}, "
            f"{self.tokens_per_second:,.0f} tokens/s, "
            f"NLL {self.training_nll:.4f}{held_out} nats a token"
        )


def train(
    corpus: Texts,
    validation: Texts | None = None,
    *,
    epochs: int = 30,
    embedding_size: int = 128,
    hidden_size: int = 128,
    learning_rate: float = 0.001,
    batch_size: int = 64,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 200,
    report: Callable[[Progress], None] | None = None,
) -> LSTMLanguageModel:
    r"""Fit an LSTM to the sentences of a corpus by Adam on $-\log Q(x)$.

    The loss of a batch is its total $-\log Q(x)$ divided by the predicted tokens of an
    average batch, so that all sentences have equal weight; divided by its own, short
    ones would weigh more. The end of a sentence is predicted too, except at the
    greatest length. Batches contain sentences of similar length, reshuffled each epoch;
    a random remainder that does not fill a batch is dropped each epoch. Arithmetic is
    in float64, so that results agree across machines to many digits, unlike in float32.

    With a checkpoint file, an interrupted training run resumes from it and ends at the
    same parameters, bit for bit, as an uninterrupted run on the same machine. (On a
    GPU only with `XLA_FLAGS=--xla_gpu_deterministic_ops=true`.) A finished run can be
    continued with more epochs. The file is replaced atomically.

    Args:
        corpus: the training sentences; the model's words are the entries of its
            vocabulary, and its greatest length is that of the longest sentence. Empty
            sentences are skipped.
        validation: sentences over the same vocabulary, such as another slice of the
            corpus, none longer than the longest of `corpus`.
        epochs: number of passes over the corpus, at least 1.
        embedding_size: width of the embeddings.
        hidden_size: width of h and c.
        learning_rate: learning rate of Adam, positive.
        batch_size: sentences per step; at most the size of the corpus.
        seed: seed of the initial parameters and the order of the batches.
        checkpoint: file that is read if it exists and written every `every` steps.
        every: number of steps between reports and checkpoints.
        report: called with a `Progress` each time; by default prints a line on stderr,
            if that is a terminal.

    Returns:
        The model; its end token is the number of words, `corpus.vocab_size`.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; a number is out of range, `validation` has another
            vocabulary or longer sentences, or the checkpoint is broken or belongs to
            another training run.
        FloatingPointError: the loss overflows.
        RuntimeError: JAX's 64-bit mode is off.

    References:
        Li et al. 2020, section 6.2: default sizes, optimiser, learning rate and epochs.

    Example:
        >>> model = train(["a b", "a b c", "a"] * 40, epochs=40, batch_size=24,
        ...               embedding_size=8, hidden_size=8, learning_rate=0.03)
        >>> from qdtheory import TextSpace
        >>> p = model.probabilities(TextSpace(vocab_size=3, lengths=(1, 2, 3)))
        >>> bool(p[np.argsort(p)[-3:]].sum() > 0.95)
        True
    """
    corpus = as_corpus(corpus, empty="skip")
    settings = {
        "embedding_size": embedding_size,
        "hidden_size": hidden_size,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "seed": seed,
    }
    _require_settings(settings | {"epochs": epochs, "every": every}, corpus)
    held_out = None if validation is None else _in_order(validation, corpus)
    words = corpus.vocab_size
    sizes = words + 1, embedding_size, hidden_size, INITIAL_SIGMA
    # Optax's type annotations accept only containers as trees.
    model: Any = LSTMLanguageModel.random(jax.random.key(seed), *sizes, end_token=words)
    state, step = (model, optax.adam(0.0).init(model)), 0
    num_steps = epochs * (len(corpus) // batch_size)
    settings["corpus"] = _fingerprint(corpus)
    if checkpoint is not None:
        state, step = _restore(Path(checkpoint), state, settings, num_steps)
    report = report or _print_on_a_terminal

    while step < num_steps:
        stop = min(step - step % every + every, num_steps)
        state, nll, rate = _interval(state, corpus, range(step, stop), settings)
        step = stop
        held_out_nll = None if held_out is None else _mean_nll(state[0], held_out)
        if checkpoint is not None:
            _save(Path(checkpoint), state, step, settings)
        report(Progress(step, num_steps, rate, nll, held_out_nll))
    return state[0]


def to_table(corpus: Corpus, length: int) -> Int[np.ndarray, "texts length"]:
    """Convert a corpus to a table of token ids, a sentence a row, padded with -1."""
    longest = int(corpus.lengths.max(initial=0))
    if longest > length:
        raise ValueError(f"a sentence has {longest} tokens, more than {length}")
    table = np.full((len(corpus), length), -1, np.int32)
    table[np.arange(length) < corpus.lengths[:, None]] = corpus.tokens
    return table


def num_predicted(corpus: Corpus, max_length: int) -> Int[np.ndarray, " texts"]:
    """Count the tokens that a model predicts in each sentence.

    The end is one of them, except at the model's greatest length, where it is certain.
    """
    return corpus.lengths + (corpus.lengths < max_length)


def from_table(
    tokens: Int[ArrayLike, "texts length"], vocabulary: tuple[Token, ...]
) -> Corpus:
    """Convert a table of token ids, padded with -1, to a corpus."""
    tokens = np.asarray(tokens)
    offsets = prefix_sums((tokens >= 0).sum(axis=1))
    return Corpus(tokens[tokens >= 0].astype(np.int32), offsets, vocabulary)


# --- the loss ---------------------------------------------------------------------


def _nll(model: LSTMLanguageModel, tokens: Array) -> Array:
    """Total of -log Q over the rows of a table, and the number of predictions.

    With teacher forcing, gate inputs and softmax are computed for all positions at
    once; only the recurrence is a scan.
    """
    end = model.num_words
    targets = jnp.where(tokens < 0, end, tokens).T
    read = jnp.concatenate([jnp.full_like(targets[:1], end), targets[:-1]])
    gate_inputs = model.embeddings[read] @ model.input_weights + model.gate_biases
    hidden = model.recurrent_weights.shape[0]
    zeros = jnp.zeros((tokens.shape[0], hidden))

    def position(state, gate_input):
        state = lstm_step(model, state, gate_input)
        return state, state[0]

    _, h = jax.lax.scan(position, (zeros, zeros), gate_inputs)
    is_first = jnp.arange(len(targets))[:, None] == 0
    log_next = log_next_token(model, h, 1.0, is_first)
    chosen = jnp.take_along_axis(log_next, targets[..., None], axis=-1)[..., 0]
    # Tokens are predicted until the end token has been read.
    is_predicted = is_first | (read != end)
    return jnp.stack([-jnp.where(is_predicted, chosen, 0.0).sum(), is_predicted.sum()])


def _loss(
    model: LSTMLanguageModel, average: float | Array, tokens: Array
) -> tuple[Array, Array]:
    sums = _nll(model, tokens)
    return sums[0] / average, sums


@partial(jax.jit, donate_argnums=0)
def _update(
    state: State, learning_rate: float | Array, average: float | Array, tokens: Array
) -> tuple[State, Array]:
    model, moments = state
    gradient, sums = jax.grad(_loss, has_aux=True)(model, average, tokens)
    step, moments = optax.adam(learning_rate).update(gradient, moments)
    return (jax.tree.map(jnp.add, model, step), moments), sums


def _interval(
    state: State, corpus: Corpus, steps: range, settings: dict[str, Any]
) -> tuple[State, float, float]:
    """Take some steps; return the state, the mean NLL and predicted tokens a second."""
    batch_size, learning_rate = settings["batch_size"], settings["learning_rate"]
    predicted_of_each = num_predicted(corpus, int(corpus.lengths.max()))
    average = batch_size * int(predicted_of_each.sum()) / len(corpus)
    start, sums = time.monotonic(), np.zeros(2)
    for tokens in _batches(corpus, batch_size, settings["seed"], steps):
        state, batch_sums = _update(state, learning_rate, average, tokens)
        sums = sums + batch_sums
    nll, predicted = np.asarray(sums).tolist()  # waits for the device
    if not np.isfinite(nll):
        raise FloatingPointError(
            f"the loss is not finite before step {steps.stop}: take a learning_rate "
            f"below {learning_rate}"
        )
    return state, nll / predicted, predicted / (time.monotonic() - start)


_evaluate = jax.jit(_nll)


def _mean_nll(model: LSTMLanguageModel, tables: list[np.ndarray]) -> float:
    nll, predicted = np.sum([_evaluate(model, tokens) for tokens in tables], axis=0)
    return float(nll / predicted)


# --- batches ------------------------------------------------------------------------


def _batches(
    corpus: Corpus, batch_size: int, seed: int, steps: range
) -> Iterator[np.ndarray]:
    """Generate the tables of given steps; each depends only on the seed and step."""
    order = lru_cache(1)(partial(_order, corpus, batch_size, seed))
    for step in steps:
        epoch, place = divmod(step, len(corpus) // batch_size)
        yield padded(corpus[order(epoch)[place]], int(corpus.lengths.max()))


def _order(
    corpus: Corpus, batch_size: int, seed: int, epoch: int
) -> Int[np.ndarray, "batches batch"]:
    """Assign sentences to the batches of an epoch at random, grouped by length."""
    rng = np.random.default_rng([seed, epoch])
    used = len(corpus) - len(corpus) % batch_size
    order = rng.permutation(len(corpus))[:used]
    by_width = np.argsort(padded_width(corpus.lengths[order]), kind="stable")
    return rng.permutation(order[by_width].reshape(-1, batch_size))


def padded_width(lengths: Int[np.ndarray, " texts"]) -> Int[np.ndarray, " texts"]:
    """Round lengths up to the widths that are compiled."""
    return -(-lengths // WIDTH) * WIDTH


def padded(corpus: Corpus, max_length: int) -> Int[np.ndarray, "texts length"]:
    """Table of a compiled width, with room for the end below the greatest length."""
    width = int(padded_width(corpus.lengths).max())
    return to_table(corpus, min(width + 1, max_length))


def _in_order(validation: Texts, corpus: Corpus, size: int = 512) -> list[np.ndarray]:
    """Tables of the validation texts, sorted by length."""
    validation = as_corpus(validation, empty="skip")
    if validation.vocabulary != corpus.vocabulary:
        raise ValueError(
            "validation: expected sentences over the vocabulary of the training "
            "corpus; take both as slices of one corpus"
        )
    longest, limit = int(validation.lengths.max()), int(corpus.lengths.max())
    if longest > limit:
        raise ValueError(
            f"validation: a sentence has {longest} tokens, the longest of the training "
            f"corpus {limit}; remove it with prepare(..., max_length={limit})"
        )
    order = np.argsort(validation.lengths, kind="stable")
    parts = np.split(order, range(size, len(order), size))
    return [padded(validation[part], limit) for part in parts]


# --- checkpoints --------------------------------------------------------------------


def _save(path: Path, state: State, step: int, settings: dict[str, Any]) -> None:
    """Replace the file atomically: a reader finds either the old or the new one."""
    # Of one name, so that what a killed run leaves is overwritten by the next.
    unfinished = path.with_name(path.name + ".unfinished")
    with unfinished.open("wb") as file:
        told = json.dumps(settings)
        np.savez(file, *jax.tree.leaves(state), step=step, settings=told)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def _restore(
    path: Path, state: State, settings: dict[str, Any], num_steps: int
) -> tuple[State, int]:
    """Load state and step from a checkpoint; without one, return the state and 0."""
    if not path.parent.is_dir():
        raise ValueError(f"checkpoint: there is no folder {path.parent}")
    if not path.exists():
        return state, 0
    leaves, structure = jax.tree.flatten(state)
    try:
        # np.load rejects pickles; given a name instead of a file, it would stay open.
        with path.open("rb") as file, np.load(file) as archive:
            found = json.loads(str(archive["settings"]))
            step = int(archive["step"])
            arrays = [archive[f"arr_{i}"] for i in range(len(leaves))]
    except _BROKEN as error:
        raise ValueError(
            f"{path} is no checkpoint, or a broken one ({error!r}); delete it to start "
            "anew, or name another file"
        ) from None
    _compare(path, found, settings)
    if step > num_steps:
        raise ValueError(
            f"{path} stands at step {step}, beyond the last of this training, "
            f"{num_steps}; ask for more epochs or use another file"
        )
    return jax.tree.unflatten(structure, map(jnp.array, arrays)), step


# Raised by NumPy, zipfile and json for truncated, corrupted or foreign files.
_BROKEN = OSError, EOFError, ValueError, TypeError, AttributeError, KeyError
_BROKEN += zipfile.BadZipFile, zlib.error


def _compare(path: Path, found: dict[str, Any], settings: dict[str, Any]) -> None:
    changed = [name for name in settings if found.get(name) != settings[name]]
    told = {x: f"{x} was {found.get(x)} and is {settings[x]}" for x in changed}
    if "corpus" in told:
        told["corpus"] = "the corpus is another"
    if told:
        raise ValueError(
            f"{path} belongs to another training: {'; '.join(told.values())}; "
            "use another file, or the old settings"
        )


# --- the rest -----------------------------------------------------------------------


def _require_settings(settings: dict[str, Any], corpus: Corpus) -> None:
    require_positive("learning_rate", settings.pop("learning_rate"))
    require_whole("seed", settings.pop("seed"), 0)
    size = settings.pop("batch_size")
    require_whole("batch_size", size, 1, len(corpus), ", the sentences of the corpus")
    for name, value in settings.items():
        require_whole(name, value)


def _print_on_a_terminal(progress: Progress) -> None:
    if sys.stderr.isatty():
        # One line that is overwritten; the last one stays.
        end = "\n" if progress.step == progress.num_steps else ""
        print(f"\r{progress}\x1b[K", end=end, file=sys.stderr, flush=True)


def _fingerprint(corpus: Corpus) -> str:
    """Hash the sentences of a corpus: every token counts, its kind and its place."""
    found = hashlib.sha256(repr((len(corpus), corpus.vocabulary)).encode())
    for _, chunk in slices(corpus):
        found.update(np.ascontiguousarray(chunk.tokens, "<i4").data)
        found.update(np.ascontiguousarray(chunk.offsets, "<i8").data)
    return found.hexdigest()
