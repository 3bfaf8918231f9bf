"""Scalar functions of one probability: formulas, named functions, and a user's code.

`QUALITIES` and `DIVERSITIES` hold the named f and g. One that is entered there, by
`named`, forms pairs in the commands and their help, in the compatibility matrix and,
by its formula, in the proofs. A user's Python function is wrapped as `Code`.

The section "A pair at one real distribution" has U and V as sums over texts, and
`Posed`: what `pairs.pose` returns and the solvers take, so that they need not know of
pairs.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, ArrayLike, Float

from qdtheory.formulas.code import Code
from qdtheory.formulas.expressions import Expression
from qdtheory.formulas.jets import Jet
from qdtheory.formulas.numerics import limits
from qdtheory.formulas.tracing import require_traceable
from qdtheory.formulas.trees import Tree, in_numpy
from qdtheory.support.numbers import EPS, PerText, Scalar, TextVector, within

# --- Scalar functions -----------------------------------------------------------------
# A scalar function that JAX can trace.
ScalarFunction = Callable[[Any], Array]
QUALITIES: dict[str, ScalarFunction] = {}
DIVERSITIES: dict[str, ScalarFunction] = {}
# Not an attribute of a function: JAX copies those to the function's derivatives.
_FORMULAS: dict[ScalarFunction, Expression] = {}


def named(
    table: dict[str, ScalarFunction], formula: str
) -> Callable[[ScalarFunction], ScalarFunction]:
    """Enter a function, which equals a formula, in a table under its own name.

    >>> @named({}, "x - x**3")
    ... def cubic(x):
    ...     return x - x**3
    >>> formula_of(cubic)
    Expression(text='x - x**3')
    """

    def enter(h: ScalarFunction) -> ScalarFunction:
        table[getattr(h, "__name__", type(h).__name__)] = h
        _FORMULAS[h] = Expression(formula)
        return h

    return enter


def formula_of(h: ScalarFunction) -> Expression | None:
    """The formula of a scalar function; None if only its code is known."""
    if isinstance(h, Expression):
        return h
    if isinstance(h, Tsallis | SingleTokenBleu | SingleTokenSelfBleu):
        return Expression.of_tree(h.tree)  # with parameters of any size
    return _FORMULAS.get(h) if isinstance(h, Hashable) else None


def scalar_function(h: ScalarFunction | str, name: str) -> ScalarFunction:
    """Read a scalar function: the name of one, a formula in x, or code.

    A function becomes `Code`: it is never read as a formula.

    >>> scalar_function("-x**2", "g"), scalar_function("NRR", "g") is NRR
    (Expression(text='-x**2'), True)
    """
    if isinstance(h, str):
        h = (QUALITIES | DIVERSITIES).get(h) or Expression(h)
    if not callable(h):
        raise TypeError(
            f"{name}: expected a formula in x, a name or a function, got {h!r:.60}"
        )
    if isinstance(h, Code) or formula_of(h) is not None:
        return h
    require_traceable(h, np.array(0.5), name=name)
    return Code(h)


def order_of(g: ScalarFunction) -> float | None:
    """The a for which g is the Tsallis entropy up to a linear term, if known."""
    return g.order if isinstance(g, Tsallis) else {SE: 1.0, NRR: 2.0}.get(g)


def limits_at_zero(h: ScalarFunction) -> tuple[float, float]:
    """The limits of a scalar function and of its slope at 0."""
    if isinstance(h, Code):
        with jax.ensure_compile_time_eval():
            value, slope = jax.value_and_grad(h)(0.0)
        return float(value), float(slope)
    formula = formula_of(h)
    return (np.nan, np.nan) if formula is None else limits(formula.inside, 0)


def error_of(h: ScalarFunction) -> float:
    """Error of a scalar function and its slope in 64 bits, relative to their size."""
    if isinstance(h, Code):
        return np.inf
    return max(EPS, h.numerics.error) if isinstance(h, Expression) else EPS


def jet_of(h: ScalarFunction, x: Float[np.ndarray, "..."]) -> Jet:
    """The value and two derivatives of any scalar function, at many points."""
    if isinstance(h, Expression):
        return h.jet(x)
    formula = formula_of(h)
    if formula is not None:  # a named one
        return in_numpy(formula.inside, x)
    parts = _derivatives(h, x.ravel())
    return Jet(*(np.asarray(part).reshape(x.shape) for part in parts))


@partial(jax.jit, static_argnums=0)
def _derivatives(h: ScalarFunction, x: Array) -> tuple[Array, Array, Array]:
    value, slope = jax.vmap(jax.value_and_grad(h))(x)
    return value, slope, jax.vmap(jax.grad(jax.grad(h)))(x)


def evaluate(h: ScalarFunction, x: ArrayLike) -> Array:
    """Evaluate a scalar function at each entry of a vector.

    Compiled, but for code: what a user's function reads may change between two calls,
    which a compiled one would not see (`pairs.renewed` is for public calls).
    """
    return jax.vmap(h)(x) if isinstance(h, Code) else _evaluated(h, x)


@partial(jax.jit, static_argnums=0)
def _evaluated(h: ScalarFunction, x: ArrayLike) -> Array:
    return jax.vmap(h)(x)


# --- A pair at one real distribution --------------------------------------------------
# A scalar of a distribution, such as V.
Functional = Callable[[Any], Array]


def given_scores(scores: ArrayLike | Sequence[int | float]) -> np.ndarray:
    """Check scores given as numbers, shape (N,), finite or minus infinity."""
    try:
        values = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            "scores: expected one number a text, or a function of p that gives them, "
            f"got {scores!r:.60}"
        ) from None
    if values.ndim != 1 or not values.size:
        raise ValueError(
            f"scores: expected one number a text, shape (N,), got shape {values.shape}"
        )
    bad = np.flatnonzero(~(values < np.inf))
    if bad.size:
        raise ValueError(
            f"scores: expected numbers or minus infinity, got {values[bad[0]]} for "
            f"text {bad[0]}"
        )
    return values


@jax.jit
def expected_score(q: PerText, scores: PerText) -> Scalar:
    r"""Expected score $\sum_i q_i \phi_i$ with $0 \cdot \infty = 0$, linear in q."""
    q = jnp.asarray(q)
    return (q * jnp.where((q == 0) & jnp.isinf(scores), 0.0, scores)).sum()


def total_diversity(g: ScalarFunction, q: PerText) -> Scalar:
    r"""Separable diversity of a distribution, $\sum_i g(q_i)$."""
    return evaluate(g, q).sum() if isinstance(g, Code) else _total(g, q)


@partial(jax.jit, static_argnums=0)
def _total(g: ScalarFunction, q: PerText) -> Scalar:
    return jax.vmap(g)(q).sum()


@dataclass(frozen=True)
class Posed:
    """A pair's form (see `pairs.Form`) at one real P: maximise U s.t. V(Q) >= V(P)."""

    form: Any
    p: TextVector

    @property
    def g(self) -> Any:
        """The function that diversity sums over the texts, if there is one."""
        return self.form.g

    @cached_property
    def scores(self) -> TextVector:
        """Score of each text, finite or minus infinity; U(P) is checked to be finite.

        Not computed in the functions that use them: compiled together, a product and a
        difference may be fused, and `scores.max() - scores` is not 0 at the best text.
        """
        scores = np.asarray(self.form.scores(self.p))
        quality = float(expected_score(self.p, scores))
        if not np.isfinite(quality) or not (scores < np.inf).all():
            raise ValueError(
                f"the quality of P itself must be finite, got {quality:.6g}, and no "
                "score NaN or +inf; the pair's scores are not so at this p"
            )
        return scores

    @cached_property
    def score_error(self) -> float:
        """Error bound of a score in 64 bits; 0 for a function, taken as exact."""
        return self.form.score_error(self.p)

    @cached_property
    def spread(self) -> float:
        """The greatest finite score minus the least, the unit of gains."""
        return float(np.ptp(self.scores[np.isfinite(self.scores)]))

    @cached_property
    def real_quality(self) -> float:
        """U(P; P)."""
        return self.quality(self.p)

    @cached_property
    def real_diversity(self) -> float:
        """V(P), which models have to attain; it is checked to be finite."""
        diversity = self.diversity(self.p)
        if not np.isfinite(diversity):
            raise ValueError(
                f"the diversity of P itself is {diversity}; V(P) must be a finite "
                "number (has g a pole at 0, and P a text of probability 0?)"
            )
        return diversity

    def quality(self, q: PerText) -> float:
        """U(Q; P) of a model."""
        if self.form.quality is None:
            return float(expected_score(q, self.scores))
        return float(self.form.quality(q, self.p))

    def diversity(self, q: PerText) -> float:
        """V(Q) of a model."""
        return float(self.form.diversity(q))

    def gain(self, q: PerText) -> float:
        """U(Q; P) - U(P; P) by the scores; minus infinity if V(Q) < V(P)."""
        if not self.diversity(q) >= self.real_diversity:
            return -np.inf
        return float(expected_score(np.asarray(q) - self.p, self.scores))


