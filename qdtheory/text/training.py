r"""Train the LSTM of the exact wing on a corpus, by maximum likelihood.

The model that comes out is an `LSTMLanguageModel` with an end token: it is sampled,
scored and, over a small vocabulary, enumerated as an oracle is.
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
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Int

from qdtheory.language_models import LSTMLanguageModel, log_next_token, lstm_step
from qdtheory.text.corpus import Corpus, Texts, Token, as_corpus

try:
    import optax
except ImportError as error:
    raise ImportError(
        "training needs optax; install it with pip install 'qdtheory[train]'"
    ) from error

# Standard deviation of all parameters at the start: gates open half, flat softmax.
INITIAL_SIGMA = 0.1
# Texts of a batch are padded to a common length; XLA compiles one step for each
# multiple of this.
WIDTH = 8

State: TypeAlias = tuple[LSTMLanguageModel, optax.OptState]


@dataclass(frozen=True)
class Progress:
    """Where a training stands, at the end of a stretch of steps.

    Attributes:
        step: steps done; a step is one batch.
        num_steps: steps of the whole training.
        tokens_per_second: predicted tokens, end tokens included, of this stretch.
        training_nll: mean over the stretch, nats per predicted token.
        validation_nll: of the model as it stands, nats per predicted token; None
            without validation texts.
    """

    step: int
    num_steps: int
    tokens_per_second: float
    training_nll: float
    validation_nll: float | None

    def __str__(self) -> str:
        held_out = (
            ""
            if self.validation_nll is None
            else f", validation {self.validation_nll:.4f}"
        )
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

    A batch's loss is its total $-\log Q(x)$ over the predicted tokens of an average
    batch, so that all sentences weigh the same; over its own, short ones would weigh
    more. The end of a sentence is predicted too, except at the greatest length. Batches
    hold sentences of similar length, in a new order each epoch; what does not fill a
    batch is left out, another part each epoch. Arithmetic is in float64, so that
    another machine finds the same model to many digits; in float32 it would find
    another one.

    With a checkpoint file, a training that was killed goes on where the file stands,
    and ends at the same parameters, bit for bit, as an unbroken one on the same
    machine. (On a GPU only with `XLA_FLAGS=--xla_gpu_deterministic_ops=true`.) A
    finished one can be continued with more epochs. The file is replaced as a whole.

    Args:
        corpus: the training sentences; the model's words are the entries of its
            vocabulary, and its greatest length that of the longest sentence. Those
            without a token are skipped.
        validation: sentences over the same vocabulary, such as another slice of the
            corpus, none longer than the longest of `corpus`.
        epochs: passes over the corpus, at least 1.
        embedding_size: width of the embeddings.
        hidden_size: width of h and c.
        learning_rate: of Adam, positive.
        batch_size: sentences a step; not more than the corpus has.
        seed: of the first parameters and the order of the batches.
        checkpoint: file that is read if it exists and written every so many steps.
        every: steps from one report and checkpoint to the next.
        report: called with a `Progress` each time; by default a line on stderr, if
            that is a terminal.

    Returns:
        The model; its end token is the number of words, `corpus.vocab_size`.

    Raises:
        ValueError: a number out of its range; other words or longer sentences in
            `validation`; a checkpoint of another training, or a broken one.
        FloatingPointError: the loss overflowed.
        RuntimeError: JAX's 64-bit mode is off.

    References:
        Li et al. 2020, section 6.2: sizes, optimiser, rate and epochs, the defaults.

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
    _check_settings(settings | {"epochs": epochs, "every": every}, corpus)
    held_out = None
    if validation is not None:
        held_out = _in_order(as_corpus(validation, empty="skip"), corpus)
    state, step = _first_state(corpus, embedding_size, hidden_size, seed), 0
    num_steps = epochs * (len(corpus) // batch_size)
    average = batch_size * _num_predicted(corpus) / len(corpus)
    settings["corpus"] = _digest(corpus)
    if checkpoint is not None:
        state, step = _restore(Path(checkpoint), state, settings, num_steps)
    report = report or _print_on_a_terminal

    while step < num_steps:
        stop = min(step - step % every + every, num_steps)
        start, sums = time.monotonic(), np.zeros(2)
        for tokens in _batches(corpus, batch_size, seed, range(step, stop)):
            state, batch_sums = _update(state, learning_rate, average, tokens)
            sums = sums + batch_sums
        nll, predicted = np.asarray(sums).tolist()  # waits for the device
        rate, step = predicted / (time.monotonic() - start), stop
        if not np.isfinite(nll):
            raise FloatingPointError(
                f"the loss is not finite before step {step}: take a learning_rate "
                f"below {learning_rate}"
            )
        held_out_nll = None if held_out is None else _mean_nll(state[0], held_out)
        if checkpoint is not None:
            _save(Path(checkpoint), state, step, settings)
        report(Progress(step, num_steps, rate, nll / predicted, held_out_nll))
    return state[0]


def to_table(corpus: Corpus, length: int) -> Int[np.ndarray, "texts length"]:
    """Token ids, one sentence a row, -1 after its end: what a model scores.

    Args:
        corpus: the sentences.
        length: columns, at least the tokens of the longest sentence.

    Returns:
        The table.

    Raises:
        ValueError: when a sentence is longer.

    Example:
        >>> to_table(as_corpus(["a b a", "b"]), 3).tolist()
        [[0, 1, 0], [1, -1, -1]]
    """
    longest = int(corpus.lengths.max(initial=0))
    if longest > length:
        raise ValueError(f"a sentence has {longest} tokens, more than {length}")
    table = np.full((len(corpus), length), -1, np.int32)
    table[np.arange(length) < corpus.lengths[:, None]] = corpus.tokens
    return table


def from_table(
    tokens: Int[ArrayLike, "texts length"], vocabulary: tuple[Token, ...]
) -> Corpus:
    """The corpus that a table of token ids holds: what a model sampled.

    Args:
        tokens: one sentence a row, -1 after its end.
        vocabulary: the token of each id.

    Returns:
        The corpus, with the whole vocabulary.

    Example:
        >>> list(from_table(np.array([[0, 1, 0], [1, -1, -1]]), ("a", "b")))
        [('a', 'b', 'a'), ('b',)]
    """
    tokens = np.asarray(tokens)
    offsets = np.concatenate([[0], np.cumsum((tokens >= 0).sum(axis=1))])
    return Corpus(tokens[tokens >= 0].astype(np.int32), offsets, vocabulary)


# --- the loss ---------------------------------------------------------------------


def _nll(model: LSTMLanguageModel, tokens: Array) -> Array:
    """Total of -log Q over the rows of a table, and the number of predictions.

    All inputs are known, so the gates' inputs and the softmax are computed for all
    positions at once; only the recurrence is a scan.
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
    # A prediction is made until the end token was read.
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


