"""Formulas as trees: built, decided on (0, 1), written, evaluated in any arithmetic.

A formula in text and code that JAX can trace become the same trees. They are evaluated
in NumPy, JAX and SymPy, and in Arb balls, which enclose every rounding error and whose
exponents do not underflow.
"""

import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, arb_series, ctx, fmpq

from qdtheory.formulas.jets import Jet, jet_functions
from qdtheory.world.clock import time_limit

# The variable "x", an exact number, an infinite or undefined one, a condition that is
# decided, or the name of an operation with its operands, which trees may share.
Tree = str | Fraction | float | bool | tuple
# Bits of a ball's midpoint: 77 digits.
PRECISION = 256
FUNCTIONS = ("log", "exp", "sqrt")
# Only code has these.
MORE_FUNCTIONS = ("erf", "lgamma", "sin", "cos")
# Only code has choices, the conditions they depend on, and steps.
CONDITIONS = ("<", "<=", "==", "and", "or", "not")
CHOICES = ("where", "floor", *CONDITIONS)
ARITHMETIC: dict[str, Callable] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "plus": operator.pos,
    "minus": operator.neg,
}
# Of a number that is computed, exactly, before a formula is used.
MAX_BITS = 512
# What SymPy calls the functions.
SYMPY_NAMES = {
    **{name: name for name in (*FUNCTIONS, "erf", "sin", "cos")},
    **{"loggamma": "lgamma"},
}
# Pieces of [0, 1] on which a condition is tried.
NUM_PIECES = 64
SPECIAL_VALUES = {
    ("sqrt", Fraction(0)): Fraction(0),
    ("sqrt", Fraction(1)): Fraction(1),
    ("log", Fraction(1)): Fraction(0),
    ("exp", Fraction(0)): Fraction(1),
}


# --- Building -----------------------------------------------------------------------
def folded(name: Any, *operands: Any) -> Any:
    """Build a tree, computing with numbers exactly: sqrt(0.3 - 0.3) is the number 0.

    Args:
        name: the operation.
        operands: its operands.

    Returns:
        The tree, or the number, the condition or the branch that it comes to.

    Example:
        >>> folded("where", folded("<", Fraction(1), Fraction(2)), "x", Fraction(0))
        'x'
    """
    tree = (name, *operands)
    if name in CONDITIONS:
        return _folded_condition(tree)
    if name == "where" and (operands[0] is True or operands[1] == operands[2]):
        return operands[1]
    if name == "where" and operands[0] is False:
        return operands[2]
    match tree:
        case ("+", Fraction(numerator=0), part) | (
            "+" | "-",
            part,
            Fraction(numerator=0),
        ):
            return part
        case ("*", Fraction() as one, part) | ("*" | "/", part, Fraction() as one) if (
            one == 1
        ):
            return part
    if not all(isinstance(part, Fraction) for part in operands):
        return tree
    if tree in SPECIAL_VALUES:
        return SPECIAL_VALUES[tree]
    if name in ARITHMETIC or (name == "**" and _is_short(*operands)):
        try:
            exact = evaluate(tree, None, Fraction, {})
        except ZeroDivisionError:
            return tree
        return exact if _bits(exact) <= MAX_BITS else tree
    return tree


def _is_short(base: Fraction, exponent: Fraction) -> bool:
    """Whether a power is a fraction worth computing: most have more bits than kept."""
    plain = base.denominator == 1 and abs(base) <= 1
    return exponent.denominator == 1 and (plain or abs(exponent) <= MAX_BITS)


def _bits(exact: Fraction) -> int:
    return max(map(int.bit_length, exact.as_integer_ratio()))


def _folded_condition(tree: tuple) -> Tree:
    match tree:
        case ("<" | "<=" | "==" as name, Fraction() as a, Fraction() as b):
            return {"<": a < b, "<=": a <= b, "==": a == b}[name]
        case ("<=" | "==", a, b) if a == b:
            return True
        case ("<", a, b) if a == b:
            return False
        case ("==", float(), _) | ("==", _, float()):
            return False  # is it infinite? Values are read where they are not
        case ("not", bool() as a):
            return not a
        case ("and", False, _) | ("and", _, False):
            return False
        case ("or", True, _) | ("or", _, True):
            return True
        case ("and", True, a) | ("and", a, True) | ("or", False, a) | ("or", a, False):
            return a
    return tree