# --- Qualities and diversities, by the paper's abbreviations, hence not lower case ----
@named(QUALITIES, "log(x)")
def LL(x: ArrayLike) -> Array:
    r"""Log-likelihood, $f(x) = \log x$ in nats; U is the negative cross-entropy."""
    return jnp.log(x)


@named(QUALITIES, "x")
def CR(x: ArrayLike) -> Array:
    """Coverage rate, f(x) = x."""
    return jnp.asarray(x)


@named(DIVERSITIES, "-x*log(x)")
def SE(x: ArrayLike) -> Array:
    r"""Shannon entropy, $g(x) = -x \log x$ in nats."""
    return entr(jnp.asarray(x))


@named(DIVERSITIES, "-x**2")
def NRR(x: ArrayLike) -> Array:
    """Negative repetition rate, g(x) = -x^2."""
    return -jnp.square(x)


# --- Families: the formula depends on a parameter -------------------------------------
@dataclass(frozen=True)
class Tsallis:
    r"""Tsallis entropy of order a, $g(x) = (x - x^a) / (a - 1)$.

    Order 2 is Simpson's diversity index SDI = NRR + 1; as a tends to 1 it tends to
    the Shannon entropy SE.

    Args:
        order: a, positive and finite, not 1.

    Raises:
        ValueError: the order is not positive and finite, or is 1 (use `SE`).

    Claims: N2.4, N2.5, N9.2.

    Example:
        >>> float(Tsallis(2.0)(0.5))
        0.25
    """

    order: float

    def __post_init__(self) -> None:
        within(order=self.order, low=0, ends="()")
        if self.order == 1:
            raise ValueError(
                "order 1 is the Shannon entropy; use qdtheory.functions.SE"
            )

    @property
    def __name__(self) -> str:
        return "SDI" if self.order == 2 else f"Tsallis({self.order:g})"

    @property
    def tree(self) -> Tree:
        """The formula as a tree."""
        order = Fraction(repr(float(self.order)))
        return "/", ("-", "x", ("**", "x", order)), ("-", order, Fraction(1))

    def __call__(self, x: ArrayLike) -> Array:
        """g(x)."""
        x = jnp.asarray(x)
        return (x - x**self.order) / (self.order - 1)