_evaluate = jax.jit(_nll)


def _mean_nll(model: LSTMLanguageModel, tables: list[np.ndarray]) -> float:
    nll, predicted = np.sum([_evaluate(model, tokens) for tokens in tables], axis=0)
    return float(nll / predicted)


def _first_state(
    corpus: Corpus, embedding_size: int, hidden_size: int, seed: int
) -> State:
    words = corpus.vocab_size
    # To Optax's types a tree is made of containers only.
    model: Any = LSTMLanguageModel.random(
        jax.random.key(seed),
        words + 1,
        embedding_size,
        hidden_size,
        INITIAL_SIGMA,
        end_token=words,
    )
    return model, optax.adam(0.0).init(model)


# --- batches ------------------------------------------------------------------------


def _batches(
    corpus: Corpus, batch_size: int, seed: int, steps: range
) -> Iterator[np.ndarray]:
    """The tables of some steps; each depends on the seed and its step alone."""
    per_epoch, order, current = len(corpus) // batch_size, np.empty(0), None
    for step in steps:
        epoch, place = divmod(step, per_epoch)
        if epoch != current:
            order, current = _order(corpus, batch_size, seed, epoch), epoch
        yield _padded(corpus[order[place]], int(corpus.lengths.max()))


def _order(
    corpus: Corpus, batch_size: int, seed: int, epoch: int
) -> Int[np.ndarray, "batches batch"]:
    """The sentences of each batch of an epoch: random, but of similar length."""
    rng = np.random.default_rng([seed, epoch])
    used = len(corpus) - len(corpus) % batch_size
    order = rng.permutation(len(corpus))[:used]
    by_width = np.argsort(_width(corpus.lengths[order]), kind="stable")
    return rng.permutation(order[by_width].reshape(-1, batch_size))