def decided(tree: Tree) -> Tree:
    """Make the choices of a tree that fall one way for all 0 < x < 1.

    Args:
        tree: any tree.

    Returns:
        A tree that is equal on (0, 1).

    Example:
        >>> decided(("where", ("<", Fraction(0), "x"), "x", Fraction(0)))
        'x'
    """
    known: dict[int, Tree] = {}

    def visit(tree: Tree) -> Tree:
        if not isinstance(tree, tuple):
            return tree
        if id(tree) not in known:
            name, *operands = tree
            known[id(tree)] = _one_way(folded(name, *map(visit, operands)))
        return known[id(tree)]

    return visit(tree)


def _one_way(tree: Tree) -> Tree:
    match tree:
        case ("<" | "<=" | "==" as order, a, b):
            sign = _sign(folded("-", a, b))
            if sign is not None:
                return sign < 0 and order != "=="
        case ("floor", a):
            floors = {value.floor().unique_fmpz() for value in _over_pieces(a)}
            if len(floors) == 1 and None not in floors:
                return Fraction(int(floors.pop()))
    return tree


def _sign(tree: Tree) -> int | None:
    """The sign that a tree has at all 0 < x < 1, if two simple ways tell it."""
    match tree:
        case "x" | ("-", "x", Fraction()) | ("-", Fraction(), "x"):
            ends = [evaluate(tree, Fraction(end), Fraction, {}) for end in (0, 1)]
            return 1 if min(ends) >= 0 else -1 if max(ends) <= 0 else None
    values = list(_over_pieces(tree))
    if all(value > 0 for value in values):
        return 1
    return -1 if all(value < 0 for value in values) else None


def _over_pieces(tree: Tree) -> Iterator[Any]:
    """Enclosures of a tree on pieces that cover [0, 1]."""
    half = Fraction(1, 2 * NUM_PIECES)
    for i in range(NUM_PIECES):
        yield balls(tree, ball((2 * i + 1) * half) + arb(0, float(half)))[0]


def names(tree: Tree) -> set[str | Fraction | float | bool]:
    """The names of the operations of a tree, and its leaves.

    Args:
        tree: any tree.

    Returns:
        The set.
    """
    found = set()
    for part in subtrees(tree):
        found.add(part[0] if isinstance(part, tuple) else part)
    return found


def size_of(tree: Tree) -> int:
    """Number of operations and leaves of a tree when it is written out.

    Args:
        tree: any tree.

    Returns:
        The number.
    """
    sizes: dict[int, int] = {}
    for part in subtrees(tree):
        operands = part[1:] if isinstance(part, tuple) else ()
        sizes[id(part)] = 1 + sum(sizes[id(operand)] for operand in operands)
    return sizes[id(tree)]


def subtrees(tree: Tree) -> list[Tree]:
    """Each part of a tree once.

    Args:
        tree: any tree.

    Returns:
        The parts; operands come before what is computed from them.
    """
    known: dict[int, Tree] = {}

    def visit(part: Tree) -> None:
        if id(part) not in known:
            if isinstance(part, tuple):
                for operand in part[1:]:
                    visit(operand)
            known[id(part)] = part

    visit(tree)
    return list(known.values())


# --- Writing --------------------------------------------------------------------------
def written(tree: Tree) -> str:
    """Write a tree as people do.

    Args:
        tree: any tree.

    Returns:
        A text; without choices and functions of code an `Expression` reads it.

    Example:
        >>> written(("*", ("+", "x", Fraction(1, 2)), ("log", "x")))
        '(x + 0.5)*log(x)'
    """
    return _written(tree)[0]


