"""The command as a whole: its help, its version, and options that are wrong."""

import subprocess
import sys

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import qdtheory as qd
from qdtheory.commands import cli


def test_help_and_version():
    def shown(*arguments):
        return CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "80"}).stdout

    versions = f"JAX {jax.__version__}, NumPy {np.__version__}"
    assert shown("--version") == f"qdtheory {qd.__version__}, {versions}\n"
    assert shown("-h") == shown("--help")
    assert "evaluate" in shown("--help")
    example = "Example: qdtheory evaluate model.txt other.txt.gz --references"
    assert example in shown("evaluate", "--help")


def test_help_imports_nothing_heavy():
    script = """
import sys
from typer.testing import CliRunner
from qdtheory.commands.cli import app
assert CliRunner().invoke(app, ["evaluate", "--help"]).exit_code == 0
heavy = {"jax", "numpy", "scipy", "matplotlib", "sympy", "cvxpy"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--length", "two"], "Invalid value for '--length': "),
        (["check", "--nope"], "No such option: --nope"),
        (["check", "x"], "Got unexpected extra argument"),
        (["check", "--f"], "Option '--f' requires an argument; see qdtheory --help"),
        (["evaluate"], "Missing argument 'candidates'; see qdtheory evaluate --help"),
        (["evaluate", "one.txt"], "Missing option '--references'"),
        (["judge"], "No such command 'judge'; see qdtheory --help"),
        (["check", "--f", "x", "--f", "x"], "Option '--f' is given twice"),
        (["qdisc", "--references", "9" * 20], "Invalid value for '--references'"),
        (["qdisc", "--hidden-size", "1000000"], "Invalid value for '--hidden-size'"),
        (["evaluate", "--max-order", "99999999"], "Invalid value for '--max-order'"),
    ],
)
def test_a_wrong_option_gets_one_line(arguments, message):
    result = CliRunner().invoke(cli.app, arguments, prog_name="qdtheory")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"qdtheory: {message}")
    assert result.stderr.count("\n") == 1


def test_the_command_alone_shows_its_help():
    result = CliRunner().invoke(cli.app, [])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "check" in result.stdout
