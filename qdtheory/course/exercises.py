"""The exercises of exercises.toml, and the grader that an entry asks for."""

import ast
import tomllib
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np

import qdtheory as qd
from qdtheory.course import grading
from qdtheory.course.answers import common

# What is said of each exercise, in the order of the notebooks.
EXERCISES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)


# Expressions of the file consist of these: no statement, no assignment, no import.
PERMITTED = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.Subscript),
    *(ast.Call, ast.keyword, ast.Lambda, ast.arguments, ast.arg, ast.Starred),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop),
    *(ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.comprehension),
    *(ast.Slice, ast.expr_context),
)
# NumPy's own code imports in the name of its caller; an expression cannot name this.
BUILTINS = {"__import__": __import__, "int": int, "len": len, "map": map}
BUILTINS |= {"range": range, "tuple": tuple, "zip": zip}


def grader(exercise: str, mistake: dict[str, Any] | None = None) -> grading.Grader:
    """Grade an exercise, or recognise one of its mistakes as if it were the answer."""
    entry = EXERCISES[exercise]
    asked, names = mistake or entry, names_of(exercise)
    if "statement" in asked:
        return grading.statement(exercise, *asked["statement"])
    if "number" in asked:
        # A wrong number is recognised from its first digits.
        tolerance = asked.get("tolerance", 1e-4 if mistake else 1e-9)
        return grading.number(
            float(np.asarray(evaluated(asked["number"], names))), tolerance
        )
    if "function" in asked:
        cases = evaluated(asked.get("cases", entry["cases"]), names)
        return grading.function(
            evaluated(asked["function"], names), cases, asked.get("tolerance", 1e-9)
        )
    if "formula" in asked:
        x, wrong = np.array([0.2, 0.5, 0.9]), grading.as_formula(asked["formula"])
        return grading.witness(
            lambda answer: np.allclose(grading.as_formula(answer)(x), wrong(x)), ""
        )
    test, sizes = evaluated(asked["witness"], names), asked.get("sizes")
    return grading.witness(
        lambda answer: test(*as_distributions(answer, sizes)), asked["requirement"]
    )


def as_distributions(answer: Any, sizes: int | list[int] | None) -> tuple:
    """Convert an answer to the probability vectors that it consists of."""
    if isinstance(sizes, int):
        return (grading.as_distribution(answer, sizes),)
    parts = [*answer.values()] if isinstance(answer, dict) else answer
    if sizes is None:
        return (parts,)
    parts = [*getattr(parts, "to_numpy", lambda: parts)()]  # rows of a table of pandas
    pairs = [*zip(parts, sizes, strict=True)]  # first of all as many as there should be
    return tuple(grading.as_distribution(part, size) for part, size in pairs)


def names_of(exercise: str) -> dict[str, Any]:
    """What an expression may name: a few modules, and the answers to its lecture."""
    lecture = exercise.partition(".")[0]
    module = f"qdtheory.course.answers.lecture_{lecture}"
    own = vars(import_module(module)) if find_spec(module) else {}
    given = {"jax": jax, "np": np, "product": product, "qd": qd}
    return given | vars(common) | own


def evaluated(text: str | float | int, names: dict[str, Any]) -> Any:
    """Value of an expression over some names, or of a number."""
    if not isinstance(text, str):
        return text
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        name = getattr(node, "id", getattr(node, "attr", type(node).__name__))
        if not isinstance(node, PERMITTED) or name.startswith("_"):
            raise ValueError(f"{text}: {name!r} may not stand in an expression")
    code = compile(tree, "exercises.toml", "eval")
    return eval(code, names | {"__builtins__": BUILTINS})