def _written(tree: Tree) -> tuple[str, int]:
    """A tree and how tightly it binds: 4 as a name does, 1 as a sum does."""

    def at_least(least: int, part: Tree) -> str:
        text, binds = _written(part)
        return text if binds >= least else f"({text})"

    match tree:
        case Fraction():
            exact = Fraction(repr(float(tree))) == tree
            text = f"{float(tree):.17g}" if not exact else repr(float(tree))
            text = str(tree.numerator) if tree.denominator == 1 else text
            if not exact and tree.denominator > 1:
                return f"{tree.numerator}/{tree.denominator}", 2
            return text, 4 if tree >= 0 else 2
        case ("+" | "-" as sign, a, b):
            return f"{at_least(1, a)} {sign} {at_least(1 + (sign == '-'), b)}", 1
        case ("*" | "/" as sign, a, b):
            return f"{at_least(2, a)}{sign}{at_least(3, b)}", 2
        case ("minus", a):
            return f"-{at_least(2, a)}", 2
        case ("plus", a):
            return _written(a)
        case ("**", a, b):
            return f"{at_least(4, a)}**{at_least(4, b)}", 3
        case ("<" | "<=" | "==" | "and" | "or" as sign, a, b):
            return f"{at_least(1, a)} {sign} {at_least(1, b)}", 0
        case (name, *operands):
            return f"{name}({', '.join(map(written, operands))})", 4
    return str(tree), 4


# --- Evaluating -----------------------------------------------------------------------
def evaluate(
    tree: Tree, x: Any, number: Callable[[Any], Any], functions: dict[str, Callable]
) -> Any:
    """Evaluate a tree in the arithmetic of x, the numbers and the functions.

    Args:
        tree: any tree.
        x: the variable in that arithmetic.
        number: makes a number of it.
        functions: the operations by name; + - * / ** are Python's unless given.

    Returns:
        The value.
    """
    known: dict[int, Any] = {}

    def visit(tree: Tree) -> Any:
        match tree:
            case "x":
                return x
            case bool():
                return tree
            case Fraction() | float():
                return number(tree)
        if id(tree) not in known:
            match tree:
                case ("**", base, exponent):
                    # JAX and SymPy know more of a power if its exponent is an int.
                    whole = exponent.denominator == 1
                    power = int(exponent) if whole else number(exponent)
                    to_the = functions.get("**", operator.pow)
                    known[id(tree)] = to_the(visit(base), power)
                case (name, *operands):
                    operation = functions.get(name) or ARITHMETIC[name]
                    known[id(tree)] = operation(*map(visit, operands))
        return known[id(tree)]

    return visit(tree)


def in_numpy(tree: Tree, x: np.ndarray) -> Jet:
    """Evaluate a tree and two derivatives in NumPy.

    Args:
        tree: any tree.
        x: numbers of any shape.

    Returns:
        A jet of arrays of the shape of `x`, NaN or infinite outside the domain.
    """
    zeros = np.zeros_like(x)
    with np.errstate(all="ignore"):
        jet = evaluate(tree, Jet(x, zeros + 1, zeros), _constant_jet, _of_jets())
        return jet + Jet(zeros, zeros, zeros)  # of a number: the shape of x


def in_jax(tree: Tree, x: jax.Array) -> jax.Array:
    """Evaluate a tree in JAX.

    Args:
        tree: any tree.
        x: numbers of any shape.

    Returns:
        An array of the shape of `x`, NaN or infinite outside the domain.
    """
    from jax.scipy.special import erf, gammaln

    functions = {"log": jnp.log, "exp": jnp.exp, "sqrt": jnp.sqrt, "erf": erf}
    functions |= {"sin": jnp.sin, "cos": jnp.cos}
    functions |= {"lgamma": gammaln, "floor": jnp.floor, "where": jnp.where}
    functions |= _orders(jnp.asarray) | {"not": jnp.logical_not}
    functions |= {"and": jnp.logical_and, "or": jnp.logical_or}
    return jnp.broadcast_to(evaluate(tree, x, float, functions), x.shape)


