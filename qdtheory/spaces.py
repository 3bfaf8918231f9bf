"""TextSpace: all texts over a small vocabulary, and their n-grams.

Texts are sorted by length, shorter first, and lexicographically within one length:
the index of a text is its value as a base-|V| number plus the number of shorter
texts. n-grams are numbered in the same way, 0 .. |V|^n - 1.
"""

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Int

from qdtheory.distributions import as_distribution, require_positive
from qdtheory.support.numbers import PerText, require, within

# Larger tables are refused: a space is for texts that can be enumerated.
MAX_GIB = 2.0


@dataclass(frozen=True, init=False)
class TextSpace:
    r"""All texts over a vocabulary of |V| tokens, of one or several lengths.

    It has $N = \sum_{L} |V|^L$ texts, shorter ones first, those of one length in the
    order of their tokens.

    Args:
        vocab_size: |V|, at least 1. Tokens are 0 .. |V|-1.
        lengths: one length, or several in increasing order, each at least 1.

    Raises:
        TypeError: a size or length is not an integer.
        ValueError: a size or length is below 1, lengths do not increase, or the n-gram
            table would not fit into memory; raised before anything is allocated.

    References:
        Li et al. 2020, section 3.1 (one length, $N = |V|^L$).

    Claims: N1.1, N1.13, N1.14, N1.15, N1.16.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=(1, 2))
        >>> space.num_texts
        6
        >>> space.tokens.tolist()
        [[0, -1], [1, -1], [0, 0], [0, 1], [1, 0], [1, 1]]
    """

    vocab_size: int
    lengths: tuple[int, ...]

    def __init__(self, vocab_size: int, lengths: int | tuple[int, ...]) -> None:
        lengths = lengths if isinstance(lengths, tuple) else (lengths,)
        _require_size("vocab_size", vocab_size)
        for length in lengths:
            _require_size("a length", length)
        if not lengths or any(a >= b for a, b in pairwise(lengths)):
            raise ValueError(
                f"lengths must increase, got {lengths}; sort them, each once"
            )
        object.__setattr__(self, "vocab_size", int(vocab_size))
        object.__setattr__(self, "lengths", tuple(map(int, lengths)))
        # n-gram tables take 8 bytes per position.
        self.refuse_beyond_memory(8 * self.num_texts * self.max_length, "n-gram table")

    def refuse_beyond_memory(self, num_bytes: int, what: str) -> None:
        """Raise a ValueError if a table, named by `what`, would not fit into memory."""
        if num_bytes > MAX_GIB * 2**30:
            raise ValueError(
                f"a space of {_magnitude(self.num_texts)} texts is too large to "
                f"enumerate: its {what} alone would take "
                f"{_magnitude(num_bytes // 2**30)} GiB (limit {MAX_GIB:g}); take fewer "
                "tokens or shorter texts"
            )

    def only_length(self, what: str, instead: str = "") -> int:
        """Return the length of all texts; raise a ValueError if there are several.

        Args:
            what: what needs texts of one length, in the error message.
            instead: what to take for texts of several, such as "take a LogitTable".

        Example:
            >>> TextSpace(vocab_size=2, lengths=3).only_length("an autoencoder")
            3
            >>> TextSpace(vocab_size=2, lengths=(1, 2)).only_length("an autoencoder")
            Traceback (most recent call last):
            ...
            ValueError: an autoencoder is for texts of one length, got lengths (1, 2)
        """
        if len(self.lengths) > 1:
            advice = f"; {instead}" if instead else ""
            raise ValueError(
                f"{what} is for texts of one length, got lengths {self.lengths}{advice}"
            )
        return self.max_length

    @property
    def max_length(self) -> int:
        """The greatest length."""
        return self.lengths[-1]

    @property
    def num_texts(self) -> int:
        """The number of texts N."""
        return sum(self.vocab_size**length for length in self.lengths)

    @property
    def tokens(self) -> Int[np.ndarray, "texts max_length"]:
        """All texts, one per row, padded with -1. Read-only."""
        return _tokens(self)

    @property
    def text_lengths(self) -> Int[np.ndarray, " texts"]:
        """The length of each text."""
        sizes = [self.vocab_size**length for length in self.lengths]
        return np.repeat(np.array(self.lengths), sizes)

    def index(
        self, tokens: Int[ArrayLike, "*batch max_length"]
    ) -> Int[np.ndarray, "*batch"]:
        """Return the index of each text, the inverse of `tokens[index]`.

        Args:
            tokens: texts, shape (..., max_length), padded with -1 at the end only.

        Returns:
            Indices in 0 .. N-1, shape (...).

        Raises:
            TypeError: tokens are not integers.
            ValueError: wrong shape, or a row is not a text of this space.

        Example:
            >>> space = TextSpace(vocab_size=2, lengths=(1, 2))
            >>> int(space.index(np.array([1, 0])))
            4
        """
        tokens = np.asarray(tokens)
        if not np.issubdtype(tokens.dtype, np.integer):
            raise TypeError(f"tokens must be integers, got dtype {tokens.dtype}")
        if tokens.ndim == 0 or tokens.shape[-1] != self.max_length:
            raise ValueError(
                f"texts must have {self.max_length} tokens in the last axis, padded "
                f"with -1, got shape {tokens.shape}"
            )
        # Horner's rule for sum_i token_i |V|^(L - i), i = 1 .. L; padding is skipped.
        number = np.zeros(tokens.shape[:-1], dtype=np.int64)
        for token in np.moveaxis(tokens, -1, 0):
            number = np.where(token >= 0, number * self.vocab_size + token, number)
        shorter = np.cumsum([0] + [self.vocab_size**length for length in self.lengths])
        lengths = (tokens >= 0).sum(axis=-1)
        index = number + shorter[np.searchsorted(self.lengths, lengths)]
        # What is no text has the number of another one, if any.
        wrong = (self.tokens[np.clip(index, 0, shorter[-1] - 1)] != tokens).any(axis=-1)
        if wrong.any():
            row = tokens[wrong][0] if wrong.ndim else tokens
            raise ValueError(
                f"{row.tolist()} is no text of this space: tokens are 0 .. "
                f"{self.vocab_size - 1}, lengths {self.lengths}, then -1 to the end"
            )
        return np.asarray(index)

    def ngrams(self, n: int) -> Int[np.ndarray, "texts positions"]:
        """Return the n-gram indices of each text, -1 past its end. Read-only.

        Args:
            n: order, 1 .. max_length.

        Returns:
            Shape (num_texts, max_length - n + 1), entries -1 or 0 .. |V|^n - 1.

        Raises:
            ValueError: `n` is below 1 or above the greatest length.

        Example:
            >>> TextSpace(vocab_size=2, lengths=2).ngrams(2).ravel().tolist()
            [0, 1, 2, 3]
        """
        within(n=n, low=1, high=self.max_length)
        return _ngrams(self, n)

    def ngram_counts(self, q: PerText, n: int) -> Float[Array, " ngrams"]:
        r"""Expected number of each n-gram in one text: $\sum_x Q(x)\, count_x(g)$.

        The linear map from texts to n-grams. For one length L the counts sum to
        L - n + 1.

        Args:
            q: distribution over the texts, shape (num_texts,).
            n: order, 1 .. max_length.

        Returns:
            Expected counts, shape (vocab_size**n,).

        Raises:
            ValueError: `q` is not a distribution over this space, or `n` is out of
                range.

        Example:
            >>> space = TextSpace(vocab_size=2, lengths=2)
            >>> space.ngram_counts(np.array([0.5, 0.5, 0.0, 0.0]), 1).tolist()
            [1.5, 0.5]
        """
        q = as_distribution(q, "q", self.num_texts)
        return pool_counts(self.ngrams(n), q, self.vocab_size**n)

    def ngram_distribution(self, q: PerText, n: int) -> Float[Array, " ngrams"]:
        r"""The n-gram distribution $Q_g$: expected counts divided by their total.

        $Q_g(g) = \sum_x Q(x)\,count_x(g) \,/\, \sum_x Q(x)\,(|x| - n + 1)_+$. Here |x|
        is the length of x, and $(\cdot)_+$ the positive part. For one length it is
        linear in Q, the average over positions; for several it is a ratio of linear
        functions.

        Args:
            q: distribution over the texts, shape (num_texts,).
            n: order, 1 .. max_length.

        Returns:
            Distribution over n-grams, shape (vocab_size**n,).

        Raises:
            ValueError: `q` is not a distribution over this space, `n` is out of range,
                or every text of positive probability is shorter than `n`.

        References:
            Li et al. 2020, section 5.2.

        Example:
            >>> space = TextSpace(vocab_size=2, lengths=2)
            >>> space.ngram_distribution(np.array([0.5, 0.5, 0.0, 0.0]), 1).tolist()
            [0.75, 0.25]
        """
        q = as_distribution(q, "q", self.num_texts)
        return pool_to_distribution(self.ngrams(n), q, self.vocab_size**n)


