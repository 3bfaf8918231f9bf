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

from qdtheory.text.containers import Tokenizer, splitter, token_lists

Kernel: TypeAlias = str | Callable[[list[str], list[str]], Any]
Gram: TypeAlias = Float[np.ndarray, "texts texts"]

EXACT = "exact match"
# Not ROUGE-n, common n-grams over the sum of both numbers.
INDEFINITE = re.compile(r"rouge(?!-?[0-9])|bleu(?!-?1$)|edit|levenshtein", re.I).search
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
    if kernel != EXACT and not _order(str(kernel)):
        bad = "is indefinite, so that a model can score above real text (notebook 18b)"
        raise ValueError(
            f"kernel: {kernel} {bad if INDEFINITE(str(kernel)) else 'is not known'}; "
            f"take {EXACT}, 1-grams, 2-grams, ... or a function"
        )
    return kernel


def grams(
    kernel: Kernel,
    prompts: Sequence[list[str]],
    places: Sequence[str],
    tokenizer: Tokenizer = "whitespace",
    lowercase: bool = False,
) -> Iterator[Gram]:
    """Compute the similarities of all texts of a prompt, told by its place."""
    name = kernel_name(kernel)
    if callable(kernel):
        for texts, place in zip(prompts, places):
            yield _asked(kernel, texts, f"{place}kernel {name}")
        return
    split, n = splitter(tokenizer, lowercase), _order(name)
    for texts in prompts:
        rows = _shares([*token_lists(texts, split)[1]], n)
        yield rows @ rows.T


def sight(found: Sequence[np.ndarray], sizes: Sequence[int]) -> tuple[bool, bool]:
    """Whether a kernel sees some output at all, and some that is like another text."""
    own = [gram[:size] for gram, size in zip(found, sizes)]
    alike = any(bool(x.sum() > np.trace(x) + ROUNDING) for x in own)
    return any(bool(x.any()) for x in own), alike


def require_sight(kernel: Kernel, sees: bool) -> None:
    """Raise if a kernel sees nothing, as 2-grams in outputs of one word."""
    if not sees:
        name = kernel_name(kernel)
        why = f": no output has {n} tokens" if (n := _order(name)) else ""
        rest = "" if n == 1 else "1-grams or "
        raise ValueError(f"kernel {name} sees nothing{why}; take {rest}{EXACT}")


def _order(kernel: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]?)-grams", kernel)
    return int(found[1]) if found else 0


def _shares(texts: list[Any], n: int) -> Float[np.ndarray, "texts grams"]:
    """Share of each n-gram in a text's; of all tokens together for n = 0.

    A text of fewer than n tokens has none, and is like no text.
    """
    ids: dict[Any, int] = {}
    listed = ([*zip(*(x[i:] for i in range(n)))] if n else [(*x,)] for x in texts)
    rows = [[ids.setdefault(gram, len(ids)) for gram in text] for text in listed]
    shares = np.zeros((len(texts), len(ids)))
    for share, row in zip(shares, rows):
        np.add.at(share, row, 1 / max(len(row), 1))
    return shares


def _asked(kernel: Any, texts: list[str], where: str) -> Gram:
    """Ask a user's kernel; raise unless it has a feature map, as far as these tell."""
    try:
        gram = np.asarray(kernel([*texts], [*texts]), float)
    except Exception as error:
        raise ValueError(f"{where} raised {type(error).__name__}: {error}") from error
    size, rounding = len(texts), ROUNDING * np.abs(gram).max(initial=0)
    good = gram.shape == (size, size) and np.isfinite(gram).all()
    apart = np.abs(gram - gram.T).max() if good else np.nan
    if not apart <= rounding:
        raise ValueError(
            f"{where}: expected {size} x {size} finite numbers, and K(x, y) = K(y, x), "
            f"for two lists of the same texts; got {gram.shape}, up to {apart:g} apart"
        )
    centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    values, vectors = np.linalg.eigh(centred)
    if values[0] < -size * rounding:
        told = sorted(zip(vectors[:, 0], texts), key=lambda x: -abs(x[0]))
        shown = (f"{weight:+.2f} {text!r:.40}" for weight, text in told)
        raise ValueError(
            f"{where} is indefinite, as ROUGE-L and edit distance are: weights that "
            f"sum to 0 have a square of {values[0]:.3g}, and real text moved along "
            f"them scores above real text: {', '.join(shown)}"
        )
    return (gram + gram.T) / 2
