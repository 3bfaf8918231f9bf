"""Two embedders of sentences that are made of other sentences, beside MiniLM.

Each is a function from a corpus to a row of features for each sentence. They are of
the kinds that Semeniuta et al. (2018) compare: one pools words and pairs of words, the
other the states of an LSTM; MiniLM is a Transformer.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from lab import corpora
from lab.corpora.lm_scores import UNKNOWN
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from qdtheory.lstm import lstm_step
from qdtheory.text import Corpus

Embedder: TypeAlias = Callable[[Corpus], np.ndarray]


def latent_semantics(training: Corpus, num_features: int, min_texts: int) -> Embedder:
    """Latent semantic analysis: weighted words and pairs along the main directions.

    A term that occurs in few sentences weighs more; those in fewer than `min_texts` of
    the training sentences are left out. Rows have length 1.
    """
    found = Counter(chain.from_iterable(set(terms(x)) for x in training))
    known = {term: n for term, n in found.items() if n >= min_texts}
    column = {term: i for i, term in enumerate(known)}
    weights = np.log(len(training) / np.array([*known.values()]))

    def weighted(texts: Corpus) -> csr_array:
        rows = [[column[term] for term in terms(x) if term in column] for x in texts]
        ends = np.cumsum([0, *map(len, rows)])
        places = np.fromiter(chain.from_iterable(rows), np.int32, ends[-1])
        return csr_array((weights[places], places, ends), (len(rows), len(column)))

    # A direction's sign and turns among equals do not change distances.
    directions = svds(weighted(training), num_features, random_state=0)[2]

    def embed(texts: Corpus) -> np.ndarray:
        table = weighted(texts) @ directions.T
        size = np.linalg.norm(table, axis=1, keepdims=True)
        return table / np.where(size > 0, size, 1)  # 0 without a known term

    return embed


def terms(sentence: Sequence[Any]) -> Iterable[Any]:
    """The words and the pairs of neighbours."""
    return chain(sentence, pairwise(sentence))


def lstm_states(training: Corpus, **settings: Any) -> Embedder:
    """The greatest value of each unit of a language model's LSTM along the sentence."""
    fitted = corpora.fit_language_model(training, **settings)
    model, place = fitted.model, {word: i for i, word in enumerate(fitted.vocabulary)}
    inputs = model.embeddings @ model.input_weights + model.gate_biases
    zeros = jnp.zeros(model.recurrent_weights.shape[0])
    start = lstm_step(model, (zeros, zeros), inputs[model.end_token])

    @jax.jit
    @jax.vmap
    def pooled(tokens: jax.Array) -> jax.Array:
        def read(state: tuple, token: jax.Array) -> tuple:
            state = lstm_step(model, state, inputs[token])
            return state, jnp.where(token < 0, -jnp.inf, state[0])

        return jax.lax.scan(read, start, tokens)[1].max(axis=0)

    def embed(texts: Corpus) -> np.ndarray:
        unknown = place[UNKNOWN]
        ids = np.array([place.get(word, unknown) for word in texts.vocabulary])
        table = np.full((len(texts), fitted.max_length), -1)
        inside = np.arange(fitted.max_length) < texts.lengths[:, None]
        table[inside] = ids[texts.tokens]
        return np.asarray(pooled(table))

    return embed