def in_sympy(tree: Tree, x: Any) -> Any:
    """Write a tree in SymPy, exactly: the decimal 0.1 becomes 1/10.

    Args:
        tree: a tree without choices.
        x: the SymPy symbol to write it in.

    Returns:
        A SymPy expression.
    """
    import sympy

    functions = {"log": sympy.log, "exp": sympy.exp, "sqrt": sympy.sqrt}
    functions |= {"erf": sympy.erf, "lgamma": sympy.loggamma}
    functions |= {"sin": sympy.sin, "cos": sympy.cos}
    return evaluate(tree, x, sympy.Rational, functions)


def simplified(tree: Tree) -> Tree:
    """Let SymPy combine powers, logarithms and exponentials, for positive x.

    Args:
        tree: any tree.

    Returns:
        A tree that is equal on (0, 1); the same one if it has choices.

    Example:
        >>> written(simplified(("*", "x", ("log", ("/", Fraction(1), "x")))))
        '-1*x*log(x)'
    """
    import sympy

    x = sympy.Symbol("x", positive=True)
    if names(tree) & {*CHOICES}:
        return tree
    try:
        with time_limit():
            return _of_sympy(sympy.expand_log(in_sympy(tree, x)), x)
    except (TimeoutError, ValueError):
        return tree


def _of_sympy(h: Any, x: Any) -> Tree:
    """A SymPy expression as a tree."""
    if h == x:
        return "x"
    if h.is_Rational:
        return Fraction(int(h.p), int(h.q))
    operands = [_of_sympy(part, x) for part in h.args]
    if h.is_Add or h.is_Mul:
        return reduce(partial(folded, "+" if h.is_Add else "*"), operands)
    name = type(h).__name__
    if h.is_Pow and isinstance(operands[1], Fraction):
        return folded("**", *operands)
    if name in SYMPY_NAMES:
        return folded(SYMPY_NAMES[name], *operands)
    raise ValueError(f"SymPy made {name} of a formula")


def balls(
    tree: Tree,
    x: Any,
    order: int = 0,
    precision: int = PRECISION,
    unit: Fraction | None = None,
) -> list[Any]:
    """Enclose a tree and its derivatives, at a number or on all of an interval.

    Args:
        tree: any tree.
        x: an Arb ball.
        order: of the highest derivative.
        precision: bits of the balls' midpoints.
        unit: of Taylor's coefficients, the n-th derivative by n!, instead of the
            derivatives: they are those of powers of (x' - x) / unit.

    Returns:
        An Arb ball each; NaN outside the domain, and where a choice is not decided.

    Example:
        >>> (value,) = balls(("log", "x"), ball(Fraction(1, 2**1000)))
        >>> round(float(value), 6)
        -693.147181
    """
    with ctx.workprec(precision):
        cap, ctx.cap = ctx.cap, order + 1
        try:
            start = arb_series([x, ball(unit or Fraction(1))], order + 1)
            found = evaluate(tree, start, ball, _of_series())
            found = arb_series([0], order + 1) + found
            if not found[
                0
            ].is_finite():  # a sum with NaN leaves derivatives as they are
                return [found[0], *[arb.nan()] * order]
            if unit is not None:
                return [found[n] for n in range(order + 1)]
            return [found[n] * math.factorial(n) for n in range(order + 1)]
        except (ValueError, ZeroDivisionError):  # a divisor without a first term
            return [arb.nan()] * (order + 1)
        finally:
            ctx.cap = cap


def ball(exact: Fraction | float, precision: int | None = None) -> Any:
    """Enclose an exact number in an Arb ball of 77 digits.

    Args:
        exact: the number.
        precision: bits of its midpoint, instead of those in use if these are more.

    Returns:
        The ball; infinite or NaN as the number is.
    """
    if isinstance(exact, float):
        return arb(exact)
    with ctx.workprec(precision or max(PRECISION, ctx.prec)):
        return arb(fmpq(exact.numerator, exact.denominator))


def _constant_jet(exact: Fraction | float) -> Jet:
    return Jet(np.float64(exact), np.float64(0), np.float64(0))


