"""Scalar functions of one probability: the f of a quality and the g of a diversity.

Whatever the library asks of one, it asks a `Function`: values for JAX, jets in NumPy,
enclosures in Arb, limits at 0, rounding error, where it is concave. One that has a
formula answers with proofs; a user's code is tried only, and its `formula` is None.

`QUALITIES` and `DIVERSITIES` hold the named f and g. One that is entered there, by
`named`, forms pairs in the commands and their help, in the compatibility matrix and,
by its formula, in the proofs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
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
from qdtheory.formulas.trees import Tree, ball, in_numpy
from qdtheory.proofs.shape import is_strictly_concave
from qdtheory.support.numbers import (
    EPS,
    LEAST_PROBABILITY,
    TINY,
    PerText,
    Scalar,
    within,
)

# What a user may give as f or g, if it is not a text: code that JAX can trace.
ScalarFunction = Callable[[Any], Array]


@dataclass(frozen=True, eq=False)
class Function:
    r"""A scalar function of one probability, with all that is known of it.

    Two are equal if their names and formulas are; of code, if it is the same object. A
    pair's f and g are made by `as_function`.

    Attributes:
        name: display name, the text of a formula by default.
        formula: what proofs read; None if only the code is known.
        in_jax: computes the values, accurately on all of [0, 1], for JAX to trace.
        order: the a for which it is the Tsallis entropy up to a linear term, if known.
        inflection: the c up to which it is known to be concave and convex beyond.

    Example:
        >>> g = as_function("-x^2", "g")
        >>> float(g(0.5)), g.at_zero, g.is_concave()
        (-0.25, (0.0, 0.0), True)
    """

    name: str
    formula: Expression | None
    in_jax: Callable[[Any], Array]
    order: float | None = None
    inflection: float | None = None

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, x: ArrayLike) -> Array:
        """The value, which JAX can trace and differentiate."""
        return self.in_jax(x)

    def _key(self) -> tuple:
        return self.name, self.formula or self.in_jax

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __reduce__(self) -> tuple:
        if (QUALITIES | DIVERSITIES).get(self.name) is self:  # pickled by its name
            return as_function, (self.name, "f")
        return Function, (*vars(self).values(),)

    # --- In 64 bits ---------------------------------------------------------------
    def evaluate(self, x: ArrayLike) -> Array:
        """The value at each entry of a vector, in JAX.

        Compiled, but for code: what a user's function reads may change between two
        calls, which a compiled one would not see (`pairs.renewed` is for public calls).
        """
        return _evaluated(self, x) if self.formula else jax.vmap(self)(x)

    def total(self, q: PerText) -> Scalar:
        r"""Separable diversity of a distribution, $\sum_i g(q_i)$."""
        return _total(self, q) if self.formula else self.evaluate(q).sum()

    def jet(self, x: Float[np.ndarray, "..."]) -> Jet:
        """The value and two derivatives at many points; of a formula in NumPy."""
        if self.formula is None:
            parts = _derivatives(self, x.ravel())
            return Jet(*(np.asarray(part).reshape(x.shape) for part in parts))
        if self.in_jax is self.formula:
            return self.formula.jet(x)
        return in_numpy(self.formula.inside, x)  # a named one needs no other form

    def compiled_jet(self, x: Float[np.ndarray, " points"]) -> Jet:
        """The same by JAX, compiled, at `TINY` for 0: as accurate as `in_jax`."""
        # Pad to few sizes, as each is compiled; g may be NaN at 0, like -x * log(x).
        size = max(1024, 1 << (x.size - 1).bit_length())
        padded = np.full(size, 0.5)
        padded[: x.size] = np.maximum(x, TINY)
        parts = _derivatives(self, padded)
        return Jet(*(np.array(part)[: x.size] for part in parts))

    @property
    def at_zero(self) -> tuple[float, float]:
        """The limits of the function and of its slope at 0."""
        if self.formula is not None:
            return limits(self.formula.inside, 0)
        with jax.ensure_compile_time_eval():
            value, slope = map(float, jax.value_and_grad(self)(0.0))
            rise = slope - float(jax.grad(self)(LEAST_PROBABILITY**0.5))
        # Code has no limit: a slope that still rises this near 0 is taken as infinite.
        return value, np.inf if rise > abs(slope) / 4 else slope

    @property
    def error(self) -> float:
        """Error of the value and the slope in 64 bits, relative to their size."""
        if self.formula is None:
            return np.inf
        if self.in_jax is self.formula:
            return max(EPS, self.formula.numerics.error)
        # JAX computes a named one to the last digits, but near order 1 x - x^a cancels.
        near = 1.0 if self.order in (None, 1) else abs(self.order - 1)
        return EPS / min(1.0, near)

    # --- Proved ---------------------------------------------------------------------
    def enclosure(self, low: Fraction | float, high: Fraction | float) -> list:
        """Arb balls that hold g, g' and g'' at all numbers from low to high.

        Raises:
            ValueError: one of them has no bound there.
        """
        assert self.formula is not None, "code has no enclosure"
        found = self.formula.balls(ball(low).union(ball(high)), 2)
        if not all(part.is_finite() for part in found):
            raise ValueError(f"{self.formula.text} has no bounded enclosure at {low}")
        return found

    def is_concave(self, inflection: float = 1.0) -> bool:
        """Whether it is proved to be strictly concave on (0, 1), or up to a point.

        With an inflection c below 1: concave up to c and convex beyond.
        """
        if self.order is not None:  # g'' = -a x^(a - 2)
            return inflection == 1
        if self.inflection is not None:
            return (inflection < 1) == (self.inflection < 1)
        formula = self.formula
        return formula is not None and is_strictly_concave(formula, inflection)


@partial(jax.jit, static_argnums=0)
def _evaluated(h: Function, x: ArrayLike) -> Array:
    return jax.vmap(h)(x)


@partial(jax.jit, static_argnums=0)
def _total(g: Function, q: PerText) -> Scalar:
    return jax.vmap(g)(q).sum()


@partial(jax.jit, static_argnums=0)
def _derivatives(h: Function, x: Array) -> tuple[Array, Array, Array]:
    value, slope = jax.vmap(jax.value_and_grad(h))(x)
    return value, slope, jax.vmap(jax.grad(jax.grad(h)))(x)


def as_function(h: ScalarFunction | str, name: str) -> Function:
    """Read a scalar function: the name of one, a formula in x, or code.

    Args:
        h: what a user gave.
        name: what errors call it, "f" or "g".

    Raises:
        TypeError: neither a text nor a function, or JAX cannot trace it.
        ValueError: a text that is neither a name nor a formula.

    Example:
        >>> as_function("-x**2", "g").formula, as_function("NRR", "g") is NRR
        (Expression(text='-x**2'), True)
        >>> as_function(lambda x: -(x**2), "g").formula is None
        True
    """
    if isinstance(h, str):
        h = (QUALITIES | DIVERSITIES).get(h) or Expression(h)
    match h:
        case Function():
            return h
        case Expression():
            return Function(h.text, h, h)
        case Code():
            return Function(h.__name__, None, h)
    if not callable(h):
        raise TypeError(
            f"{name}: expected a formula in x, a name or a function, got {h!r:.60}"
        )
    require_traceable(h, np.array(0.5), name=name)
    return as_function(Code(h), name)


# --- Qualities and diversities, by the paper's abbreviations, hence not lower case ----
QUALITIES: dict[str, Function] = {}
DIVERSITIES: dict[str, Function] = {}


def named(
    table: dict[str, Function], formula: str, order: float | None = None
) -> Callable[[ScalarFunction], Function]:
    """Enter a function, which equals a formula, in a table under its own name.

    >>> @named({}, "x - x**3")
    ... def cubic(x):
    ...     return x - x**3
    >>> cubic
    <cubic>
    >>> cubic.formula
    Expression(text='x - x**3')
    """

    def enter(h: ScalarFunction) -> Function:
        name = getattr(h, "__name__", type(h).__name__)
        table[name] = found = Function(name, Expression(formula), h, order)
        object.__setattr__(found, "__doc__", h.__doc__)
        return found

    return enter


@named(QUALITIES, "log(x)")
def LL(x: ArrayLike) -> Array:
    r"""Log-likelihood, $f(x) = \log x$ in nats; U is the negative cross-entropy."""
    return jnp.log(x)


@named(QUALITIES, "x")
def CR(x: ArrayLike) -> Array:
    """Coverage rate, f(x) = x."""
    return jnp.asarray(x)


@named(DIVERSITIES, "-x*log(x)", order=1.0)
def SE(x: ArrayLike) -> Array:
    r"""Shannon entropy, $g(x) = -x \log x$ in nats."""
    return entr(jnp.asarray(x))


@named(DIVERSITIES, "-x**2", order=2.0)
def NRR(x: ArrayLike) -> Array:
    """Negative repetition rate, g(x) = -x^2."""
    return -jnp.square(x)


# --- Families: the formula depends on a parameter -------------------------------------
def Tsallis(order: float) -> Function:
    r"""Tsallis entropy of order a, $g(x) = (x - x^a) / (a - 1)$.

    Order 2 is Simpson's diversity index SDI = NRR + 1; as a tends to 1 it tends to
    the Shannon entropy SE.

    Args:
        order: a, positive and finite, not 1.

    Returns:
        The function; its `order` is a.

    Raises:
        ValueError: the order is not positive and finite, or is 1 (use `SE`).

    Claims: N9.2.

    Example:
        >>> float(Tsallis(2.0)(0.5))
        0.25
    """
    within(order=order, low=0, ends="()")
    if order == 1:
        raise ValueError("order 1 is the Shannon entropy; use qdtheory.functions.SE")

    a, one = Fraction(repr(float(order))), Fraction(1)
    tree = "/", ("-", "x", ("**", "x", a)), ("-", a, one)
    name = "SDI" if order == 2 else f"Tsallis({order:g})"
    return Function(name, Expression.of_tree(tree), partial(_tsallis, order), order)


def _tsallis(order: float, x: ArrayLike) -> Array:
    x = jnp.asarray(x)
    return (x - x**order) / (order - 1)


DIVERSITIES["SDI"] = SDI = Tsallis(2.0)


def hit_chance(n: int) -> Function:
    r"""Chance that a token is among n drawn from P, $f(x) = 1 - (1 - x)^n$.

    That is the BLEU of a text of one token against n references, the paper's |R|.

    References:
        Li et al. 2020, section 5.1.
    """
    return Function(
        f"hit_chance({n})", Expression.of_tree(_hit_tree(n)), partial(_hit_chance, n)
    )


def minus_repeat_chance(k: int) -> Function:
    r"""Minus the chance that a token is drawn again, $g(x) = -x (1 - (1 - x)^k)$.

    Its sum over texts of one token is the negative Self-BLEU with k other candidates,
    the paper's |C| - 1. It is concave up to $2 / (k + 1)$ and convex beyond, as
    $g''(x) = k (1 - x)^{k - 2} ((k + 1) x - 2)$.

    References:
        Li et al. 2020, section 5.1.
    """
    formula = Expression.of_tree(("*", ("minus", "x"), _hit_tree(k)))
    return Function(
        f"minus_repeat_chance({k})",
        formula,
        partial(_minus_repeat_chance, k),
        inflection=2 / (k + 1),
    )


def _minus_repeat_chance(k: int, x: ArrayLike) -> Array:
    return -jnp.asarray(x) * _hit_chance(k, x)


def _hit_tree(n: int) -> Tree:
    one = Fraction(1)
    return "-", one, ("**", ("-", one, "x"), Fraction(n))


def _hit_chance(n: int, x: ArrayLike) -> Array:
    """1 - (1 - x)^n with an accurate derivative at both ends.

    Near 0 the power loses digits; for larger x the derivative of expm1 rounds to 0.
    """
    x, threshold = jnp.asarray(x), min(0.5, 1 / n)
    near_zero = n * jnp.log1p(-jnp.minimum(x, threshold))
    return jnp.where(x < threshold, -jnp.expm1(near_zero), 1 - (1 - x) ** n)
