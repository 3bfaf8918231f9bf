"""Tables of any width hold every number whole; names of any kind keep their line."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from qdtheory.support.layout import printable
from qdtheory.text.tables import (
    csv_table,
    latex_table,
    markdown_table,
    plain_table,
)

ROWS = ["BLEU-4", "MS-Jaccard-4"]
COLUMNS = {
    f"model_{i}.txt": [("7.22e-06 ±1.2e-07", "*"), ("-0.3123 ±0.0081", mark)]
    for i, mark in enumerate(["=", "", "*"])
}


@pytest.mark.parametrize("width", range(1, 120, 7))
def test_every_number_is_whole_at_every_width(width):
    lines = plain_table(ROWS, COLUMNS, width).splitlines()
    words = " ".join(lines).split()
    for word in ("7.22e-06", "±1.2e-07", "-0.3123", "±0.0081"):
        assert words.count(word) == 3
    if width >= 20:
        assert max(map(len, lines)) <= width


@pytest.mark.parametrize(("width", "blocks"), [(75, 1), (74, 2), (54, 2), (53, 3)])
def test_columns_that_do_not_fit_go_in_blocks(width, blocks):
    parts = plain_table(ROWS, COLUMNS, width).split("\n\n")
    assert len(parts) == blocks
    for part in parts:
        assert [line.split()[0] for line in part.splitlines()[1:]] == ROWS


def test_columns_stay_aligned_under_wide_letters_and_long_names():
    columns = {"文字": COLUMNS["model_0.txt"], "x" * 50: COLUMNS["model_1.txt"]}
    heads, *lines = plain_table(ROWS, columns, 200).splitlines()
    assert {line.index("±1") for line in lines[:1]} == {23}
    assert heads.index("x") + 2 == lines[0].rindex("7.22")
    narrow = plain_table(ROWS, columns, 30).splitlines()
    assert "x" * 50 in "".join(narrow)
    assert max(map(cell_len, narrow)) <= 30


@given(st.text(max_size=20))
def test_any_name_stays_in_its_cell(name):
    columns = {name: COLUMNS["model_0.txt"]}
    assert printable(name).isprintable()
    assert len(plain_table(ROWS, columns, 90).split("\n")) == 3
    assert len(markdown_table(ROWS, columns).split("\n")) == 4
    heads = markdown_table(ROWS, columns).split("\n")[0]
    assert heads.replace("\\\\", "").replace("\\|", "").count("|") == 3
    assert len(latex_table(ROWS, columns).split("\n")) == 8
    (row,) = csv.reader(io.StringIO(csv_table([[name, 1.5]])))
    assert row[1] == "1.5"


def test_latex_escapes_every_special_character():
    shown = latex_table(ROWS, {"a\\b{}$&#_%~^": COLUMNS["model_0.txt"]}).splitlines()[2]
    assert shown == (
        r" & a\textbackslash{}b\{\}\$\&\#\_\%\textasciitilde{}\textasciicircum{} \\"
    )
