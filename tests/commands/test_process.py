"""A command ends with one line and its status, however it ends."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qdtheory.commands import process

COMMAND = [sys.executable, "-m", "qdtheory"]
# A shell that runs the tests in its background has them ignore interrupts.
INTERRUPTIBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
SLOW = {
    "search": ("qdisc", "--pair", "BLEU-2", "--seeds", "3"),
    "exact": ("qdisc", "--pair", "LL-NRR", "--seeds", "200"),
    "check": ("check", "--f", "log(x)**3", "--g", "-x**2 + sqrt(x)"),
    "evaluate": ("evaluate", "text.txt", "--references", "other.txt"),
}


def ran(*arguments, **options):
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, **options
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two files of a hundred thousand sentences, in the working directory."""
    rng = random.Random(0)
    for name in ("text.txt", "other.txt"):
        words = (rng.choices("abcdefgh", k=9) for _ in range(100_000))
        (tmp_path / name).write_text("\n".join(map(" ".join, words)))
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("seconds", [0.5, 1.5, 3.5])
def test_an_interrupt_ends_it_at_once_with_one_line(folder, name, seconds):
    seconds *= random.Random(f"{name} {seconds}").uniform(0.8, 1.2)
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *COMMAND[1:], *SLOW[name]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            start = time.monotonic()
            _, said = running.communicate()
            assert (running.returncode, said) == (130, b"qdtheory: interrupted\n")
            assert time.monotonic() - start < 1
        else:
            assert running.returncode == 0


def test_an_interrupt_that_the_caller_ignores_stays_ignored():
    script = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from qdtheory.commands.process import end_at_interrupts
end_at_interrupts()
os.kill(os.getpid(), signal.SIGINT)
print("alive")
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert (result.returncode, result.stdout) == (0, b"alive\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    "arguments", [("--version",), ("--help",), ("check", "--pair", "LL-NRR")]
)
def test_a_full_device_is_told_in_one_line(arguments):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 1
    assert result.stderr == "qdtheory: standard output: No space left on device\n"


def test_a_closed_pipe_is_no_error_to_tell():
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(
        [*COMMAND, "check", "--pair", "LL-NRR"], stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert (result.returncode, result.stderr) == (1, b"")


def test_a_name_that_the_encoding_lacks_is_escaped():
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = ran("evaluate", "élan.txt", "--references", "x", env=environment)
    assert result.returncode == 1
    assert result.stderr.startswith("qdtheory: ")
    assert result.stderr.count("\n") == 1


def test_the_module_is_the_command():
    assert ran("--version").stdout.startswith("qdtheory ")
    script = Path(sys.executable).with_name("qdtheory")
    installed = subprocess.run([script, "--version"], capture_output=True)
    assert installed.stdout.decode() == ran("--version").stdout


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "there is not enough memory for this; ask for less at a time"),
        (OSError(28, "No space left on device"), "standard output: No space left"),
        (FileNotFoundError(2, "No such file", "p.txt"), "p.txt: No such file"),
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
