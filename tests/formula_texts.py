"""Formulas as texts: those of bent curves, and random trees in random spellings."""

import random
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from qdtheory.formulas.trees import absolute, folded, names, rebuilt

# Two peaks; convex, then concave; three waves; concave-convex; steep at 0; convex.
SHAPES = [
    "-(x - 0.1)**2*(x - 0.6)**2",
    "-x**3 + x**2 - x",
    "30*(x - 0.1)*(x - 0.3)*(x - 0.5)*(x - 0.7)*(x - 0.9)",
    "-x + x*(1 - x)**10",
    "sqrt(x + 0.01) - 20*(x - 0.3)**2*(x - 0.8)**2",
    "x**2",
]

# --- A tree and one of its spellings --------------------------------------------------
# How tightly a text binds, and what may follow without parentheses.
SUM, PRODUCT, SIGN, POWER, RAISED, FACTOR = range(6)
MINUS = "-\u2212\u2013"
TIMES = ["*", " * ", "\u00b7", "\u00d7", "\u22c5", r" \cdot ", r"\times "]
FUNCTIONS = {
    "log": ["log", "ln", r"\log", r"\ln ", "np.log", "math.log", "jnp.log"],
    "exp": ["exp", r"\exp", "np.exp"],
    "sqrt": ["sqrt", "\u221a", r"\sqrt", "math.sqrt"],
    "log2": ["log2", "log\u2082", "log_2", r"\log_2", r"\log_{2}", "np.log2"],
    "log10": ["log10", "log\u2081\u2080", r"\log_{10}", "math.log10"],
    "logit": ["logit"],
    "abs": ["abs", "np.abs"],
}
ONE = Fraction(1)
MEANT = {
    "log2": ("/", ("log", "x"), ("log", Fraction(2))),
    "log10": ("/", ("log", "x"), ("log", Fraction(10))),
    "logit": ("log", ("/", "x", ("-", ONE, "x"))),
}
PI = Fraction("3.141592653589793")
CONSTANTS = dict.fromkeys(["pi", "\u03c0", r"\pi ", "np.pi"], PI) | {"e": ("exp", ONE)}
EXPONENTS_SAID = ["2", "3", "0.5", "-2", "1.5", "(1/3)", "{-1}", "(2)", "{1/2}"]
RAISED_DIGITS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"


@dataclass
class Part:
    """A tree, a text that means it, and what may stand beside that."""

    tree: Any
    said: str
    binds: int = FACTOR
    # How it ends: "closed"; "power", of a number; "exp", a power that might go on;
    # "function", of what stands next to it.
    end: str = "closed"
    divided: bool = False  # whether its last sign is a division

    @property
    def is_function(self) -> bool:
        return bool(FUNCTION.match(self.said))


FUNCTION = re.compile(r"(np\.|math\.|jnp\.|\\)?(log|ln|exp|sqrt|abs)|\u221a")


def spelled(rng: random.Random, depth: int = 3) -> tuple[str, Any]:
    """A text as people write it, and the tree that it must become."""
    part = _spelled(rng, depth)
    said = part.said.replace("@", rng.choice("xxxxxXpPqQ"))
    marks = ["'%s'", '"%s"', "\u201c%s\u201d", "\u2018%s\u2019", "`%s`", " %s "]
    marks += ["%s"] * 9
    return rng.choice(marks) % said, part.tree


def _spelled(rng: random.Random, depth: int) -> Part:
    if depth == 0 or rng.random() < 0.1:
        return _leaf(rng)
    kinds = [_sum, _product, _product, _product, _negative, _power, _applied, _applied]
    more = [_applied, _bars, _fraction, _exponential]
    return rng.choice(kinds + more)(rng, depth - 1)


def _leaf(rng: random.Random) -> Part:
    if rng.random() < 0.6:
        return Part("x", "@")
    said = rng.choice(["1", "2", "3", "10", "0.5", ".1", "2.", "1e-3", *CONSTANTS])
    return Part(CONSTANTS.get(said) or Fraction(said), said)


def _in_marks(rng: random.Random, part: Part) -> Part:
    marks = ["()", "()", "{}", (r"\left(", r"\right)"), ("( ", " )")]
    before, after = rng.choice(marks)
    return Part(part.tree, before + part.said + after)


def _at_least(rng: random.Random, part: Part, least: int) -> Part:
    fine = part.binds >= least and rng.random() < 0.95
    return part if fine else _in_marks(rng, part)


def _beside(left: str, right: str) -> str:
    words = left[-1:].isalnum() and (right[:1].isalnum() or right[:1] == "@")
    both = words or (left[-1:] == "@" and (right[:1].isalnum() or right[:1] == "@"))
    glued = re.search(r"(?<![\w.])[\d.]+$", left) and right[:1] != "e"
    return left + " " * (both and not glued) + right


