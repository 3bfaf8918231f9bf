"""The commands metrics and rewards: what is known, as a table, of one and as JSON."""

import json
import re

import pytest
from calls import call

from qdtheory.catalogue.metrics import METRICS
from qdtheory.rewards import REWARDS, check_reward


def row(shown, name):
    """The line of a table that begins with a name."""
    (found,) = (x for x in shown.splitlines() if x.startswith(f"{name}  "))
    return found


def test_without_a_name_every_metric_is_told():
    shown = call("metrics", columns=200).stdout
    for metric in METRICS:
        words = [metric.name, metric.status, metric.partner]
        assert re.split(" {2,}", row(shown, metric.name)) == words
    assert shown.endswith(
        "`qdtheory metrics NAME` says why, and what to print beside a metric.\n"
    )
    found = json.loads(call("metrics", "--json").stdout)["metrics"]
    assert [facts["name"] for facts in found] == [metric.name for metric in METRICS]


def test_one_metric_with_its_claims():
    facts = json.loads(call("metrics", "oracle-nll", "--json").stdout)
    assert (facts["name"], facts["partner"]) == ("LL", "SE")
    shown = call("metrics", "vendi", columns=300).stdout.splitlines()
    assert shown[0].startswith("Vendi (diversity). Compatible with tr rho_Q log rho_P")
    assert shown[1].startswith("Print its quality beside it")
    assert any(line.startswith("  claims       N25.8") for line in shown)


@pytest.mark.parametrize("name", ["BLEU", "Self-BLEU"])
def test_the_first_line_says_when_bleu_is_compatible(name):
    first = call("metrics", name, columns=300).stdout.splitlines()[0]
    assert (
        ". Conditional: over texts of L tokens, L >= n, BLEU-n and Self-BLEU-n are"
        in first
    )
    assert first.endswith("otherwise some P are beaten.")


@pytest.mark.slow
def test_without_a_formula_the_rewards_in_use_are_told():
    shown = call("rewards", columns=90).stdout
    found = json.loads(call("rewards", "--json").stdout)["rewards"]
    assert [facts["reward"] for facts in found] == list(REWARDS)
    for (name, reward), facts in zip(REWARDS.items(), found):
        pair = "LL + SE" if name == "logit D" else None
        assert (facts["divergence"], facts["pair"]) == (reward.divergence, pair)
        line = row(shown, name)
        assert f"  {reward.divergence}  " in line
        assert ("LL + SE" in line) == bool(pair)


def test_one_formula_as_a_table_and_as_json():
    answer = call("rewards", "--reward", "2*log(D)", "--json").stdout
    assert json.loads(answer)["rewards"] == [
        json.loads(check_reward("2*log(D)").to_json())
    ]
    shown = call("rewards", "--reward", "2*log(D)").stdout
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
    answer = call("rewards", "--reward", formula)
    assert answer.exit_code == 0
    assert part in answer.stdout
