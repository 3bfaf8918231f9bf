"""The command metrics: the catalogue as a table, one metric, errors in one line."""

import json

import pytest
from typer.testing import CliRunner

from qdtheory.commands import cli
from qdtheory.metrics.catalogue import METRICS


def call(*arguments):
    return CliRunner().invoke(cli.app, ("metrics", *arguments), env={"COLUMNS": "90"})


def test_without_a_name_it_prints_every_metric():
    shown = call().stdout
    for metric in METRICS:
        (line,) = (
            line
            for line in shown.splitlines()
            if line[1:].split("│")[0].strip() == metric.name
        )
        for part in (metric.kind, metric.status, metric.partner, metric.beside):
            assert f" {part} " in line


def test_one_metric_with_its_claims():
    answer = call("oracle-nll", "--json")
    facts = json.loads(answer.stdout)
    assert (facts["name"], facts["partner"]) == ("LL", "SE")
    shown = call("vendi").stdout.splitlines()
    assert shown[0].startswith("Vendi (diversity). Compatible with tr rho_Q log rho_P")
    assert shown[1].startswith("Print its quality beside it")
    assert any(line.startswith("  claims       N25.8") for line in shown)


@pytest.mark.parametrize("name", ["BLEU", "Self-BLEU"])
def test_the_first_line_says_when_bleu_is_compatible(name):
    first = call(name).stdout.splitlines()[0]
    assert ". Conditional: over texts of L tokens compatible with " in first
    assert first.endswith("otherwise some P are beaten.")
    assert json.loads(call(name, "--json").stdout)["status"] == "conditional"


def test_all_as_json():
    found = json.loads(call("--json").stdout)["metrics"]
    assert [facts["name"] for facts in found] == [metric.name for metric in METRICS]
