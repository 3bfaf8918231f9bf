"""Pairs of a quality U(Q; P) and a diversity V(Q), and a pair posed at one P.

`form_of` alone looks at the class of a pair and says what a proof, a solver or a bound
needs: scores of texts, U, V, and f and g if there are. Public functions match the form
and hand on arrays and functions, so that `proofs/` and `bounds/` know of no pair.

The classes come first, then pairs by name, then `form_of` and `pose`.
"""

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product, starmap
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike

from qdtheory import forms
from qdtheory.bleu import BleuTable, bleu_table, require_references, text_bleu
from qdtheory.bleu_formula import Smoothing
from qdtheory.distributions import as_distribution, require_positive
from qdtheory.forms import Form, Functional, Problem, expected_score, given_scores
from qdtheory.formulas.code import Code, as_it_is_now
from qdtheory.formulas.tracing import require_traceable, require_values
from qdtheory.functions import (
    CR,
    DIVERSITIES,
    LL,
    NRR,
    QUALITIES,
    SE,
    Function,
    ScalarFunction,
    as_function,
    hit_chance,
    minus_repeat_chance,
)
from qdtheory.kernels import (
    density_matrix,
    features_of,
    matrix_log,
    require_kernel,
    von_neumann_entropy,
)
from qdtheory.spaces import TextSpace, pool_to_distribution, require_space
from qdtheory.support.layout import plain_name
from qdtheory.support.numbers import (
    EPS,
    STATIC,
    Number,
    PerText,
    Scalar,
    TextArray,
    TextMatrix,
    TextVector,
    require,
)
from qdtheory.support.records import Frozen, set_fields


