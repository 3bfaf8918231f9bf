r"""Decoders: the exact distribution that each makes of a language model.

A decoder changes the distribution of the next token after every prefix; that of texts
is the product of the changed ones. Truncations set some tokens to 0 and divide by what
is left. Their order, ties and thresholds are those of Hugging Face transformers
(generation/logits_process.py), in float64: equal probabilities share one fate except
under `TopP`, which breaks ties by a sort. Several decoders are a tuple, applied in its
order, each to what the one before left; transformers' order is Temperature, TopK, TopP,
MinP, Typical, Epsilon, Eta. `TopH`, `PLess` and `MinK` are those of their papers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import ArrayLike, Bool, Float

from lab.generators.alignment import best_of_n
from lab.generators.models import Model, require_model
from qdtheory.distributions import require_positive
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import EPS, PerText, within

Laws = Float[np.ndarray, "*prefixes vocab"]


@runtime_checkable
class TokenDecoder(Protocol):
    """A change of the distribution of the next token."""

    def __call__(self, laws: Laws) -> Laws:
        """Return the changed distributions, one a row."""
        ...


@dataclass(frozen=True)
class Temperature:
    r"""Token temperature: each probability to the power $1/t$, normalised.

    Args:
        t: positive and finite; below 1 it sharpens. For 0 take `Greedy`.

    Claims: N24.5.

    Example:
        >>> Temperature(0.5)(np.array([0.6, 0.2, 0.2])).round(3).tolist()
        [0.818, 0.091, 0.091]
    """

    t: int | float

    def __post_init__(self) -> None:
        if not 0 < self.t < np.inf:
            raise ValueError(
                f"t must be positive and finite, got {self.t}; for 0 take Greedy()"
            )

    def __call__(self, laws: Laws) -> Laws:
        """Return the tempered distributions, one a row."""
        laws = np.asarray(laws, float)
        return _normalised((laws / laws.max(axis=-1, keepdims=True)) ** (1 / self.t))


@dataclass(frozen=True)
class Greedy:
    """Always the most probable token; of several, the first.

    Example:
        >>> Greedy()(np.array([0.2, 0.4, 0.4])).tolist()
        [0.0, 1.0, 0.0]
    """

    def __call__(self, laws: Laws) -> Laws:
        """Return a point mass a row."""
        laws = np.asarray(laws, float)
        return np.eye(laws.shape[-1])[laws.argmax(axis=-1)]


class _Truncation:
    """Keeps some tokens in proportion; `TopK` and `MinK` have no share of [0, 1]."""

    min_tokens_to_keep: int = 1
    ends: ClassVar[str] = "[]"  # which ends of [0, high] the share may take
    high: ClassVar[float] = 1

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if name in ("k", "min_tokens_to_keep"):
                require_positive(**{name: number})
            elif not isinstance(number, bool):
                within(**{name: number}, low=0, high=self.high, ends=self.ends)

    def __call__(self, laws: Laws) -> Laws:
        """Return the truncated distributions, one a row."""
        laws = np.asarray(laws, float)
        return _normalised(np.where(self.keeps(laws), laws, 0.0))

    def keeps(self, laws: Laws) -> Bool[np.ndarray, "*prefixes vocab"]:
        """Return which tokens stay."""
        raise NotImplementedError

    def _unsorted(self, kept: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Keep the first of sorted tokens too, then go back to the vocabulary."""
        kept[..., : self.min_tokens_to_keep] = True
        found = np.empty_like(kept)
        np.put_along_axis(found, order, kept, axis=-1)
        return found


@dataclass(frozen=True)
class TopK(_Truncation):
    """The k most probable tokens, and all that tie with the last of them.

    Args:
        k: at least 1; more than the vocabulary is all of it.
        min_tokens_to_keep: replaces a smaller k.

    References:
        Fan et al. 2018; transformers, TopKLogitsWarper.

    Example:
        >>> TopK(1)(np.array([0.2, 0.4, 0.4])).tolist()
        [0.0, 0.5, 0.5]
    """

    k: int
    min_tokens_to_keep: int = 1

    def keeps(self, laws: Laws) -> Bool[np.ndarray, "*prefixes vocab"]:
        """Return which tokens stay."""
        return laws >= _kth_greatest(laws, max(self.k, self.min_tokens_to_keep))


