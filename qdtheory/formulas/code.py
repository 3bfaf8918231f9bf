"""Code that JAX can trace, read as a formula: `jax.make_jaxpr` lists its operations.

Code is then evaluated, differentiated and proved about as a formula is. Derivatives are
those of the function, whatever `stop_gradient` or a rule of the user's own says, and a
choice (`where`, `cond`, `maximum`) that falls one way on all of (0, 1) is made once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from qdtheory.formulas.accurate import limits
from qdtheory.formulas.expressions import SPELLINGS, Expression
from qdtheory.formulas.trees import (
    CHOICES,
    CONDITIONS,
    MORE_FUNCTIONS,
    Tree,
    absolute,
    folded,
    names,
    rebuilt,
    size_of,
)
from qdtheory.world.numbers import EPS

# Of the formula written out; larger ones are slow to read, and no proof ends on them.
MAX_OPERATIONS = 1000
MAX_LOOP = 64
ONE, ZERO = Fraction(1), Fraction(0)


class NoFormula(Exception):
    """Why code is not read as a formula, in words."""


@lru_cache(maxsize=256)
def formula_of_code(h: Callable) -> Expression | str:
    """Read code as a formula, or say what keeps it from being one.

    >>> formula_of_code(lambda x: x * jnp.log1p(1 / x - 1))
    Expression(text='x*log(1 + 1/x - 1)')
    >>> formula_of_code(jax.scipy.special.digamma)
    'the operation digamma has no formula'
    """
    try:
        with jax.ensure_compile_time_eval():
            closed = jax.make_jaxpr(h)(np.float64(0.5))
            ends = [_at(h, end) for end in (0.0, 1.0)]
        (output,) = _outputs(closed.jaxpr, closed.consts, ["x"])
        tree = _number(_a_tree(output))
        if size_of(tree) > MAX_OPERATIONS:
            return f"it has more than {MAX_OPERATIONS} operations"
        formula = Expression.of_tree(tree)
        # A choice that falls one way inside may fall another way at an end.
        for end, value in enumerate(ends if names(tree) & {*CHOICES} else ()):
            limit, _ = limits(formula.inside, end)
            if np.isfinite([value, limit]).all() and not np.isclose(value, limit):
                return f"it jumps at {end}"
        return formula
    except NoFormula as why:
        return str(why)
    except RecursionError:
        return f"it has more than {MAX_OPERATIONS} operations"


def _at(h: Callable, end: float) -> float:
    """The value of the code itself, NaN if it has none."""
    try:
        with np.errstate(all="ignore"):
            return float(h(np.float64(end)))
    except ArithmeticError:
        return np.nan


# --- What stays code ----------------------------------------------------------------
# Steps down a ladder, and the neighbours of each whose slopes and rises are compared.
RUNGS = 10.0 ** -np.arange(2, 101)
NEIGHBOURS = 1 + np.array([0, 1e-3, 2.3e-3, 3.1e-3, 4.7e-3, 5.9e-3])
# Slopes agree with rises to this, and rises are told from rounding errors to this.
AGREED = 1e-3


@dataclass(frozen=True)
class Code:
    """A function that is known by its code only, trusted down to some x.

    Below that x, where values, slopes and rises stop to agree, it is its own tangent.
    No seal rests on it.
    """

    function: Callable = field(repr=False)
    why: str  # it cannot be read as a formula

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    @cached_property
    def trusted(self) -> float:
        """The least x of a ladder down to which values and slopes agree."""
        with jax.ensure_compile_time_eval():
            x = NEIGHBOURS[:, None] * RUNGS
            read = jax.jit(jax.vmap(jax.value_and_grad(self._in_64_bits)))
            value, slope = (
                np.asarray(part).reshape(x.shape) for part in read(x.ravel())
            )
            kind = jax.eval_shape(self.function, np.float64(0.5)).dtype
        eps = max(EPS, float(jnp.finfo(kind).eps), 1e-7 * ("float32" in self.why))
        with np.errstate(all="ignore"):
            step, size = np.diff(x, axis=0), np.abs(slope).max(axis=0)
            noise = 4 * eps * np.abs(value).max(axis=0) / step
            missed = np.abs(np.diff(value, axis=0) / step - slope[1:])
            room = np.abs(np.diff(slope, axis=0)) + AGREED * size
            good = (missed <= room + noise) & ((noise <= AGREED * size) | (size == 0))
            good = good.all(axis=0)
        return float(RUNGS[:1][0] if not good[0] else RUNGS[np.cumprod(good) > 0][-1])

    def _in_64_bits(self, x: ArrayLike) -> Array:
        return jnp.asarray(self.function(x), float)

    @cached_property
    def zero(self) -> tuple[float, float]:
        """Value and slope of the tangent at 0."""
        with jax.ensure_compile_time_eval():
            read = jax.value_and_grad(self._in_64_bits)
            value, slope = map(float, read(self.trusted))
        return value - slope * self.trusted, slope

    def __call__(self, x: ArrayLike) -> Array:
        """The code where it is trusted, its tangent below."""
        start, x = self.trusted, jnp.asarray(x, float)
        value = self._in_64_bits(jnp.where(x < start, start, x))
        at, slope = jax.value_and_grad(self._in_64_bits)(start)
        near = at + slope * (x - start)
        # A jump at 0 itself, as of the number of texts in use, is the code's.
        end = self._in_64_bits(jnp.zeros(()))  # Python's own 1 / 0.0 is an error
        near = jnp.where((x == 0) & jnp.isfinite(end), end, near)
        return jnp.where(x < start, near, value)


def _outputs(jaxpr: Any, consts: Sequence, arguments: Sequence) -> list:
    """The outputs of a list of operations as trees, or as arrays if they hold no x."""
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    values |= dict(zip(jaxpr.invars, arguments, strict=True))

    def value(variable: Any) -> Any:
        return variable.val if hasattr(variable, "val") else values[variable]

    for equation in jaxpr.eqns:
        outputs = _applied(equation, [value(variable) for variable in equation.invars])
        values |= dict(zip(equation.outvars, outputs, strict=True))
    return [value(variable) for variable in jaxpr.outvars]


def _applied(equation: Any, operands: list) -> list:
    """One operation, computed if its operands hold no x."""
    name, params = equation.primitive.name, equation.params
    if not any(map(_is_tree, operands)):
        outputs = equation.primitive.bind(*map(jnp.asarray, operands), **params)
        return list(outputs) if equation.primitive.multiple_results else [outputs]
    for inner in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        if name != "scan" and inner in params:
            inside = params[inner]
            consts = getattr(inside, "consts", ())
            return _outputs(getattr(inside, "jaxpr", inside), consts, operands)
    if name == "cond":
        return _chosen(params["branches"], *operands)
    if name == "scan":
        return _unrolled(params, operands)
    if name == "convert_element_type":
        kind = params["new_dtype"]
        if jnp.issubdtype(kind, jnp.floating) and jnp.finfo(kind).bits < 64:
            raise NoFormula(f"it computes in {kind}")
        if jnp.issubdtype(kind, jnp.integer) and not _is_condition(operands[0]):
            raise NoFormula(f"it rounds to {kind}")
        return [operands[0]]
    if any(variable.aval.shape for variable in equation.outvars):
        raise NoFormula("it computes with arrays")
    if name in ("integer_pow", "square"):
        return [folded("**", _a_tree(operands[0]), Fraction(params.get("y", 2)))]
    if name == "pow":
        exponent = _a_tree(operands[1])
        if not isinstance(exponent, Fraction):
            return [("exp", ("*", exponent, ("log", _a_tree(operands[0]))))]
        return [folded("**", _a_tree(operands[0]), exponent)]
    if name in OF_NUMBERS:
        return [OF_NUMBERS[name](*(_number(_a_tree(part)) for part in operands))]
    if name in COMPARISONS:
        # A jump is where the floats put it: 0.6 in a comparison is that float.
        return [COMPARISONS[name](*(_a_tree(part, exactly=True) for part in operands))]
    if name in OF_ANY:
        return [OF_ANY[name](*map(_a_tree, operands))]
    raise NoFormula(f"the operation {name} has no formula")


def _is_tree(value: Any) -> bool:
    return isinstance(value, str | tuple | Fraction)


def _a_tree(value: Any, exactly: bool = False) -> Tree:
    """A tree of an operand: numbers in code are the decimals that Python prints."""
    if _is_tree(value):
        return value
    number = np.asarray(value)
    if number.shape:
        raise NoFormula("it computes with arrays")
    if number.dtype == bool:
        return bool(number)
    if number.dtype.itemsize < 8 and np.issubdtype(number.dtype, np.floating):
        raise NoFormula(f"it computes in {number.dtype}")
    real = float(number)
    return Fraction(real if exactly else repr(real)) if np.isfinite(real) else real


def _is_condition(tree: Any) -> bool:
    return isinstance(tree, bool) or (isinstance(tree, tuple) and tree[0] in CONDITIONS)


def _number(tree: Tree) -> Tree:
    """A condition as 0 or 1."""
    return folded("where", tree, ONE, ZERO) if _is_condition(tree) else tree


def _chosen(branches: Sequence, which: Any, *operands: Any) -> list:
    """Each output of `lax.cond`, with the choice made as late as possible."""
    if not _is_tree(which):
        return _outputs(branches[int(which)].jaxpr, (), operands)
    if not _is_condition(which):
        raise NoFormula("it chooses among branches by a number")
    no, yes = (_outputs(part.jaxpr, part.consts, operands) for part in branches)
    return [
        folded("where", which, _a_tree(a), _a_tree(b))
        for a, b in zip(yes, no, strict=True)
    ]


def _unrolled(params: dict, operands: list) -> list:
    """A loop of fixed length, such as that of `jnp.polyval`, written out."""
    length, num_consts, num_carry = (
        params[name] for name in ("length", "num_consts", "num_carry")
    )
    consts, carry = operands[:num_consts], operands[num_consts:][:num_carry]
    rows = operands[num_consts + num_carry :]
    if length > MAX_LOOP or any(map(_is_tree, rows)):
        raise NoFormula(f"it loops over arrays, or more than {MAX_LOOP} times")
    if len(params["jaxpr"].jaxpr.outvars) > num_carry:
        raise NoFormula("it computes with arrays")
    steps = range(length)
    for i in reversed(steps) if params["reverse"] else steps:
        inside = params["jaxpr"]
        arguments = [*consts, *carry, *(row[i] for row in rows)]
        carry = _outputs(inside.jaxpr, inside.consts, arguments)
    return carry


# --- What operations are as formulas --------------------------------------------------
_less = partial(folded, "<")


def _greatest(a: Tree, b: Tree) -> Tree:
    return folded("where", _less(a, b), b, a)


def _least(a: Tree, b: Tree) -> Tree:
    return folded("where", _less(a, b), a, b)


def _sign(a: Tree) -> Tree:
    below = folded("where", _less(a, ZERO), -ONE, ZERO)
    return folded("where", _less(ZERO, a), ONE, below)


def _polynomial(a: Tree, *coefficients: Tree) -> Tree:
    return reduce(
        lambda higher, c: folded("+", folded("*", higher, a), c), coefficients[::-1]
    )


def _selected(which: Tree, no: Tree, yes: Tree) -> Tree:
    if not _is_condition(which):
        raise NoFormula("it chooses among values by a number")
    return folded("where", which, yes, no)


def _same(a: Tree) -> Tree:
    return a


# Of numbers: those that have a name of their own, those written as text, all others.
OF_NUMBERS: dict[str, Callable[..., Tree]] = {
    name: partial(folded, name)
    for name in ("log", "exp", "sqrt", "floor", *MORE_FUNCTIONS)
} | {
    name: partial(rebuilt, Expression(text).inside)
    for name, text in SPELLINGS["functions"].items()
}
OF_NUMBERS |= {
    "add": partial(folded, "+"),
    "sub": partial(folded, "-"),
    "mul": partial(folded, "*"),
    "div": partial(folded, "/"),
    "neg": partial(folded, "minus"),
    "polynomial": _polynomial,
    "tan": lambda a: folded("/", folded("sin", a), folded("cos", a)),
    "cbrt": lambda a: folded("*", _sign(a), folded("**", absolute(a), Fraction(1, 3))),
    "erfc": lambda a: folded("-", ONE, folded("erf", a)),
    "abs": absolute,
    "sign": _sign,
    "max": _greatest,
    "min": _least,
    "clamp": lambda low, a, high: _least(_greatest(a, low), high),
}
COMPARISONS: dict[str, Callable[..., Tree]] = {
    "lt": _less,
    "le": partial(folded, "<="),
    "gt": lambda a, b: folded("<", b, a),
    "ge": lambda a, b: folded("<=", b, a),
    "eq": partial(folded, "=="),
    "ne": lambda a, b: folded("not", folded("==", a, b)),
}
OF_ANY: dict[str, Callable[..., Tree]] = {
    "select_n": _selected,
    **{name: partial(folded, name) for name in ("and", "or", "not")},
    **dict.fromkeys(("stop_gradient", "copy", "copy_p"), _same),
    **dict.fromkeys(("reshape", "squeeze", "broadcast_in_dim"), _same),
}