# --- Pairs made of functions or of scores ---------------------------------------------
@runtime_checkable
class Pair(Protocol):
    """Any object with a quality U(Q; P) and a diversity V(Q); higher is better."""

    def quality(self, q: PerText, p: PerText) -> Scalar:
        """Return U(Q; P), the quality of the model `q` given the real `p`."""
        ...

    def diversity(self, q: PerText) -> Scalar:
        """Return V(Q), the diversity of the model `q`."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FunctionPair:
    """A pair made of any two functions that JAX can trace.

    Args:
        quality: U(q, p), maps two vectors to a scalar.
        diversity: V(q), maps a vector to a scalar.
        name: display name.

    Example:
        >>> pair = FunctionPair(lambda q, p: q @ p, lambda q: 1 - q.max(), "CR-max")
        >>> float(pair.diversity(np.array([0.75, 0.25])))
        0.25
    """

    quality: Callable[[ArrayLike, ArrayLike], ArrayLike] = field(metadata=STATIC)
    diversity: Callable[[ArrayLike], ArrayLike] = field(metadata=STATIC)
    name: str = field(default="quality-diversity", metadata=STATIC)

    def __post_init__(self) -> None:
        both = {"quality": self.quality, "diversity": self.diversity}
        require("a function of distributions", Callable, **both)


class Scores(Frozen):
    """Scores that are the same for every P."""

    def __call__(self, p: PerText) -> Array:
        """Return the scores, whatever `p` is."""
        return jnp.asarray(self.values)

    def __repr__(self) -> str:
        return f"<{self.values.size} scores>"


@jax.tree_util.register_dataclass
@dataclass(frozen=True, init=False)
class LinearPair:
    r"""Linear quality, separable diversity: $U = \phi(P) \cdot Q$, $V = \sum_i g(Q_i)$.

    This is the form that Theorem 2 requires.

    Args:
        scores: $\phi$: the score of each text as numbers, shape (N,), such as a
            scorer's; or a function that maps a distribution, shape (N,), to them. A
            score may be $-\infty$.
        g: a scalar function on [0, 1]: a formula in x, the name of one, or code that
            JAX can trace. No seal rests on code, as g or as scores.
        name: display name.

    Raises:
        TypeError: the scores are neither numbers nor a function, or JAX cannot trace g.
        ValueError: the scores are not one vector, one is NaN or $+\infty$, or g is a
            text that is neither a formula nor a name.

    Example:
        >>> pair = LinearPair([0.0, 1.0], "SE")
        >>> float(pair.quality(np.array([0.25, 0.75]), np.array([0.5, 0.5])))
        0.75
    """

    scores: Callable[[Array], Array] = field(metadata=STATIC)
    g: Function = field(metadata=STATIC)
    name: str = field(default="scores-diversity", metadata=STATIC)

    def __init__(
        self,
        scores: Callable[[Array], Array] | Sequence[int | float] | np.ndarray | Array,
        g: ScalarFunction | str,
        name: str = "scores-diversity",
    ) -> None:
        read = scores if callable(scores) else Scores(given_scores(scores))
        set_fields(self, scores=read, g=as_function(g, "g"), name=name)

    def text_quality(self, p: PerText) -> TextArray:
        r"""Return the score $\phi_i(P)$ of each text, finite or $-\infty$."""
        p = as_distribution(p)
        return one_score_a_text(self.scores(p), p, "scores")

    def quality(self, q: PerText, p: PerText) -> Scalar:
        r"""$U(Q; P) = \sum_i Q_i \phi_i(P)$, with $0 \cdot \infty = 0$.

        It is $-\infty$ if q puts mass on a text of score $-\infty$.
        """
        scores = self.text_quality(p)
        return expected_score(as_distribution(q, "q", scores.size), scores)

    def diversity(self, q: PerText) -> Scalar:
        r"""$V(Q) = \sum_i g(Q_i)$."""
        return self.g.total(as_distribution(q, "q"))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, init=False)
class SeparablePair:
    r"""Separable pair of Li et al.: $U = \sum_i Q_i f(P_i)$, $V = \sum_i g(Q_i)$.

    Args:
        f: a scalar function on [0, 1], applied to P: a formula in x ("log(x)"), the
            name of one ("LL"), or code that JAX can trace, on which no seal rests; it
            may be $-\infty$ at 0.
        g: a scalar function on [0, 1], applied to Q, likewise.
        name: display name; made of f and g by default.

    Raises:
        TypeError: JAX cannot trace f or g to one real number.
        ValueError: a text is neither a formula nor a name; see `Expression`.

    References:
        Li et al. 2020, section 3.1.

    Claims: E5.1, E5.2, E5.3.

    Example:
        >>> pair = SeparablePair("x", "-x**2")
        >>> pair.name, float(pair.quality(np.array([1.0, 0]), np.array([0.75, 0.25])))
        ('f = x, g = -x**2', 0.75)
        >>> SeparablePair("CR", "NRR").name
        'CR-NRR'
    """

    f: Function = field(metadata=STATIC)
    g: Function = field(metadata=STATIC)
    name: str = field(default="", metadata=STATIC)

    def __init__(
        self, f: ScalarFunction | str, g: ScalarFunction | str, name: str = ""
    ) -> None:
        f, g = as_function(f, "f"), as_function(g, "g")
        formulas = any(h.in_jax is h.formula for h in (f, g))
        own = f"f = {f.name}, g = {g.name}" if formulas else f"{f.name}-{g.name}"
        set_fields(self, f=f, g=g, name=name or own)

    def text_quality(self, p: PerText) -> TextArray:
        """Return the score f(P_i) of each text; see `LinearPair.text_quality`."""
        return self.f.evaluate(as_distribution(p))

    # Shared by all pairs with scores and a separable diversity.
    quality = LinearPair.quality
    diversity = LinearPair.diversity


# Pairs with a score for each text and a diversity that sums g(Q_i).
SummedPair: TypeAlias = SeparablePair | LinearPair

LL_SE = SeparablePair(LL, SE)
CR_NRR = SeparablePair(CR, NRR)
LL_NRR = SeparablePair(LL, NRR)
CR_SE = SeparablePair(CR, SE)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConcavePair:
    r"""Linear quality $U = u(P) \cdot Q$, concave diversity V.

    Args:
        text_quality: u, maps a distribution, shape (N,), to the score of each text,
            shape (N,); JAX-traceable. A score may be $-\infty$.
        diversity: V, maps a distribution, shape (N,), to a scalar; concave, twice
            differentiable at positive Q, JAX-traceable. Its slope may be infinite at 0.
        name: display name.

    Example:
        >>> import jax.numpy as jnp
        >>> pair = ConcavePair(lambda p: p, lambda q: -jnp.square(q).sum(), "CR-NRR")
        >>> p = np.array([0.75, 0.25])
        >>> float(pair.quality(p, p)), float(pair.diversity(p))
        (0.625, -0.625)
    """

    text_quality: Callable[[ArrayLike], Array] = field(metadata=STATIC)
    diversity: Functional = field(metadata=STATIC)
    name: str = field(default="linear-concave", metadata=STATIC)

    def __post_init__(self) -> None:
        both = {"text_quality": self.text_quality, "diversity": self.diversity}
        require("a function of a distribution", Callable, **both)

    def quality(self, q: PerText, p: PerText) -> Scalar:
        r"""$U(Q; P) = \sum_i Q_i u_i(P)$, with $0 \cdot \infty = 0$.

        It is $-\infty$ if q puts mass on a text of score $-\infty$.
        """
        p = as_distribution(p)
        scores = one_score_a_text(self.text_quality(p), p, "text_quality")
        return expected_score(as_distribution(q, "q", p.size), scores)


def compatible_quality(diversity: Functional, name: str | None = None) -> ConcavePair:
    r"""The pair of a diversity with its compatible quality, $\phi(P) = -\nabla V(P)$.

    Where V is not differentiable, JAX chooses one of several slopes, and the quality is
    one of several compatible ones if that slope is a supergradient.

    Args:
        diversity: V, maps a distribution, shape (N,), to a scalar; concave and
            JAX-traceable. Concavity is not checked: without it the quality is
            necessary for compatibility, not sufficient.
        name: display name; by default "compatible with" and the diversity's name.

    Returns:
        The pair, for the frontier, the verdict and the discrepancy.

    References:
        Gneiting and Raftery 2007, Theorem 2 (McCarthy, Savage), for the scoring rule;
        that it is the only compatible quality is ours.

    Claims: N16.1, N16.2, N16.4.

    Example:
        >>> pair = compatible_quality(lambda q: -jnp.square(q).sum())
        >>> pair.text_quality(np.array([0.75, 0.25])).tolist()
        [1.5, 0.5]
    """
    require("a function of a distribution", Callable, diversity=diversity)
    own = getattr(diversity, "__name__", type(diversity).__name__)
    quality = partial(_minus_gradient, diversity)
    return ConcavePair(quality, diversity, name or f"compatible with {own}")


def _minus_gradient(diversity: Functional, p: ArrayLike) -> Array:
    return -jax.grad(diversity)(as_distribution(p))


def one_score_a_text(scores: ArrayLike, p: ArrayLike, name: str) -> Array:
    """Return what the user's function `name` gave, if there is one score a text."""
    if jnp.shape(scores) != jnp.shape(p):
        raise ValueError(
            f"{name}(p) must give one score a text, shape {jnp.shape(p)}, got shape "
            f"{jnp.shape(scores)}"
        )
    return jnp.asarray(scores)