@partial(jax.jit, static_argnums=2)
def pool_counts(
    ngrams: Int[ArrayLike, "texts positions"], q: PerText, num_ngrams: int
) -> Float[Array, " ngrams"]:
    """Compute expected counts from an n-gram table; see `TextSpace.ngram_counts`.

    The table is an argument so that compiled code shares one copy of it.
    """
    ngrams = jnp.asarray(ngrams)
    weights = jnp.asarray(q)[:, None] * (ngrams >= 0)
    return jnp.zeros(num_ngrams).at[ngrams].add(weights)


def pool_to_distribution(
    ngrams: Int[ArrayLike, "texts positions"], q: PerText, num_ngrams: int
) -> Float[Array, " ngrams"]:
    """Divide expected counts by their total; see `TextSpace.ngram_distribution`."""
    counts = pool_counts(ngrams, q, num_ngrams)
    total = counts.sum()
    if not isinstance(total, Tracer) and total == 0:
        raise ValueError(
            "every text of positive probability is shorter than n, so there is no "
            "n-gram; take a smaller n"
        )
    return counts / total


def _magnitude(number: int) -> str:
    """Format a number in full or, from 10^15 on, as a power of ten."""
    return f"{number:,}" if number < 10**15 else f"10^{math.log10(number):.1f}"


