"""Formulas as people write them, in the command, in Python and on the page alike."""

import json
import random
from fractions import Fraction

import formula_texts
import pytest
from browser import in_a_browser
from calls import call

from qdtheory.formulas.expressions import Expression

# What is typed, and its plain form; each is a quality.
TYPED = {
    "x^2": "x**2",
    "x\u00b2": "x**2",
    "x\u00b3": "x**3",
    "ln(x)": "log(x)",
    "log x": "log(x)",
    r"\log x": "log(x)",
    "np.log(x)": "log(x)",
    "math.log(x)": "log(x)",
    "jnp.log(x)": "log(x)",
    "log p": "log(x)",
    "log q": "log(x)",
    "ln X": "log(x)",
    "log\u2082 x": "log(x)/log(2)",
    "log2(x)": "log(x)/log(2)",
    "log10(x)": "log(x)/log(10)",
    "2x": "2*x",
    "2\u00b7x": "2*x",
    "2 \u00d7 x": "2*x",
    r"2\cdot x": "2*x",
    "pi x": "3.141592653589793*x",
    "\u03c0 x": "3.141592653589793*x",
    "e x": "exp(1)*x",
    "e^x": "exp(x)",
    "x + x log x": "x + x*log(x)",
    "\u221ax": "sqrt(x)",
    r"\sqrt{x}": "sqrt(x)",
    "|x|": "abs(x)",
    "\u2212 1/x": "-1/x",
    r"-\frac{1}{x}": "-(1/x)",
    '"x^2"': "x**2",
    "\u201cx\u00b2\u201d": "x**2",
}


def shown(tree):
    """A tree as text, as the page's; there abs is an operation."""
    match tree:
        case Fraction():
            return f"{tree.numerator}/{tree.denominator}"
        case ("where", _, _, inside):
            return f"(abs {shown(inside)})"
        case (name, *operands):
            return f"({name} {' '.join(map(shown, operands))})"
    return tree


def read_here(texts):
    """Trees, or what is said of a text that is none."""
    for text in texts:
        try:
            yield shown(Expression(text)._tree)
        except ValueError as error:
            yield f"refused: {error}"


def read_there(page, texts):
    return page.evaluate(
        f"""(() => {{
          const shown = (tree) => tree === "x" ? "x" : Array.isArray(tree)
            ? `(${{tree.map((part, i) => (i ? shown(part) : part)).join(" ")}})`
            : `${{tree.n}}/${{tree.d}}`;
          return {json.dumps(texts)}.map((text) => {{
            try {{ return shown(Formulas.read(text).tree); }}
            catch (error) {{ return `refused: ${{error.message}}`; }}
          }});
        }})()"""
    )


@in_a_browser
def test_the_page_reads_what_is_typed_as_python_does(explorer):
    found = read_there(explorer, [*TYPED])
    assert found == [*read_here(TYPED)] == [*read_here(TYPED.values())]
    assert not any(answer.startswith("refused") for answer in found)


def verdict(f):
    """What the command says of f with the negative repetition rate."""
    said = json.loads(call("check", "--f", f, "--g", "-x^2", "--json").stdout)
    return {key: value for key, value in said.items() if key != "pair"}


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")
def test_the_command_judges_every_spelling_as_the_plain_form():
    plain = {f: verdict(f) for f in {*TYPED.values()}}
    assert len({found["status"] for found in plain.values()}) > 1
    for text, f in TYPED.items():
        assert verdict(text) == plain[f], text


def texts(count, seed):
    """A third each is of Python's words, as people write, and mistyped."""
    rng = random.Random(seed)
    written = formula_texts.texts(count // 3, seed)
    written += [formula_texts.spelled(rng)[0] for _ in range(count // 3)]
    return written + [
        formula_texts.mistyped(rng) for _ in range(count - 2 * (count // 3))
    ]


def check_reading(explorer, count, seed):
    asked = texts(count, seed)
    here, there = [*read_here(asked)], read_there(explorer, asked)
    differ = [
        trio for trio in zip(asked, here, there, strict=True) if trio[1] != trio[2]
    ]
    assert not differ, differ[:5]
    refused = sum(answer.startswith("refused") for answer in here)
    assert count / 5 < refused < count / 2
    assert sum("is ambiguous" in answer for answer in here) > count / 200


@in_a_browser
def test_some_hundred_texts_become_one_tree_or_one_refusal(explorer):
    check_reading(explorer, 600, seed=0)


@pytest.mark.slow
@in_a_browser
def test_ten_thousand_texts_become_one_tree_or_one_refusal(explorer):
    check_reading(explorer, 10_000, seed=1)