def is_concrete(field: Any) -> bool:
    """Whether a user gave a field; JAX rebuilds pairs with objects in its place."""
    given = np.ndarray | jax.Array | list | tuple | str | int | float | None
    return isinstance(field, given) and not isinstance(field, Tracer)


# --- A similarity of two texts --------------------------------------------------------
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KernelPair:
    r"""Similarity to P against dissimilarity within Q: $U = Q'KP$, $V = -Q'KQ$.

    U is the expected similarity of a model text and a real text, -V that of two model
    texts. With $\Psi = U + V / 2$ the gap $\Psi(P) - \Psi(Q) = (Q - P)'K(Q - P) / 2$ is
    half the squared maximum mean discrepancy (MMD) of P and Q. For K = I the pair is
    CR-NRR, and the squared MMD is CND.

    Args:
        kernel: K, symmetric up to rounding, finite, float64, shape (N, N); it need
            not be positive semidefinite.
        name: display name.

    Raises:
        TypeError: `kernel` is not a NumPy or JAX array of float64.
        ValueError: `kernel` is not a square matrix, finite and symmetric.

    References:
        Gretton et al. 2012 for the MMD; the pair is ours.

    Example:
        >>> import numpy as np
        >>> pair = KernelPair(np.array([[1.0, 0.5], [0.5, 1.0]]))
        >>> p = np.array([0.5, 0.5])
        >>> float(pair.quality(p, p)), float(pair.diversity(p))
        (0.75, -0.75)
    """

    kernel: Any
    name: str = field(default="kernel", metadata=STATIC)

    def __post_init__(self) -> None:
        if is_concrete(self.kernel):
            require_kernel(self.kernel)

    def text_quality(self, p: PerText) -> TextArray:
        """Return the expected similarity K p of each text to a real text."""
        kernel = jnp.asarray(self.kernel)
        return kernel @ as_distribution(p, "p", len(kernel))

    def quality(self, q: PerText, p: PerText) -> Scalar:
        """Expected similarity Q'KP of a model text and a real text."""
        return as_distribution(q, "q", len(self.kernel)) @ self.text_quality(p)

    def diversity(self, q: PerText) -> Scalar:
        """Minus the expected similarity Q'KQ of two model texts."""
        q = as_distribution(q, "q", len(self.kernel))
        return -q @ jnp.asarray(self.kernel) @ q


