"""The exercises of exercises.toml, and the grader that an entry asks for."""

import ast
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np

import qdtheory as qd
from qdtheory.course import answers, grading

# What is said of each exercise, in the order of the notebooks.
TEXT = Path(__file__).with_suffix(".toml").read_text("utf-8")
EXERCISES: dict[str, dict[str, Any]] = tomllib.loads(TEXT)

# What an expression may name, beside these builtins.
MODULES = {"jax": jax, "np": np, "product": product, "qd": qd}
NAMES = vars(grading) | vars(answers) | MODULES
# NumPy's own code imports in the name of its caller; an expression cannot name this.
ALLOWED = (__import__, abs, float, int, len, map, range, tuple, zip)
BUILTINS = {each.__name__: each for each in ALLOWED}


def grader(exercise: str, mistake: dict[str, Any] | None = None) -> grading.Grader:
    """Grade an exercise, or recognise one of its mistakes as if it were the answer."""
    entry = EXERCISES[exercise]
    asked = mistake or entry
    if "statement" in asked:
        return grading.statement(exercise, *asked["statement"])
    if "formula" in asked:
        x, wrong = np.array([0.2, 0.5, 0.9]), grading.as_formula(asked["formula"])
        return grading.witness(
            lambda answer: np.allclose(grading.as_formula(answer)(x), wrong(x)), ""
        )
    if "witness" in asked:
        test = evaluated(asked["witness"])
        return grading.witness(
            lambda answer: test(*example(answer, asked)), asked["requirement"]
        )
    # A wrong number is recognised from its first digits.
    usual = 1e-4 if mistake and "number" in asked else 1e-9
    tolerance = asked.get("tolerance", usual)
    if "number" in asked:
        return grading.number(float(evaluated(asked["number"])), tolerance)
    cases = evaluated(asked.get("cases", entry["cases"]))
    return grading.function(evaluated(asked["function"]), cases, tolerance)


def example(answer: Any, asked: dict[str, Any]) -> tuple:
    """Convert an answer to what its test takes: probability vectors, or numbers."""
    sizes = asked.get("sizes")
    if isinstance(sizes, int):
        return (grading.as_distribution(answer, sizes),)
    parts = [*answer.values()] if isinstance(answer, dict) else answer
    if "shape" in asked:
        return (grading.as_numbers(parts).reshape(asked["shape"]),)
    if sizes is None:
        return (parts,)
    parts = [*getattr(parts, "to_numpy", lambda: parts)()]  # rows of a table of pandas
    pairs = [*zip(parts, sizes, strict=True)]  # first of all as many as there should be
    return tuple(grading.as_distribution(part, size) for part, size in pairs)


def evaluated(text: str | float | int) -> Any:
    """Value of an expression, or of a number."""
    if not isinstance(text, str):
        return text
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        name = getattr(node, "id", getattr(node, "attr", type(node).__name__))
        if isinstance(node, ast.NamedExpr) or name.startswith("_"):
            raise ValueError(f"{text}: {name!r} may not stand in an expression")
    code = compile(tree, "exercises.toml", "eval")
    return eval(code, NAMES | {"__builtins__": BUILTINS})