@dataclass(frozen=True)
class TopP(_Truncation):
    """Nucleus sampling: the fewest most probable tokens that hold a mass.

    From the least probable on, tokens go while their sum is at most 1 - mass. Of equal
    ones the first go first.

    Args:
        mass: in [0, 1]; at 1 all tokens stay, at 0 the last of the most probable.
        min_tokens_to_keep: so many of the most probable stay.

    References:
        Holtzman et al. 2020; transformers, TopPLogitsWarper.

    Example:
        >>> TopP(0.75)(np.array([0.5, 0.25, 0.25])).round(3).tolist()
        [0.667, 0.0, 0.333]
    """

    mass: int | float
    min_tokens_to_keep: int = 1

    def keeps(self, laws: Laws) -> Bool[np.ndarray, "*prefixes vocab"]:
        """Return which tokens stay."""
        order = np.argsort(laws, axis=-1, kind="stable")
        kept = _sorted(laws, order).cumsum(axis=-1) > 1 - self.mass
        return self._unsorted(kept[..., ::-1], order[..., ::-1])


@dataclass(frozen=True)
class MinP(_Truncation):
    """Tokens of at least a share of the greatest probability.

    Args:
        share: in [0, 1]; at 1 the most probable tokens stay.
        min_tokens_to_keep: so many of the most probable stay; of equal ones the first.

    References:
        Nguyen et al. 2025; transformers, MinPLogitsWarper.

    Example:
        >>> MinP(0.5)(np.array([0.5, 0.25, 0.125, 0.125])).round(3).tolist()
        [0.667, 0.333, 0.0, 0.0]
    """

    share: int | float
    min_tokens_to_keep: int = 1

    def keeps(self, laws: Laws) -> Bool[np.ndarray, "*prefixes vocab"]:
        """Return which tokens stay."""
        order = np.argsort(-laws, axis=-1, kind="stable")
        kept = _sorted(laws, order) >= self.share * _kth_greatest(laws, 1)
        return self._unsorted(kept, order)


@dataclass(frozen=True)
class Typical(_Truncation):
    r"""Tokens whose surprise $-\log q$ is closest to its mean, until they hold a mass.

    All that are as close as the last one stay, so the most probable token may go.

    Args:
        mass: in (0, 1).
        min_tokens_to_keep: so many of the closest stay; of equally close ones the
            first.

    References:
        Meister et al. 2023; transformers, TypicalLogitsWarper.

    Example:
        >>> Typical(0.2)(np.array([0.5, 0.25, 0.125, 0.125])).tolist()
        [0.0, 1.0, 0.0, 0.0]
    """

    mass: float
    min_tokens_to_keep: int = 1
    ends: ClassVar[str] = "()"

    def keeps(self, laws: Laws) -> Bool[np.ndarray, "*prefixes vocab"]:
        """Return which tokens stay."""
        surprise = _surprise(laws)
        distance = np.abs(surprise - _entropy(laws))
        order = np.argsort(distance, axis=-1, kind="stable")
        held = _sorted(laws, order).cumsum(axis=-1)
        last = (held < self.mass).sum(axis=-1, keepdims=True)
        ranked = _sorted(distance, order)
        kept = ranked <= _sorted(ranked, np.minimum(last, laws.shape[-1] - 1))
        return self._unsorted(kept, order)


@dataclass(frozen=True)
class Epsilon(_Truncation):
    """Tokens of at least a probability; if there are none, the most probable.

    Args:
        cutoff: epsilon, in (0, 1).
        min_tokens_to_keep: so many of the most probable stay, and what ties with them.

    References:
        Hewitt et al. 2022; transformers, EpsilonLogitsWarper.

    Example:
        >>> Epsilon(0.2)(np.array([0.6, 0.2, 0.1, 0.1])).round(3).tolist()
        [0.75, 0.25, 0.0, 0.0]
    """

    cutoff: float
    min_tokens_to_keep: int = 1
    ends: ClassVar[str] = "()"

    def keeps(self, laws: Laws) -> Bool[np.ndarray, "*prefixes vocab"]:
        """Return which tokens stay."""
        least = self._threshold(laws)
        return (laws >= least) | (laws >= _kth_greatest(laws, self.min_tokens_to_keep))

    def _threshold(self, laws: Laws) -> Laws | float:
        return self.cutoff


@dataclass(frozen=True)
class Eta(Epsilon):
    r"""As `Epsilon`, with the cutoff $\min(\epsilon, \sqrt\epsilon\, e^{-H})$.

    H is the entropy of the next token, so that a flat distribution is cut less.

    Args:
        cutoff: epsilon, in (0, 1).
        min_tokens_to_keep: as for `Epsilon`.

    References:
        Hewitt et al. 2022; transformers, EtaLogitsWarper.

    Example:
        >>> Eta(0.2)(np.full(8, 0.125)).tolist() == [0.125] * 8
        True
    """

    def _threshold(self, laws: Laws) -> Laws | float:
        flat = np.sqrt(self.cutoff) * np.exp(-_entropy(laws))
        return np.minimum(self.cutoff, flat)