def squared_mmd(kernel: TextMatrix, q: PerText, p: PerText) -> Scalar:
    r"""Squared maximum mean discrepancy, $(Q - P)'K(Q - P)$.

    Twice the gap $\Psi(P) - \Psi(Q)$ of the kernel pair, with $\Psi = U + V / 2$.
    Computed from the difference, so it keeps its precision when Q is close to P.

    Args:
        kernel: K, symmetric, shape (N, N).
        q: the model, shape (N,).
        p: the real distribution, shape (N,).

    Returns:
        A scalar; nonnegative for all Q and P iff K is positive semidefinite on
        zero-sum vectors.

    Raises:
        TypeError: `kernel` is not a NumPy or JAX array of float64.
        ValueError: `kernel` is not a square matrix, finite and symmetric, or `q` or
            `p` is not a distribution over N texts.

    References:
        Gretton et al. 2012, lemma 4.

    Claims: N16.13, N16.29.

    Example:
        >>> import numpy as np
        >>> a, b = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> float(squared_mmd(np.eye(2), a, b))
        2.0
    """
    pair = KernelPair(kernel)
    q = as_distribution(q, "q", len(pair.kernel))
    difference = q - as_distribution(p, "p", q.size)
    return difference @ jnp.asarray(kernel) @ difference


@jax.tree_util.register_static
@dataclass(frozen=True, init=False)
class VendiPair:
    r"""Log of Vendi, $V = S(\rho_Q)$, against $U = \mathrm{tr}\,\rho_Q \log \rho_P$.

    The quality is minus the gradient of V at P but for a constant, so it is the only
    compatible one up to scale and shift. The divergence of the pair,
    $U(P) + V(P) - U(Q) - V(Q)$, is the quantum relative entropy of $\rho_Q$ and
    $\rho_P$, $\mathrm{tr}\,\rho_Q (\log \rho_Q - \log \rho_P)$, at least 0 by Klein's
    inequality. For $K = I$ the pair is LL-SE. See `qdtheory.kernels` for $\rho$ and S.

    Args:
        kernel: K, positive semidefinite with ones on the diagonal, shape (N, N).
        name: display name.

    Raises:
        ValueError: as in `features_of`.

    References:
        Friedman and Dieng 2023 for the diversity; the quality is ours.

    Claims: N25.10.

    Example:
        >>> import numpy as np
        >>> pair = VendiPair(np.eye(2))
        >>> p = np.array([0.5, 0.5])
        >>> round(float(pair.quality(p, p)), 6), round(float(pair.diversity(p)), 6)
        (-0.693147, 0.693147)
    """

    features: Frozen
    name: str

    def __init__(self, kernel: TextMatrix, name: str = "Vendi") -> None:
        set_fields(self, features=Frozen(features_of(kernel)), name=name)

    def text_quality(self, p: PerText) -> TextArray:
        r"""Return the scores $\phi_i' \log(\rho_P)\, \phi_i$ of the texts."""
        phi, rho = self._matrices(p, "p")
        return ((phi @ matrix_log(rho)) * phi).sum(axis=1)

    quality = ConcavePair.quality

    def diversity(self, q: PerText) -> Scalar:
        r"""Return the log of the Vendi score, $-\mathrm{tr}\,\rho_Q \log \rho_Q$."""
        return von_neumann_entropy(self._matrices(q, "q")[1])

    def _matrices(self, q: ArrayLike, name: str) -> tuple[Array, Array]:
        """The features, and the density matrix of a distribution."""
        phi = jnp.asarray(self.features.values)
        return phi, density_matrix(as_distribution(q, name, len(phi)), phi)