def _num_predicted(corpus: Corpus) -> int:
    """Tokens and ends; the longest sentences just end."""
    lengths = corpus.lengths
    return corpus.num_tokens + int((lengths < lengths.max()).sum())


def _width(length):
    return -(-length // WIDTH) * WIDTH


def _padded(corpus: Corpus, max_length: int) -> np.ndarray:
    """A table with a column for the end; at the greatest length a text just ends."""
    return to_table(corpus, min(_width(int(corpus.lengths.max())) + 1, max_length))


def _in_order(validation: Corpus, corpus: Corpus, size: int = 512) -> list[np.ndarray]:
    """The tables of the validation texts, the shortest first."""
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
    return [
        _padded(validation[order[start : start + size]], limit)
        for start in range(0, len(order), size)
    ]


# --- checkpoints --------------------------------------------------------------------


def _save(path: Path, state: State, step: int, settings: dict[str, Any]) -> None:
    """Replace the file as a whole: whoever reads it finds the old one or the new."""
    unfinished = path.with_name(path.name + ".unfinished")
    with unfinished.open("wb") as file:
        np.savez(
            file, *jax.tree.leaves(state), step=step, settings=json.dumps(settings)
        )
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def _restore(
    path: Path, state: State, settings: dict[str, Any], num_steps: int
) -> tuple[State, int]:
    """State and step of a checkpoint; those given, and 0, where there is none."""
    if not path.parent.is_dir():
        raise ValueError(f"checkpoint: there is no folder {path.parent}")
    if not path.exists():
        return state, 0
    leaves, structure = jax.tree.flatten(state)
    try:
        # np.load runs no pickle; a name in place of a file would stay open.
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


# What NumPy, zipfile and json raise on files that are cut, changed or of another kind.
_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    zipfile.BadZipFile,
    zlib.error,
)


def _compare(path: Path, found: dict[str, Any], settings: dict[str, Any]) -> None:
    differences = [
        "the corpus is another"
        if name == "corpus"
        else f"{name} was {found.get(name)} and is {value}"
        for name, value in settings.items()
        if found.get(name) != value
    ]
    if differences:
        raise ValueError(
            f"{path} belongs to another training: {'; '.join(differences)}; "
            "use another file, or the old settings"
        )


def _digest(corpus: Corpus) -> str:
    """A name of the sentences and the vocabulary."""
    digest = hashlib.sha256(repr(corpus.vocabulary).encode())
    for array in (corpus.tokens, corpus.offsets):
        digest.update(array.astype(np.int64).tobytes())
    return digest.hexdigest()


# --- the rest -----------------------------------------------------------------------


def _check_settings(settings: dict[str, Any], corpus: Corpus) -> None:
    least = dict.fromkeys(settings, 1) | {"seed": 0}
    rate = settings.pop("learning_rate")
    if not 0 < rate < np.inf:
        raise ValueError(f"learning_rate: expected a positive number, got {rate}")
    for name, value in settings.items():
        if not isinstance(value, Integral) or value < least[name]:
            raise ValueError(
                f"{name}: expected a whole number from {least[name]} on, got {value!r}"
            )
    if settings["batch_size"] > len(corpus):
        raise ValueError(
            f"batch_size: expected at most the {len(corpus)} sentences of the corpus, "
            f"got {settings['batch_size']}"
        )


def _print_on_a_terminal(progress: Progress) -> None:
    if sys.stderr.isatty():
        # One line that is written over; the last one stays.
        end = "\n" if progress.step == progress.num_steps else ""
        print(f"\r{progress}\x1b[K", end=end, file=sys.stderr, flush=True)