@dataclass(frozen=True)
class TopH(_Truncation):
    r"""The most probable tokens, while the entropy of what is left is bounded.

    Tokens stay, from the most probable on, while $H(q) \le \alpha H(p)$, where q is
    the law p of the next token on those kept, normalised. H(q) rises with each of them.

    Args:
        share: alpha, in (0, 1]; at 1 all tokens stay.
        normalised: False for the rule in transformers, which puts the sum of
            $-p \log p$ over the kept tokens in the place of H(q).

    References:
        Baghaei Potraghloo et al. 2025, Algorithm 1; transformers, TopHLogitsWarper,
        which also looks at no more than 100 tokens.

    Example:
        >>> TopH(0.6)(np.array([0.5, 0.25, 0.125, 0.125])).round(3).tolist()
        [0.667, 0.333, 0.0, 0.0]
    """

    share: int | float
    normalised: bool = True
    ends: ClassVar[str] = "(]"

    def keeps(self, laws: Laws) -> Bool[np.ndarray, "*prefixes vocab"]:
        """Return which tokens stay."""
        order = np.argsort(-laws, axis=-1, kind="stable")
        ranked = _sorted(laws, order)
        mass = ranked.cumsum(axis=-1) if self.normalised else 1.0
        entropy = _terms(ranked).cumsum(axis=-1) / mass + np.log(mass)
        return self._unsorted(entropy <= self.share * entropy[..., -1:], order)


@dataclass(frozen=True)
class PLess(_Truncation):
    r"""Tokens at least as probable as two draws are to be equal, $\sum_i p_i^2$.

    There is no dial; the most probable token always stays.

    Args:
        norm: True for p-less-norm with its lower threshold,
            $(V \sum_i p_i^2 - 1) / (V - 1)$ for a vocabulary of V tokens.

    References:
        Tan et al. 2026, p-less and p-less-norm.

    Example:
        >>> PLess()(np.array([0.4, 0.35, 0.15, 0.1])).round(3).tolist()
        [0.533, 0.467, 0.0, 0.0]
    """

    norm: bool = False

    def keeps(self, laws: Laws) -> Bool[np.ndarray, "*prefixes vocab"]:
        """Return which tokens stay."""
        least = (laws**2).sum(axis=-1, keepdims=True)
        if self.norm:
            least = (least * laws.shape[-1] - 1) / max(laws.shape[-1] - 1, 1)
        return (laws >= least) | (laws >= _kth_greatest(laws, 1))


@dataclass(frozen=True)
class MinK(_Truncation):
    r"""The tokens before the steepest fall of the sorted logits, and what ties.

    With the logits $l_1 \ge \dots \ge l_V$ the first k stay, where k is the i of the
    greatest $(l_i - l_{i+1}) / i$, or $\lfloor \tau / (l_1 - l_V) \rfloor$ if that is
    more, for laws that are nearly flat. Tokens of probability 0 do not count.

    Args:
        tau: at least 0; at 0 a temperature does not change which tokens stay.

    References:
        Ding et al. 2026; the default is theirs.

    Example:
        >>> MinK()(np.array([0.4, 0.4, 0.1, 0.1])).tolist()
        [0.5, 0.5, 0.0, 0.0]
    """

    tau: int | float = 3.0
    high: ClassVar[float] = np.inf

    def keeps(self, laws: Laws) -> Bool[np.ndarray, "*prefixes vocab"]:
        """Return which tokens stay."""
        ranked = -np.sort(-laws, axis=-1)
        least = np.where(ranked > 0, ranked, 1).min(axis=-1, keepdims=True)
        falls = -np.diff(np.log(np.maximum(ranked, least)), append=np.log(least))
        steps = np.arange(1, laws.shape[-1] + 1)
        cliff = (falls / steps).argmax(axis=-1, keepdims=True) + 1
        range_ = np.maximum(falls.sum(axis=-1, keepdims=True), 1e-200)
        k = np.maximum(cliff, np.floor(self.tau / range_))
        k = np.minimum(k, laws.shape[-1]).astype(int)
        return laws >= _sorted(ranked, k - 1)


