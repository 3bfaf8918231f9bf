r"""Reconstruction: texts decoded from their own codes, and scored against themselves.

A text is encoded as the mean of its posterior and decoded greedily. The paired scores
are means over the real distribution: every text is listed, none is sampled.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lab.generators.autoencoders import Autoencoder, refuse_nan
from qdtheory.distributions import as_distribution, require_positive
from qdtheory.kernels import bleu_of_pairs
from qdtheory.ngrams import ngram_matrix
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import PerText, Scalar, TextArray
from qdtheory.support.records import Record


@jax.tree_util.register_dataclass
class Reconstruction(Record):
    r"""How well an autoencoder decodes the codes of texts, as means over the texts.

    Attributes:
        nll: $-\sum_x P(x) \log p(x | \bar z_x)$, in nats per text.
        accuracy: probability that a text is decoded as itself.
        bleu: paired BLEU-1 to BLEU-max_order.
        rouge: paired ROUGE-1 to ROUGE-max_order, the recall of n-grams.
    """

    nll: Scalar
    accuracy: Scalar
    bleu: Float[Array, " orders"]
    rouge: Float[Array, " orders"]


def reconstruct(
    model: Autoencoder, space: TextSpace, p: PerText, max_order: int = 3
) -> Reconstruction:
    """Decode the mean code of each text greedily, and score it against the text.

    Args:
        model: an autoencoder.
        space: the texts.
        p: the real distribution, shape (num_texts,).
        max_order: highest order of the n-grams, up to the length of the texts.

    Returns:
        The scores. BLEU and ROUGE of the order of the texts' length are the accuracy.

    Raises:
        ValueError: the model does not fit the space or holds NaN, `p` is not a
            distribution over it, or `max_order` is out of range.

    References:
        Cífka et al. 2018, section 5.2; Papineni et al. 2002; Lin 2004 (ROUGE).

    Claims: N23.26.

    Example:
        >>> from lab.generators import circle_grid
        >>> space, p = TextSpace(vocab_size=2, lengths=2), np.full(4, 0.25)
        >>> model = Autoencoder.random(jax.random.key(0), space, circle_grid(64))
        >>> found = reconstruct(model, space, p, max_order=2)
        >>> float(found.accuracy) == float(found.bleu[1]) == float(found.rouge[1])
        True
    """
    require_positive(max_order=max_order)
    p = as_distribution(p, "p", space.num_texts)
    codes = model.text_codes()
    log_decoded = model.log_decoded(space, codes)
    refuse_nan(log_decoded)
    texts = greedy_texts(model, space, codes)
    decoded = jax.nn.one_hot(texts, space.num_texts, dtype=float)

    def paired(scores: Array | np.ndarray) -> Array:
        return p @ (decoded * scores).sum(axis=1)

    orders = range(1, max_order + 1)
    return Reconstruction(
        nll=-p @ jnp.diagonal(log_decoded),
        accuracy=p @ jnp.diagonal(decoded),
        bleu=jnp.stack([paired(bleu_of_pairs(space, n)) for n in orders]),
        rouge=jnp.stack([paired(rouge_table(space, n)) for n in orders]),
    )


def greedy_texts(
    model: Autoencoder, space: TextSpace, codes: Float[Array, "codes dim"]
) -> Int[Array, " codes"]:
    """Decode each code to the index of a text, always by the likeliest token."""
    logits = model.next_token_logits(space, codes)
    best = logits.argmax(axis=2)
    start, found = 0, jnp.zeros(len(codes), int)
    for length in range(space.max_length):
        token = jnp.take_along_axis(best, (start + found)[:, None], axis=1)[:, 0]
        found = found * space.vocab_size + token
        start += space.vocab_size**length
    return found


def greedy_distribution(
    model: Autoencoder, space: TextSpace
) -> tuple[TextArray, Scalar]:
    """The distribution of texts decoded greedily from the prior, as Cífka et al. do.

    It is a step function of the code, so that the grid has an error: the mass of the
    cells between nodes that decode to different texts.

    Returns:
        The distribution, shape (num_texts,), and a bound on its distance from the
        integral over codes in total variation.

    References:
        Cífka et al. 2018, section 5.

    Claims: N23.6.
    """
    weights = jnp.asarray(model.grid.weights)
    texts = greedy_texts(model, space, model.prior_codes())
    q = jnp.zeros(space.num_texts).at[texts].add(weights)
    steps = (texts != jnp.roll(texts, 1)) * (weights + jnp.roll(weights, 1)) / 2
    return q, steps.sum()


def rouge_table(space: TextSpace, n: int) -> Float[np.ndarray, "texts texts"]:
    """The share of a reference's n-grams (row) that a candidate has (column), clipped.

    Example:
        >>> rouge_table(TextSpace(vocab_size=2, lengths=2), 1)[1].tolist()
        [0.5, 1.0, 1.0, 0.5]
    """
    space.refuse_beyond_memory(8 * space.num_texts**2, "ROUGE table")
    common = np.zeros((space.num_texts, space.num_texts))
    for counts in ngram_matrix(space, n):
        common += np.minimum(counts[:, None], counts)
    return common / (space.max_length - n + 1)
