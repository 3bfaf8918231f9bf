"""`check`, `qdisc` and `doctor`: the library's numbers, and one line for what is wrong.

What is wrong with options and files stands in the transcript, tests/first_contact.txt.
"""

import json
import random
import sys
from dataclasses import replace
from pathlib import Path

import fuzz
import numpy as np
import pytest
from calls import call, refusal
from models import oracle

import qdtheory as qd
from qdtheory import functions, text
from qdtheory.compatibility import check_compatibility

METRICS = """
import jax.numpy as jnp

def quality(q, p):
    return jnp.log(p) @ q

def coverage(q, p):
    return q @ p

def diversity(q):
    return -(q @ q)

def vowels(texts, references):
    return sum(x in "ace" for x in texts) / len(texts)

def simpson(texts):
    return -sum((texts.count(x) / len(texts)) ** 2 for x in "abcdef")
"""
OWN = "--quality", "my_metrics:quality", "--diversity", "my_metrics:diversity"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with metrics of one's own, and distributions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("my_metrics.py").write_text(METRICS)
    Path("p.txt").write_text("0.1\n0.2\n0.3\n0.4\n")
    Path("three.txt").write_text("0.6\n0.3\n0.1\n")
    Path("zero.txt").write_text("0.6\n0.4\n0\n")
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


@pytest.mark.parametrize("name", ["LL-NRR", "cr-sdi"])
def test_json_holds_the_librarys_verdict(name):
    report, name = checked("--pair", name), name.upper()
    pair = qd.SeparablePair(*(getattr(functions, part) for part in name.split("-")))
    verdict = json.loads(check_compatibility(pair).to_json())
    assert report == {"pair": name} | verdict


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
    report = checked(*OWN, "--p", "p.txt")
    assert report["pair"] == "my_metrics:quality and my_metrics:diversity"
    witness = report["witness"]
    assert witness["p"] == [0.1, 0.2, 0.3, 0.4]
    assert min(witness["quality_gain"], witness["diversity_gain"]) > 0
    # Many texts are shortened for people and whole in JSON.
    sizes = "--vocab-size", "4", "--length", "2"
    assert "... (16 texts)" in answered("check", *OWN, *sizes)
    assert len(checked(*OWN, *sizes)["witness"]["q"]) == 16
    np.save("p.npy", np.full(9, 1 / 9))
    uniform = answered("check", *OWN, "--p", "p.npy")
    assert uniform.startswith("at this P: undecided; for other P: incompatible: ")


def test_the_exit_status_tells_a_conditional_pair_from_one_that_is_beaten():
    names = "check", "--quality", "BLEU-4", "--diversity", "Self-BLEU-4", "--exit-code"
    ones = *names, "--references", "1", "--self-references", "1"
    assert answered(*ones, status=5).startswith("conditional: BLEU-4 of 1 reference")
    answered(*names, status=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--quality|log x|--diversity|-x log x", "formulas go in as --f and --g"),
        ("--quality|BLEU-2 of 9 references|--diversity|SE|--references|5",
         "the number of references is given twice; give it once"),
        ("--f|BLEU-4|--g=-x^2", "--quality 'BLEU-4' --diversity NAME or"),
        ("--f|x|--g=Vendi", "--quality NAME --diversity 'Vendi' or qd"),
    ],
)  # fmt: skip
def test_names_and_formulas_are_sent_to_their_options(arguments, words):
    assert words in refusal("check", *arguments.split("|"))


# --- random input ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")
def test_ten_thousand_random_formulas_get_a_verdict_or_one_line(tmp_path):
    calls = fuzz.calls_with_formulas(random.Random(0), 10_000, tmp_path)
    assert not [x for x in calls if x[0] == "check" and fuzz.fault_of(x)]


# --- qdisc -----------------------------------------------------------------------


