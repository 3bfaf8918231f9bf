"""The commands but evaluate and grade: what they answer, and how a process ends.

What is wrong with options and files stands in the transcript, tests/first_contact.txt.
"""

import gzip
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import fuzz
import jax
import numpy as np
import pytest
import typer
from calls import call, refusal
from models import oracle
from processes import python

import qdtheory as qd
from qdtheory import functions, text
from qdtheory.catalogue.metrics import METRICS
from qdtheory.commands import cli, process
from qdtheory.commands.outputs import complain, fail, print_json
from qdtheory.compatibility import check_compatibility
from qdtheory.rewards import REWARDS, check_reward

COMMAND = [sys.executable, "-m", "qdtheory"]
ASCII = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "COLUMNS": "80"}
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def shown(*arguments, status=0, **settings):
    result = call(*arguments, **settings)
    assert (result.exit_code, result.stderr) == (status, "")
    return result.stdout


def ran(*arguments, **options):
    return subprocess.run([*COMMAND, *arguments], text=True, **PIPES | options)


def in_shell(first, *arguments):
    """Run a shell's command, then ours in its place."""
    script = ["sh", "-c", f'{first} && exec "$@"', "sh", *COMMAND, *arguments]
    result = subprocess.run(script, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (1, "")
    return result.stderr


def test_help_and_version():
    versions = f"JAX {jax.__version__}, NumPy {np.__version__}"
    assert shown("--version") == f"qdtheory {qd.__version__}, {versions}\n"
    assert "evaluate" in shown() == shown("-h")
    for command in cli.app.registered_commands:
        name = command.callback.__name__
        assert f"Example: qdtheory {name} " in shown(name, "--help")


def test_help_imports_nothing_heavy_and_texts_are_evaluated_without_jax():
    script = """
import sys
from typer.testing import CliRunner
from qdtheory.commands.cli import app
assert CliRunner().invoke(app, ["evaluate", "--help"]).exit_code == 0
print({"jax", "numpy", "scipy", "matplotlib", "sympy", "cvxpy"} & set(sys.modules))
import qdtheory.text.cluster
assert qdtheory.text.evaluate({"x": ["a b", "b a"] * 9}, ["a b", "b"] * 9, 1).metrics
assert "jax" not in sys.modules
"""
    assert python("-c", script) == "set()\n"


def test_json_knows_no_infinity_and_a_message_is_one_line(capsys):
    print_json({"q": np.array([0.5, 0.5]), "range": np.inf, "none": np.nan})
    found = json.loads(capsys.readouterr().out)
    assert found == {"q": [0.5, 0.5], "range": None, "none": None}
    with pytest.raises(typer.Exit) as stopped:
        fail("one\ntwo")
    assert stopped.value.exit_code == 1
    complain("")
    assert capsys.readouterr() == ("", "qdtheory: one\nqdtheory: \n")


# --- metrics and rewards -----------------------------------------------------------


def row(table, name):
    """The line of a table that begins with a name."""
    (found,) = (x for x in table.splitlines() if x.startswith(f"{name}  "))
    return found


def test_every_metric_is_told_as_a_table_and_as_json():
    table = shown("metrics", columns=200)
    for metric in METRICS:
        told = row(table, metric.name).removeprefix(metric.name)
        assert told.split() == " ".join(metric.row[1:]).split()
    found = json.loads(shown("metrics", "--json"))["metrics"]
    assert [facts["name"] for facts in found] == [metric.name for metric in METRICS]


def test_one_metric_is_told_by_any_name_with_its_claims():
    facts = json.loads(shown("metrics", "oracle-nll", "--json"))
    assert (facts["name"], facts["partner"]) == ("LL", "SE")
    first, *lines = shown("metrics", "vendi", columns=300).splitlines()
    assert first.startswith("As papers use it, beside BLEU: real text is beaten. Sound")
    assert any(line.startswith("  claims       N25.8") for line in lines)


@pytest.mark.slow
def test_without_a_formula_the_rewards_in_use_are_told():
    table = shown("rewards", columns=90)
    for name, reward in REWARDS.items():
        assert f"  {reward.divergence}  " in row(table, name)
        assert ("LL + SE" in row(table, name)) == (name == "logit D")


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        ("2*log(D)", ["4 KL(M, P): 2*log(D)\n", "none", "Q = P alone", "yes"]),
        ("D*(1-D)", ["no, it falls at D = 0.75"]),
        ("exp(D)", ["no closed form"]),
    ],
)
def test_a_reward_is_told_as_a_table_and_as_json(formula, parts):
    table = shown("rewards", "--reward", formula)
    assert all(part in table for part in parts)
    (found,) = json.loads(shown("rewards", "--reward", formula, "--json"))["rewards"]
    assert found == json.loads(check_reward(formula).to_json())