# --- BLEU and Self-BLEU ---------------------------------------------------------------
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BleuPair:
    """Expected BLEU as quality, negative expected Self-BLEU as diversity.

    Args:
        space: the texts, of one or several lengths.
        max_order: highest order of the n-grams; both metrics are of this order.
        num_references: n, references drawn from P for quality.
        num_self_references: k, references drawn from Q for diversity.
        smoothing: None, or "epsilon".
        table: filled in from the space; an array field, so that compiled code takes
            it as an argument.

    Raises:
        ValueError: as in `expected_bleu`.

    References:
        Li et al. 2020, section 5.1.

    Claims: N8.13, N8.15.

    Example:
        >>> import numpy as np
        >>> from qdtheory import TextSpace
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
        require_space(self.space)
        require_references("num_references", self.num_references)
        require_references("num_self_references", self.num_self_references)
        if self.table is None:
            table = bleu_table(self.space, self.max_order, self.smoothing)
            object.__setattr__(self, "table", table)

    @property
    def name(self) -> str:
        """Display name, with the order of both metrics."""
        return f"BLEU-NSBLEU of order {self.max_order}"

    def text_quality(self, p: PerText) -> TextArray:
        """Expected BLEU of each text given the real `p`, shape (num_texts,)."""
        p = as_distribution(p, "p", self.space.num_texts)
        return text_bleu(self.table, p, self.num_references)

    def quality(self, q: PerText, p: PerText) -> Scalar:
        """Expected BLEU of the model `q` given the real `p`."""
        return as_distribution(q, "q", self.space.num_texts) @ self.text_quality(p)

    def diversity(self, q: PerText) -> Scalar:
        """Minus the expected Self-BLEU of the model `q`."""
        q = as_distribution(q, "q", self.space.num_texts)
        return -q @ text_bleu(self.table, q, self.num_self_references)


@lru_cache(maxsize=64)
def single_token_bleu_pair(
    num_references: int, num_self_references: int
) -> SeparablePair:
    r"""Expected BLEU-1 and negative Self-BLEU-1 of texts of one token.

    $f(x) = 1 - (1 - x)^n$ and $g(x) = -x + x (1 - x)^k$: f is the probability that a
    token is among n references drawn from P, and -g(x) / x that it is among k drawn
    from Q.

    Args:
        num_references: n, at least 1.
        num_self_references: k, the size of the candidate set minus 1, at least 1.

    Returns:
        The pair. g is convex beyond 2 / (k + 1), so Theorem 2 applies for k = 1 only.

    Raises:
        ValueError: n or k is below 1.

    References:
        Li et al. 2020, section 5.1.

    Claims: N2.6, N2.7, N6.2, N6.4, N6.7.

    Example:
        >>> pair = single_token_bleu_pair(num_references=2, num_self_references=1)
        >>> float(pair.f(0.5)), float(pair.g(0.5))
        (0.75, -0.25)
    """
    require_positive(
        num_references=num_references, num_self_references=num_self_references
    )
    return SeparablePair(
        hit_chance(num_references),
        minus_repeat_chance(num_self_references),
        name=f"BLEU-NSBLEU, {num_references} and {num_self_references} references",
    )


@lru_cache(maxsize=64)
def distinct_k_pair(k: int, num_references: int | None = None) -> SeparablePair:
    r"""NoveltyBench's distinct_k with the quality that fits it, or another one.

    $g(x) = 1 - (1 - x)^k$ and $f(x) = 1 - (1 - x)^n$: V is the expected number of
    different outcomes in k draws from Q, U the chance that a draw from Q is among n
    from P. As $g'' = -k f'$ for n = k - 1 only, the pair is compatible with exactly
    k - 1 references; k = 2 is CR-NRR up to a constant.

    Args:
        k: number of draws, at least 2: for k = 1 the diversity is 1 for every model.
        num_references: n, at least 1; k - 1 by default.

    Returns:
        The pair.

    Raises:
        ValueError: k is below 2, or n below 1.

    References:
        Zhang et al. 2025 (NoveltyBench) for the diversity; the quality is ours.

    Claims: N25.1, N25.2.

    Example:
        >>> pair = distinct_k_pair(10)
        >>> pair.name
        'distinct_10 and 9 references'
        >>> float(pair.f(0.5)) == 1 - 0.5**9, float(pair.g(0.5)) == 1 - 0.5**10
        (True, True)
    """
    if k < 2:
        raise ValueError(f"k must be at least 2, got {k}")
    n = k - 1 if num_references is None else num_references
    require_positive(num_references=n)
    name = f"distinct_{k} and {n} reference{'s' * (n > 1)}"
    return SeparablePair(hit_chance(n), hit_chance(k), name)


# --- Pairs of n-grams and classes -----------------------------------------------------
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PooledPair:
    """A separable pair applied to distributions of what texts hold, as a pair on texts.

    On classes of texts, the diversity of LL-SE is *semantic entropy*, if a class holds
    the texts of one meaning, and its quality the log-likelihood of a text's class: it
    does not see how a model spreads its mass within a class. On n-grams, made by
    `ngram_pair`, the pair sees their expected counts, divided by the total.

    Args:
        pair: applied to the distributions of classes or n-grams.
        map: the class of each text, shape (N,), or the n-grams of each text, shape
            (N, positions), with -1 past its end; whole numbers from 0 without gaps. An
            array field, so that compiled code takes it as an argument.
        of: what the numbers stand for, in the pair's name.
        num_outcomes: their number, filled in.
        one_length: whether each text holds equally many, filled in.

    Raises:
        ValueError: the map has no such numbers.

    References:
        Kuhn, Gal and Farquhar 2023 for semantic entropy; Li et al. 2020, section 5.2,
        for n-grams.

    Claims: N2.8, N9.3, N9.5, N14.12, N25.16.

    Example:
        >>> from qdtheory import LL_SE
        >>> pair = PooledPair(LL_SE, [0, 0, 1])
        >>> pair.name
        'LL-SE on 2 classes'
        >>> q = np.array([0.25, 0.25, 0.5])
        >>> float(pair.diversity(q)) == float(np.log(2))
        True
    """

    pair: SeparablePair
    map: Any
    of: str = field(default="classes", metadata=STATIC)
    num_outcomes: int = field(default=0, metadata=STATIC)
    one_length: bool = field(default=True, metadata=STATIC)

    def __post_init__(self) -> None:
        if not is_concrete(self.map):
            return
        require_pair(self.pair)
        held = np.asarray(self.map)
        whole = held.ndim in (1, 2) and held.size and held.dtype.kind in "iu"
        kept = held[held >= 0] if whole and held.ndim == 2 else held
        numbers = np.unique(kept) if whole else kept
        if not whole or not np.array_equal(numbers, np.arange(numbers.size or 1)):
            raise ValueError(
                f"{self.of} must be one whole number a text, or a row of them, from 0 "
                "without gaps"
            )
        set_fields(
            self,
            map=held.reshape(len(held), -1),
            num_outcomes=numbers.size,
            one_length=bool((held >= 0).all()),
        )

    @property
    def name(self) -> str:
        """Display name: the pair's name and what it is applied to."""
        number = f"{self.num_outcomes} " if self.of == "classes" else ""
        return f"{self.pair.name} on {number}{self.of}"

    def text_quality(self, p: PerText) -> TextArray:
        r"""Return the score of each text, the mean of $f(P_g)$ over what it holds.

        Raises:
            ValueError: the texts hold different numbers of n-grams, so that quality is
                a ratio of two linear functions of q and texts have no scores.
        """
        if not self.one_length:
            raise ValueError(
                "with texts of several lengths the n-gram quality is not linear in q; "
                "use quality(q, p), or a space of one length"
            )
        scores = self.pair.text_quality(self._distribution(p, "p"))
        return scores[self.map].mean(axis=1)

    def quality(self, q: PerText, p: PerText) -> Scalar:
        """Quality of what `q` holds given what `p` holds."""
        return self.pair.quality(self._distribution(q, "q"), self._distribution(p, "p"))

    def diversity(self, q: PerText) -> Scalar:
        """Diversity of what `q` holds."""
        return self.pair.diversity(self._distribution(q, "q"))

    def _distribution(self, q: ArrayLike, name: str) -> Array:
        q = as_distribution(q, name, len(self.map))
        return pool_to_distribution(self.map, q, self.num_outcomes)


