"""A new quality or diversity needs one definition: all else finds it by itself."""

import json
from unittest.mock import patch

import numpy as np
import pytest
from scripts import script
from typer.testing import CliRunner

import qdtheory as qd
from qdtheory.commands import cli
from qdtheory.functions import DIVERSITIES, QUALITIES, named
from qdtheory.pairs import named_pairs


@pytest.fixture
def entered():
    """A quality and a diversity that fit, entered by their definitions alone."""
    with patch.dict(QUALITIES), patch.dict(DIVERSITIES):

        @named(QUALITIES, "x**2")
        def SQUARE(x):
            return x**2

        @named(DIVERSITIES, "x - x**3")
        def CUBE(x):
            return x - x**3

        yield SQUARE, CUBE


def call(*arguments):
    result = CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "80"})
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_what_is_entered_forms_pairs_and_is_proved(entered):
    pair = named_pairs()["SQUARE-CUBE"]
    assert pair == qd.SeparablePair(*entered)
    verdict = qd.check_compatibility(pair)
    assert verdict.compatible
    # (x - x^3)' = -3 x^2 + 1.
    assert verdict.exact == {"w0": "-3", "b0": "1", "alpha": "3/4"}
    assert "proved symbolically" in verdict.reason
    p = np.array([0.5, 0.3, 0.2])
    found = qd.quality_discrepancy(qd.SeparablePair(qd.functions.LL, entered[1]), p)
    assert found.status == "exact"
    assert "strictly concave, proved" in found.reason


def test_what_is_entered_is_known_to_the_commands(entered):
    for command in ("check", "qdisc"):
        assert "LL-CUBE" in call(command, "--help")
    report = json.loads(call("check", "--pair", "square-cube", "--json"))
    assert (report["pair"], report["compatible"]) == ("SQUARE-CUBE", True)
    sizes = "--vocab-size", "2", "--length", "1", "--hidden-size", "2"
    assert "exact" in call("qdisc", "--pair", "CR-CUBE", *sizes)


def test_what_is_entered_has_its_column_and_row_in_the_matrix(entered):
    matrix = script("make_compatibility_matrix")
    names = [diversity.name for diversity in matrix.diversities()]
    assert names.count("CUBE") == 1
    assert ("SQUARE", None) in matrix.qualities()
    assert "SDI" not in names  # NRR but for a linear term
    assert ("SQUARE", None, "CUBE", None) in matrix.theorems()


def test_a_formula_that_is_none_is_refused():
    with pytest.raises(ValueError, match="not allowed in an expression"):
        named({}, "sin(x)")(np.sin)
