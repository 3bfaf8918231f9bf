"""Similarities of the answers to one prompt, by a kernel: one matrix a prompt.

A kernel has a feature map: of n-grams their shares of a text's n-grams, of exact match
the text itself. Then the squared distance of two laws' mean features is a divergence,
twice the mean similarity across less both within. What is similar by a recursion or a
maximum, as ROUGE-L, edit distance and BLEU, has no such map: some weights of texts that
sum to 0 have a negative square, and real text moved along them scores above real text.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from qdtheory.text.containers import token_lists

Kernel: TypeAlias = str | Callable[[list[str], list[str]], Any]
Gram: TypeAlias = Float[np.ndarray, "texts texts"]

EXACT = "exact match"
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
        raise ValueError(
            f"kernel: {kernel} is not known; take {EXACT}, 1-grams, 2-grams, ... or a "
            "function; ROUGE-L, BLEU and edit distance are indefinite, so that a model "
            "can score above real text (notebook 18b)"
        )
    return kernel


def similarities(
    kernel: Kernel, texts: list[str], split: Callable[[str], Any], where: str = ""
) -> Gram:
    """Compute the similarities of all texts of a prompt.

    A text of fewer than n tokens has no n-grams, and is like no text.
    """
    if callable(kernel):
        return _asked(kernel, texts, f"{where}kernel {kernel_name(kernel)}")
    n, ids = _order(kernel), {}
    tokens = token_lists(texts, split)[1]
    listed = ([*zip(*(x[i:] for i in range(n)))] if n else [(*x,)] for x in tokens)
    rows = [[ids.setdefault(gram, len(ids)) for gram in text] for text in listed]
    counted = [np.bincount(row, minlength=len(ids)) / max(len(row), 1) for row in rows]
    shares = np.array(counted)
    return shares @ shares.T


def blind(kernel: Kernel, grams: Iterable[Any], outputs: Iterable[Any]) -> str:
    """Say so if a kernel sees nothing in outputs, as 2-grams in those of one word."""
    if any(gram[: len(x)].any() for gram, x in zip(grams, outputs)):
        return ""
    name = kernel_name(kernel)
    why = f": no output has {n} tokens" if (n := _order(name)) else ""
    return f"kernel {name} sees nothing{why}; take {'1-grams or ' * (n != 1)}{EXACT}"


def _order(kernel: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]?)-grams", kernel)
    return int(found[1]) if found else 0


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
