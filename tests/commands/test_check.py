"""`qdtheory check`: the library's verdict, and one line for whatever is wrong."""

import contextlib
import json
import random
import signal
from dataclasses import fields
from pathlib import Path

import calls
import pytest
import sympy
import typer
from fuzz import accepted, mutant, random_characters

import qdtheory as qd
from qdtheory import functions
from qdtheory.commands import cli
from qdtheory.compatibility import check_compatibility
from qdtheory.formulas.expressions import Expression


def call(*arguments, **settings):
    result = calls.call("check", *arguments, **settings)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


# --- verdicts --------------------------------------------------------------------


def test_a_compatible_pair(folder):
    pair = "--f", "log(x)", "--g", "-x*log(x)"
    first, reason, *rows = call(*pair, columns=300).splitlines()
    assert first == "compatible: f = log(x), g = -x*log(x)"
    verdict = check_compatibility(qd.LL_SE)
    assert reason.startswith("Theorem 3")
    shown = dict(row.strip().split("  ", 1) for row in rows)
    # g' = -log x - 1: w0 = -1, b0 = -1, alpha = 1/2.
    assert {name: text.strip() for name, text in shown.items()} == {
        "w0": "-1",
        "b0": "-1",
        "alpha": "1/2 = 0.5",
        "Psi": "(1/2) U + (1/2) V",
        "Psi(P) - Psi(Q)": verdict.divergence,
    }


@pytest.mark.claim("N25.20")
@pytest.mark.parametrize(
    ("pair", "length", "answer"),
    [
        ("BLEU-1", "3", "compatible for every P over 8 texts"),
        ("bleu-2", "2", "incompatible"),
        ("BLEU-1", "1", "compatible for every P over 2 texts"),
    ],
)
def test_bleu_with_two_references_each_over_a_space(folder, pair, length, answer):
    shown = call("--pair", pair, "--vocab-size", "2", "--length", length)
    assert shown.startswith(f"{answer}: BLEU")


@pytest.mark.parametrize("name", ["LL-SE", "CR-NRR", "LL-NRR", "CR-SE", "cr-sdi"])
def test_json_holds_the_librarys_verdict(folder, name):
    report = json.loads(call("--pair", name, "--json"))
    name = name.upper()
    f, g = (getattr(functions, part) for part in name.split("-"))
    verdict = check_compatibility(qd.SeparablePair(f, g))
    assert report == {"pair": name} | json.loads(verdict.to_json())
    assert set(report) == {"pair", *(field.name for field in fields(verdict))}
    assert (report["witness"] is None) == (verdict.compatible is not False)


def test_a_users_functions_are_beaten_at_their_p(folder):
    functions = "--quality", "my_metrics:quality", "--diversity", "my_metrics:diversity"
    lines = call(*functions, "--p", "p.txt", columns=300).splitlines()
    assert lines[0] == "incompatible: my_metrics:quality and my_metrics:diversity"
    shown = dict(line.strip().split("  ", 1) for line in lines[2:])
    assert shown["real P"].strip() == "0.1 0.2 0.3 0.4"
    assert float(shown["quality gain"]) > 0
    assert float(shown["diversity gain"]) > 0
    # Many texts are shortened for people and whole in JSON.
    sizes = "--vocab-size", "4", "--length", "2"
    assert "... (16 texts)" in call(*functions, *sizes)
    report = json.loads(call(*functions, *sizes, "--json"))
    assert len(report["witness"]["q"]) == 16
    uniform = call(*functions, "--p", "p.npy")
    assert uniform.startswith("at this P: undecided; for other P: incompatible: ")


@pytest.mark.parametrize(
    "pair", [("--pair", "LL-NRR"), ("--scores", "even.txt", "--g=-x**2")]
)
def test_one_p_that_is_not_beaten_is_not_called_compatible(folder, pair):
    Path("even.txt").write_text("0.3\n0.3\n0.2\n0.2\n")
    result = calls.call("check", *pair, "--p", "even.txt", "--exit-code")
    assert result.exit_code == 4
    first = "at this P: not beaten; for other P: incompatible: "
    assert result.stdout.startswith(first)
    report = json.loads(call(*pair, "--p", "even.txt", "--json"))
    assert (report["status"], report["compatible"]) == ("not_beaten_at_p", None)
    assert (report["other_p"], report["witness"]) == ("incompatible", None)