def ngram_pair(space: TextSpace, n: int, pair: SeparablePair = CR_NRR) -> PooledPair:
    """A separable pair applied to n-gram distributions, as a pair on texts.

    Args:
        space: the texts.
        n: order, 1 .. max_length.
        pair: applied to `space.ngram_distribution(q, n)` and that of p.

    Returns:
        The pair.

    Raises:
        ValueError: `n` is out of range.

    References:
        Li et al. 2020, section 5.2.

    Claims: N4.4.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=2)
        >>> pair = ngram_pair(space, 1)
        >>> p = np.array([0.5, 0.0, 0.0, 0.5])
        >>> pair.name, float(pair.quality(p, p)), float(pair.diversity(p))
        ('CR-NRR on 1-grams', 0.5, -0.5)
    """
    return PooledPair(pair, space.ngrams(n), f"{n}-grams")


# --- Pairs by name --------------------------------------------------------------------
Known = TypeVar("Known")


def named_pairs() -> dict[str, SeparablePair]:
    """Every named quality with every named diversity, by the names."""
    pairs = starmap(SeparablePair, product(QUALITIES.values(), DIVERSITIES.values()))
    return {pair.name: pair for pair in pairs}


def named_pair(name: str) -> SeparablePair:
    """Find the pair of a name such as "LL-SE", in capitals or not."""
    pairs, wanted = named_pairs(), plain_name(name)
    for known, pair in pairs.items():
        if plain_name(known) == wanted:
            return pair
    hint = "; BLEU needs a space: qd.BleuPair" * wanted.startswith("bleu")
    raise ValueError(f"no pair is called {name!r}; there are {', '.join(pairs)}{hint}")


