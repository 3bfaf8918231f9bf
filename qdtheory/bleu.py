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

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from qdtheory.distributions import Number, check_distribution
from qdtheory.pairs import STATIC
from qdtheory.spaces import TextSpace

# NLTK's smoothing method 1 replaces a count of 0 by this.
EPSILON = 0.1
BLOCK = 64
# Tables with at most this many entries are stored as matrices that fit into the cache.
SMALL = 2**16
MAX_BITS = 62
Smoothing = Literal["epsilon"] | None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BleuTable:
    r"""$E\,BLEU(c) = \sum_j w_j\,P(S_{k_j})^n$ over the terms j of text c.

    Attributes:
        sets: indicator rows of the K sets S of texts, in blocks of 64 rows, which fit
            into the cache as float64; the last block is padded with zeros.
        text: the candidate of each term, in ascending order.
        set_index: the set of each term, below K.
        weight: the weight of each term.
        dense: for a small table the weights as a matrix, with a row for each text and
            a column for each row of `sets`; otherwise None.
        num_sets: K.
    """

    sets: Int[ArrayLike, "blocks 64 texts"]
    text: Int[ArrayLike, " terms"]
    set_index: Int[ArrayLike, " terms"]
    weight: Float[ArrayLike, " terms"]
    dense: Float[ArrayLike, "texts rows"] | None
    num_sets: int = field(metadata=STATIC)


@jax.jit
def text_bleu(
    table: BleuTable, p: Float[ArrayLike, " texts"], num_references: Number
) -> Float[Array, " texts"]:
    """Expected BLEU of each text as candidate against references drawn from `p`.

    Args:
        table: `bleu_table(space, max_order)`.
        p: distribution of the references, shape (N,).
        num_references: n; may be traced, so that one compiled function serves every n.

    Returns:
        Values in [0, 1], shape (N,).
    """
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


def expected_bleu(
    space: TextSpace,
    q: Float[ArrayLike, " texts"],
    p: Float[ArrayLike, " texts"],
    max_order: int = 2,
    num_references: Number = 2,
    smoothing: Smoothing = None,
) -> Float[Array, ""]:
    r"""Expected BLEU of one candidate from `q` and independent references from `p`.

    Sentence BLEU as in NLTK: the geometric mean of the clipped n-gram precisions of
    orders 1 to max_order, times the brevity penalty for the reference length closest
    to the candidate's (the shorter on ties). A text without a matching n-gram of some
    order, such as one shorter than that order, has BLEU 0; `smoothing="epsilon"`
    replaces counts of 0 by 0.1, but a text without a matching token keeps BLEU 0.

    Args:
        space: the texts, of one or several lengths.
        q: the model, shape (num_texts,).
        p: the real distribution, shape (num_texts,).
        max_order: highest order of the n-grams.
        num_references: n, at least 1; may be traced.
        smoothing: None, or "epsilon" (NLTK's method 1).

    Returns:
        A scalar in [0, 1].

    Raises:
        ValueError: `q` or `p` is not a distribution over the space, max_order or
            num_references is below 1, unknown smoothing, or a table too large.

    References:
        Li et al. 2020, section 5.1; the closed form is ours.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> p = np.array([0.5, 0.5])
        >>> float(expected_bleu(space, p, p, max_order=1, num_references=2))
        0.75
    """
    table = bleu_table(space, max_order, smoothing)
    _check_references("num_references", num_references)
    q = check_distribution(q, "q", space.num_texts)
    p = check_distribution(p, "p", space.num_texts)
    return q @ text_bleu(table, p, num_references)


