"""The command rewards: the library's verdicts in a table, errors in one line."""

import json

import pytest
from typer.testing import CliRunner

from qdtheory.commands import cli
from qdtheory.generators import REWARDS, check_reward


def call(*arguments):
    return CliRunner().invoke(cli.app, ("rewards", *arguments), env={"COLUMNS": "90"})


@pytest.mark.slow
def test_without_a_formula_it_prints_the_rewards_in_use():
    shown = call().stdout
    for name, reward in REWARDS.items():
        (line,) = [x for x in shown.splitlines() if x.startswith(f"│ {name} ")]
        assert f" {reward.divergence} " in line
        assert ("LL + SE" in line) == (name == "logit D")


@pytest.mark.slow
def test_the_table_of_the_rewards_in_use():
    answer = call("--json")
    assert answer.exit_code == 0, answer.stderr
    rows = {row["reward"]: row for row in json.loads(answer.stdout)["rewards"]}
    assert list(rows) == list(REWARDS)
    for name, reward in REWARDS.items():
        assert rows[name]["divergence"] == reward.divergence
        assert rows[name]["pair"] == ("LL + SE" if name == "logit D" else None)


def test_one_formula_as_a_table_and_as_json():
    (found,) = json.loads(call("--reward", "2*log(D)", "--json").stdout)["rewards"]
    assert found == json.loads(check_reward("2*log(D)").to_json())
    shown = call("--reward", "2*log(D)").stdout
    assert shown.startswith("4 KL(M, P): 2*log(D)\n")
    for part in ("none", "Q = P alone", "yes"):
        assert part in shown


@pytest.mark.parametrize(
    ("formula", "part"),
    [
        ("D*(1-D)", "no, it falls at D = 0.75"),
        ("1", "no, it is constant"),
        ("exp(D)", "no closed form"),
        ("-D", "the rarest text alone"),
    ],
)
def test_rewards_that_are_not_as_they_should_be(formula, part):
    answer = call("--reward", formula)
    assert answer.exit_code == 0
    assert part in answer.stdout
