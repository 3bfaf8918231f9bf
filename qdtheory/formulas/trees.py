"""Formulas as trees: built, decided on (0, 1), written, evaluated in any arithmetic.

They are evaluated in NumPy, JAX and SymPy, and in Arb balls, which enclose every
rounding error and whose exponents do not underflow.
"""

import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, lru_cache, partial, reduce
from operator import methodcaller
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb, arb_series, ctx, fmpq

from qdtheory.formulas.jets import Jet, constant_jet, jet_functions
from qdtheory.support.clock import time_limit

# The variable "x", an exact number, or the name of an operation with its operands,
# which trees may share.
Tree = str | Fraction | tuple
# Bits of a ball's midpoint: 77 digits.
PRECISION = 256
FUNCTIONS = ("log", "exp", "sqrt")
# Of an absolute value, where its sign is not the same on all of (0, 1).
CHOICES = ("where", "<")
ARITHMETIC: dict[str, Callable] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "minus": operator.neg,
}
# Of a number that is computed, exactly, before a formula is used.
MAX_BITS = 512
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

    >>> folded("where", folded("<", Fraction(1), Fraction(2)), "x", Fraction(0))
    'x'
    """
    tree = (name, *operands)
    match tree:
        case ("<", Fraction() as a, Fraction() as b):
            return a < b
        case ("where", True, part, _) | ("where", False, _, part):
            return part
        case ("+", Fraction(numerator=0), part) | ("+", part, Fraction(numerator=0)):
            return part
        case ("-", part, Fraction(numerator=0)):
            return part
        case ("*", Fraction() as one, part) | ("*" | "/", part, Fraction() as one) if (
            one == 1
        ):
            return part
    if not all(isinstance(part, Fraction) for part in operands):
        return tree
    if tree in SPECIAL_VALUES:
        return SPECIAL_VALUES[tree]
    if name not in ARITHMETIC or (name == "**" and not _is_short(*operands)):
        return tree
    try:
        exact = ARITHMETIC[name](*operands)
    except ZeroDivisionError:
        return tree
    bits = max(map(int.bit_length, exact.as_integer_ratio()))
    return exact if bits <= MAX_BITS else tree


def absolute(a: Tree) -> Tree:
    """The absolute value."""
    return folded("where", folded("<", a, Fraction(0)), folded("minus", a), a)


def _is_short(base: Fraction, exponent: Fraction) -> bool:
    """Whether a power is a fraction worth computing: most have more bits than kept."""
    plain = base.denominator == 1 and abs(base) <= 1
    return exponent.denominator == 1 and (plain or abs(exponent) <= MAX_BITS)


def decided(tree: Tree) -> Tree:
    """Make the choices of a tree that fall one way for all 0 < x < 1.

    >>> decided(("where", ("<", Fraction(0), "x"), "x", Fraction(0)))
    'x'
    """
    return rebuilt(tree, "x", lambda *parts: _one_way(folded(*parts)))


def rebuilt(tree: Tree, x: Tree, build: Callable[..., Tree] = folded) -> Tree:
    """The tree with another one for x, built anew from the leaves."""
    new: dict[int, Tree] = {}
    for part in subtrees(tree):
        if isinstance(part, tuple):
            new[id(part)] = build(part[0], *(new[id(operand)] for operand in part[1:]))
        else:
            new[id(part)] = x if part == "x" else part
    return new[id(tree)]


def _one_way(tree: Any) -> Any:
    match tree:
        case ("<", a, b) if (sign := _sign(folded("-", a, b))) is not None:
            return sign < 0
    return tree


def _sign(tree: Tree) -> int | None:
    """The sign that a tree has at all 0 < x < 1, if two simple ways tell it."""
    match tree:
        case "x" | ("-", "x", Fraction()) | ("-", Fraction(), "x"):
            ends = [compiled(tree, Fraction, {})(Fraction(end)) for end in (0, 1)]
            return 1 if min(ends) >= 0 else -1 if max(ends) <= 0 else None
        case ("log", a):
            return _sign(folded("-", a, Fraction(1)))
        case ("*" | "/", a, b) if (sign := _sign(a)) and (other := _sign(b)):
            return sign * other
    values = list(_over_pieces(tree))
    if all(value > 0 for value in values):
        return 1
    return -1 if all(value < 0 for value in values) else None


def _over_pieces(tree: Tree) -> Iterator[Any]:
    """Enclosures of a tree on pieces that cover [0, 1]."""
    half = Fraction(1, 2 * NUM_PIECES)
    for i in range(NUM_PIECES):
        yield balls(tree, ball((2 * i + 1) * half) + arb(0, float(half)))[0]


def names(tree: Tree) -> set[str | Fraction]:
    """The names of the operations of a tree, and its leaves."""
    parts = subtrees(tree)
    return {part[0] if isinstance(part, tuple) else part for part in parts}


def size_of(tree: Tree) -> int:
    """Number of operations and leaves of a tree when it is written out."""
    sizes: dict[int, int] = {}
    for part in subtrees(tree):
        operands = part[1:] if isinstance(part, tuple) else ()
        sizes[id(part)] = 1 + sum(sizes[id(operand)] for operand in operands)
    return sizes[id(tree)]


def subtrees(tree: Tree) -> list[Tree]:
    """Each part of a tree once; operands come before what is computed from them."""
    seen: dict[int, Tree] = {}
    waiting = [tree]
    while waiting:
        part = waiting[-1]
        operands = part[1:] if isinstance(part, tuple) else ()
        if new := [operand for operand in operands if id(operand) not in seen]:
            waiting += new[::-1]
        else:
            seen[id(part)] = waiting.pop()
    return list(seen.values())


# --- Writing --------------------------------------------------------------------------
def written(tree: Tree) -> str:
    """Write a tree as people do; without choices an `Expression` reads it.

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
        case ("**", a, b):
            return f"{at_least(4, a)}**{at_least(4, b)}", 3
        case ("<", a, b):
            return f"{at_least(1, a)} < {at_least(1, b)}", 0
        case (name, *operands):
            return f"{name}({', '.join(map(written, operands))})", 4
    return str(tree), 4


