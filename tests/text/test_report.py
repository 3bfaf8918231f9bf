"""Reports: the same numbers in every format, in tables, planes and a page."""

import csv
import io
import json
import re
import sys
from dataclasses import replace
from html import escape
from itertools import chain

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import MODEL, REAL
from refusals import refused

from qdtheory.support.layout import printable
from qdtheory.support.records import Estimate
from qdtheory.text import evaluate
from qdtheory.text.report import COLUMNS, Report, with_margin
from qdtheory.text.tables import csv_table, latex_table, markdown_table, plain_table


@pytest.fixture(scope="module")
def found():
    return evaluate({"model": MODEL, "half": MODEL[:30]}, REAL, max_order=2)


def test_every_format_holds_the_same_numbers(found):
    told = json.loads(found.to_json())
    rows, frame = [*csv.DictReader(io.StringIO(found.to_csv()))], found.to_frame()
    assert len(rows) == 2 * len(found.metrics)
    assert tuple(frame.columns) == tuple(rows[0]) == COLUMNS
    for row, line in zip(rows, frame.to_dict("records"), strict=True):
        name, metric = row["candidate"], row["metric"]
        assert (line["candidate"], line["metric"]) == (name, metric)
        entry = told["candidates"][name]["metrics"][metric]
        for key in COLUMNS[2:]:
            value = getattr(found[name][metric], key)
            assert type(value) is float
            scores = getattr(found.scores[name], key)
            of_json = np.nan if entry[key] is None else entry[key]
            each = scores[found.metrics.index(metric)], float(row[key]), line[key]
            np.testing.assert_equal([*each, of_json], [value] * 4)
    assert told["candidates"]["half"]["sentences"] == 30
    assert told["references"] == 60
    for form in ("text", "markdown", "html"):
        shown = getattr(found, f"to_{form}")().replace("*", "")
        for cell, _ in chain.from_iterable(found.cells().values()):
            assert cell in shown
    page = found.to_html()
    for said in ("warnings", "conclusions", "methods", "signature"):
        value = getattr(found, said)
        assert told[said] == (value if isinstance(value, str) else [*value])
        for line in [value] if isinstance(value, str) else value:
            assert escape(line) in page


def test_names_that_are_not_there_are_told_with_those_that_are(found):
    refused(
        ("no candidate is called 'x'; there are model, half", found.__getitem__, "x"),
        ("no metric is called 'BLEU'", found["model"].__getitem__, "BLEU"),
        error=KeyError,
    )
    refused(("an order of the report, [1, 2], got 4", found.plot, 4))


@pytest.mark.parametrize(
    ("form", "missing", "said"),
    [("frame", "pandas", "pandas: pip install pandas"),
     ("html", "matplotlib", '"qdtheory[plot]"')],
)  # fmt: skip
def test_a_package_that_is_missing_is_named(found, monkeypatch, form, missing, said):
    for module in (missing, f"{missing}.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    refused((said, getattr(found, f"to_{form}")), error=ModuleNotFoundError)


# --- cells ------------------------------------------------------------------------


def hand_made(metric, **intervals):
    """A report of one metric from (value, low, high) by candidate."""
    scores = {
        name: Estimate(*np.array([*numbers, 0.1])[:, None])
        for name, numbers in intervals.items()
    }
    sizes = dict.fromkeys(scores, 9)
    rests = {name: np.array([x.low, x.high]) for name, x in scores.items()}
    known = (metric,), scores, sizes, sizes, 9, 0, (), "so", rests, rests
    return Report(*known, ())


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ((0.31234, 0.30434, 0.32034), "0.312 ±0.008"),
        ((0.98, 0.94, 1), "0.98 ±0.04"),  # clipped above, or below
        ((-2.3456e-6, -4.3456e-6, -0.3456e-6), "-2e-06 ±2e-06"),
        ((7.2209e-6, 7.1e-6, 7.3418e-6), "7.22e-06 ±1.2e-07"),
        ((1e-20, 0, 1e-20), "0 ±0"),
        ((1 / 3, 1 / 3, 1 / 3), "0.3333 ±0"),
        ((-0.0001, -0.3, 0.3), "0.0 ±0.3"),
        ((-1.5, -2, 3), "-2 ±4"),
        ((20.999999999996, 20.999999999992, 21), "21 ±4e-12"),  # as distinct_1000-1
        ((21 - 7e-15, 21 - 14e-15, 21), "21 ±0"),  # the last place of a number of 21
        ((0.25, 0.25 - 3e-10, 0.25), "0.25 ±3e-10"),
        ((-0.0, np.nan, np.nan), "0 ±?"),
        ((0.012345, np.nan, np.nan), "0.0123 ±?"),
        ((np.nan, np.nan, np.nan), "? ±?"),
    ],
)
def test_numbers_are_shown_to_a_digit_of_their_interval(numbers, shown):
    assert with_margin(Estimate(*map(float, numbers), 0.1)) == shown