def expected_self_bleu(
    space: TextSpace,
    q: Float[ArrayLike, " texts"],
    max_order: int = 2,
    num_references: Number = 2,
    smoothing: Smoothing = None,
) -> Float[Array, ""]:
    """Expected Self-BLEU of num_references + 1 independent texts from `q`.

    Args:
        space: the texts, of one or several lengths.
        q: the model, shape (num_texts,).
        max_order: highest order of the n-grams.
        num_references: k, the number of texts minus 1, at least 1; may be traced.
        smoothing: as in `expected_bleu`.

    Returns:
        A scalar in [0, 1]; lower is more diverse.

    Raises:
        ValueError: as in `expected_bleu`.

    References:
        Li et al. 2020, section 5.1.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> float(expected_self_bleu(space, np.array([1.0, 0.0]), max_order=1))
        1.0
    """
    return expected_bleu(space, q, q, max_order, num_references, smoothing)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BleuPair:
    """Expected BLEU as quality, negative expected Self-BLEU as diversity.

    Args:
        space: the texts, of one or several lengths.
        max_order: highest order of the n-grams.
        num_references: n, references drawn from P for quality.
        num_self_references: k, references drawn from Q for diversity.
        smoothing: None, or "epsilon".
        table: filled in from the space; an array field, so that compiled code takes
            it as an argument.

    Raises:
        ValueError: as in `expected_bleu`.

    References:
        Li et al. 2020, section 5.1.

    Example:
        >>> pair = BleuPair(TextSpace(vocab_size=2, lengths=1), max_order=1)
        >>> p = np.array([0.5, 0.5])
        >>> float(pair.quality(p, p)), float(pair.diversity(p))
        (0.75, -0.75)
    """

    space: TextSpace = field(metadata=STATIC)
    max_order: int = field(default=2, metadata=STATIC)
    num_references: Number = 2
    num_self_references: Number = 2
    smoothing: Smoothing = field(default=None, metadata=STATIC)
    table: Any = None

    def __post_init__(self) -> None:
        _check_references("num_references", self.num_references)
        _check_references("num_self_references", self.num_self_references)
        if self.table is None:
            table = bleu_table(self.space, self.max_order, self.smoothing)
            object.__setattr__(self, "table", table)

    @property
    def name(self) -> str:
        """Display name, with the order of both metrics."""
        return f"BLEU-NSBLEU of order {self.max_order}"

    def text_quality(self, p: Float[ArrayLike, " texts"]) -> Float[Array, " texts"]:
        """Expected BLEU of each text given the real `p`, shape (num_texts,)."""
        p = check_distribution(p, "p", self.space.num_texts)
        return text_bleu(self.table, p, self.num_references)

    def quality(
        self, q: Float[ArrayLike, " texts"], p: Float[ArrayLike, " texts"]
    ) -> Float[Array, ""]:
        """Expected BLEU of the model `q` given the real `p`."""
        return check_distribution(q, "q", self.space.num_texts) @ self.text_quality(p)

    def diversity(self, q: Float[ArrayLike, " texts"]) -> Float[Array, ""]:
        """Minus the expected Self-BLEU of the model `q`."""
        q = check_distribution(q, "q", self.space.num_texts)
        return -q @ text_bleu(self.table, q, self.num_self_references)


def _check_references(name: str, number: Number) -> None:
    if not isinstance(number, jax.Array) and not (number >= 1 and number % 1 == 0):
        raise ValueError(f"{name} must be a whole number from 1 on, got {number}")


