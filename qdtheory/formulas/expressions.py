"""Formulas in one variable: text that is parsed and never executed, or a tree."""

import ast
import re
import tomllib
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from qdtheory.formulas import trees
from qdtheory.formulas.jets import Jet
from qdtheory.formulas.numerics import Numerics, numerics

# How formulas are written.
SPELLINGS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("spellings.toml").read_text("utf-8")
)
ALLOWED = "use x, numbers, log, exp, sqrt, + - * / ^ and parentheses"
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.USub: "minus"}
WORD, NUMBER = (re.compile(SPELLINGS[name], re.ASCII) for name in ("word", "number"))
RAISED = str.maketrans(SPELLINGS["raised"], "0123456789-")
RULES = [
    (re.compile(pattern.replace("A", SPELLINGS["factors"])), *rule)
    for pattern, *rule in SPELLINGS["rules"]
]
# The kind and the plain spelling of each.
WORDS = {
    prefix + word: (kind, plain)
    for kind, plain, *others in SPELLINGS["words"]
    for word in (plain, *others)
    for prefix in ("", *SPELLINGS["prefixes"])
}
MAX_CHARACTERS = 200
MAX_NODES = 80
MAX_NUMBER = 10**6
# Powers within powers multiply, and a computer algebra system may expand them.
MAX_POWER = 32
MAX_DENOMINATOR = 1000


@dataclass(frozen=True)
class Expression:
    r"""A function of one variable given as text, for JAX and for SymPy.

    The text is read by an allow-list and never run. It is written as people write: `^`
    or `**`, `2x`, `x log x`, `x²`, `√x`, `|x|`, `ln`, `log2`, `e^-x`, `np.log(x)`,
    `\frac{1}{x}`; `spellings.toml` has the whole table. A spelling becomes the tree of
    its plain form, `x log x` that of `x*log(x)`.

    Powers bind first, from the right: `-x^2` is -(x**2), `2^-x` is 2**(-x). A product
    without a sign is one with `*`, and signs go from left to right. A function without
    parentheses takes what stands next to it, up to a sum or the next function:
    `x log x + 1` and `log x / log 2` are read. Where readers differ the text is
    refused, with two plain forms to choose from: `log x^2`, `log 2x`, `x log x / 2`,
    `1/2x`, `x^2x`, `x^1/2`, `e^-x/2`. Spaces never decide. Two expressions are equal
    if their texts are.

    Args:
        text: x, numbers, pi, e, log, exp, sqrt, `|x|`, log2, log10, logit and others of
            the table, + - * / ^ and parentheses, at most 200 characters and 80 terms,
            with each function written out in log, exp and sqrt. Numbers are at most
            1,000,000 in size, pi is 3.141592653589793. The exponent of x is a number of
            size at most 32, with a denominator of at most 1,000; powers within powers
            multiply. Quotes may stand round the whole. For x one may write X, p or q,
            one of them in a formula.
        letter: what the variable is called in the text, instead of x.

    Raises:
        TypeError: `text` is not a string.
        ValueError: any other text, or a constant without a finite value, such as
            log(-1).

    Example:
        >>> g = Expression("-x log x")
        >>> round(float(g(0.5)), 6)
        0.346574
        >>> Expression("log x^2")
        Traceback (most recent call last):
        ...
        ValueError: 'log x^2' is ambiguous; write log(x)**2 or log(x**2)
        >>> Expression("__import__('os')")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: __import__ is not allowed in an expression; use x, numbers, ...
    """

    text: str
    letter: str = field(default="x", repr=False)
    _tree: trees.Tree = field(init=False, repr=False, compare=False)

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
        return trees.balls(self.inside, x, order)

    @classmethod
    def of_tree(cls, tree: trees.Tree, text: str | None = None) -> "Expression":
        """The formula of a tree, of any size.

        Example:
            >>> Expression.of_tree(("log", "x"))
            Expression(text='log(x)')
        """
        formula = object.__new__(cls)
        fields = {"text": text or trees.written(tree), "letter": "x", "_tree": tree}
        for name, value in fields.items():
            object.__setattr__(formula, name, value)
        return formula

    @cached_property
    def inside(self) -> trees.Tree:
        """The tree with the choices made that fall one way on all of (0, 1)."""
        return trees.decided(self._tree)

    @cached_property
    def numerics(self) -> Numerics:
        """How the formula is evaluated in 64 bits."""
        return numerics(self.inside)

    @cached_property
    def is_smooth(self) -> bool:
        """Whether proofs take it: no choice is left, and powers are within limits."""
        operations = [x for x in trees.subtrees(self.inside) if isinstance(x, tuple)]
        return (
            not {name for name, *_ in operations} & {*trees.CHOICES}
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
        return trees.in_sympy(self.inside, x)

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
        for part in trees.subtrees(self.inside):
            match part:
                case ("**", operand, exponent):
                    root = exponent.denominator > 1
                    needed, positive = root or exponent < 0, root
                case ("log" | "sqrt" | "/" as name, *_, operand):
                    needed, positive = True, name != "/"
                case _:
                    continue
            if needed and "x" in trees.names(operand):
                found.append((trees.in_sympy(operand, x), positive))
        return found


@cache
def variable() -> Any:
    """The positive SymPy symbol x in which all proofs are written."""
    import sympy

    return sympy.Symbol("x", positive=True)


def _parse(text: str, letter: str) -> trees.Tree:
    for what, given in (("an expression", text), ("its letter", letter)):
        if not isinstance(given, str):
            raise TypeError(f"{what} is a string, got a {type(given).__name__}")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"an expression has at most {MAX_CHARACTERS} characters, got {len(text)}"
        )
    text = text.strip(" ")
    if text[:1] + text[1:][-1:] in SPELLINGS["quotes"]:
        text = text[1:-1]
    try:
        plain = _plain(text, letter)
        tree = _read(ast.parse(plain, mode="eval").body, plain, letter)
    except (SyntaxError, RecursionError, MemoryError):
        raise _refused(f"'{_printable(text)}' is not an expression", letter) from None
    if (power := _power(tree)) > MAX_POWER:
        raise ValueError(
            f"powers are at most {MAX_POWER}, multiplied where they are nested, "
            f"got {power} in {plain}"
        )
    return tree


