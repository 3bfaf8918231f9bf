"""However a formula is written, what is sealed is the same: a metamorphic test."""

import zlib
from contextlib import suppress

import numpy as np
import pytest

import qdtheory as qd

pytestmark = pytest.mark.usefixtures("as_a_user")

# Ways to write x and log x; {x} and {log} stand for them in f and g.
WAYS = {
    "x": [
        *("x**3/x**2", "exp(log(x))", "1/(1/x)", "(x**2)**0.5", "x*(1-x)+x**2"),
        *("sqrt(x)*sqrt(x)", "(x+x**2)/(1+x)", "2*x-x", "1-(1-x)", "x**0.3*x**0.7"),
        *("(x+0.001)-0.001", "log(exp(x))", "(1+x)**2-1-x**2-x"),
    ],
    "log": [
        *("-log(1/x)", "log(x**2)/2", "2*log(sqrt(x))", "log(3*x)-log(3)"),
        *("log(x**3)/3", "log(x/7)+log(7)", "log(x+x**2)-log(1+x)", "log(1-(1-x))"),
        *("log(exp(log(x)))", "(log(x)-log(1/x))/2", "log(x*sqrt(x))/1.5"),
        *("-2*log(x**-0.5)", "log(x*(1-x)+x**2)"),
    ],
}
QUALITIES = ["{log}", "{x}", "1 - (1 - {x})**3"]
DIVERSITIES = ["-{x}*{log}", "-{x}**2", "({x} - {x}**1.5)/0.5", "-{x}**3 - {x}**2"]
P = np.array([0.5, 0.25, 0.125, 0.125])
SPREAD = 2.0  # an upper bound on the range of the scores


def written(form, **ways):
    """A formula with x and log x as they are, or in one other way."""
    words = {"x": "x", "log": "log(x)"} | ways
    return form.format(**{word: f"({text})" for word, text in words.items()})


CASES = [
    (f, g, {word: way})
    for f in QUALITIES
    for g in DIVERSITIES
    for word, ways in WAYS.items()
    for way in ways
    if f"{{{word}}}" in f + g
]


def gain(f, g, ways):
    found = qd.quality_discrepancy(
        qd.SeparablePair(written(f, **ways), written(g, **ways)), P, num_starts=4
    )
    return found.qdisc, found.upper_bound, found.status == "exact"


def verdict(f, g, ways):
    return qd.check(written(f, **ways), written(g, **ways)).compatible


def optimum(f, g, ways):
    pair = qd.SeparablePair(written(f, **ways), written(g, **ways))
    return np.asarray(qd.pareto_optimum(pair, P, -0.7).q)


# One in nine, drawn by their own words.
SAMPLE = [case for case in CASES if zlib.crc32(repr(case).encode()) % 9 == 0]


@pytest.mark.parametrize(("f", "g", "ways"), SAMPLE)
def test_another_formula_gets_the_plain_answer_or_no_seal(f, g, ways):
    (found, upper, sealed), plain = gain(f, g, ways), gain(f, g, {})
    assert plain[2]
    assert plain[0] - 1e-7 * SPREAD <= upper
    assert found <= plain[1] + 1e-7 * SPREAD
    if sealed:
        assert found == pytest.approx(plain[0], abs=1e-7 * SPREAD)
    judged = verdict(f, g, {})
    assert verdict(f, g, ways) in (judged, None)
    with suppress(ValueError):  # 64 bits do not determine it
        model = optimum(f, g, ways)
        np.testing.assert_allclose(model, optimum(f, g, {}), atol=1e-7)
