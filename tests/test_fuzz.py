"""A small part of benchmarks/fuzz.py."""

import random

import fuzz
import pytest
import typer


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("calls", [fuzz.calls_with_formulas, fuzz.calls_with_files])
def test_random_input_gets_an_answer(tmp_path, calls):
    wrong = {
        " ".join(arguments): fault
        for arguments in calls(random.Random(1), 80, tmp_path)
        if (fault := fuzz.fault_of(arguments))
    }
    assert not wrong


def hang():
    while True:
        pass


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (hang, "no answer within 0.1 s"),
        (lambda: None, "status 0 without an answer"),
        (lambda: typer.echo("hm", err=True), "status 0, stderr"),
        (lambda: exit(2), "status 2"),
    ],
)
def test_a_fault_is_told(monkeypatch, answer, fault):
    app = typer.Typer()
    app.command("check")(answer)
    app.command("other")(hang)  # a single command would have no name
    monkeypatch.setattr(fuzz.cli, "app", app)
    monkeypatch.setitem(fuzz.LIMITS, "check", 0.1)
    assert fault in fuzz.fault_of(["check"])
