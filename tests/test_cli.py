"""The command: its numbers are the library's, its errors one line."""

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import qdtheory as qd
from qdtheory import cli
from qdtheory import progress as progress_module

REFERENCES = "a b c d\n\na b\n"
CANDIDATES = "a b c d e\nb c d a\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("references.txt").write_text(REFERENCES)
    Path("one.txt").write_text(CANDIDATES)
    Path("two [x].gz").write_bytes(gzip.compress(REFERENCES.encode()))
    Path("bad.txt").write_bytes(b"a b\nc \xff\n")
    Path("empty.txt").touch()
    Path("binary").write_bytes(b"\x7fELF\0\0")
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "80"})


def test_json_holds_the_numbers_of_the_library(folder):
    result = call(
        "evaluate", "one.txt", "two [x].gz", "--references", "references.txt", "--json"
    )
    assert result.exit_code == 0
    assert result.stderr == ""
    report = json.loads(result.stdout)
    assert report["references"] == {
        "file": "references.txt",
        "sentences": 2,
        "tokens": 6,
        "empty_lines": 1,
    }
    assert [c["file"] for c in report["candidates"]] == ["one.txt", "two [x].gz"]
    assert [c["empty_lines"] for c in report["candidates"]] == [0, 1]
    references = qd.text.read_corpus("references.txt")
    for entry in report["candidates"]:
        candidates = qd.text.read_corpus(entry["file"])
        assert entry["orders"] == [
            {
                "n": n,
                "cr": qd.text.coverage_rate(candidates, references, n),
                "nrr": qd.text.negative_repetition_rate(candidates, n),
                "cnd": qd.text.cnd(candidates, references, n),
            }
            for n in (1, 2, 3, 4)
        ]


def test_tables(folder):
    result = call(
        "evaluate",
        *("one.txt", "two [x].gz", "--references", "references.txt"),
        *("--max-order", "2"),
    )
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "references references.txt: 2 sentences, 6 tokens, 1 empty lines skipped"
    )
    assert "candidates two [x].gz: 2 sentences" in result.stdout
    rows = [line.replace("│", " ").split() for line in lines if line.startswith("│")]
    # By hand: unigrams 2 2 2 2 1 of 9 against 2 2 1 1 of 6; bigrams of 7 against 4.
    assert rows[0] == ["1", "2.22222e-01", "-2.09877e-01", "4.32099e-02"]
    assert rows[1] == ["2", "2.14286e-01", "-2.24490e-01", "1.70918e-01"]
    assert [row[3] for row in rows[2:]] == ["0.00000e+00"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.txt"], "none.txt: No such file or directory"),
        (["one.txt", "bad.txt"], "bad.txt, line 2: byte 0xff at position 3 is not UTF"),
        (["empty.txt"], "empty.txt, line 1: the file is empty"),
        (["binary"], "binary, line 1: a NUL byte; expected a text file"),
        (["."], ".: Is a directory"),
        (["one.txt", "--max-order", "5"], "references.txt: no sentence has 5 tokens"),
        (["one.txt", "--max-order", "0"], "--max-order: expected 1 or more, got 0"),
    ],
)
def test_bad_input_gets_one_line(folder, arguments, message):
    result = call("evaluate", *arguments, "--references", "references.txt")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"qdtheory: {message}")
    assert result.stderr.count("\n") == 1


def test_bad_references(folder):
    result = call("evaluate", "one.txt", "--references", "none.txt")
    assert result.exit_code == 1
    assert result.stderr == "qdtheory: none.txt: No such file or directory\n"


def test_help_and_version():
    assert call("--version").stdout == f"{qd.__version__}\n"
    assert "evaluate" in call("--help").stdout
    shown = call("evaluate", "--help").stdout
    assert "Example: qdtheory evaluate model.txt other.txt.gz --references" in shown


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_progress_shows_after_two_seconds_on_a_terminal(monkeypatch, stream):
    class Elapsed:
        """A timer whose time has come as soon as it starts."""

        def __init__(self, delay, function):
            assert delay == 2.0
            self.start = function

        def cancel(self):
            pass

    monkeypatch.setattr(progress_module, "Timer", Elapsed)
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setenv("TERM", "xterm")
    with progress_module.progress(2) as step:
        step("Counting sheep")
    assert ("Counting sheep" in sys.stderr.getvalue()) == (stream is Terminal)


def test_quick_work_shows_no_progress(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_module.progress(2) as step:
        step("Counting sheep")
    assert sys.stderr.getvalue() == ""


def test_help_imports_nothing_heavy():
    """The module alone, below an empty parent package."""
    script = f"""
import sys, types
package = types.ModuleType("qdtheory")
package.__path__ = [{str(Path(qd.__file__).parent)!r}]
sys.modules["qdtheory"] = package
from typer.testing import CliRunner
from qdtheory.cli import app
assert CliRunner().invoke(app, ["evaluate", "--help"]).exit_code == 0
heavy = {{"jax", "numpy", "scipy", "matplotlib", "sympy", "cvxpy"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_installed_command(folder):
    command = Path(sys.executable).with_name("qdtheory")
    done = subprocess.run(
        [command, "evaluate", "bad.txt", "--references", "references.txt"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