def as_pair(pair: Known | str) -> Known | SeparablePair:
    """A pair, given by its name or as it is; its code is made anew, see `renewed`."""
    return named_pair(pair) if isinstance(pair, str) else renewed(pair)


def given_pair(quality: Any, diversity: Any = None) -> Any:
    """Build the pair that `qdtheory.check` and the command understand."""
    if diversity is None:
        if isinstance(quality, str):
            try:
                return named_pair(quality)
            except ValueError as error:
                said = "a formula, or the name of a metric, needs another beside it"
                raise ValueError(f"{error}; {said}") from None
        if isinstance(quality, Pair):
            return quality
        raise TypeError(
            "expected a pair, the name of one, or a quality and a diversity; got "
            f"{quality!r:.60} alone"
        )
    if isinstance(quality, Pair):
        raise TypeError(f"{quality!r:.60} is a pair: leave the diversity out")
    if num_arguments(quality) == 2:
        if num_arguments(diversity) is None:
            raise TypeError(
                "quality(q, p) of distributions goes with a function diversity(q); got "
                f"{diversity!r:.60}"
            )
        return FunctionPair(quality, diversity)
    if isinstance(quality, str) or num_arguments(quality) is not None:
        return SeparablePair(quality, diversity)
    return LinearPair(quality, diversity)


def num_arguments(function: Any) -> int | None:
    """Number of parameters without a default; None for what is no function."""
    if not callable(function):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in function, which does not tell
        return 1
    return sum(
        x.default is x.empty and x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)
        for x in parameters
    )


# --- What a pair is, and its problem at P ---------------------------------------------
def require_pair(pair: Any) -> None:
    """Raise unless it is a pair."""
    require("a pair, such as qd.LL_SE or qd.SeparablePair(f, g)", Pair, pair=pair)


def form_of(pair: Any, p: TextVector | None = None) -> Form:
    """Tell the form of a pair, given by its name or as it is, with its code as it is.

    At a P code that has not changed is compiled once.
    """
    pair = named_pair(pair) if isinstance(pair, str) else pair
    require_pair(pair)
    return replace(_form_of(renewed(pair, p)), pair=pair)


def _form_of(pair: Any) -> Form:
    compiled = _compiled(pair)
    match pair:
        case SeparablePair(f=f, g=g):
            code = _code_in(f=f, g=g)
            return forms.Separable(pair, f.evaluate, None, g.total, f, g, code=code)
        case LinearPair(g=g):
            scores = _one_a_text(pair.scores, "scores")
            given = isinstance(pair.scores, Scores)
            code = ("scores(p)",) * (not given) + _code_in(g=g)
            return forms.Separable(pair, scores, None, g.total, g=g, code=code)
        case ConcavePair():
            scores = _one_a_text(pair.text_quality, "text_quality")
            code = "text_quality(p)", "diversity(q)"
            return forms.Concave(pair, scores, None, pair.diversity, code=code)
        case VendiPair():
            scores = _one_a_text(pair.text_quality, "text_quality")
            return forms.Vendi(pair, scores, None, pair.diversity)
        case KernelPair(kernel=kernel):
            error = partial(_kernel_error, kernel)
            return forms.Kernel(
                pair, *compiled, num_texts=len(kernel), score_error=error
            )
        case BleuPair(smoothing=None) if pair.space.lengths == (pair.max_order,):
            # The n-gram of the whole text matches only where the text is a reference:
            # BLEU is 1 there and 0 elsewhere, as of texts of one token.
            r, k = int(pair.num_references), int(pair.num_self_references)
            form = form_of(single_token_bleu_pair(r, k))
            return replace(form, pair=pair, num_texts=pair.space.num_texts)
        case BleuPair():
            return bleu_form(pair)
        case PooledPair():
            code = form_of(pair.pair).code
            return forms.Pooled(pair, *compiled, num_texts=len(pair.map), code=code)
    functions = pair.quality, pair.diversity
    code = "quality(q, p)", "diversity(q)"
    return Form(pair, lambda p: pair.text_quality(p), *functions, code=code)


def _code_in(**functions: Function) -> tuple[str, ...]:
    return tuple(name for name, h in functions.items() if h.formula is None)


def bleu_form(pair: BleuPair) -> forms.Bleu:
    """BLEU by its table, even that of whole texts."""
    error = partial(bleu_error, pair.table, r=float(pair.num_references))
    number = pair.space.num_texts
    return forms.Bleu(pair, *_compiled(pair), num_texts=number, score_error=error)


# U and V, compiled, so that the pairs' own checks see no values.
_text_quality = jax.jit(lambda pair, p: pair.text_quality(p))
_quality = jax.jit(lambda pair, q, p: pair.quality(q, p))
_diversity = jax.jit(lambda pair, q: pair.diversity(q))


