r"""Expected BLEU in closed form, as a short sum of powers.

For a candidate c and one reference r, let m(c, r) be the vector of clipped counts
$\min(count_c(g), count_r(g))$ of the candidate's n-grams g. With n references the
clipped counts are the elementwise maximum of the n vectors, their join. For
independent references from P the join is at most s with probability $F_c(s)^n$, where
$F_c(s) = \Pr(m(c, r) \le s)$, and Moebius inversion over the joins gives
$E\,BLEU(c) = \sum_s w_c(s) F_c(s)^n$ with weights that depend on neither P nor n.

A vector of clipped counts is encoded as bits, in unary for each n-gram: the join is OR,
and "at most" means "no additional bit". For texts of several lengths the brevity
penalty needs the reference length closest to the candidate's, encoded in a few more
bits by rank of closeness. Candidates that are equal up to renaming of tokens share
their joins and weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from qdtheory.bleu_formula import (
    Smoothing,
    bleu_of_matches,
    matches,
    require_smoothing,
)
from qdtheory.distributions import as_distributions, require_positive
from qdtheory.ngrams import ngram_matrix
from qdtheory.spaces import TextSpace, require_space
from qdtheory.support.numbers import (
    STATIC,
    Number,
    PerText,
    TextArray,
    require,
)

# Sets to a block, of which one at a time is turned into floats.
BLOCK = 64
# Tables with at most this many entries are stored as matrices that fit into the cache.
SMALL = 2**16
# Bits of a nonnegative int64, less one to spare.
MAX_BITS = 62
_counts = lru_cache(maxsize=8)(ngram_matrix)


def expected_bleu(
    space: TextSpace,
    q: PerText,
    p: PerText,
    max_order: int = 4,
    num_references: Number = 2,
    smoothing: Smoothing = None,
) -> Float[Array, " orders"]:
    r"""Expected BLEU of one candidate from `q` and independent references from `p`.

    Sentence BLEU as in NLTK: the geometric mean of the clipped n-gram precisions of
    orders 1 to n, times the brevity penalty for the reference length closest
    to the candidate's (the shorter on ties). A text without a matching n-gram of some
    order, such as one shorter than that order, has BLEU 0; `smoothing="epsilon"`
    replaces counts of 0 by 0.1, but a text without a matching token keeps BLEU 0.

    Estimated by `qd.text.bleu(..., smoothing=None)`, or with the smoothing given here.

    Args:
        space: the texts, of one or several lengths.
        q: the model, shape (num_texts,).
        p: the real distribution, shape (num_texts,).
        max_order: highest order of the n-grams.
        num_references: number of references, at least 1; may be traced.
        smoothing: None, or "epsilon" (NLTK's method 1).

    Returns:
        BLEU-1 to BLEU-max_order, each in [0, 1].

    Raises:
        ValueError: `q` or `p` is not a distribution over the space, max_order or
            num_references is below 1, unknown smoothing, or a table too large.

    References:
        Li et al. 2020, section 5.1; the closed form is ours.

    Claims: N7.9, N7.20.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> p = np.array([0.5, 0.5])
        >>> expected_bleu(space, p, p, max_order=2, num_references=2).tolist()
        [0.75, 0.0]
    """
    require_space(space)
    require_positive(max_order=max_order)
    tables = [bleu_table(space, n, smoothing) for n in range(1, max_order + 1)]
    require_references("num_references", num_references)
    q, p = as_distributions(space.num_texts, q=q, p=p)
    return jnp.stack([q @ text_bleu(table, p, num_references) for table in tables])


def expected_self_bleu(
    space: TextSpace,
    q: PerText,
    max_order: int = 4,
    num_references: Number = 2,
    smoothing: Smoothing = None,
) -> Float[Array, " orders"]:
    """Expected Self-BLEU of num_references + 1 independent texts from `q`.

    Estimated by `qd.text.self_bleu(..., smoothing=None)`, or the smoothing given here.

    Args:
        space: the texts, of one or several lengths.
        q: the model, shape (num_texts,).
        max_order: highest order of the n-grams.
        num_references: k, the number of texts minus 1, at least 1; may be traced.
        smoothing: as in `expected_bleu`.

    Returns:
        Self-BLEU-1 to Self-BLEU-max_order, each in [0, 1]; lower is more diverse.

    Raises:
        ValueError: as in `expected_bleu`.

    References:
        Li et al. 2020, section 5.1.

    Claims: N7.9, N7.14, N7.20.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> expected_self_bleu(space, np.array([1.0, 0.0]), max_order=1).tolist()
        [1.0]
    """
    return expected_bleu(space, q, q, max_order, num_references, smoothing)


def require_references(name: str, number: Number) -> None:
    """Raise unless a number of texts is a whole number from 1 on, or traced."""
    require("a whole number", **{name: number})
    if not isinstance(number, jax.Array) and not (number >= 1 and number % 1 == 0):
        raise ValueError(f"{name} must be a whole number from 1 on, got {number}")


# --- The table ------------------------------------------------------------------------
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BleuTable:
    r"""$E\,BLEU(c) = \sum_j w_j\,P(S_{k_j})^n$ over the terms j of text c.

    A term is a pair of a candidate c and a join s: the set $S = \{r: m(c, r) \le s\}$
    has the probability $F_c(s)$. Candidates share sets, so that these are stored once.

    Attributes:
        sets: 1 where a text is in a set; `num_sets` of them, then empty ones.
        text: c of each term, ascending.
        set_index: k of each term, the number of its set.
        weight: w of each term.
        dense: w as a matrix of texts and sets, if it is small.
        num_sets: number of different sets.
    """

    sets: Int[ArrayLike, "blocks 64 texts"]
    text: Int[ArrayLike, " terms"]
    set_index: Int[ArrayLike, " terms"]
    weight: Float[ArrayLike, " terms"]
    dense: Float[ArrayLike, "texts rows"] | None
    num_sets: int = field(metadata=STATIC)


@jax.jit
def text_bleu(table: BleuTable, p: PerText, num_references: Number) -> TextArray:
    """Expected BLEU of each text as candidate against references drawn from `p`."""
    p, sets = jnp.asarray(p), jnp.asarray(table.sets)
    if table.dense is not None:
        chances = sets.reshape(-1, p.size).astype(float) @ p
        return jnp.asarray(table.dense) @ _power(chances, num_references)
    # Without the checkpoint the derivative would keep all sets in float64.
    chance_of_block = jax.checkpoint(lambda block: block.astype(float) @ p)
    chances = jax.lax.map(chance_of_block, sets).ravel()
    terms = table.weight * _power(chances, num_references)[table.set_index]
    zeros = jnp.zeros(p.shape)
    return zeros.at[table.text].add(terms, indices_are_sorted=True)


@jax.custom_jvp
def _power(x: Array, n: Number) -> Array:
    """Compute x^n for integer n, with correct derivatives in x at 0; 1 if n < 0.

    JAX's second derivative of x^1 at 0 is 0 / 0. Repeated squaring is several times
    faster than XLA's power and errs by about n roundings, as much as a rounding of x.
    """

    def square(state):
        product, power, left = state
        return jnp.where(left % 2 == 1, product * power, product), power**2, left // 2

    exponent = jnp.asarray(n).astype(int)
    start = jnp.ones_like(x), x, jnp.broadcast_to(exponent, x.shape)
    return jax.lax.while_loop(lambda state: (state[2] > 0).any(), square, start)[0]


@_power.defjvp
def _power_jvp(primals, tangents):
    x, n = primals
    lower = _power(x, n - 1)  # the power is what costs time
    return jnp.where(n > 0, x * lower, 1.0), n * lower * tangents[0]


def bleu_table(
    space: TextSpace, max_order: int, smoothing: Smoothing = None
) -> BleuTable:
    """Build the sets and weights of the closed form, cached per space and order."""
    require_positive(max_order=max_order)
    require_smoothing(smoothing)
    return _table(space, max_order, smoothing)


@lru_cache(maxsize=8)
def _table(space: TextSpace, max_order: int, smoothing: Smoothing) -> BleuTable:
    space.refuse_beyond_memory(space.num_texts**2, "BLEU table")
    # A set is identified by the sum of its members' random 64-bit numbers.
    names = np.random.default_rng(0).integers(2**64, size=space.num_texts, dtype="u8")
    row_of: dict[int, int] = {}
    rows, text, set_index, weight = [], [], [], []
    terms = _terms(space, max_order, smoothing)
    for candidate, (clipped, tops, weights) in enumerate(terms):
        kinds, kind = np.unique(clipped, return_inverse=True)
        sums = np.zeros(kinds.size, "u8")
        np.add.at(sums, kind, names)
        below = (kinds & ~tops[:, None]) == 0
        for top, row, value in zip(tops, np.where(below, sums, 0).sum(axis=1), weights):
            index = row_of.setdefault(int(row), len(rows))
            if index == len(rows):
                num_bytes = (len(rows) + 1) * space.num_texts
                space.refuse_beyond_memory(num_bytes, "BLEU table")
                rows.append((clipped & ~top) == 0)
            text.append(candidate)
            set_index.append(index)
            weight.append(value)
    sets = np.zeros((-(-len(rows) // BLOCK) * BLOCK, space.num_texts), np.int8)
    for row, members in enumerate(rows):
        sets[row] = members
    dense = None
    if sets.size <= SMALL:
        dense = np.zeros(sets.T.shape)
        np.add.at(dense, (text, set_index), weight)
    return BleuTable(
        dense=dense,
        sets=sets.reshape(-1, BLOCK, space.num_texts),
        text=np.array(text, np.int32),
        set_index=np.array(set_index, np.int32),
        weight=np.array(weight, float),
        num_sets=len(rows),
    )


def _terms(
    space: TextSpace, max_order: int, smoothing: Smoothing
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Generate the bits of m(c, r) of each candidate c, their joins and the weights."""
    joins: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}
    for candidate in range(space.num_texts):
        clipped, segments = _clipped_counts(space, max_order, candidate)
        pattern = _pattern(space.tokens[candidate])
        if pattern not in joins:
            length = int(space.text_lengths[candidate])
            tops = _joins(np.unique(clipped), space)
            values = _bleu(tops, segments, length, space.lengths, smoothing)
            joins[pattern] = _weights(tops, values)
        yield clipped, *joins[pattern]


