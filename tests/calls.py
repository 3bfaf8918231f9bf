"""A command as it is called, in this process, and the one line of its refusal."""

from typer.testing import CliRunner

from qdtheory.commands import cli


def call(*arguments, columns=80, **settings):
    environment = {"env": {"COLUMNS": str(columns)}}
    return CliRunner().invoke(cli.app, arguments, **environment | settings)


def refusal(*arguments, **settings):
    """What a call that fails says, in one line on stderr and nothing else."""
    result = call(*arguments, **settings)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("qdtheory: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("qdtheory: ").removesuffix("\n")