def _orders(value: Callable[[Any], Any]) -> dict[str, Callable]:
    """Comparisons of what `value` takes from the operands."""
    comparisons = {"<": operator.lt, "<=": operator.le, "==": operator.eq}
    return {
        name: lambda a, b, order=order: order(value(a), value(b))
        for name, order in comparisons.items()
    }


@cache
def _of_jets() -> dict[str, Callable]:
    """The functions of jets of NumPy arrays."""
    from scipy.special import digamma, erf, gammaln, polygamma

    def erf_of(jet: Jet) -> Jet:
        v = jet.value
        slope = 2 / np.sqrt(np.pi) * np.exp(-(v**2))
        return jet.after(erf(v), slope, -2 * v * slope)

    def lgamma_of(jet: Jet) -> Jet:
        v = jet.value
        return jet.after(gammaln(v), digamma(v), polygamma(1, v))

    def sin_of(jet: Jet) -> Jet:
        v = jet.value
        return jet.after(np.sin(v), np.cos(v), -np.sin(v))

    def cos_of(jet: Jet) -> Jet:
        v = jet.value
        return jet.after(np.cos(v), -np.sin(v), -np.cos(v))

    def floor_of(jet: Jet) -> Jet:
        zeros = np.zeros_like(jet.value)
        return Jet(np.floor(jet.value), zeros, zeros)

    def where(which: Any, a: Jet, b: Jet) -> Jet:
        parts = ((getattr(side, name) for side in (a, b)) for name in vars(a))
        return Jet(*(np.where(which, *part) for part in parts))

    functions = jet_functions(np.log, np.exp, np.sqrt) | {"where": where}
    functions |= {"erf": erf_of, "lgamma": lgamma_of, "floor": floor_of}
    functions |= {"sin": sin_of, "cos": cos_of}
    functions |= _orders(lambda jet: jet.value) | {"not": np.logical_not}
    return functions | {"and": np.logical_and, "or": np.logical_or}


@cache
def _of_series() -> dict[str, Callable]:
    """The functions of Arb's power series; a condition is True, False or None."""

    def first(a: Any) -> Any:
        return a[0] if isinstance(a, arb_series) else a

    # A series that is 0 forgets what it is multiplied by, and its own powers.
    def of_finite(operation: Callable) -> Callable:
        def of_both(a: Any, b: Any) -> Any:
            fine = first(a).is_finite() and first(b).is_finite()
            return operation(a, b) if fine else arb.nan()

        return of_both

    def to_the(a: Any, n: Any) -> Any:
        fine = first(a).is_finite() and (n >= 0 or first(a) != 0)
        return a**n if fine else arb.nan()

    def less(a: Any, b: Any) -> bool | None:
        a, b = first(a), first(b)
        return True if a < b else False if a >= b else None

    def at_most(a: Any, b: Any) -> bool | None:
        return None if (found := less(b, a)) is None else not found

    def equal(a: Any, b: Any) -> bool | None:
        a, b = first(a), first(b)
        return False if a != b else True if a == b else None

    def both(a: bool | None, b: bool | None) -> bool | None:
        return False if a is False or b is False else None if None in (a, b) else True

    def negated(a: bool | None) -> bool | None:
        return None if a is None else not a

    def where(which: bool | None, a: Any, b: Any) -> Any:
        return arb.nan() if which is None else a if which else b

    def floor(a: Any) -> Any:
        found = first(a).floor()
        return found if found.is_exact() else arb.nan()

    def either(a: bool | None, b: bool | None) -> bool | None:
        return negated(both(negated(a), negated(b)))

    functions = {
        name: lambda a, name=name: getattr(a, name)()
        for name in (*FUNCTIONS, *MORE_FUNCTIONS)
    }
    functions |= {name: of_finite(ARITHMETIC[name]) for name in "*/"}
    functions |= {"**": to_the}
    functions |= {"<": less, "<=": at_most, "==": equal, "where": where}
    return functions | {"and": both, "or": either, "not": negated, "floor": floor}