# --- tables -----------------------------------------------------------------------

ROWS = ["BLEU-4", "MS-Jaccard-4"]
CELLS = [("7.22e-06 ±1.2e-07", "*"), ("-0.3123 ±0.0081", "")]


@given(st.text(max_size=20))
def test_any_name_stays_in_its_cell(name):
    columns = {name: CELLS}
    assert printable(name).isprintable()
    assert len(plain_table(ROWS, columns, 90).split("\n")) == 3
    assert len(markdown_table(ROWS, columns).split("\n")) == 4
    heads = markdown_table(ROWS, columns).split("\n")[0]
    assert heads.replace("\\\\", "").replace("\\|", "").count("|") == 3
    assert len(latex_table(ROWS, columns).split("\n")) == 8
    (row,) = csv.reader(io.StringIO(csv_table([[name, 1.5]])))
    assert row[1] == "1.5"


def test_markdown_and_latex_can_be_pasted():
    names = {"a_b|c*": (0.3, 0.29, 0.31), r"5\{}$&#_%~^": (2e-4, 1e-4, 3e-4)}
    report = hand_made("CR-1", **names, none=(0.9, np.nan, np.nan))
    heads, _, row, *_ = report.to_markdown().splitlines()
    assert heads == r"|  | a\_b\|c\* | 5\\{}\$\&\#\_%\~^ | none |"
    assert row == "| CR-1 | **0.300** ±0.010 | 2.0e-04 ±1.0e-04 | 0.9 ±? |"
    lines = report.to_latex().splitlines()
    other = r"5\textbackslash{}\{\}\$\&\#\_\%\textasciitilde{}\textasciicircum{}"
    assert rf" & a\_b|c* & {other} & none \\" in lines
    cells = r"$\mathbf{0.300} \pm 0.010$", r"$2.0 \cdot 10^{-4} \pm 1.0 \cdot 10^{-4}$"
    assert rf"CR-1 & {cells[0]} & {cells[1]} & $0.9 \pm ?$ \\" in lines


# --- planes and page --------------------------------------------------------------


def test_a_report_is_drawn_with_its_intervals(found):
    for figure, n in ((found.plot(), 2), (found.plot(1), 1)):
        names = (("CR", "NRR"), ("BLEU", "Self-BLEU"))
        for ax, (quality, diversity) in zip(figure.axes, names, strict=True):
            assert ax.get_xlabel() == f"quality, {quality}-{n}"
            for name, drawn in zip(found, ax.containers, strict=True):
                assert drawn.get_label() == name
                x, y = found[name][f"{quality}-{n}"], found[name][f"{diversity}-{n}"]
                data, _, bars = drawn
                assert data.get_xydata().tolist() == [[x.value, y.value]]
                for axis, (bar, i) in enumerate(zip(bars, (x, y), strict=True)):
                    ends = bar.get_segments()[0].reshape(-1, 2)[:, axis]
                    told = [] if np.isnan(i.low) else [i.low, i.high]
                    np.testing.assert_allclose(ends, told, rtol=1e-12)
        bottom, top = figure.axes[1].get_ylim()
        assert bottom > top  # less Self-BLEU is up
        plt.close(figure)


def test_the_page_needs_no_other_file_and_shows_what_looks_like_markup(found):
    name = "<script>alert(1)</script>&"
    tables = "scores", "sizes", "empty", "left_out", "real_left_out"
    given = {x: {name: y["model"]} for x in tables for y in [getattr(found, x)]}
    renamed = replace(found, **given, warnings=("two < three",))
    page = renamed.to_html()
    assert page == renamed.to_html()
    for said in ("two < three", name, "References: 60 sentences, 0 empty"):
        assert escape(said) in page
    assert all(f">{metric}<" in page for metric in found.metrics)
    assert not re.search(r"<(script|link|img|iframe)|(href|src)=.(?!#)", page)
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
