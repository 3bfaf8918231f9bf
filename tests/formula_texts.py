"""Random texts, some of them formulas, to read in Python and in the explorer."""

import random

NUMBERS = ["0", "1", "2", "3", "10", "0.5", ".1", "2.", "1e-3", "1E+2", "0.3", "00"]
EXPONENTS = ["2", "3", "-1", "0.5", "(1/3)", "-2", "1.5", "(2 - 1)", "-(1/2)", "0", "8"]
ODD = [
    "2x", "x^2", "ln(x)", "log2(x)", "y", "x**x", "007", "1e999", "1_000", "2(x)",
    "pi", "e", "X", "sin(x)", "log(x, 2)", "log()", "x**0.33333", "1000001", "1/0",
    "log(-1)", "x**33", "(x", "x)", "x y", "*x", "x//2", "'x'", "x,", "log(x,)",
    "(log)(x)", "x**(2**0.5)", "x**(1/0)", "sqrt(0.3 - 0.1 - 0.2)", "1**1000000",
    "(-8)**(1/3)", "2**2**2", "0**-1", "x**sqrt(1)", "x**sqrt(4)", "exp(710)", "1.5.2",
    "x\t", "\u00b2", "x # y", "", "1e99", "1e-99", "x if x else x", "lambda", "-",
    "((x**4)**4)**2.5", "((x**4)**4)**2", "0.1 + 0.2 - 0.3", "x**1e1", "1 .5",
]  # fmt: skip


def text(rng: random.Random, depth: int = 4) -> str:
    """A random text of the grammar; one in fifty of its parts is odd."""
    if rng.random() < 0.02:
        return rng.choice(ODD)
    if depth == 0 or rng.random() < 0.2:
        return "x" if rng.random() < 0.6 else rng.choice(NUMBERS)
    space = " " * (rng.random() < 0.3)
    a, b = text(rng, depth - 1), text(rng, depth - 1)
    match rng.randrange(8):
        case 0:
            return f"{rng.choice(['log', 'exp', 'sqrt'])}({a})"
        case 1:
            return f"({a})**{space}{rng.choice(EXPONENTS)}"
        case 2:
            return f"{rng.choice('+-')}{space}{a}"
        case 3:
            return f"({a}{space}{rng.choice('+-*/')}{b})"
        case 4:  # as precedence has it
            return f"{a}**{rng.choice(EXPONENTS)}{space}{rng.choice('+-*/')} {b}"
        case _:
            return f"{a}{space}{rng.choice('+-*/')}{space}{b}"


def texts(count: int, seed: int = 0) -> list[str]:
    """Random texts, after every odd one alone."""
    rng = random.Random(seed)
    return [*ODD, *(text(rng) for _ in range(count - len(ODD)))]