def _pattern(tokens: np.ndarray) -> tuple[int, ...]:
    """Rename the tokens in order of first appearance."""
    order: dict[int, int] = {}
    return tuple(order.setdefault(int(t), len(order)) for t in tokens if t >= 0)


# (first bit, number of bits) for the counts of each order, then for the length.
Segments = tuple[tuple[int, int], ...]


def _clipped_counts(
    space: TextSpace, max_order: int, candidate: int
) -> tuple[np.ndarray, Segments]:
    """Encode m(candidate, r) as bits for every reference r."""
    bits = np.zeros(space.num_texts, np.int64)
    segments, first = [], 0
    for n in range(1, max_order + 1):
        start = first
        grams = space.ngrams(n)[candidate] if n <= space.max_length else np.empty(0)
        for gram in dict.fromkeys(grams[grams >= 0].tolist()):
            counts = _counts(space, n, np.uint8)[gram].astype(np.int64)
            count = int(counts[candidate])
            bits |= ((1 << np.minimum(counts, count)) - 1) << first
            first += count
        segments.append((start, first - start))
    order = _by_closeness(space.lengths, int(space.text_lengths[candidate]))
    steps = len(order) - 1
    closeness = steps - np.array([order.index(n) for n in space.lengths])
    # The texts are sorted by length.
    each = np.repeat(closeness, [space.vocab_size**n for n in space.lengths])
    if first + steps > MAX_BITS:
        raise ValueError(
            f"texts of {first + steps} n-grams and lengths are too long for the BLEU "
            f"table, {MAX_BITS} at most; take shorter texts or a lower order"
        )
    bits |= ((1 << each) - 1) << first
    return bits, (*segments, (first, steps))


