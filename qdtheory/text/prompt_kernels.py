"""Similarities of the answers to one prompt, by a kernel: one matrix a prompt.

A kernel has a feature map: of n-grams their shares of a text's n-grams, of exact match
the text itself. Then the squared distance of two laws' mean features is a divergence,
twice the mean similarity across less both within. What is similar by a recursion or a
maximum, as ROUGE-L, edit distance and BLEU, has no such map: some weights of texts that
sum to 0 have a negative square, and real text moved along them scores above real text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from qdtheory.text.containers import Tokenizer, splitter
from qdtheory.text.corpus import corpus_of

Kernel: TypeAlias = str | Callable[[list[str], list[str]], Any]
Gram: TypeAlias = Float[np.ndarray, "texts texts"]

EXACT, MINILM = "exact match", "MiniLM"
INDEFINITE = re.compile(r"(rouge|bleu|edit|levenshtein)", re.I)
# Parts of the largest similarity that are rounding, also in 32 bits.
ROUNDING = 1e-6


def kernel_name(kernel: Kernel) -> str:
    """Name a kernel; raise unless it is known, or a function.

    Example:
        >>> kernel_name("2-grams")
        '2-grams'
    """
    if callable(kernel):
        return getattr(kernel, "__name__", "kernel")
    if kernel in (EXACT, MINILM) or _order(kernel):
        return kernel
    known = f"{EXACT}, 1-grams, 2-grams, ..., {MINILM}"
    if isinstance(kernel, str) and INDEFINITE.match(kernel):
        raise ValueError(
            f"kernel: {kernel} is indefinite, so that a model can score above real "
            f"text (notebook 18b); take one of {known}"
        )
    raise ValueError(
        f"kernel: expected one of {known}, or a function of two lists of strings, got "
        f"{kernel!r}"
    )


def grams(
    kernel: Kernel,
    prompts: Sequence[list[str]],
    places: Sequence[str],
    tokenizer: Tokenizer = "whitespace",
    lowercase: bool = False,
) -> Iterator[Gram]:
    """Compute the similarities of all texts of a prompt, told by its place."""
    if callable(kernel):
        for texts, place in zip(prompts, places):
            where = f"{place}kernel {kernel_name(kernel)}"
            try:
                answer = kernel(texts, texts)
            except Exception as error:
                raise ValueError(
                    f"{where} raised {type(error).__name__}: {error}"
                ) from error
            yield _checked(answer, texts, where)
        return
    if kernel == MINILM:
        features: Iterator[Any] = _embedded(prompts)
    else:
        split = splitter(tokenizer, lowercase)
        features = (_shares(texts, split, _order(kernel)) for texts in prompts)
    for rows in features:
        yield rows @ rows.T


def _order(kernel: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]?)-grams", str(kernel))
    return int(found[1]) if found else 0


def _shares(texts: list[str], split: Any, n: int) -> Float[np.ndarray, "texts grams"]:
    """Share of each n-gram in a text's; of all tokens together for n = 0.

    A text of fewer than n tokens has none, and is like no text.
    """
    tokens = map(split, texts)
    if n:
        listed = [[*zip(*(x[i:] for i in range(n)))] for x in tokens]
    else:
        listed = [[tuple(x)] for x in tokens]
    corpus: Any = corpus_of(listed, None)  # of tuples as tokens
    sizes, width = corpus.lengths, corpus.vocab_size
    places = np.repeat(np.arange(len(texts)) * width, sizes) + corpus.tokens
    counts = np.bincount(places, minlength=len(texts) * width)
    return counts.reshape(len(texts), width) / sizes.clip(1)[:, None]


def _embedded(prompts: Sequence[list[str]]) -> Iterator[Float[np.ndarray, "texts _"]]:
    """Unit vectors of MiniLM; an empty text has none, and is like no text."""
    from qdtheory.text.embeddings import embed  # late: imports JAX

    flat = [text for texts in prompts for text in texts]
    written = np.array([bool(text.split()) for text in flat])
    different = dict.fromkeys(text for text, some in zip(flat, written) if some)
    places = {text: row for row, text in enumerate(different)}
    found = embed([*different]).astype(float) if different else np.zeros((0, 1))
    rows = np.zeros((len(flat), found.shape[1]))
    rows[written] = found[[places[x] for x, some in zip(flat, written) if some]]
    yield from np.split(rows, np.cumsum([*map(len, prompts)])[:-1])


def _checked(answer: Any, texts: list[str], where: str) -> Gram:
    """Raise unless a user's similarities have a feature map, as far as these tell."""
    try:
        gram = np.asarray(answer, float)
    except (TypeError, ValueError):
        gram = np.full((), np.nan)
    size = len(texts)
    if gram.shape != (size, size) or not np.isfinite(gram).all():
        raise ValueError(
            f"{where}: expected {size} x {size} finite numbers for two lists of {size} "
            f"texts, got {answer!r:.60}"
        )
    scale = ROUNDING * np.abs(gram).max()
    apart = np.abs(gram - gram.T)
    if apart.max() > scale:
        i, j = np.unravel_index(apart.argmax(), apart.shape)
        raise ValueError(
            f"{where} is not symmetric: {gram[i, j]:.4g} of {texts[i]!r:.60} and "
            f"{texts[j]!r:.60}, {gram[j, i]:.4g} the other way round"
        )
    centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    values, vectors = np.linalg.eigh(centred)
    if values[0] < -size * scale:
        weights = vectors[:, 0] * np.sign(vectors[np.abs(vectors[:, 0]).argmax(), 0])
        order = np.argsort(-np.abs(weights), kind="stable")
        shown = (f"{weights[i]:+.2f} {texts[i]!r:.40}" for i in order)
        raise ValueError(
            f"{where} is indefinite, as ROUGE-L and edit distance are: weights that "
            f"sum to 0 have a square of {values[0]:.3g}, and real text moved along "
            f"them scores above real text: {', '.join(shown)}"
        )
    return (gram + gram.T) / 2