def _refused(why: str, letter: str, text: str = "") -> ValueError:
    for at, hint in SPELLINGS["hints"]:
        if found := re.search(at, f"{why}\n{text}"):
            return ValueError(f"{why}; {found.expand(hint)}")
    return ValueError(f"{why}; {re.sub(r'x(?!p)', letter, ALLOWED)}")


def _printable(text: str) -> str:
    return re.sub("[^ -~]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(text: str, letter: str) -> str:
    """A text as Python writes it, by the rules of spellings.toml."""
    (kinds, words), shown = _words(text, letter), _printable(text)
    while found := re.search(SPELLINGS["brackets"], kinds):
        i, j = found.span()
        inside = _reduced(kinds[i + 1 : j - 1], words[i + 1 : j - 1], shown)
        words[i:j] = ["abs" * (kinds[i] == "|") + f"({inside})"]
        start = kinds[: i + 1]
        group = next(k for end, k in SPELLINGS["groups"] if start.endswith(end))
        kinds = start[:-1] + group + kinds[j:]
    return _reduced(kinds, words, shown)


def _words(text: str, letter: str) -> tuple[str, list[str]]:
    """The kinds of the words of a text, a character each, and their plain spellings."""
    letters = SPELLINGS["letters"] if letter == "x" else letter + letter.swapcase()
    text = re.sub(f"[{SPELLINGS['raised']}]+", r"^{\g<0>}", text).translate(RAISED)
    words = WORD.findall(text)
    known = {word: ("n", word) for word in words if NUMBER.fullmatch(word)} | WORDS
    known |= dict.fromkeys(letters, ("x", letter))
    if unknown := [_printable(word) for word in words if word not in known]:
        raise _refused(f"{unknown[0]} is not allowed in an expression", letter, text)
    variables = [word for word in dict.fromkeys(words) if known[word][0] == "x"]
    if len({word.lower() for word in variables}) > 1:
        raise _refused(f"{' and '.join(variables)} are not one variable", letter)
    found = [known[word] for word in words if known[word][0] != "_"]
    return "".join(kind for kind, _ in found), [plain for _, plain in found]


def _reduced(kinds: str, words: list[str], shown: str) -> str:
    """Words without brackets, rewritten by the rules; or the text is refused."""
    for at, kind, *said in RULES:
        while found := at.search(kinds):
            new = said
            for n in range(at.groups + 1):
                part = "".join(words[slice(*found.span(n))])
                new = [line.replace(f"${n}<", part[:-1]) for line in new]
                new = [_tidy(line.replace(f"${n}", part)) for line in new]
            if not kind:
                raise ValueError(f"'{shown}' is ambiguous; write {' or '.join(new)}")
            i, j = found.span()
            kinds, words[i:j] = kinds[:i] + kind + kinds[j:], new
    return _tidy("".join(words))


def _tidy(plain: str) -> str:
    """Without parentheses round a single word, or round others."""
    return re.sub(r"(?<!\w)\((\w+)\)|\((\([^()]*\))\)", r"\1\2", plain)


def _read(node: ast.expr, text: str, letter: str) -> trees.Tree:
    """Translate a syntax tree, rejecting nodes outside the allow-list."""
    piece = text[node.col_offset : node.end_col_offset]
    read = partial(_read, text=text, letter=letter)
    match node:
        case ast.Name(name) if name == letter:
            return "x"
        case ast.Constant() if NUMBER.fullmatch(piece):
            tree = Fraction(piece)
            if tree > MAX_NUMBER:
                raise ValueError(f"numbers are at most {MAX_NUMBER}, got {piece}")
        case ast.UnaryOp(ast.UAdd(), operand):
            tree = read(operand)
        case ast.UnaryOp(op, operand) if type(op) in OPERATORS:
            tree = trees.folded(OPERATORS[type(op)], read(operand))
        case ast.BinOp(base, ast.Pow(), exponent):
            end = text[exponent.col_offset : exponent.end_col_offset]
            tree = _raised(read(base), read(exponent), piece, end)
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            one, other = read(left), read(right)
            if isinstance(op, ast.Div):  # x / 0 has a slope of 0, to SymPy
                _finite(trees.folded("/", Fraction(1), other), piece)
            tree = trees.folded(OPERATORS[type(op)], one, other)
        case ast.Call(ast.Name("abs"), [argument], []):
            tree = trees.absolute(read(argument))
        case ast.Call(ast.Name(name), [argument], []) if name in trees.FUNCTIONS:
            tree = trees.folded(name, read(argument))
        case ast.Call(ast.Name(name), [argument], []) if name in SPELLINGS["functions"]:
            formula = Expression(SPELLINGS["functions"][name])
            tree = trees.rebuilt(formula._tree, read(argument))
        case _:
            raise SyntaxError
    if trees.size_of(tree) > MAX_NODES:
        raise ValueError(f"an expression has at most {MAX_NODES} terms")
    return _finite(tree, piece)


def _raised(base: trees.Tree, exponent: trees.Tree, piece: str, end: str) -> trees.Tree:
    """A power; 2**x is exp(x*log(2))."""
    if "x" in trees.names(exponent) and "x" not in trees.names(base):
        log = _finite(trees.folded("log", base), piece)
        return trees.folded("exp", trees.folded("*", exponent, log))
    if isinstance(exponent, Fraction) and exponent.denominator <= MAX_DENOMINATOR:
        return trees.folded("**", base, exponent)
    hint = ""
    if decimal := re.fullmatch(r"-?\d*\.(\d+)", end):  # as of 0.142857, which is 1/7
        near = Fraction(end).limit_denominator(MAX_DENOMINATOR)
        last = Fraction(1, 10 ** len(decimal[1]))
        hint = f"; write ({near})" * (abs(near - Fraction(end)) < last)
    raise ValueError(
        "an exponent is a number such as 2, -1, 0.5 or (1/3), with a denominator of "
        f"at most {MAX_DENOMINATOR}, got {end}{hint}"
    )


def _finite(tree: trees.Tree, piece: str) -> trees.Tree:
    """Refuse a tree without x that has no finite value in 64 bits."""
    value = 0.0 if "x" in trees.names(tree) else trees.in_numpy(tree, np.zeros(1)).value
    if not np.isfinite(value).all():
        raise ValueError(f"{piece} is not a finite real number")
    return tree


def _power(tree: trees.Tree) -> Fraction:
    """Largest product of exponents along a path down the tree, each at least 1."""
    match tree:
        case ("**", base, exponent):
            return _power(base) * max(Fraction(1), abs(exponent))
        case (_, *operands):
            return max(map(_power, operands))
    return Fraction(1)