# --- Beyond the closed form ---------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """Mean over independent draws.

    Attributes:
        value: the mean.
        standard_error: estimated standard deviation of the mean.
    """

    value: float
    standard_error: float


def estimate_bleu(
    candidates: Int[ArrayLike, "draws length"],
    references: Int[ArrayLike, "draws references other_length"],
    max_order: int = 2,
    smoothing: Smoothing = None,
) -> Estimate:
    """Expected BLEU by Monte Carlo, for spaces too large to enumerate.

    Each draw is one candidate with its own references; for Self-BLEU, draw both from
    the model. Conventions as in `expected_bleu`.

    Args:
        candidates: tokens, shape (S, L), -1 after the end of a text.
        references: tokens, shape (S, n, L'), -1 after the end of a text.
        max_order: highest order of the n-grams.
        smoothing: None, or "epsilon".

    Returns:
        The mean BLEU of the draws with its standard error.

    Raises:
        ValueError: wrong shapes, fewer than two draws, different numbers of draws, an
            empty text, or a bad max_order or smoothing.

    Example:
        >>> candidates = np.array([[0, 1, 1], [0, 0, 1]])
        >>> references = np.array([[[0, 1, 1]], [[1, 1, 1]]])
        >>> round(estimate_bleu(candidates, references, max_order=1).value, 6)
        0.666667
    """
    texts, others = np.asarray(candidates), np.asarray(references)
    _check_options(max_order, smoothing)
    if texts.ndim != 2 or others.ndim != 3 or len(texts) != len(others):
        raise ValueError(
            "candidates must have shape (draws, length) and references (draws, "
            f"references, length), got {texts.shape} and {others.shape}"
        )
    if len(texts) < 2:
        raise ValueError(f"a standard error needs at least 2 draws, got {len(texts)}")
    length, lengths = ((x >= 0).sum(axis=-1) for x in (texts, others))
    if lengths.size == 0 or min(length.min(), lengths.min()) == 0:
        raise ValueError("no text may be empty, and each draw needs a reference")
    found = np.array([_found(texts, others, n) for n in range(1, max_order + 1)])
    possible = np.maximum(1, length - np.arange(max_order)[:, None])
    # The closest length, the shorter on ties.
    key = 2 * np.abs(lengths - length[:, None]) + (lengths > length[:, None])
    closest = np.take_along_axis(lengths, key.argmin(axis=1)[:, None], axis=1)[:, 0]
    scores = _score(found, possible, length, closest, smoothing)
    return Estimate(
        float(scores.mean()), float(scores.std(ddof=1) / len(scores) ** 0.5)
    )


def _found(texts: np.ndarray, others: np.ndarray, n: int) -> np.ndarray:
    """Count the clipped n-gram matches of each text with its references."""
    if n > min(texts.shape[1], others.shape[2]):
        return np.zeros(len(texts), int)
    own, theirs = (
        np.lib.stride_tricks.sliding_window_view(x, n, axis=-1) for x in (texts, others)
    )
    whole = own[..., -1] >= 0
    same = (own[:, :, None] == own[:, None]).all(axis=-1)
    # A text's j-th occurrence of an n-gram needs a reference with at least j.
    occurrence = np.tril(same).sum(axis=-1)
    equal = (own[:, None, :, None] == theirs[:, :, None]).all(axis=-1)
    most = equal.sum(axis=-1).max(axis=1)
    return (whole & (most >= occurrence)).sum(axis=1)


def expected_corpus_bleu(
    space: TextSpace,
    q: Float[ArrayLike, " texts"],
    p: Float[ArrayLike, " texts"],
    max_order: int = 2,
    num_references: int = 2,
    num_candidates: int = 2,
    smoothing: Smoothing = None,
) -> float:
    r"""Expected BLEU of several candidates with pooled counts (corpus BLEU).

    All candidates share the references. Given these the candidates are independent,
    so their counts are convolved, once for each of the $\binom{N + n - 1}{n}$
    multisets of references: for small spaces only. The result is a polynomial of
    degree `num_candidates` in q.

    Args:
        space: the texts.
        q: the model, shape (num_texts,).
        p: the real distribution, shape (num_texts,).
        max_order: highest order of the n-grams.
        num_references: n.
        num_candidates: m.
        smoothing: None, or "epsilon".

    Returns:
        A number in [0, 1]; for one candidate equal to `expected_bleu`.

    Raises:
        ValueError: as in `expected_bleu`, or more than a million multisets.

    References:
        Li et al. 2020, section 5.1, which pools m candidates.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> p = np.array([0.5, 0.5])
        >>> expected_corpus_bleu(space, p, p, max_order=1, num_candidates=3)
        0.75
    """
    _check_options(max_order, smoothing)
    _check_references("num_references", num_references)
    _check_references("num_candidates", num_candidates)
    q = np.asarray(check_distribution(q, "q", space.num_texts))
    p = np.asarray(check_distribution(p, "p", space.num_texts))
    multisets = math.comb(space.num_texts + num_references - 1, num_references)
    if multisets > 10**6:
        raise ValueError(
            f"pooled BLEU sums over {multisets:,} multisets of references, 1,000,000 "
            "at most; take fewer references, or expected_bleu for one candidate"
        )
    lengths = space.text_lengths
    orders = range(1, min(max_order, space.max_length) + 1)
    tables = [_count_table(space, n).astype(int) for n in orders]
    possible = np.maximum(1, lengths - np.arange(max_order)[:, None])
    # Summed over the candidates: matched and possible n-grams, and lengths.
    most = possible.max(axis=1)
    limits = np.concatenate([most, most, np.full(2, space.max_length)])
    sizes = num_candidates * limits + 1
    places = np.cumprod(np.append(1, sizes[:-1]))
    total = 0.0
    for multiset in combinations_with_replacement(np.flatnonzero(p), num_references):
        references = np.array(multiset)
        found = [
            np.minimum(table, table[:, references].max(axis=1, keepdims=True)).sum(
                axis=0
            )
            for table in tables
        ]
        found += [np.zeros_like(lengths)] * (max_order - len(found))
        far = np.abs(lengths[references] - lengths[:, None])
        key = 2 * far + (lengths[references] > lengths[:, None])
        closest = lengths[references][key.argmin(axis=1)]
        state = places @ np.array([*found, *possible, lengths, closest])
        states, chances = _sum_of_draws(state, q, num_candidates)
        digits = states // places[:, None] % sizes[:, None]
        scores = _score(
            digits[:max_order],
            digits[max_order : 2 * max_order],
            digits[-2],
            digits[-1],
            smoothing,
        )
        counts = np.unique(references, return_counts=True)[1]
        orderings = math.factorial(num_references) / math.prod(
            map(math.factorial, counts.tolist())
        )
        total += orderings * p[references].prod() * float(scores @ chances)
    return float(total)


def _sum_of_draws(
    values: np.ndarray, q: np.ndarray, num_draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distribution of a sum of i.i.d. integers."""
    kinds, kind = np.unique(values, return_inverse=True)
    chance = np.bincount(kind, q)
    sums, chances = kinds, chance
    for _ in range(num_draws - 1):
        sums, where = np.unique(sums[:, None] + kinds, return_inverse=True)
        chances = np.bincount(where.ravel(), np.outer(chances, chance).ravel())
    return sums, chances


def _check_options(max_order: int, smoothing: Smoothing) -> None:
    if max_order < 1:
        raise ValueError(f"max_order must be at least 1, got {max_order}")
    if smoothing not in (None, "epsilon"):
        raise ValueError(f'smoothing must be None or "epsilon", got {smoothing!r}')


# --- The table ---------------------------------------------------------------------


@lru_cache(maxsize=8)
def bleu_table(
    space: TextSpace, max_order: int, smoothing: Smoothing = None
) -> BleuTable:
    """Build the sets and weights of the closed form, cached per space and order.

    Args:
        space: the texts.
        max_order: highest order; above the greatest length, BLEU without smoothing
            is 0.
        smoothing: None, or "epsilon".

    Returns:
        The table, valid for all distributions and numbers of references.

    Raises:
        ValueError: max_order below 1, unknown smoothing, texts too long for 62 bits,
            or a table beyond 2 GiB.

    Example:
        >>> space = TextSpace(vocab_size=4, lengths=3)
        >>> [bleu_table(space, n).num_sets for n in (1, 2, 3)]
        [13, 155, 65]
    """
    _check_options(max_order, smoothing)
    space.refuse_beyond_memory(space.num_texts**2, "BLEU table")
    # A set is identified by the sum of its members' random 64-bit numbers.
    names = np.random.default_rng(0).integers(2**64, size=space.num_texts, dtype="u8")
    known: dict[int, int] = {}
    rows, text, set_index, weight = [], [], [], []
    joins: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}
    for candidate in range(space.num_texts):
        clipped, segments = _clipped_counts(space, max_order, candidate)
        pattern = _pattern(space.tokens[candidate])
        if pattern not in joins:
            length = int(space.text_lengths[candidate])
            tops = _joins(np.unique(clipped), space)
            values = _bleu(tops, segments, length, space.lengths, smoothing)
            joins[pattern] = _weights(tops, values)
        tops, weights = joins[pattern]
        kinds, kind = np.unique(clipped, return_inverse=True)
        sums = np.zeros(kinds.size, "u8")
        np.add.at(sums, kind, names)
        below = (kinds & ~tops[:, None]) == 0
        for top, row, value in zip(tops, np.where(below, sums, 0).sum(axis=1), weights):
            if int(row) not in known:
                known[int(row)] = len(rows)
                space.refuse_beyond_memory(
                    (len(rows) + 1) * space.num_texts, "BLEU table"
                )
                rows.append((clipped & ~top) == 0)
            text.append(candidate)
            set_index.append(known[int(row)])
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
            counts = _count_table(space, n)[gram].astype(np.int64)
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