def _joins(clipped: np.ndarray, space: TextSpace) -> np.ndarray:
    """All unions of the rows of bits, sorted by number of bits."""
    joins = clipped[:1]
    for bits in clipped[1:]:
        joins = np.union1d(joins, np.append(joins | bits, bits))
        space.refuse_beyond_memory(8 * joins.size**2, "BLEU table")
    return joins[np.argsort(np.bitwise_count(joins), kind="stable")]


def _weights(joins: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moebius inversion of the values: the joins with nonzero weights."""
    from scipy.linalg import solve_triangular  # late: slow to import

    # F(s)^n is the sum of Pr(join = t) over t <= s, so that sum_s w(s) F(s)^n is the
    # mean of v(join) if v(t) = sum of w(s) over s >= t: a triangular system, as the
    # joins are sorted by number of bits.
    at_most = (joins[:, None] & ~joins) == 0
    weights = solve_triangular(at_most.astype(float), values, unit_diagonal=True)
    # The weights are sums of a few BLEU values in [0, 1].
    kept = np.abs(weights) > 1e-12
    return joins[kept], weights[kept]


def _bleu(
    clipped: np.ndarray,
    segments: Segments,
    length: int,
    lengths: tuple[int, ...],
    smoothing: Smoothing,
) -> np.ndarray:
    """BLEU of a candidate of given length, from the bits of its clipped counts."""
    *orders, rank = [
        np.bitwise_count(clipped >> start & ((1 << size) - 1)).astype(int)
        for start, size in segments
    ]
    closest = np.array(_by_closeness(lengths, length))[len(lengths) - 1 - rank]
    of_candidate = matches(np.array(orders), np.full(rank.shape, length), closest)
    return bleu_of_matches(of_candidate, smoothing)[-1]


def _by_closeness(lengths: tuple[int, ...], length: int) -> list[int]:
    """Sort the lengths from closest to farthest, the shorter first on ties."""
    return sorted(lengths, key=lambda other: (abs(other - length), other))