def test_qdisc_holds_the_numbers_of_the_library():
    (found,) = results("--pair", "LL-NRR", "--p", "three.txt")
    expected = qd.quality_discrepancy(qd.LL_NRR, np.array([0.6, 0.3, 0.1]))
    assert (found["real"], found["status"]) == ("three.txt", "exact")
    for name in ("qdisc", "upper_bound", "drate"):
        assert found[name] == getattr(expected, name)
    assert found["q"] == expected.q.tolist()
    (found,) = results("--f", "log(x)", "--g", "-x**2", "--p", "zero.txt")
    assert (found["quality_range"], found["drate"]) == (None, None)
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
    for seed, row in enumerate(found):
        exact = qd.quality_discrepancy(pair, oracle(space, seed, 2.0))
        assert (row["real"], row["status"]) == (f"seed {seed}", "exact")
        assert row["qdisc"] == pytest.approx(exact.qdisc, rel=1e-12)
    (middle,) = (x for x in answered("qdisc", *options).splitlines() if "median" in x)
    mean = [np.mean([row[x] for row in found]) for x in ("qdisc", "drate")]
    assert [*map(float, middle.split()[1:3])] == pytest.approx(mean, rel=1e-5)


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
    exact, asked = qd.quality_discrepancy, ("qdisc", "--pair", "LL-NRR", "--p", "p.txt")

    def found(pair, p, method):
        return replace(exact(pair, p, method=method), quality_range=1e-3)

    assert "DRate exceeds 1" not in answered(*asked)
    monkeypatch.setattr(qd, "quality_discrepancy", found, raising=False)
    assert "DRate exceeds 1" in answered(*asked)


# --- doctor ----------------------------------------------------------------------

LETTERS = "--quality", "my_metrics:vowels", "--diversity", "my_metrics:simpson"
NAMED = "--quality", "CR-1", "--diversity", "NRR-1", "--calls", "100"


@pytest.fixture
def lines():
    """20,000 sentences of one word in a file."""
    rng = np.random.default_rng(0)
    found = rng.choice([*"abcdef"], 20_000, p=np.arange(1, 7) / 21).tolist()
    Path("real.txt").write_text("\n".join(found), encoding="utf-8")
    return found


def test_real_text_that_is_beaten_has_a_witness_and_kept_answers(lines):
    outputs = "--json", "--witness", "witness.txt", "--plot", "lots.png"
    asked = "doctor", "real.txt", *LETTERS, "--cache", "answers", *outputs
    found = json.loads(answered(*asked, "--calls", "300"))
    assert (found["verdict"], found["beaten"]) == ("beaten by real text", True)
    written = Path("witness.txt").read_text("utf-8").splitlines()
    assert written == found["witness"]
    shares = [np.mean([x in "ace" for x in side]) for side in (written, lines)]
    assert shares[0] > shares[1] + 0.1
    assert Path("lots.png").stat().st_size > 5_000
    # Nothing is asked for the second time.
    Path("my_metrics.py").write_text(METRICS.replace("sum(", "1 / 0 + sum("))
    sys.modules.pop("my_metrics")
    assert json.loads(answered(*asked, "--calls", "300")) == found


def test_names_give_what_the_library_gives(lines):
    expected = text.doctor("CR-1", "NRR-1", lines, calls=100)
    assert answered("doctor", "real.txt", *NAMED).strip() == expected.to_text(80)


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("p.txt: expected at least 2,000 real ones", "real > p"),
        ("nothing.txt: No such file", "real > nothing"),
        ("--calls: expected a whole number from 100", "100 > 9"),
        ("--witness: real.txt is a file that is read", "100 > 100 --witness real.txt"),
        ("--witness: real.txt has none", "100 > 100 --witness witness.txt"),
        ("--cache: p.txt: ", "100 > 100 --cache p.txt"),
        ("--quality: expected one of CR-2", "CR-1 > CND-2"),
        ("--field has no effect where a line is a", "100 > 100 --field x"),
    ],
)
def test_what_is_bad_for_a_doctor_is_told_in_one_line(said, change):
    line = " ".join(["real.txt", *NAMED]).replace(*change.split(" > "))
    assert said in refusal("doctor", *line.split())
    assert not Path("witness.txt").exists()