def require_space(space: Any) -> None:
    """Raise unless it is a space of texts."""
    require("a space of texts, such as qd.TextSpace(4, 3)", TextSpace, space=space)


def _require_size(name: str, value: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(
            f"{name} must be an integer, got {value!r}; "
            "give one length or a tuple of lengths"
        )
    require_positive(**{name: value})


@lru_cache(maxsize=16)
def _tokens(space: TextSpace) -> np.ndarray:
    table = np.full((space.num_texts, space.max_length), -1, dtype=np.int32)
    start = 0
    for length in space.lengths:
        size = space.vocab_size**length
        # The digits of a row's number in base |V|.
        place_values = space.vocab_size ** np.arange(length)[::-1]
        rows = np.arange(size)[:, None]
        table[start : start + size, :length] = rows // place_values % space.vocab_size
        start += size
    table.setflags(write=False)
    return table


@lru_cache(maxsize=16)
def _ngrams(space: TextSpace, n: int) -> np.ndarray:
    tokens, positions = space.tokens, space.max_length - n + 1
    # Position by position the number of tokens i .. i + n - 1 in base |V|.
    number = np.zeros((space.num_texts, positions), dtype=np.int64)
    for offset in range(n):
        number = number * space.vocab_size + tokens[:, offset : offset + positions]
    table = np.where(tokens[:, n - 1 :] >= 0, number, -1)
    table.setflags(write=False)
    return table
