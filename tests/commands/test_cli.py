"""The command as a whole: what it prints and knows, and how its process ends."""

import gzip
import io
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
from calls import call
from processes import python

import qdtheory as qd
from qdtheory.catalogue.metrics import METRICS
from qdtheory.commands import cli, process
from qdtheory.commands.outputs import complain, fail, print_json, write
from qdtheory.rewards import REWARDS, check_reward

COMMAND = [sys.executable, "-m", "qdtheory"]
ASCII = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "COLUMNS": "80"}
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def shown(*arguments, **settings):
    result = call(*arguments, **settings)
    assert (result.exit_code, result.stderr) == (0, "")
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
    assert shown("-V") == shown("--version")
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
    outputs = [ran(*arguments, env=ASCII).stdout]
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), "/nonexistent")
    for more in ({"FORCE_COLOR": "1"}, {"TERM": "dumb"}, {"COLUMNS": "20"}, nowhere):
        outputs.append(shown(*arguments, env={"COLUMNS": "80"} | more))
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
