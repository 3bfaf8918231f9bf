"""`check` and `qdisc`: the library's numbers, and one line for whatever is wrong.

What is wrong with options and files stands in the transcript, tests/first_contact.txt.
"""

import json
import random
import sys
from collections import Counter
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import fuzz
import numpy as np
import pytest
import sympy
from calls import call, refusal
from models import oracle

import qdtheory as qd
from qdtheory import functions
from qdtheory.compatibility import check_compatibility
from qdtheory.formulas.expressions import Expression

METRICS = """
import jax.numpy as jnp

def quality(q, p):
    return jnp.log(p) @ q

def coverage(q, p):
    return q @ p

def diversity(q):
    return -(q @ q)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with metrics of one's own, and distributions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("my_metrics.py").write_text(METRICS)
    Path("p.txt").write_text("0.1\n0.2\n0.3\n0.4\n")
    Path("three.txt").write_text("0.6\n0.3\n0.1\n")
    np.save("p.npy", np.full(9, 1 / 9))
    yield
    sys.modules.pop("my_metrics", None)


def answered(*arguments, status=0):
    result = call(*arguments)
    assert (result.exit_code, result.stderr) == (status, "")
    return result.stdout


def checked(*arguments):
    return json.loads(answered("check", *arguments, "--json"))


def results(*arguments):
    return json.loads(answered("qdisc", *arguments, "--json"))["results"]


# --- verdicts --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LL-SE", "LL-NRR", "cr-sdi"])
def test_json_holds_the_librarys_verdict(name):
    report, name = checked("--pair", name), name.upper()
    f, g = (getattr(functions, part) for part in name.split("-"))
    verdict = check_compatibility(qd.SeparablePair(f, g))
    assert report == {"pair": name} | json.loads(verdict.to_json())
    assert set(report) == {"pair", *(field.name for field in fields(verdict))}
    assert (report["witness"] is None) == (verdict.compatible is not False)


@pytest.mark.claim("N25.20")
@pytest.mark.parametrize(
    ("pair", "length", "answer"),
    [
        ("BLEU-1", "3", "compatible for every P over 8 texts"),
        ("bleu-2", "2", "incompatible"),
        ("BLEU-1", "1", "compatible for every P over 2 texts"),
    ],
)
def test_bleu_with_two_references_each_over_a_space(pair, length, answer):
    space = "--vocab-size", "2", "--length", length
    assert answered("check", "--pair", pair, *space).startswith(f"{answer}: BLEU")


def test_a_users_functions_are_beaten_at_their_p():
    own = "--quality", "my_metrics:quality", "--diversity", "my_metrics:diversity"
    report = checked(*own, "--p", "p.txt")
    assert report["pair"] == "my_metrics:quality and my_metrics:diversity"
    assert report["compatible"] is False
    witness = report["witness"]
    assert witness["p"] == [0.1, 0.2, 0.3, 0.4]
    assert min(witness["quality_gain"], witness["diversity_gain"]) > 0
    # Many texts are shortened for people and whole in JSON.
    sizes = "--vocab-size", "4", "--length", "2"
    assert "... (16 texts)" in answered("check", *own, *sizes)
    assert len(checked(*own, *sizes)["witness"]["q"]) == 16
    uniform = answered("check", *own, "--p", "p.npy")
    assert uniform.startswith("at this P: undecided; for other P: incompatible: ")


def test_a_pair_that_is_conditional_says_so_in_every_form():
    names = "--quality", "BLEU-4", "--diversity", "Self-BLEU-4"
    ones = *names, "--references", "1", "--self-references", "1"
    shown = answered("check", *ones, "--exit-code", status=5)
    assert shown.startswith("conditional: BLEU-4 of 1 reference and Self-BLEU-4")
    report = checked(*ones)
    assert (report["status"], report["compatible"]) == ("conditional", None)
    answered("check", *names, "--exit-code", status=2)


ALLOWED = "is not allowed in an expression; metrics by their names come two"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--quality|log x|--diversity|-x log x", ["formulas go in as --f and --g"]),
        ("--quality||--diversity|SE", ["no metric is called ''"]),
        ("--quality|BLEU-2 of 9 references|--diversity|SE|--references|5",
         ["the number of references is given twice; give it once"]),
        ("--f|ROUGE-L|--g=distinct-2",
         [ALLOWED, "--quality 'ROUGE-L' --diversity 'distinct-2' or qd.check"]),
        ("--f|BLEU-4|--g=-x^2", [ALLOWED, "--quality 'BLEU-4' --diversity NAME or"]),
        ("--f|x|--g=Vendi", [ALLOWED, "--quality NAME --diversity 'Vendi' or qd"]),
    ],
)  # fmt: skip
def test_names_and_formulas_are_sent_to_their_options(arguments, words):
    given = arguments.split("|")
    said = refusal("check", *given)
    if "--f" in given:
        assert said == refusal("qdisc", *given, "--vocab-size", "2", "--length", "2")
    assert all(word in said for word in words)


# --- random input ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")
def test_ten_thousand_random_formulas_get_a_verdict_or_one_line(tmp_path):
    calls = fuzz.calls_with_formulas(random.Random(0), 10_000, tmp_path)
    assert not [x for x in calls if x[0] == "check" and fuzz.fault_of(x)]


@pytest.mark.slow
def test_random_formulas_and_the_diversities_that_fit_them():
    """Compatible by construction: SymPy must find its proofs in bounded time."""
    rng, x, statuses = random.Random(3), sympy.Symbol("x", positive=True), Counter()
    for _ in range(100):
        negative = fuzz.accepted(rng)
        slope = str(Expression(negative).symbolic(x).diff(x))
        given = "check", f"--f={slope}", f"--g=-({negative})"
        assert fuzz.fault_of([*given, "--json"]) is None
        statuses[call(*given).stdout.partition(":")[0]] += 1
    # The others are convex somewhere, or linear, or not defined, or too long.
    assert statuses["compatible"] >= 10


# --- qdisc -----------------------------------------------------------------------


def test_qdisc_holds_the_numbers_of_the_library():
    (found,) = results("--pair", "LL-NRR", "--p", "three.txt")
    expected = qd.quality_discrepancy(qd.LL_NRR, np.array([0.6, 0.3, 0.1]))
    assert (found["real"], found["status"]) == ("three.txt", "exact")
    for name in ("qdisc", "upper_bound", "drate"):
        assert found[name] == getattr(expected, name)
    assert found["q"] == expected.q.tolist()
    Path("zero.txt").write_text("0.6\n0.4\n0\n")
    (found,) = results("--f", "log(x)", "--g", "-x**2", "--p", "zero.txt")
    assert (found["quality_range"], found["drate"]) == (None, None)
    assert "infinite" in found["reason"]
    own = "--quality", "my_metrics:coverage", "--diversity", "my_metrics:diversity"
    (found,) = results(*own, "--p", "three.txt")
    assert found["status"] == "lower_bound"
    assert found["qdisc"] <= 1e-9  # CR-NRR: P is Pareto-optimal
    # Scores from a file, those of CR.
    (given,) = results("--scores", "p.txt", "--g", "-x*log(x)", "--p", "p.txt")
    (named,) = results("--pair", "CR-SE", "--p", "p.txt")
    assert given["status"] == "exact"
    assert given["qdisc"] == pytest.approx(named["qdisc"], rel=1e-9)


def test_oracles_of_several_seeds_are_rows_with_their_median():
    options = ("--pair", "BLEU-3", "--sigma", "2", "--hidden-size", "8", "--seeds", "2")
    found, space = results(*options), qd.TextSpace(4, 3)
    pair = qd.pairs.single_token_bleu_pair(2, 2)
    assert [row["real"] for row in found] == ["seed 0", "seed 1"]
    for seed, row in enumerate(found):
        exact = qd.quality_discrepancy(pair, oracle(space, seed, 2.0))
        assert row["status"] == "exact"
        assert row["qdisc"] == pytest.approx(exact.qdisc, rel=1e-12)
    shown = answered("qdisc", *options).splitlines()
    *rows, middle = (x.split() for x in shown if x.strip().startswith(("seed", "med")))
    assert [float(x[2]) for x in rows] == pytest.approx(
        [row["qdisc"] for row in found], rel=1e-5
    )
    mean = np.mean([[float(y) for y in x[2:4]] for x in rows], axis=0)
    np.testing.assert_allclose([float(x) for x in middle[1:3]], mean, rtol=1e-5)


def test_a_search_is_certified_when_asked():
    options = ("--pair", "BLEU-1", "--vocab-size", "2", "--length", "2", "--p", "p.txt")
    (found,) = results(*options)
    assert (found["status"], found["upper_bound"]) == ("lower_bound", None)
    (bounded,) = results(*options, "--certify")
    assert bounded["status"] == "certified"
    assert bounded["qdisc"] <= bounded["upper_bound"] <= bounded["qdisc"] + 1e-5


def test_a_gain_by_rounding_is_shown_as_none_and_a_rate_above_1_explained(monkeypatch):
    shown = answered("qdisc", "--pair", "LL-SE", "--p", "p.txt").splitlines()
    (row,) = (line.split() for line in shown if "p.txt" in line)
    assert row[1:3] == ["0", "0"]
    said = "DRate exceeds 1: the most diverse model beats P in quality."
    asked = partial(answered, "qdisc", "--pair", "LL-NRR", "--p", "p.txt")
    assert said not in asked()
    exact = qd.quality_discrepancy

    def found(pair, p, method):
        return replace(exact(pair, p, method=method), quality_range=1e-3)

    monkeypatch.setattr(qd, "quality_discrepancy", found, raising=False)
    assert said in asked()