@lru_cache(maxsize=8)
def _count_table(space: TextSpace, n: int) -> np.ndarray:
    """Count of each n-gram in each text, shape (ngrams, texts)."""
    ngrams = space.ngrams(n)
    num_ngrams = space.vocab_size**n
    space.refuse_beyond_memory(num_ngrams * space.num_texts, "n-gram count table")
    counts = np.zeros((num_ngrams, space.num_texts), np.uint8)
    texts, _ = np.nonzero(ngrams >= 0)
    np.add.at(counts, (ngrams[ngrams >= 0], texts), 1)
    counts.setflags(write=False)
    return counts


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

    # v(s) = sum of w(t) over t >= s: solve for the weights from the top down.
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
    possible = np.maximum(1, length - np.arange(len(orders)))[:, None]
    return _score(np.array(orders), possible, np.array(length), closest, smoothing)


def _score(
    found: np.ndarray,
    possible: np.ndarray,
    length: np.ndarray,
    closest: np.ndarray,
    smoothing: Smoothing,
) -> np.ndarray:
    """BLEU from matched and possible n-grams, shape (orders, ...), and the lengths."""
    counts = np.where(found == 0, EPSILON, found) if smoothing == "epsilon" else found
    with np.errstate(divide="ignore"):
        precision = np.exp(np.log(counts / possible).mean(axis=0))
    brevity = np.minimum(1.0, np.exp(1 - closest / length))
    return np.where(found[0] > 0, brevity * precision, 0.0)


def _by_closeness(lengths: tuple[int, ...], length: int) -> list[int]:
    """Sort the lengths from closest to farthest, the shorter first on ties."""
    return sorted(lengths, key=lambda other: (abs(other - length), other))
