"""The command lint: a table in a file or from standard input, and what is refused."""

import json

import pytest
from calls import call, refusal

TABLE = "model,BLEU-4,BLEU-5,note\nours,.50,.62,a\nhers,.50,.51,b\n"


@pytest.fixture
def table(folder):
    path = folder / "table.csv"
    path.write_text(TABLE, "utf-8-sig")
    return str(path)


def test_findings_and_what_was_read(table):
    lines = call("lint", table).stdout.splitlines()
    assert lines == [
        "ours: .50, .62 cannot be:",
        "  BLEU-5 <= BLEU-4^(4/5)  here 0.615 > 0.578939 (N13.25)",
        "Findings: 1, and 0 with exceptions.",
        "Read: BLEU-4 as fraction, BLEU-5 as fraction",
        "Not read: model, note",
    ]


def test_exceptions_are_named():
    shown = call("lint", "-", input="m,BLEU-4,BLEU-5\na,.50,.52\n").stdout
    assert "a: .50, .52 cannot be, unless a text repeats an n-gram" in shown
    assert "Findings: 0, and 1 with exceptions." in shown


def test_sizes_are_given_beside_the_table(table):
    sizes = [*("--given", "references=1"), *("--given", "length=40")]
    found = json.loads(call("lint", table, *sizes, "--json").stdout)["findings"]
    assert {x["shown"] for x in found} == {"N13.25", "N13.26"}
    assert [x["row"] for x in found] == ["ours", "ours"]


def test_a_unit_is_given(table):
    shown = call("lint", table, "--unit", "percent").stdout
    assert "BLEU-4 as percent" in shown
    assert "Findings: 0" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--given", "length"],
            "--given: expected NAME=NUMBER, such as length=20, got",
        ),
        (["--given", "length=-1"], "--given: expected NAME=NUMBER"),
        (["--given", "length=0"], "--given: expected NAME=NUMBER"),
        (
            ["--given", "length=2", "length=3"],
            "--given: length is given as 2 and as 3",
        ),
        (
            ["--given", "width=1"],
            "--given: expected sizes of the table, whole numbers",
        ),
        (["--unit", "half"], "Invalid value for '--unit'"),
    ],
)
def test_options_that_are_refused(table, arguments, words):
    assert words in refusal("lint", table, *arguments)


def test_a_size_before_the_table(table):
    after = call("lint", table, "--given", "length=40").stdout
    assert call("lint", "--given", "length=40", table).stdout == after
    said = refusal("lint", "--given", "length=40", "references=1", table)
    assert "leaving no table: write the table first" in said


def test_files_that_are_refused(folder):
    (folder / "bytes").write_bytes(b"\xff\xfe\x00a")
    (folder / "empty").write_text("")
    assert "No such file" in refusal("lint", "missing.csv")
    assert "Is a directory" in refusal("lint", ".")
    assert refusal("lint", "bytes").startswith("bytes: UTF-16, expected UTF-8; convert")
    (folder / "latin").write_bytes("café".encode("latin-1"))
    assert "latin, line 1: byte 0xe9" in refusal("lint", "latin")
    assert refusal("lint", "empty").startswith("no table; expected a head and rows")
