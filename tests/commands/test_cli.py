"""The command as a whole: its help, its version, and options that are wrong."""

import subprocess
import sys

import jax
import numpy as np
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
    for command in cli.app.registered_commands:
        name = command.callback.__name__
        assert f"Example: qdtheory {name} " in shown(name, "--help")


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


def test_the_command_alone_shows_its_help():
    result = CliRunner().invoke(cli.app, [])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "check" in result.stdout
