"""Formulas in one variable, parsed from text that is never executed."""

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.pairs.jets import Jet, jet_functions
from qdtheory.world import precision  # noqa: F401  JAX's 64-bit mode

# The variable "x", an exact number, or the name of an operation with its operands.
Tree = str | Fraction | tuple
ALLOWED = "use x, numbers, log, exp, sqrt, + - * / ** and parentheses"
# What people write, and what to write here.
HABITS = {
    r"\^|[\u00b2\u00b3]": "a power is x**2",
    r"\bln\b": "the natural logarithm is log(x)",
    r"\blog(2|10)\b": "log(x)/log(2) is the logarithm to base 2",
    r"(?<!\w)[\d.]+\s*[x(]|\)\s*[\dx(]": "a product is 2*x",
    r"X": "the variable is x",
    r"\bpi\b": "pi is 3.141592653589793",
    r"\be\b": "e is exp(1)",
}
# Bits of a ball's midpoint: 77 digits.
PRECISION = 256
FUNCTIONS = ("log", "exp", "sqrt")
JET_FUNCTIONS = jet_functions(np.log, np.exp, np.sqrt)
ARITHMETIC: dict[str, Callable] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "plus": operator.pos,
    "minus": operator.neg,
}
OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.UAdd: "plus",
    ast.USub: "minus",
}
# At most two digits of exponent: 1e999999999 as a fraction would exhaust memory.
NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d\d?)?", re.ASCII)
MAX_CHARACTERS = 200
MAX_NODES = 80
MAX_NUMBER = 10**6
# Powers within powers multiply, and a computer algebra system may expand them.
MAX_POWER = 32
MAX_DENOMINATOR = 1000
# Of a number that is computed, exactly, before a formula is used.
MAX_BITS = 512
SPECIAL_VALUES = {
    ("sqrt", Fraction(0)): Fraction(0),
    ("sqrt", Fraction(1)): Fraction(1),
    ("log", Fraction(1)): Fraction(0),
    ("exp", Fraction(0)): Fraction(1),
}