# --- Evaluating -----------------------------------------------------------------------
def compiled(
    tree: Tree, number: Callable[[Any], Any], functions: dict[str, Callable]
) -> Callable[[Any], Any]:
    """A tree as a function of x in the arithmetic of some numbers and functions.

    `number` makes a number of that arithmetic. The functions are the operations by
    name; + - * / ** are Python's unless given. Shared parts are computed once.
    """
    operations = ARITHMETIC | functions
    numbers: dict[int, Any] = {}
    variables: list[int] = []
    steps: list[tuple[int, Callable, list[int]]] = []
    for part in subtrees(tree):
        match part:
            case "x":
                variables.append(id(part))
            case Fraction():
                numbers[id(part)] = number(part)
            case ("**", base, exponent):
                # JAX and SymPy know more of a power if its exponent is an int.
                whole = exponent.denominator == 1
                power = int(exponent) if whole else number(exponent)
                to_the = partial(_raised, operations["**"], power)
                steps.append((id(part), to_the, [id(base)]))
            case (name, *operands):
                steps.append((id(part), operations[name], [*map(id, operands)]))

    def run(x):
        values = {**numbers, **dict.fromkeys(variables, x)}
        for place, operation, operands in steps:
            values[place] = operation(*[values[operand] for operand in operands])
        return values[id(tree)]

    return run


# Lambdas and functions without types: the tests' type checker checks each other call.
def _raised(to_the, power, base):
    return to_the(base, power)


def in_numpy(tree: Tree, x: np.ndarray) -> Jet:
    """Evaluate a tree and two derivatives in NumPy: NaN or infinite off the domain."""
    zeros = np.zeros_like(x)
    with np.errstate(all="ignore"):
        jet = compiled(tree, constant_jet, jet_functions())(Jet(x, zeros + 1, zeros))
        return jet + Jet(zeros, zeros, zeros)  # of a number: the shape of x


def in_jax(tree: Tree, x: jax.Array) -> jax.Array:
    """Evaluate a tree in JAX: NaN or infinite outside the domain."""
    functions = {"log": jnp.log, "exp": jnp.exp, "sqrt": jnp.sqrt}
    functions |= {"where": jnp.where, "<": jnp.less}
    return jnp.broadcast_to(compiled(tree, float, functions)(x), x.shape)


