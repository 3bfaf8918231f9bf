"""The command qdisc: the library's numbers with their status, errors in one line."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calls import call
from models import oracle

import qdtheory as qd


def results(*arguments):
    answer = call("qdisc", *arguments, "--json")
    assert answer.exit_code == 0, answer.stderr
    return json.loads(answer.stdout)["results"]


def test_a_file_and_a_named_pair(folder):
    (found,) = results("--pair", "LL-NRR", "--p", "three.txt")
    p = np.array([0.6, 0.3, 0.1])
    expected = qd.quality_discrepancy(qd.LL_NRR, p)
    assert found["real"] == "three.txt"
    assert found["qdisc"] == expected.qdisc
    assert found["upper_bound"] == expected.upper_bound
    assert found["drate"] == expected.drate
    assert found["status"] == "exact"
    assert found["q"] == expected.q.tolist()


def test_formulas_and_an_infinite_range(folder):
    Path("zero.txt").write_text("0.6\n0.4\n0\n")
    (found,) = results("--f", "log(x)", "--g", "-x**2", "--p", "zero.txt")
    assert found["quality_range"] is None
    assert found["drate"] is None
    assert "infinite" in found["reason"]


def test_oracles_of_several_seeds(folder):
    options = ("--pair", "BLEU-3", "--sigma", "2", "--hidden-size", "8", "--seeds", "2")
    found = results(*options)
    space = qd.TextSpace(4, 3)
    pair = qd.pairs.single_token_bleu_pair(2, 2)
    assert [row["real"] for row in found] == ["seed 0", "seed 1"]
    for seed, row in enumerate(found):
        exact = qd.quality_discrepancy(pair, oracle(space, seed, 2.0))
        assert row["status"] == "exact"
        assert row["qdisc"] == pytest.approx(exact.qdisc, rel=1e-12)
    table = call("qdisc", *options, columns=90)
    assert table.exit_code == 0
    for row in found:
        assert f"{row['qdisc']:.6g}" in table.stdout
    assert "median" in table.stdout
    assert "exact" in table.stdout


def test_a_search_is_certified_when_asked(folder):
    options = ("--pair", "BLEU-1", "--vocab-size", "2", "--length", "2", "--p", "p.txt")
    (found,) = results(*options)
    assert (found["status"], found["upper_bound"]) == ("lower_bound", None)
    (bounded,) = results(*options, "--certify")
    assert bounded["status"] == "certified"
    assert bounded["qdisc"] <= bounded["upper_bound"] <= bounded["qdisc"] + 1e-5
    assert "lower_bound" in call("qdisc", *options).stdout


def test_functions_of_ones_own(folder):
    names = "--quality", "my_metrics:coverage", "--diversity", "my_metrics:diversity"
    (found,) = results(*names, "--p", "three.txt")
    assert found["status"] == "lower_bound"
    # CR-NRR: P is Pareto-optimal.
    assert found["qdisc"] <= 1e-9


def test_seeds_are_rows_and_the_last_is_their_median():
    shown = call("qdisc", "--pair", "LL-NRR", "--seeds", "2").stdout.splitlines()
    assert " ".join(shown[1].split()) == "real P QDisc DRate at most status"
    first, second, middle = (
        [float(x) for x in y.split()[-4:-2]] for y in [*shown[3:5], f"{shown[5]} - -"]
    )
    np.testing.assert_allclose(middle, np.mean([first, second], axis=0), rtol=1e-5)


def test_a_gain_by_rounding_is_shown_as_none(folder):
    answer = call("qdisc", "--pair", "LL-SE", "--p", "p.txt")
    (row,) = (line for line in answer.stdout.splitlines() if "p.txt" in line)
    assert row.split()[1:3] == ["0", "0"]


def test_a_rate_above_1_is_explained(folder, monkeypatch):
    def found(pair, p, method):
        return replace(exact(pair, p, method=method), quality_range=1e-3)

    exact = qd.quality_discrepancy
    said = "DRate exceeds 1: the most diverse model beats P in quality."
    assert said not in call("qdisc", "--pair", "LL-NRR", "--p", "p.txt").stdout
    monkeypatch.setattr(qd, "quality_discrepancy", found, raising=False)
    assert said in call("qdisc", "--pair", "LL-NRR", "--p", "p.txt").stdout


def test_scores_from_a_file(folder):
    scores = "--scores", "p.txt"  # those of CR
    given = results(*scores, "--g", "-x*log(x)", "--p", "p.txt")
    named = results("--pair", "CR-SE", "--p", "p.txt")
    assert given[0]["status"] == "exact"
    assert given[0]["qdisc"] == pytest.approx(named[0]["qdisc"], rel=1e-9)