def _sum(rng: random.Random, depth: int) -> Part:
    a, b = _spelled(rng, depth), _at_least(rng, _spelled(rng, depth), PRODUCT)
    sign, space = rng.choice("+-"), " " * (rng.random() < 0.6)
    said = sign if sign == "+" else rng.choice(MINUS)
    space = " " if a.said.endswith("e") else space  # 2e-3 is a number
    text = f"{a.said}{space}{said}{space}{b.said}"
    return Part(folded(sign, a.tree, b.tree), text, SUM)


def _product(rng: random.Random, depth: int) -> Part:
    a, b = _at_least(rng, _spelled(rng, depth), PRODUCT), _spelled(rng, depth)
    sign = rng.choice(["*", "/", "", ""])
    b = _at_least(rng, b, POWER if sign == "" else SIGN)
    if sign == "" and b.said[0] in "0123456789.":
        sign = "*"
    opens = b.is_function or b.said[0] in "({|" or b.said.startswith(r"\left")
    fits = {
        "closed": True,
        "function": b.is_function,
        "exp": sign == "*",
        "power": sign != "" or (opens and "@" in a.said),
    }[a.end]
    if not fits or (sign == "" and a.divided):
        a = _in_marks(rng, a)
    signs = {"*": TIMES, "/": ["/", " / ", "\u00f7"], "": [""]}
    times = rng.choice(signs[sign])
    said = a.said + times + b.said if sign else _beside(a.said, b.said)
    tree = folded(sign or "*", a.tree, b.tree)
    return Part(tree, said, PRODUCT, b.end, sign == "/")


def _negative(rng: random.Random, depth: int) -> Part:
    a = _at_least(rng, _spelled(rng, depth), POWER)
    return Part(folded("minus", a.tree), rng.choice(MINUS) + a.said, SIGN, a.end)


def _power(rng: random.Random, depth: int) -> Part:
    a = _at_least(rng, _spelled(rng, depth), FACTOR)
    a = _in_marks(rng, a) if a.said == "e" else a
    if rng.random() < 0.5:
        n = rng.choice([2, 3, 4, 12, -1])
        digits = "".join(RAISED_DIGITS[int(d)] for d in str(abs(n)))
        raised = "\u207b" * (n < 0) + digits
        return Part(folded("**", a.tree, Fraction(n)), a.said + raised, RAISED)
    said = rng.choice(EXPONENTS_SAID)
    is_x = "@" in a.said and not FUNCTION.match(a.said)
    end = "closed" if said[0] in "({" else "power" if is_x else "exp"
    tree = folded("**", a.tree, Fraction(said.strip("(){}")))
    return Part(tree, a.said + rng.choice(["^", "**", " ^ "]) + said, POWER, end)


def _applied(rng: random.Random, depth: int) -> Part:
    a, (name, sayings) = _spelled(rng, depth), rng.choice([*FUNCTIONS.items()])
    said, nested = rng.choice(sayings), a.is_function and a.end == "function"
    if name in ("log", "exp", "sqrt"):
        tree = folded(name, a.tree)
    else:
        tree = absolute(a.tree) if name == "abs" else rebuilt(MEANT[name], a.tree)
    is_short = a.binds == FACTOR or (nested and a.binds == POWER)
    if a.said[0] in "({" or not is_short or rng.random() < 0.3:
        return Part(tree, f"{said}{' ' * (rng.random() < 0.1)}({a.said})")
    if name in ("log", "exp", "sqrt") and rng.random() < 0.3:
        tree = folded(name, folded("minus", a.tree))
        return Part(tree, f"{said} -{a.said}", POWER, "function")
    return Part(tree, _beside(said, a.said), POWER, "function")


def _bars(rng: random.Random, depth: int) -> Part:
    a = _spelled(rng, depth)
    inside = f"({a.said})" if "|" in a.said or "vert" in a.said else a.said
    marks = ["||", (r"\left|", r"\right|"), (r"\lvert ", r"\rvert ")]
    before, after = rng.choice(marks)
    return Part(absolute(a.tree), before + inside + after)


def _fraction(rng: random.Random, depth: int) -> Part:
    a, b = _spelled(rng, depth), _spelled(rng, depth)
    said = rng.choice([r"\frac", r"\dfrac"]) + f"{{{a.said}}}{{{b.said}}}"
    return Part(folded("/", a.tree, b.tree), said)


def _exponential(rng: random.Random, depth: int) -> Part:
    """A power of e or of a number."""
    a = _spelled(rng, depth)
    base = rng.choice(["e", "e", "e", "2", "0.5"]) if "x" in names(a.tree) else "e"
    is_short = a.said in ("@", "-@") or a.said in CONSTANTS
    a = a if is_short else _in_marks(rng, a)
    scale = ONE if base == "e" else folded("log", Fraction(base))
    power = a.tree if base == "e" else folded("*", a.tree, scale)
    end = "exp" if is_short else "closed"
    return Part(folded("exp", power), f"{base}^{a.said}", POWER, end)
