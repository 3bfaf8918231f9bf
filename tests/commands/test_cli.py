"""The command as a whole, what it prints, and what it knows of metrics and rewards."""

import io
import json
import sys

import jax
import numpy as np
import pytest
import typer
from calls import call
from processes import python

import qdtheory as qd
from qdtheory.catalogue.metrics import METRICS
from qdtheory.commands import cli
from qdtheory.commands.outputs import complain, fail, print_json, write
from qdtheory.rewards import REWARDS, check_reward


def shown(*arguments, **settings):
    result = call(*arguments, **settings)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_help_and_version():
    versions = f"JAX {jax.__version__}, NumPy {np.__version__}"
    assert shown("--version") == f"qdtheory {qd.__version__}, {versions}\n"
    assert shown("-V") == shown("--version")
    assert shown("-h") == shown("--help")
    assert "evaluate" in shown()
    for command in cli.app.registered_commands:
        name = command.callback.__name__
        assert f"Example: qdtheory {name} " in shown(name, "--help")


def test_help_imports_nothing_heavy():
    script = """
import sys
from typer.testing import CliRunner
from qdtheory.commands.cli import app
assert CliRunner().invoke(app, ["evaluate", "--help"]).exit_code == 0
print({"jax", "numpy", "scipy", "matplotlib", "sympy", "cvxpy"} & set(sys.modules))
"""
    assert python("-c", script) == "set()\n"


# --- what is printed ---------------------------------------------------------------


def test_json_knows_no_infinity_and_a_message_is_one_line(capsys):
    print_json({"q": np.array([0.5, 0.5]), "range": np.inf, "none": np.nan})
    found = json.loads(capsys.readouterr().out)
    assert found == {"q": [0.5, 0.5], "range": None, "none": None}
    for message, line in (("no P", "no P"), ("one\ntwo", "one"), ("", "")):
        complain(message)
        with pytest.raises(typer.Exit) as stopped:
            fail(message)
        assert stopped.value.exit_code == 1
        assert capsys.readouterr() == ("", f"qdtheory: {line}\n" * 2)


def test_a_terminal_without_the_sign_of_a_margin_gets_two_letters(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    write("0.5 ±0.1", None)
    stream.flush()
    assert stream.buffer.getvalue() == b"0.5 +-0.1\n"


# --- metrics and rewards -----------------------------------------------------------


def row(table, name):
    """The line of a table that begins with a name."""
    (found,) = (x for x in table.splitlines() if x.startswith(f"{name}  "))
    return found


def test_every_metric_is_told_as_a_table_and_as_json():
    table = shown("metrics", columns=200)
    for metric in METRICS:
        told = row(table, metric.name).removeprefix(metric.name)
        assert told.split() == f"{metric.status} {metric.partner}".split()
    found = json.loads(shown("metrics", "--json"))["metrics"]
    assert [facts["name"] for facts in found] == [metric.name for metric in METRICS]


def test_one_metric_is_told_by_any_name_with_its_claims():
    facts = json.loads(shown("metrics", "oracle-nll", "--json"))
    assert (facts["name"], facts["partner"]) == ("LL", "SE")
    first, *lines = shown("metrics", "vendi", columns=300).splitlines()
    assert first.startswith("Vendi (diversity). Compatible with tr rho_Q log rho_P")
    assert any(line.startswith("  claims       N25.8") for line in lines)
    for name in ("BLEU", "Self-BLEU"):
        first = shown("metrics", name, columns=300).splitlines()[0]
        assert ". Conditional: over texts of L tokens, L >= n, BLEU-n and " in first
        assert first.endswith("otherwise some P are beaten.")


@pytest.mark.slow
def test_without_a_formula_the_rewards_in_use_are_told():
    table = shown("rewards", columns=90)
    found = json.loads(shown("rewards", "--json"))["rewards"]
    assert [facts["reward"] for facts in found] == list(REWARDS)
    for (name, reward), facts in zip(REWARDS.items(), found):
        pair = "LL + SE" if name == "logit D" else None
        assert (facts["divergence"], facts["pair"]) == (reward.divergence, pair)
        assert f"  {reward.divergence}  " in row(table, name)
        assert ("LL + SE" in row(table, name)) == bool(pair)


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        ("2*log(D)", ["4 KL(M, P): 2*log(D)\n", "none", "Q = P alone", "yes"]),
        ("D*(1-D)", ["no, it falls at D = 0.75"]),
        ("1", ["no, it is constant"]),
        ("exp(D)", ["no closed form"]),
        ("-D", ["the rarest text alone"]),
    ],
)
def test_a_reward_is_told_as_a_table_and_as_json(formula, parts):
    table = shown("rewards", "--reward", formula)
    assert all(part in table for part in parts)
    (found,) = json.loads(shown("rewards", "--reward", formula, "--json"))["rewards"]
    assert found == json.loads(check_reward(formula).to_json())