def in_sympy(tree: Tree, x: Any) -> Any:
    """Write a tree without choices in SymPy, exactly: the decimal 0.1 becomes 1/10."""
    import sympy

    functions = {name: getattr(sympy, name) for name in FUNCTIONS}
    return compiled(tree, sympy.Rational, functions)(x)


def simplified(tree: Tree) -> Tree:
    """Let SymPy combine powers, logarithms and exponentials, for positive x.

    >>> written(simplified(("*", "x", ("log", ("/", Fraction(1), "x")))))
    '-1*x*log(x)'
    """
    import sympy

    x = sympy.Symbol("x", positive=True)
    if names(tree) & {*CHOICES}:
        return tree
    try:
        with time_limit():
            return of_sympy(sympy.expand_log(in_sympy(tree, x)), x)
    except (TimeoutError, ValueError):
        return tree


def of_sympy(h: Any, x: Any) -> Tree:
    """A SymPy expression in x as a tree, in which equal parts are shared.

    Raises ValueError if it holds another operation than trees have.
    """
    import sympy

    known: dict[Any, Tree] = {x: "x", sympy.E: ("exp", Fraction(1))}

    def visit(h: Any) -> Tree:
        if h not in known:
            known[h] = read(h)
        return known[h]

    def read(h: Any) -> Tree:
        if h.is_Rational:
            return Fraction(int(h.p), int(h.q))
        if h.is_Pow and not h.exp.is_Rational:
            return folded("exp", visit(h.exp * sympy.log(h.base)))
        operands, name = [visit(part) for part in h.args], type(h).__name__
        if h.is_Add or h.is_Mul:
            return reduce(partial(folded, "+" if h.is_Add else "*"), operands)
        if h.is_Pow:
            return folded("**", *operands)
        if name in FUNCTIONS:
            return folded(name, *operands)
        raise ValueError(f"SymPy made {name} of a formula")

    return visit(h)


def balls(tree: Tree, x: Any, order: int = 0, precision: int = PRECISION) -> list[Any]:
    """Enclose a tree and its derivatives, at a number or on all of an interval.

    `x` is a ball; the balls are NaN outside the domain, and where a choice is not
    decided.

    >>> (value,) = balls(("log", "x"), ball(Fraction(1, 2**1000)))
    >>> round(float(value), 6)
    -693.147181
    """
    with ctx.workprec(precision):
        cap, ctx.cap = ctx.cap, order + 1
        try:
            start = arb_series([x, ball(Fraction(1))], order + 1)
            series = _enclosing(tree, precision)(start)
            series = arb_series([0], order + 1) + series
            # A sum with NaN leaves derivatives as they are.
            if not series[0].is_finite():
                return [series[0], *[arb.nan()] * order]
            return [series[n] * math.factorial(n) for n in range(order + 1)]
        except (ValueError, ZeroDivisionError):  # a divisor without a first term
            return [arb.nan()] * (order + 1)
        finally:
            ctx.cap = cap


@lru_cache(maxsize=128)
def _enclosing(tree: Tree, precision: int) -> Callable[[Any], Any]:
    """A tree as a function of balls, at many x of one precision."""
    with ctx.workprec(precision):
        return compiled(tree, ball, ball_functions())


def ball(exact: Fraction | float) -> Any:
    """Enclose an exact number in an Arb ball of 77 digits, or of those in use."""
    if isinstance(exact, float):
        return arb(exact)
    with ctx.workprec(max(PRECISION, ctx.prec)):
        return arb(fmpq(exact.numerator, exact.denominator))


@cache
def ball_functions() -> dict[str, Callable]:
    """The functions of balls and of their power series.

    A condition is True, False or, where a ball holds both answers, None.
    """

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

    def where(which: bool | None, a: Any, b: Any) -> Any:
        return arb.nan() if which is None else a if which else b

    functions = {name: methodcaller(name) for name in FUNCTIONS}
    functions |= {name: of_finite(ARITHMETIC[name]) for name in "*/"}
    return functions | {"**": to_the, "where": where, "<": less}