@dataclass(frozen=True)
class Beam:
    r"""Beam search: the most probable text that it finds, with certainty.

    Each step keeps the `width` best prefixes. A text that ends among the `width` best
    candidates is finished; the greatest length ends all. The finished texts compete by
    $\log Q$ divided by the number of tokens, the end included, to the power of
    `length_penalty`. Nothing stops the search early.

    Args:
        width: number of prefixes kept, at least 1.
        length_penalty: 0 for the probability itself; texts of one length do not
            depend on it.

    References:
        transformers, `_beam_search` in generation/utils.py, with early_stopping
        "never" and a length penalty of 1 by default.

    Claims: N24.10.

    Example:
        >>> p = np.array([0.3, 0.3, 0.4, 0.0])
        >>> decode(p, TextSpace(vocab_size=2, lengths=2), Beam(1)).tolist()
        [1.0, 0.0, 0.0, 0.0]
        >>> decode(p, TextSpace(vocab_size=2, lengths=2), Beam(2)).tolist()
        [0.0, 0.0, 1.0, 0.0]
    """

    width: int
    length_penalty: int | float = 1.0

    def __post_init__(self) -> None:
        require_positive(width=self.width)


@dataclass(frozen=True, eq=False)
class BestOf:
    """The best of n texts drawn, by scores; see `best_of_n`.

    Args:
        n: number of texts drawn, at least 1.
        scores: of each text, shape (num_texts,).
    """

    n: int
    scores: PerText


Decoder = TokenDecoder | Beam | BestOf


def decode(
    model: Model | Float[ArrayLike, "*batch texts"],
    space: TextSpace,
    decoder: Decoder | Sequence[Decoder],
) -> Float[np.ndarray, "*batch texts"]:
    r"""The distribution over all texts that a decoder makes of a model.

    Args:
        model: any pytree with `probabilities(space)`; or the texts' distribution, or
            several, shape (..., num_texts).
        space: the texts. Of several lengths, the end of a text is a token after the
            others; it comes by itself at the greatest length.
        decoder: a decoder, or a tuple of them, applied in order. `Beam` and `BestOf`
            choose among texts, so only the last may be one of them.

    Returns:
        Distributions, shape (..., num_texts).

    Raises:
        TypeError: no model, or no decoder.
        ValueError: the model does not fit the space, or `Beam` or `BestOf` is not
            last.

    References:
        transformers, generation/logits_process.py, for what each decoder keeps.

    Claims: N24.2, N24.6, N24.7, N24.8, N24.9.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> p = np.array([0.4, 0.2, 0.1, 0.3])
        >>> decode(p, space, (Temperature(2.0), TopK(1))).tolist()
        [1.0, 0.0, 0.0, 0.0]
    """
    laws = next_token_distributions(_texts_of(model, space), space)
    steps = decoder if isinstance(decoder, tuple | list) else (decoder,)
    if not steps:
        raise ValueError("expected at least one decoder")
    last = steps[-1]
    for step in steps:
        if isinstance(step, Beam | BestOf):
            if step is not last:
                raise ValueError(f"{step!r:.60} chooses texts: it must be the last")
        elif isinstance(step, TokenDecoder):
            laws = [step(law) for law in laws]
        else:
            raise TypeError(f"expected a decoder, as TopK(5), got {step!r:.60}")
    if isinstance(last, Beam):
        return _found(laws, space, last)
    q = text_distribution(laws, space)
    if isinstance(last, BestOf):
        return np.apply_along_axis(best_of_n, -1, q, last.scores, last.n)
    return q


def next_token_distributions(
    q: Float[ArrayLike, "*batch texts"], space: TextSpace
) -> list[Float[np.ndarray, "..."]]:
    """The distribution of the next token after each prefix, level by level.

    Args:
        q: distributions over the texts, shape (..., num_texts).
        space: the texts.

    Returns:
        For each length t below the greatest, the distributions after the prefixes of t
        tokens, shape (..., |V|^t, |V|), in lexicographic order; with several lengths,
        one more column for the end. After a prefix of probability 0 it is uniform.

    Raises:
        ValueError: `q` does not hold distributions over the space.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> p = np.array([0.4, 0.2, 0.1, 0.3])
        >>> first, second = next_token_distributions(p, space)
        >>> first.round(3).tolist(), second.round(3).tolist()
        ([[0.6, 0.4]], [[0.667, 0.333], [0.25, 0.75]])
    """
    sizes = [space.vocab_size**length for length in space.lengths]
    parts = np.split(_distributions(q, space.num_texts), np.cumsum(sizes)[:-1], axis=-1)
    whole = dict(zip(space.lengths, parts))
    laws, mass = [], whole[space.max_length]
    for length in reversed(range(space.max_length)):
        parts = mass.reshape(*mass.shape[:-1], -1, space.vocab_size)
        if len(space.lengths) > 1:
            ends = whole.get(length, np.zeros(parts.shape[:-1]))
            parts = np.concatenate([parts, ends[..., None]], axis=-1)
        mass = parts.sum(axis=-1)
        seen = mass[..., None] > 0
        uniform = np.full_like(parts, 1 / parts.shape[-1])
        laws.append(np.divide(parts, mass[..., None], out=uniform, where=seen))
    return laws[::-1]