MINE = """
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
    Path("my_metrics.py").write_text(MINE)
    Path("p.txt").write_text("0.1\n0.2\n0.3\n0.4\n")
    Path("three.txt").write_text("0.6\n0.3\n0.1\n")
    Path("zero.txt").write_text("0.6\n0.4\n0\n")
    yield
    sys.modules.pop("my_metrics", None)


def checked(*arguments):
    return json.loads(shown("check", *arguments, "--json"))


def results(*arguments):
    return json.loads(shown("qdisc", *arguments, "--json"))["results"]


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
    assert shown("check", "--pair", pair, *space).startswith(f"{answer}: BLEU")


def test_a_users_functions_are_beaten_at_their_p():
    report = checked(*OWN, "--p", "p.txt")
    assert report["pair"] == "my_metrics:quality and my_metrics:diversity"
    witness = report["witness"]
    assert witness["p"] == [0.1, 0.2, 0.3, 0.4]
    assert min(witness["quality_gain"], witness["diversity_gain"]) > 0
    # Many texts are shortened for people and whole in JSON.
    sizes = "--vocab-size", "4", "--length", "2"
    assert "... (16 texts)" in shown("check", *OWN, *sizes)
    assert len(checked(*OWN, *sizes)["witness"]["q"]) == 16
    np.save("p.npy", np.full(9, 1 / 9))
    uniform = shown("check", *OWN, "--p", "p.npy")
    assert uniform.startswith("at this P: undecided; for other P: incompatible: ")


def test_the_exit_status_tells_a_conditional_pair_from_one_that_is_beaten():
    names = "check", "--quality", "BLEU-4", "--diversity", "Self-BLEU-4", "--exit-code"
    ones = *names, "--references", "1", "--self-references", "1"
    assert shown(*ones, status=5).startswith("Conditional: over some texts no model")
    shown(*names, status=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--quality|log x|--diversity|-x log x", "formulas go in as --f and --g"),
        ("--quality|BLEU-2 of 9 references|--diversity|SE|--references|5",
         "references are given twice; give them once"),
        ("--f|BLEU-4|--g=-x^2", "--quality 'BLEU-4' --diversity NAME or"),
        ("--f|x|--g=Vendi", "--quality NAME --diversity 'Vendi' or qd"),
    ],
)  # fmt: skip
def test_names_and_formulas_are_sent_to_their_options(arguments, words):
    assert words in refusal("check", *arguments.split("|"))


# --- random input ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user")
def test_random_formulas_get_a_verdict_or_one_line(tmp_path):
    calls = fuzz.calls_with_formulas(random.Random(0), 2000, tmp_path)
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
    (middle,) = (x for x in shown("qdisc", *options).splitlines() if "median" in x)
    mean = [np.mean([row[x] for row in found]) for x in ("qdisc", "drate")]
    assert [*map(float, middle.split()[1:3])] == pytest.approx(mean, rel=1e-5)


def test_a_search_is_certified_when_asked():
    options = ("--pair", "BLEU-1", "--vocab-size", "2", "--length", "2", "--p", "p.txt")
    (found,) = results(*options)
    assert (found["status"], found["upper_bound"]) == ("lower_bound", None)
    (bounded,) = results(*options, "--certify")
    assert bounded["status"] == "certified"
    assert bounded["qdisc"] <= bounded["upper_bound"] <= bounded["qdisc"] + 1e-5


def test_a_gain_by_rounding_is_shown_as_none():
    lines = shown("qdisc", "--pair", "LL-SE", "--p", "p.txt").splitlines()
    (row,) = (line.split() for line in lines if "p.txt" in line)
    assert row[1:3] == ["0", "0"]


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


def test_real_text_that_is_beaten_has_a_witness(lines):
    asked = "--json", "--witness", "witness.txt", "--calls", "300"
    found = json.loads(call("doctor", "real.txt", *LETTERS, *asked).stdout)
    assert (found["verdict"], found["beaten"]) == ("beaten by real text", True)
    written = Path("witness.txt").read_text("utf-8").splitlines()
    assert written == found["witness"]
    shares = [np.mean([x in "ace" for x in side]) for side in (written, lines)]
    assert shares[0] > shares[1] + 0.1


def test_names_give_what_the_library_gives_and_no_witness_where_there_is_none(lines):
    expected = text.doctor("CR-1", "NRR-1", lines, calls=100)
    result = call("doctor", "real.txt", *NAMED, "--witness", "witness.txt")
    assert result.stdout.strip() == expected.to_text(80)
    assert result.exit_code == 1
    assert result.stderr.startswith("qdtheory: --witness: real.txt has none: ")
    assert not Path("witness.txt").exists()
    unsplit = "".join(f"{x}我喜欢这个城市的公园\n" for x in "我" * 2000)
    Path("real.txt").write_text(unsplit, "utf-8")
    said = "words, each is one token: split them (--tokenizer characters)"
    assert said in call("doctor", "real.txt", *NAMED).stderr


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("p.txt: expected at least 2,000 real ones", "real > p"),
        ("nothing.txt: No such file", "real > nothing"),
        ("--calls: expected a whole number from 100", "100 > 9"),
        ("--witness: real.txt is a file that is read", "100 > 100 --witness real.txt"),
        ("--quality: expected one of CR-2", "CR-1 > CND-2"),
        ("--field has no effect where a line is a", "100 > 100 --field x"),
    ],
)
def test_what_is_bad_for_a_doctor_is_told_in_one_line(said, change):
    line = " ".join(["real.txt", *NAMED]).replace(*change.split(" > "))
    assert said in refusal("doctor", *line.split())


# --- how a process ends: with one line and its status, whatever happens -------------


@pytest.mark.slow
def test_an_interrupt_ends_it_at_once_with_one_line(tmp_path):
    fuzz.write_long_texts(tmp_path)
    rng = random.Random(0)
    for arguments in fuzz.LONG:
        for seconds in (0.5, 1.5, 3.5):
            seconds *= rng.uniform(0.8, 1.2)
            assert fuzz.fault_of_interrupt(arguments, seconds, tmp_path) is None


def test_an_interrupt_that_the_caller_ignores_stays_ignored():
    script = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from qdtheory.commands.process import end_at_interrupts
end_at_interrupts()
os.kill(os.getpid(), signal.SIGINT)
print("alive")
"""
    assert python("-c", script) == "alive\n"


