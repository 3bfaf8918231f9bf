"""A command ends with one line and its status, however it ends."""

import gzip
import os
import random
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import fuzz
import pytest
from calls import call
from processes import python

from qdtheory.commands import process
from qdtheory.text import files

zstd = files._zstd("tests")  # of Python 3.14, or its backport
COMMAND = [sys.executable, "-m", "qdtheory"]
ASCII = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "COLUMNS": "80"}
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def ran(*arguments, **options):
    return subprocess.run([*COMMAND, *arguments], text=True, **PIPES | options)


def in_shell(first, *arguments):
    """Run a shell's command, then ours in its place."""
    script = ["sh", "-c", f'{first} && exec "$@"', "sh", *COMMAND, *arguments]
    result = subprocess.run(script, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (1, "")
    return result.stderr


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
    whole = ran(*arguments, env=ASCII)
    assert (whole.returncode, whole.stderr) == (0, "")
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), "/nonexistent")
    for more in ({"FORCE_COLOR": "1"}, {"TERM": "dumb"}, {"COLUMNS": "20"}, nowhere):
        result = call(*arguments, env={"COLUMNS": "80"} | more)
        assert (result.exit_code, result.stderr) == (0, "")
        assert "\x1b" not in result.stdout  # not a terminal, so no colours
        usual, numbers = (
            sorted(re.findall(r"\d[\d.e-]*", x.stdout)) for x in (whole, result)
        )
        assert numbers == usual


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
        (OSError(2, "No such file"), "No such file"),
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


PACKED = {"line": open, "gzip": partial(gzip.open, compresslevel=1), "zstd": zstd.open}
SLOW = [pytest.param(x, marks=pytest.mark.slow) for x in PACKED]


@pytest.mark.parametrize("name", ["endless", "lines", *SLOW])
def test_texts_without_end_are_refused_in_bounded_memory(tmp_path, name):
    """A device, a line of 300 MB, and packed files that hold two gigabytes."""
    path, limit = tmp_path / "text", "1 GiB" if name == "lines" else "16 MiB"
    match name:
        case "endless":
            path = Path("/dev/zero")
        case "lines":
            path.touch()
            os.truncate(path, 2**31)
        case _:
            letter = b"a" if name == "line" else b"\0"
            with PACKED[name](path, "wb") as file:
                for _ in range(300 if name == "line" else 2048):
                    file.write(letter * 2**20)
    script = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2)
from qdtheory.commands.process import main
main()
"""
    arguments = [sys.executable, "-c", script, "evaluate", path, "--references", path]
    # In so many seconds: it does not read on and on.
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"qdtheory: {path}")
    assert limit in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_that_is_gone_and_a_closed_standard_input_are_one_line(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    leave = f"cd {gone} && rmdir {gone}"
    said = in_shell(leave, "evaluate", "a", "--references", "b")
    assert said == "qdtheory: b: No such file or directory\n"
    path = tmp_path / "references.txt"
    path.write_text("a b c d\nb c d a\nc d a b\n")
    for more in ("--references", str(path)), ("--prompts",):
        said = in_shell("exec 0<&-", "evaluate", "-", *more)
        assert said == "qdtheory: -: there is no standard input; give a file\n"
