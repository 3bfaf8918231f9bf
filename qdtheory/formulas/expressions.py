"""Formulas in one variable: text that is parsed and never executed, or a tree."""

import ast
import math
import re
import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.formulas.accurate import Numerics, numerics
from qdtheory.formulas.jets import Jet
from qdtheory.formulas.trees import (
    CHOICES,
    FUNCTIONS,
    MORE_FUNCTIONS,
    Tree,
    balls,
    compiled,
    decided,
    folded,
    in_sympy,
    names,
    subtrees,
    written,
)
from qdtheory.world import distributions  # noqa: F401  JAX's 64-bit mode

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
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.USub: "minus"}
# At most two digits of exponent: 1e999999999 as a fraction would exhaust memory.
NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d\d?)?", re.ASCII)
MAX_CHARACTERS = 200
MAX_NODES = 80
MAX_NUMBER = 10**6
# Powers within powers multiply, and a computer algebra system may expand them.
MAX_POWER = 32
MAX_DENOMINATOR = 1000


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

        At 0 it is the limit, which may be infinite; outside the domain it is NaN.
        """
        x = jnp.asarray(x, float)
        return self.numerics.in_jax(x)

    def value(self, x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Evaluate in NumPy, without compilation, to what a call gives."""
        return self.jet(x).value

    def jet(self, x: Float[np.ndarray, "..."]) -> Jet:
        """Evaluate the function and two derivatives in NumPy, without compilation.

        Returns:
            A jet of arrays of the shape of `x`, NaN or infinite outside the domain.

        Example:
            >>> Expression("x**2").jet(np.array([3.0])).slope
            array([6.])
        """
        return self.numerics.in_numpy(x)

    def balls(self, x: Any, order: int = 0) -> list[Any]:
        """Enclose the value and derivatives up to an order on all of the ball `x`.

        Returns:
            An Arb ball each, NaN outside the domain.

        Example:
            >>> from qdtheory.formulas.trees import ball
            >>> _, slope = Expression("x**2").balls(ball(Fraction(1, 3)), 1)
            >>> slope.contains(ball(Fraction(2, 3)))
            True
        """
        return balls(self.inside, x, order)

    @classmethod
    def of_tree(cls, tree: Tree, text: str | None = None) -> "Expression":
        """The formula of a tree, such as that of code, of any size.

        Example:
            >>> Expression.of_tree(("log", "x"))
            Expression(text='log(x)')
        """
        formula = object.__new__(cls)
        fields = {"text": text or written(tree), "letter": "x", "_tree": tree}
        for name, value in fields.items():
            object.__setattr__(formula, name, value)
        return formula

    @cached_property
    def inside(self) -> Tree:
        """The tree with the choices made that fall one way on all of (0, 1)."""
        return decided(self._tree)

    @cached_property
    def numerics(self) -> Numerics:
        """How the formula is evaluated in 64 bits."""
        return numerics(self.inside)

    @cached_property
    def is_smooth(self) -> bool:
        """Whether proofs take it: no choice is left, and powers are within limits."""
        parts = subtrees(self.inside)
        operations = [part for part in parts if isinstance(part, tuple)]
        return (
            not any(isinstance(part, float | bool) for part in parts)
            and not {name for name, *_ in operations} & {*CHOICES, *MORE_FUNCTIONS}
            and _power(self.inside) <= MAX_POWER
            and all(
                exponent.denominator <= MAX_DENOMINATOR
                for name, *_, exponent in operations
                if name == "**"
            )
        )

    def symbolic(self, x: Any) -> Any:
        """The SymPy expression, exact: the decimal 0.1 becomes 1/10.

        Example:
            >>> import sympy
            >>> Expression("0.1*x + x**0.5").symbolic(sympy.Symbol("x"))
            sqrt(x) + x/10
        """
        return in_sympy(self.inside, x)

    def derivatives(self) -> tuple[Any, Any, Any]:
        """The formula and its first two derivatives in SymPy, written in `variable()`.

        Example:
            >>> Expression("x**3").derivatives()
            (x**3, 3*x**2, 6*x)
        """
        x = variable()
        h = self.symbolic(x)
        return h, h.diff(x), h.diff(x, 2)

    def guards(self, x: Any) -> list[tuple[Any, bool]]:
        """Expressions that must be positive or nonzero for the formula to be smooth.

        Returns:
            SymPy expressions, innermost first, each with whether it must be positive
            (under a logarithm or a root) or only nonzero (a divisor).

        Example:
            >>> import sympy
            >>> Expression("log(x - 1)/x").guards(sympy.Symbol("x"))
            [(x - 1, True), (x, False)]
        """
        found = []
        for part in subtrees(self.inside):
            match part:
                case ("**", operand, exponent):
                    root = exponent.denominator > 1
                    needed, positive = root or exponent < 0, root
                case ("log" | "sqrt" | "lgamma" | "/" as name, *_, operand):
                    needed, positive = True, name != "/"
                case _:
                    continue
            if needed and "x" in names(operand):
                found.append((in_sympy(operand, x), positive))
        return found


@cache
def variable() -> Any:
    """The positive SymPy symbol x in which all proofs are written."""
    import sympy

    return sympy.Symbol("x", positive=True)


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
        case ast.UnaryOp(ast.UAdd(), operand):
            return _read(operand, text, letter)
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
    if "x" not in names(tree) and not _is_finite(tree):
        raise ValueError(f"{piece} is not a finite real number")
    return folded(*tree)


def _exponent(node: ast.expr, text: str, letter: str) -> Fraction:
    tree = _read(node, text, letter)
    if isinstance(tree, Fraction) and tree.denominator <= MAX_DENOMINATOR:
        return tree
    piece = text[node.col_offset : node.end_col_offset]
    raise ValueError(
        "an exponent is a number such as 2, -1, 0.5 or (1/3), with a denominator of "
        f"at most {MAX_DENOMINATOR}, got {piece}"
    )


def _is_finite(tree: Tree) -> bool:
    """Whether a tree without x has a finite value in floating point."""
    functions = {name: getattr(math, name) for name in FUNCTIONS}
    try:
        value = compiled(tree, float, functions)(None)
    except (ArithmeticError, ValueError):  # 1/0, overflow; log(-1)
        return False
    return isinstance(value, float) and math.isfinite(value)


def _power(tree: Tree) -> Fraction:
    """Largest product of exponents along a path down the tree, each at least 1."""
    match tree:
        case ("**", base, exponent):
            return _power(base) * max(Fraction(1), abs(exponent))
        case (_, *operands):
            return max(map(_power, operands))
    return Fraction(1)