@dataclass(frozen=True)
class Expression:
    """A function of one variable given as text, for JAX and for SymPy.

    The text is read by an allow-list and never run. Two expressions are equal if
    their texts are.

    Args:
        text: x, numbers, log, exp, sqrt, + - * / ** and parentheses, at most 200
            characters and 80 terms. Numbers are at most 1,000,000 in size. The
            exponent of a power is a number of size at most 32, with a denominator
            of at most 1,000; powers within powers multiply.
        letter: what the variable is called in the text, instead of x.

    Raises:
        TypeError: `text` is not a string.
        ValueError: any other text, or a constant without a finite value, such as
            log(-1).

    Example:
        >>> g = Expression("-x*log(x)")
        >>> round(float(g(0.5)), 6)
        0.346574
        >>> Expression("__import__('os')")
        Traceback (most recent call last):
        ...
        ValueError: __import__('os') is not allowed in an expression; use x, numbers, \
log, exp, sqrt, + - * / ** and parentheses
    """

    text: str
    letter: str = field(default="x", repr=False)
    _tree: Tree = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tree", _parse(self.text, self.letter))

    @property
    def __name__(self) -> str:
        return self.text

    def __call__(self, x: ArrayLike) -> Array:
        """Evaluate at each entry of `x` in JAX, which can trace and differentiate it.

        Args:
            x: numbers of any shape.

        Returns:
            An array of the shape of `x`, NaN or infinite outside the domain.
        """
        x = jnp.asarray(x, float)
        functions = {"log": jnp.log, "exp": jnp.exp, "sqrt": jnp.sqrt}
        value = _evaluate(self._tree, x, float, functions)
        return jnp.broadcast_to(value, x.shape)

    def value(self, x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Evaluate in NumPy, without compilation.

        Args:
            x: numbers of any shape.

        Returns:
            An array of the shape of `x`, NaN or infinite outside the domain.
        """
        functions = {"log": np.log, "exp": np.exp, "sqrt": np.sqrt}
        with np.errstate(all="ignore"):
            return np.zeros_like(x) + _evaluate(self._tree, x, np.float64, functions)

    def jet(self, x: Float[np.ndarray, "..."]) -> Jet:
        """Evaluate the function and two derivatives in NumPy, without compilation.

        Args:
            x: numbers of any shape.

        Returns:
            A jet of arrays of the shape of `x`, NaN or infinite outside the domain.

        Example:
            >>> Expression("x**2").jet(np.array([3.0])).slope
            array([6.])
        """
        zeros = np.zeros_like(x)
        with np.errstate(all="ignore"):
            jet = _evaluate(
                self._tree, Jet(x, zeros + 1, zeros), _constant_jet, JET_FUNCTIONS
            )
        return jet + Jet(zeros, zeros, zeros)  # of a number: the shape of x

    def enclosure(self, low: Fraction, high: Fraction | None = None) -> Jet:
        """Interval enclosures of the value and two derivatives, to 60 digits.

        Args:
            low: the point of evaluation, an exact number.
            high: if given, the enclosures hold for all x from `low` to `high`.

        Returns:
            A jet of mpmath intervals.

        Raises:
            ValueError: an enclosure is not a bounded interval of real numbers.
        """
        arithmetic, number, functions = interval_arithmetic()
        ends = number(low).value, number(low if high is None else high).value
        x = arithmetic.mpf([ends[0].a, ends[1].b])
        start = Jet(x, arithmetic.mpf(1), arithmetic.mpf(0))
        jet = _evaluate(self._tree, start, number, functions)
        for part in (jet.value, jet.slope, jet.curvature):
            # Complex intervals have no width.
            if not (hasattr(part, "delta") and part.delta < arithmetic.inf):
                raise ValueError(f"{self.text} has no bounded enclosure at {low}")
        return jet

    def ball(self, x: Fraction) -> Any:
        """Enclose the exact value at a number, to 77 digits.

        Args:
            x: an exact number.

        Returns:
            An Arb ball that contains the value, NaN outside the domain.

        Example:
            >>> Expression("x**2 + 1e-30").ball(Fraction(1, 3)) > 0
            True
        """
        from flint import ctx

        functions = {name: operator.methodcaller(name) for name in FUNCTIONS}
        with ctx.workprec(PRECISION):
            return ball(Fraction()) + _evaluate(self._tree, ball(x), ball, functions)

    def symbolic(self, x: Any) -> Any:
        """The SymPy expression, exact: the decimal 0.1 becomes 1/10.

        Args:
            x: the SymPy symbol to write it in.

        Returns:
            A SymPy expression in `x`.

        Example:
            >>> import sympy
            >>> Expression("0.1*x + x**0.5").symbolic(sympy.Symbol("x"))
            sqrt(x) + x/10
        """
        import sympy

        functions = {"log": sympy.log, "exp": sympy.exp, "sqrt": sympy.sqrt}
        return _evaluate(self._tree, x, sympy.Rational, functions)

    def derivatives(self) -> tuple[Any, Any, Any]:
        """The formula and its first two derivatives in SymPy, written in `variable()`.

        Returns:
            Three SymPy expressions.

        Example:
            >>> Expression("x**3").derivatives()
            (x**3, 3*x**2, 6*x)
        """
        x = variable()
        h = self.symbolic(x)
        return h, h.diff(x), h.diff(x, 2)

    def guards(self, x: Any) -> list[tuple[Any, bool]]:
        """Expressions that must be positive or nonzero for the formula to be smooth.

        Args:
            x: the SymPy symbol to write it in.

        Returns:
            SymPy expressions, innermost first, each with whether it must be positive
            (under a logarithm or a root) or only nonzero (a divisor).

        Example:
            >>> import sympy
            >>> Expression("log(x - 1)/x").guards(sympy.Symbol("x"))
            [(x - 1, True), (x, False)]
        """
        import sympy

        functions = {"log": sympy.log, "exp": sympy.exp, "sqrt": sympy.sqrt}
        return [
            (_evaluate(part, x, sympy.Rational, functions), positive)
            for part, positive in _guards(self._tree)
        ]


@cache
def variable() -> Any:
    """The positive SymPy symbol x in which all proofs are written."""
    import sympy

    return sympy.Symbol("x", positive=True)


def _guards(tree: Tree) -> Iterator[tuple[Tree, bool]]:
    match tree:
        case ("**", base, exponent):
            yield from _guards(base)
            whole = exponent.denominator == 1
            if "x" in _parts(base) and (not whole or exponent < 0):
                yield base, not whole
        case (name, *operands):
            for operand in operands:
                yield from _guards(operand)
            if name in ("log", "sqrt", "/") and "x" in _parts(operands[-1]):
                yield operands[-1], name != "/"


def _parse(text: str, letter: str) -> Tree:
    if not isinstance(text, str):
        raise TypeError(f"an expression is a string, got a {type(text).__name__}")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"an expression has at most {MAX_CHARACTERS} characters, got {len(text)}"
        )
    if not (text.isascii() and text.isprintable()) or "#" in text:
        raise _refused(f"a character of {text!a} is not allowed", text, letter)
    text = text.strip()
    try:
        with warnings.catch_warnings(action="ignore"):  # of literals such as 1if
            node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refused(f"{text!r} is not an expression", text, letter) from None
    size = sum(isinstance(part, ast.expr) for part in ast.walk(node))
    if size > MAX_NODES:
        raise ValueError(f"an expression has at most {MAX_NODES} terms, got {size}")
    tree = _read(node, text, letter)
    if (power := _power(tree)) > MAX_POWER:
        raise ValueError(
            f"powers are at most {MAX_POWER}, multiplied where they are nested, "
            f"got {power} in {text}"
        )
    return tree


def _refused(why: str, text: str, letter: str) -> ValueError:
    """The error, with what to write instead where a habit is known."""
    written = text.translate(str.maketrans(letter + letter.swapcase(), "xX"))
    hints = (hint for habit, hint in HABITS.items() if re.search(habit, written))
    said = (re.sub(r"\bx\b", letter, part) for part in (ALLOWED, *hints))
    return ValueError("; ".join([why, *said]))


def _read(node: ast.expr, text: str, letter: str) -> Tree:
    """Translate a syntax tree, rejecting nodes outside the allow-list."""
    piece = text[node.col_offset : node.end_col_offset]
    match node:
        case ast.Name(name) if name == letter:
            return "x"
        case ast.Constant() if NUMBER.fullmatch(piece):
            tree = Fraction(piece)
            if tree > MAX_NUMBER:
                raise ValueError(f"numbers are at most {MAX_NUMBER}, got {piece}")
            return tree
        case ast.UnaryOp(op, operand) if type(op) in OPERATORS:
            tree = (OPERATORS[type(op)], _read(operand, text, letter))
        case ast.BinOp(base, ast.Pow(), exponent):
            root = _read(base, text, letter)
            tree = ("**", root, _exponent(exponent, text, letter))
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            operands = (_read(part, text, letter) for part in (left, right))
            tree = (OPERATORS[type(op)], *operands)
        case ast.Call(ast.Name(name), [argument], []) if name in FUNCTIONS:
            tree = (name, _read(argument, text, letter))
        case _:
            raise _refused(f"{piece} is not allowed in an expression", piece, letter)
    if "x" not in _parts(tree) and not _is_finite(tree):
        raise ValueError(f"{piece} is not a finite real number")
    return _folded(tree)


def _folded(tree: Tree) -> Tree:
    """Compute with numbers exactly, as sqrt(0.3 - 0.3) has no enclosure but at 0."""
    if not isinstance(tree, tuple):
        return tree
    name, *operands = tree
    if tree in SPECIAL_VALUES:
        return SPECIAL_VALUES[tree]
    rational = name in ARITHMETIC or (name == "**" and operands[1].denominator == 1)
    if rational and all(isinstance(part, Fraction) for part in operands):
        exact = _evaluate(tree, None, Fraction, {})
        if max(map(int.bit_length, exact.as_integer_ratio())) <= MAX_BITS:
            return exact
    return tree


def _exponent(node: ast.expr, text: str, letter: str) -> Fraction:
    tree = _read(node, text, letter)
    operations = {part for part in _parts(tree) if isinstance(part, str)}
    if operations <= ARITHMETIC.keys():
        exponent = _evaluate(tree, None, Fraction, {})
        if exponent.denominator <= MAX_DENOMINATOR:
            return exponent
    piece = text[node.col_offset : node.end_col_offset]
    raise ValueError(
        "an exponent is a number such as 2, -1, 0.5 or (1/3), with a denominator of "
        f"at most {MAX_DENOMINATOR}, got {piece}"
    )


def _evaluate(
    tree: Tree, x: Any, number: Callable[[Fraction], Any], functions: dict[str, Any]
) -> Any:
    """Evaluate a tree in the arithmetic of x, the numbers and the functions."""
    match tree:
        case "x":
            return x
        case Fraction():
            return number(tree)
        case ("**", base, exponent):
            # JAX and SymPy know more of a power if its exponent is an int.
            whole = exponent.denominator == 1
            power = int(exponent) if whole else number(exponent)
            return _evaluate(base, x, number, functions) ** power
    name, *operands = tree
    operation = ARITHMETIC[name] if name in ARITHMETIC else functions[name]
    return operation(*(_evaluate(part, x, number, functions) for part in operands))


def _constant_jet(exact: Fraction) -> Jet:
    return Jet(np.float64(exact), np.float64(0), np.float64(0))


def ball(exact: Fraction) -> Any:
    """Enclose an exact number in an Arb ball of 77 digits.

    Args:
        exact: the number.

    Returns:
        The ball.
    """
    from flint import arb, ctx, fmpq

    with ctx.workprec(PRECISION):
        return arb(fmpq(exact.numerator, exact.denominator))


@cache
def interval_arithmetic() -> tuple[Any, Callable[[Fraction], Jet], dict[str, Callable]]:
    """Create a private mpmath interval context, with jets and their functions.

    The precision of mpmath's shared context is global.

    Returns:
        The context, what makes a jet of an exact number, and log, exp and sqrt of jets.
    """
    from mpmath.ctx_iv import MPIntervalContext

    arithmetic: Any = MPIntervalContext()
    arithmetic.prec = 200
    zero = arithmetic.mpf(0)

    def number(exact: Fraction) -> Jet:
        value = arithmetic.mpf(exact.numerator) / exact.denominator
        return Jet(value, zero, zero)

    functions = jet_functions(arithmetic.log, arithmetic.exp, arithmetic.sqrt)
    return arithmetic, number, functions


def _is_finite(tree: Tree) -> bool:
    """Whether a tree without x has a finite value in floating point."""
    functions = {name: getattr(math, name) for name in FUNCTIONS}
    try:
        value = _evaluate(tree, None, float, functions)
    except (ArithmeticError, ValueError):  # 1/0, overflow; log(-1)
        return False
    return isinstance(value, float) and math.isfinite(value)


def _parts(tree: Tree) -> Iterator[str | Fraction]:
    """The names and numbers of a tree."""
    if isinstance(tree, tuple):
        for part in tree:
            yield from _parts(part)
    else:
        yield tree


def _power(tree: Tree) -> Fraction:
    """Largest product of exponents along a path down the tree, each at least 1."""
    match tree:
        case ("**", base, exponent):
            return _power(base) * max(Fraction(1), abs(exponent))
        case (_, *operands):
            return max(map(_power, operands))
    return Fraction(1)
