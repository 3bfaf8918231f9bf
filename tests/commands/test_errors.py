"""One line on stderr, whatever the message."""

import pytest
import typer

from qdtheory.commands.errors import complain, fail


@pytest.mark.parametrize(
    ("message", "line"),
    [("no P", "qdtheory: no P"), ("one\ntwo", "qdtheory: one"), ("", "qdtheory: ")],
)
def test_a_message_is_one_line(capsys, message, line):
    complain(message)
    with pytest.raises(typer.Exit) as stopped:
        fail(message)
    assert stopped.value.exit_code == 1
    assert capsys.readouterr() == ("", f"{line}\n" * 2)