DIVERSITIES["SDI"] = SDI = Tsallis(2.0)


@dataclass(frozen=True)
class SingleTokenBleu:
    """Chance that a token is among n references drawn from P, f(x) = 1 - (1 - x)^n.

    See Li et al. 2020, section 5.1, for texts of one token; n is their |R|.
    """

    num_references: int

    @property
    def tree(self) -> Tree:
        """The formula as a tree."""
        one = Fraction(1)
        return "-", one, ("**", ("-", one, "x"), Fraction(self.num_references))

    def __call__(self, x: ArrayLike) -> Array:
        """Compute f(x) with an accurate derivative at both ends.

        Near 0 the power loses digits; for larger x the derivative of expm1 rounds to 0.
        """
        x, n = jnp.asarray(x), self.num_references
        threshold = min(0.5, 1 / n)
        near_zero = n * jnp.log1p(-jnp.minimum(x, threshold))
        return jnp.where(x < threshold, -jnp.expm1(near_zero), 1 - (1 - x) ** n)


@dataclass(frozen=True)
class SingleTokenSelfBleu:
    """Minus the chance that a token is drawn again, g(x) = -x (1 - (1 - x)^k).

    It is concave up to 2 / (k + 1) and convex beyond, as
    g''(x) = k (1 - x)^(k - 2) ((k + 1) x - 2). See Li et al. 2020, section 5.1; k is
    their |C| - 1.
    """

    num_self_references: int

    @property
    def tree(self) -> Tree:
        """The formula as a tree."""
        return "*", ("minus", "x"), SingleTokenBleu(self.num_self_references).tree

    def __call__(self, x: ArrayLike) -> Array:
        """g(x)."""
        return -jnp.asarray(x) * SingleTokenBleu(self.num_self_references)(x)