def test_what_is_no_pair_of_names_says_what_to_give():
    def said(*names):
        return calls.refusal("check", "--quality", names[0], "--diversity", *names[1:])

    assert said("log x", "-x log x").startswith("formulas go in as --f and --g")
    assert said("", "SE").startswith("no metric is called ''")
    twice = said("BLEU-2 of 9 references", "SE", "--references", "5")
    assert twice.endswith("the number of references is given twice; give it once")


# --- random input ----------------------------------------------------------------


@pytest.fixture
def answer(capsys):
    """The first word that the command's function prints; four seconds of work fail."""

    def hang(*_):
        raise TimeoutError("no answer within four seconds")

    def run(f, g):
        status = 0
        # Time of this process, so that a busy machine fails nothing.
        signal.setitimer(signal.ITIMER_VIRTUAL, 4.0)
        try:
            cli.check(f=f, g=g)
        except typer.Exit as stopped:
            status = stopped.exit_code
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        out, err = capsys.readouterr()
        if status == 0:
            assert err == ""
            return out.partition(":")[0]
        assert (status, out) == (1, "")
        assert err.startswith("qdtheory: ")
        assert err.count("\n") == 1
        return "error"

    cli.check(f="log(x)", g="-x*log(x)")  # imports SymPy
    capsys.readouterr()
    before = signal.signal(signal.SIGVTALRM, hang)
    yield run
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.slow
def test_ten_thousand_random_strings_get_a_verdict_or_one_line(answer):
    rng = random.Random(0)
    texts = [random_characters(rng) for _ in range(8000)]
    texts += [mutant(rng) for _ in range(2000)]
    pairs = [rng.choice([(text, "-x*log(x)"), ("log(x)", text)]) for text in texts]
    answers = [answer(f, g) for f, g in pairs]
    assert set(answers) == {"compatible", "incompatible", "undecided", "error"}


@pytest.mark.slow
def test_a_thousand_random_formulas_get_a_verdict_or_one_line(answer):
    rng = random.Random(1)
    both = [(accepted(rng), accepted(rng)) for _ in range(600)]
    first = [(accepted(rng), "-x**2") for _ in range(200)]
    second = [("log(x)", accepted(rng)) for _ in range(200)]
    answers = [answer(f, g) for f, g in both + first + second]
    assert set(answers) == {"compatible", "incompatible", "undecided", "error"}
    # Formulas that are not defined on (0, 1), or overflow there, are errors.
    assert answers.count("error") <= 300


@pytest.mark.slow
def test_random_formulas_and_the_diversities_that_fit_them(answer):
    """Compatible by construction: SymPy must find its proofs in bounded time."""
    rng, x = random.Random(3), sympy.Symbol("x", positive=True)
    answers = []
    for _ in range(100):
        negative = accepted(rng)
        slope = str(Expression(negative).symbolic(x).diff(x))
        with contextlib.suppress(ValueError):  # too long for an expression
            answers.append(answer(Expression(slope).text, f"-({negative})"))
    # The others are convex somewhere, or linear, or not defined.
    assert answers.count("compatible") >= 10


@pytest.mark.parametrize(
    ("f", "g", "named"),
    [
        ("ROUGE-L", "distinct-2", "--quality 'ROUGE-L' --diversity 'distinct-2'"),
        ("LL", "2-gram entropy", "--quality 'LL' --diversity '2-gram entropy'"),
        ("BLEU-4", "-x^2", "--quality 'BLEU-4' --diversity NAME"),
        ("x", "Vendi", "--quality NAME --diversity 'Vendi'"),
    ],
)
@pytest.mark.parametrize("command", ["check", "qdisc"])
def test_names_given_as_formulas_are_sent_to_their_options(command, f, g, named):
    more = ["--vocab-size", "2", "--length", "2"] if command == "qdisc" else []
    said = calls.refusal(command, "--f", f, f"--g={g}", *more)
    assert "is not allowed in an expression; metrics by their names come two" in said
    assert f"{named} or qd.check" in said


def test_a_pair_that_is_conditional_says_so_in_every_form():
    names = "--quality", "BLEU-4", "--diversity", "Self-BLEU-4"
    ones = "--references", "1", "--self-references", "1"
    found = calls.call("check", *names, *ones, "--exit-code")
    assert found.exit_code == 5
    assert found.stdout.startswith("conditional: BLEU-4 of 1 reference and Self-BLEU-4")
    told = " ".join(found.stdout.split())
    assert "compatible at L = 4, incompatible from L = 5 on." in told
    report = json.loads(calls.call("check", *names, *ones, "--json").stdout)
    assert (report["status"], report["compatible"]) == ("conditional", None)
    assert calls.call("check", *names, "--exit-code").exit_code == 2