def _compiled(pair: Pair) -> Any:
    """The library's own functions, whose arrays compiled code takes as arguments."""
    return tuple(partial(f, pair) for f in (_text_quality, _quality, _diversity))


def _one_a_text(scores: Callable, name: str) -> Callable:
    """The scores of a user, once there is seen to be one a text."""
    return lambda p: one_score_a_text(scores(jnp.asarray(p)), p, name)


def pose(pair: Pair | Form | str, p: PerText) -> Problem:
    """Check a real distribution, and pose a pair, or its form, there.

    Example:
        >>> problem = pose(CR_NRR, np.array([0.75, 0.25]))
        >>> problem.real_quality, problem.real_diversity, problem.spread
        (0.625, -0.625, 0.5)
        >>> problem.gain(np.array([0.5, 0.5]))
        -0.125
    """
    require_values(p)
    p = np.asarray(as_distribution(p))
    form = pair if isinstance(pair, Form) else form_of(pair, p)
    require_traceable_form(form, p)
    return Problem(form, p)


def require_traceable_form(form: Form, p: TextVector) -> None:
    """Raise unless JAX can trace the functions of a user, tried at a distribution."""
    # Other forms are of the library's own functions, or were checked when made.
    if type(form) is Form:
        require_traceable(form.quality, p, p, name="quality(q, p)")
    if type(form) in (Form, forms.Concave):
        require_traceable(form.diversity, p, name="diversity(q)")


# --- Code as it is now ----------------------------------------------------------------
# JAX keeps compiled code by the objects in a pair, while what a user's function does
# may change between two calls.
def known_to_jax(pair: Pair, p: ArrayLike) -> Any:
    """Return the pair as one that compiled functions take as an argument, anew."""
    require_pair(pair)
    own = is_own(pair)
    return renewed(pair if own else FunctionPair(pair.quality, pair.diversity), p)


def is_own(pair: Any) -> bool:
    """Whether the class of a pair is one of the library's."""
    return type(pair).__module__.startswith(__name__.partition(".")[0] + ".")


def renewed(pair: Any, p: ArrayLike | None = None) -> Any:
    """The pair with objects for its code as it is now, by which compiled code is kept.

    A function may read what changes between two calls. Formulas and arrays stay.
    """
    if not is_own(pair):
        return pair
    fields = {name: _anew(name, value, p) for name, value in vars(pair).items()}
    if all(fields[name] is value for name, value in vars(pair).items()):
        return pair
    new = copy(pair)
    set_fields(new, **fields)
    return new


def _anew(name: str, value: Any, p: Any) -> Any:
    match value:
        case Function(formula=None, in_jax=Code(function=function)):
            return as_function(as_it_is_now(Code, function, np.array(0.5)), name)
        case Pair():
            return renewed(value)
        case Scores() | Function():
            return value
    if not callable(value):
        return value
    arguments = (p, p) if name == "quality" else (p,)
    return partial(value) if p is None else as_it_is_now(partial, value, *arguments)


# --- Error bounds, and the kernel of a quadratic diversity ----------------------------
def quadratic_form(pair: KernelPair | BleuPair) -> tuple[np.ndarray, float]:
    """The symmetric K with V = -Q'KQ, for one Self-BLEU reference, and its error."""
    if isinstance(pair, KernelPair):
        kernel, error = np.asarray(pair.kernel), 0.0
    else:
        table, texts = pair.table, np.eye(pair.space.num_texts)
        kernel = np.asarray(jax.lax.map(lambda b: text_bleu(table, b, 1), texts))
        error = bleu_error(table, texts[0], r=1.0)
    kernel = (kernel + kernel.T) / 2
    return kernel, error + EPS * float(np.abs(kernel).max())


def _kernel_error(kernel: ArrayLike, p: TextVector) -> float:
    sizes = np.abs(np.asarray(kernel)) @ p
    return (p.size + 2) * EPS * float(sizes.max())


def bleu_error(table: BleuTable, p: TextVector, r: float) -> float:
    """Error of a text's expected BLEU, in its probabilities, powers and sum."""
    sizes = np.bincount(np.asarray(table.text), np.abs(table.weight))
    # A sum of N terms, to the power r, and a sum over the sets: so many roundings.
    roundings = r * (p.size + 2) + table.num_sets + 4
    return roundings * EPS * float(sizes.max())


def name_of(pair: Any) -> str:
    """The pair's name, or that of its class if it has none."""
    return getattr(pair, "name", type(pair).__name__)