def test_the_signal_to_end_gets_one_line():
    script = """
import os, signal, time
from qdtheory.commands.process import end_at_interrupts
end_at_interrupts()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert (found.returncode, found.stderr) == (143, b"qdtheory: terminated\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [("--version",), ("metrics", "BLEU")])
def test_a_full_device_is_told_in_one_line(arguments):
    with open("/dev/full", "w") as full:
        result = ran(*arguments, stdout=full)
    assert result.returncode == 1
    assert result.stderr == "qdtheory: standard output: No space left on device\n"


def test_a_closed_pipe_is_no_error_to_tell():
    reading, writing = os.pipe()
    os.close(reading)
    result = ran("metrics", "BLEU", stdout=writing)
    os.close(writing)
    assert (result.returncode, result.stderr) == (1, "")


def test_the_surroundings_change_no_number_and_escape_a_name(tmp_path):
    result = ran("evaluate", "élan.txt", "--references", "x", env=ASCII)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith("qdtheory: ")
    path = tmp_path / "text.txt"
    path.write_text("a b c d\nb c d a\na b c\n" * 3)
    arguments = "evaluate", str(path), "-r", str(path), "--max-order", "2"
    outputs = [ran(*arguments, env=ASCII).stdout.replace(r"\xb1", "±")]
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), "/nonexistent")
    for more in ({"FORCE_COLOR": "1"}, {"TERM": "dumb"}, {"COLUMNS": "20"}, nowhere):
        outputs.append(call(*arguments, env={"COLUMNS": "80"} | more).stdout)
        assert "\x1b" not in outputs[-1]  # not a terminal, so no colours
    usual, *others = (sorted(re.findall(r"\d[\d.e-]*", x)) for x in outputs)
    assert usual
    assert others == [usual] * 4


def test_the_module_is_the_command():
    script = Path(sys.executable).with_name("qdtheory")
    installed = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert installed.stdout.startswith("qdtheory ")
    assert installed.stdout == ran("--version").stdout


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "there is not enough memory for this; ask for less at a time"),
        (OSError(28, "No space left on device"), "standard output: No space left"),
        (FileNotFoundError(2, "No such file", "a\nb"), "'a\\nb': No such file"),
        (ZeroDivisionError("a\nb"), "ZeroDivisionError: a b; QDTHEORY_DEBUG=1 shows"),
    ],
)
def test_an_unforeseen_error_is_one_line(capsys, monkeypatch, error, line):
    def failing():
        raise error

    monkeypatch.setattr("qdtheory.commands.cli.app", failing)
    assert process._status() == 1
    assert capsys.readouterr().err.startswith(f"qdtheory: {line}")
    monkeypatch.setenv("QDTHEORY_DEBUG", "1")
    with pytest.raises(type(error)):
        process._status()


@pytest.mark.parametrize("name", ["endless", "lines", "packed"])
def test_texts_without_end_are_refused_in_bounded_memory(tmp_path, name):
    """A device, and files that hold two gigabytes of zeros, packed or not."""
    path = tmp_path / "text" if name != "endless" else Path("/dev/zero")
    if name == "lines":
        path.touch()
        os.truncate(path, 2**31)
    elif name == "packed":
        piece = gzip.compress(bytes(2**26), 1)
        path.write_bytes(piece * 32)
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2)"
    )
    script = f"{limited}\nfrom qdtheory.commands.process import main\nmain()"
    arguments = [sys.executable, "-c", script, "evaluate", path, "--references", path]
    # In so many seconds: it does not read on and on.
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"qdtheory: {path}")
    assert ("1 GiB" if name == "lines" else "16 MiB") in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_that_is_gone_and_a_closed_standard_input_are_one_line(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    leave = f"cd {gone} && rmdir {gone}"
    said = in_shell(leave, "evaluate", "a", "--references", "b")
    assert said == "qdtheory: b: No such file or directory\n"
    said = in_shell("exec 0<&-", "evaluate", "-", "--prompts")
    assert said == "qdtheory: -: there is no standard input; give a file\n"
