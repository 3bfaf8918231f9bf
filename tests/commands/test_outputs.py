"""Errors are one line, tables keep every digit, and JSON knows no infinity."""

import io
import json
import sys

import numpy as np
import pytest
import typer

from qdtheory.commands.outputs import complain, fail, print_json, print_rows, write


@pytest.mark.parametrize("columns", [20, 40, 200])
def test_a_number_keeps_its_exponent_on_any_terminal(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    row = "CND-4", "7.2209e-06", "-1.2345e-301", "9.87654e+15"
    print_rows(("metric", "value", "low", "high"), [row])
    shown = capsys.readouterr().out
    words = shown.split()
    assert [word for word in words if word in row] == [*row]
    assert max(map(len, shown.splitlines())) <= columns


def test_json_of_arrays_and_infinity(capsys):
    print_json({"q": np.array([0.5, 0.5]), "range": np.inf, "none": np.nan})
    found = json.loads(capsys.readouterr().out)
    assert found == {"q": [0.5, 0.5], "range": None, "none": None}


def test_a_terminal_without_the_sign_of_a_margin_gets_two_letters(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    write("0.5 ±0.1", None)
    stream.flush()
    assert stream.buffer.getvalue() == b"0.5 +-0.1\n"


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