def text_distribution(
    laws: Sequence[Float[np.ndarray, "..."]], space: TextSpace
) -> Float[np.ndarray, "*batch texts"]:
    """The distribution of texts drawn token by token; see `next_token_distributions`.

    Args:
        laws: of the next token after each prefix, as from `next_token_distributions`.
        space: the texts.

    Returns:
        Distributions, shape (..., num_texts).

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=(1, 2))
        >>> q = np.array([0.1, 0.2, 0.3, 0.1, 0.3, 0.0])
        >>> laws = next_token_distributions(q, space)
        >>> text_distribution(laws, space).round(12).tolist()
        [0.1, 0.2, 0.3, 0.1, 0.3, 0.0]
    """
    prefix, parts = np.ones(laws[0].shape[:-1]), []
    for length, law in enumerate(laws):
        paths = prefix[..., None] * law
        if length in space.lengths:
            parts.append(paths[..., space.vocab_size])
        prefix = paths[..., : space.vocab_size].reshape(*paths.shape[:-2], -1)
    return np.concatenate([*parts, prefix], axis=-1)


def _texts_of(model: Any, space: TextSpace) -> Float[np.ndarray, "*batch texts"]:
    if isinstance(model, np.ndarray | Sequence) or hasattr(model, "__array__"):
        return np.asarray(model, float)
    require_model(model, space)
    return np.asarray(model.probabilities(space))


def _distributions(q: ArrayLike, size: int) -> np.ndarray:
    q = np.asarray(q, float)
    if q.ndim == 0 or q.shape[-1] != size:
        raise ValueError(
            f"the space has {size} texts, so q must have {size} entries in its last "
            f"axis; got shape {q.shape}"
        )
    if not (q >= 0).all() or not (abs(q.sum(-1) - 1) <= 1e-10 + size * EPS).all():
        raise ValueError("q must hold distributions: nonnegative numbers of sum 1")
    return q


def _found(laws: list[np.ndarray], space: TextSpace, beam: Beam) -> np.ndarray:
    """Point masses on what beam search finds."""
    batch = laws[0].shape[:-2]
    q = np.zeros((*batch, space.num_texts))
    for place in np.ndindex(*batch):
        q[place][_search([law[place] for law in laws], space, beam)] = 1
    return q


def _search(laws: list[np.ndarray], space: TextSpace, beam: Beam) -> int:
    """The index of the text that beam search finds."""
    sizes = [space.vocab_size**length for length in space.lengths]
    starts = dict(zip(space.lengths, np.cumsum([0, *sizes])))
    prefixes: np.ndarray = np.zeros(1, int)
    scores = np.zeros(1)
    best, found = -np.inf, -1
    for length, law in enumerate(laws):
        totals = scores[:, None] - _surprise(law[prefixes])
        order = np.argsort(-totals, axis=None, kind="stable")[: 2 * beam.width]
        order = order[totals.ravel()[order] > -np.inf]
        row, token = np.divmod(order, law.shape[-1])
        scores, ends = totals.ravel()[order], token == space.vocab_size
        texts = prefixes[row] * np.where(ends, 1, space.vocab_size)
        texts = texts + np.where(ends, 0, token)
        finished = ends | (length + 1 == space.max_length)
        for i in np.flatnonzero(finished[: beam.width]):
            value = scores[i] / (length + 1) ** beam.length_penalty
            if value > best:
                best = value
                found = starts[length if ends[i] else length + 1] + texts[i]
        prefixes, scores = (x[~ends][: beam.width] for x in (texts, scores))
    return int(found)


def _normalised(laws: Laws) -> Laws:
    return laws / laws.sum(axis=-1, keepdims=True)


def _kth_greatest(laws: Laws, k: int) -> Laws:
    k = min(k, laws.shape[-1])
    return np.partition(laws, -k, axis=-1)[..., -k, None]


def _sorted(x: np.ndarray, order: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, order, axis=-1)


def _surprise(laws: Laws) -> Laws:
    positive = laws > 0
    return -np.log(laws, out=np.full_like(laws, -np.inf), where=positive)


def _entropy(laws: Laws) -> Laws:
    """In nats, shape (..., 1)."""
    return _terms(laws).sum(axis=-1, keepdims=True)


def _terms(laws: Laws) -> Laws:
    """Of the entropy, $-p log p$."""
    return laws * np.where(laws > 0, _surprise(laws), 0)
