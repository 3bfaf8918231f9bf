"""The report: its tables, names and rows, and the page that loads nothing."""

import csv
import io
import json
import re
import sys
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

from qdtheory.support.records import Estimate
from qdtheory.text.comparison import LOWER
from qdtheory.text.evaluation import RANGES
from qdtheory.text.report import COLUMNS, Report, with_margin


def test_json(found):
    report = json.loads(found.to_json())
    assert report["references"] == 60
    assert report["candidates"]["half"]["sentences"] == 30
    entry = report["candidates"]["model"]["metrics"]["CND-2"]
    position = found.metrics.index("CND-2")
    assert entry["value"] == found.scores["model"].value[position]
    assert entry["low"] < entry["value"] < entry["high"]
    assert report["warnings"] == list(found.warnings)
    assert report["methods"] == found.methods


# --- what a report looks like -----------------------------------------------------


def test_an_interval_is_found_by_its_names(found):
    position = found.metrics.index("CND-2")
    interval, scores = found["half"]["CND-2"], found.scores["half"]
    for name in ("value", "low", "high", "standard_error"):
        assert type(getattr(interval, name)) is float
        assert getattr(interval, name) == getattr(scores, name)[position]
    assert list(found) == ["model", "half"]
    assert tuple(found["model"]) == found.metrics
    with pytest.raises(KeyError, match=r"no candidate is called 'x'; .* model, half"):
        found["x"]
    with pytest.raises(KeyError, match=r"no metric is called 'BLEU'; .* BLEU-1,"):
        found["model"]["BLEU"]


def test_rows_are_those_of_the_frame_and_of_csv(found):
    frame = found.to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == 2 * len(found.metrics)
    wide = frame.pivot(index="metric", columns="candidate", values="value")
    rows = [*csv.DictReader(io.StringIO(found.to_csv()))]
    assert len(rows) == len(frame)
    for row in rows:
        interval = found[row["candidate"]][row["metric"]]
        for name in ("value", "low", "high", "standard_error"):
            np.testing.assert_equal(float(row[name]), getattr(interval, name))
        assert wide[row["candidate"]][row["metric"]] == interval.value


def test_without_pandas_a_frame_names_what_to_install(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"pandas: pip install pandas$"):
        found.to_frame()


def hand_made(**intervals):
    """A report of one metric from (value, low, high) by candidate, and its marks."""
    scores = {
        name: Estimate(*np.array([*numbers, 0.1])[:, None])
        for name, numbers in intervals.items()
    }
    sizes = dict.fromkeys(scores, 9)
    rests = {name: np.array([x.low, x.high]) for name, x in scores.items()}
    return lambda metric: Report(
        (metric,), scores, sizes, sizes, 9, 0, ("careful",), "so", rests, rests, ()
    )


def marks(report):
    line = report.to_text(200).splitlines()[1]
    return re.findall(r"±\S+(?: ([*=]))?", line)


@pytest.mark.parametrize("kind", RANGES)
def test_the_best_and_what_cannot_be_told_from_it_are_marked(kind):
    report = hand_made(
        low=(0.1, 0.05, 0.15),
        near=(0.18, 0.14, 0.22),
        touching=(0.25, 0.22, 0.28),
        high=(0.3, 0.28, 0.32),
    )
    expected = ["*", "=", "", ""] if kind in LOWER else ["", "", "=", "*"]
    assert marks(report(f"{kind}-2")) == expected


def test_equal_values_are_best_together_and_one_alone_is_not_marked():
    report = hand_made(a=(0.3, 0.3, 0.3), b=(0.3 + 1e-17, 0.2, 0.4), c=(0, 0, 0))
    assert marks(report("CR-1")) == ["*", "*", ""]
    alone = hand_made(a=(0.3, 0.2, 0.4))("CR-1")
    assert marks(alone) == [""]
    assert "the best" not in alone.to_text()
    assert "the best" in report("CR-1").to_text()
    assert "\ncareful\n" in report("CR-1").to_text()


def test_what_has_no_interval_is_neither_best_nor_like_the_best():
    none = (0.9, np.nan, np.nan)
    report = hand_made(none=none, a=(0.3, 0.2, 0.4), b=(0.1, 0, 0.2))("CR-1")
    assert marks(report) == ["", "*", "="]
    assert "?: undetermined" in report.legend()
    assert r"$0.9 \pm ?$" in report.to_latex()
    assert "null" in report.to_json()
    assert marks(hand_made(a=none, b=none)("CR-1")) == ["", ""]


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ((0.31234, 0.30434, 0.32034), "0.312 ±0.008"),
        ((0.31234, 0.29934, 0.32534), "0.312 ±0.013"),
        ((0.98, 0.94, 1), "0.98 ±0.04"),  # clipped above, or below
        ((0.02, 0, 0.06), "0.02 ±0.04"),
        ((-2.3456e-6, -4.3456e-6, -0.3456e-6), "-2e-06 ±2e-06"),
        ((7.2209e-6, 7.1e-6, 7.3418e-6), "7.22e-06 ±1.2e-07"),
        ((1e-20, 0, 1e-20), "0 ±0"),
        ((1, 1, 1), "1 ±0"),
        ((1 / 3, 1 / 3, 1 / 3), "0.3333 ±0"),
        ((-0.0001, -0.3, 0.3), "0.0 ±0.3"),
        ((0, -4e-5, 4e-5), "0 ±4e-05"),
        ((-1.5, -2, 3), "-2 ±4"),
        ((20.999999999996, 20.999999999992, 21), "21 ±4e-12"),  # as distinct_1000-1
        ((21 - 7e-15, 21 - 14e-15, 21), "21 ±0"),  # the last place of a number of 21
        ((1000, 1000 - 9e-13, 1000), "1000 ±0"),
        ((395.25, 394.2, 396.3), "395.2 ±1.1"),
        ((0.25, 0.25 - 3e-10, 0.25), "0.25 ±3e-10"),
        ((-0.0, np.nan, np.nan), "0 ±?"),
        ((0.012345, np.nan, np.nan), "0.0123 ±?"),
        ((np.nan, np.nan, np.nan), "? ±?"),
    ],
)
def test_numbers_arewith_margin_to_a_digit_of_their_interval(numbers, shown):
    assert with_margin(Estimate(*map(float, numbers), 0.1)) == shown


def test_the_table_has_candidates_side_by_side(found):
    lines = found.to_text(80).splitlines()
    assert lines[0].split() == ["model", "half"]
    assert [line.split()[0] for line in lines[1:15]] == list(found.metrics)
    assert str(found) == found.to_text(80)
    assert len(repr(found).splitlines()) == 1


def test_a_report_closes_with_who_is_closer_what_may_not_be_said_and_what_lacks(found):
    """In a terminal, a notebook, JSON and on the page, see there."""
    who, not_said, lacking = found.conclusions
    assert who.startswith("By CND, a constant less 2 CR + NRR: ")
    assert "Better in both BLEU-n and Self-BLEU-n is not closer" in not_said
    assert lacking.startswith("Missing or leaked: intervals of ")
    for shown in (str(found), found.to_text(40)):
        assert " ".join(shown.split()).endswith(" ".join(found.conclusions))
    assert json.loads(found.to_json())["conclusions"] == [*found.conclusions]
    page = found._repr_html_()
    assert page.startswith("<table")
    for text in (*found.conclusions, found.methods):
        assert f"<p>{escape(text)}</p>" in page


def test_markdown_and_latex_can_be_pasted():
    report = hand_made(**{"a_b|c*": (0.3, 0.29, 0.31), "50%&$#": (2e-4, 1e-4, 3e-4)})
    heads, _, row, _, legend = report("CR-1").to_markdown().splitlines()
    assert heads == r"|  | a\_b\|c\* | 50%\&\$\# |"
    assert row == "| CR-1 | **0.300** ±0.010 | 2.0e-04 ±1.0e-04 |"
    assert legend.startswith("Higher is better, but lower for Self-BLEU and CND; ±:")
    comment, *lines = report("CR-1").to_latex().splitlines()
    assert comment == f"% {legend}"
    assert r" & a\_b|c* & 50\%\&\$\# \\" in lines
    assert (
        r"CR-1 & $\mathbf{0.300} \pm 0.010$ & $2.0 \cdot 10^{-4} \pm "
        r"1.0 \cdot 10^{-4}$ \\"
    ) in lines


# --- as a page ---------------------------------------------------------------------


class Reader(HTMLParser):
    """Cells by row, all tags with their attributes, and all words."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.tags, self.words = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.words.append(data)
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def page(found):
    return found.to_html()


def test_the_page_has_the_cells_of_the_table(found, page):
    rows = Reader(page).rows
    assert rows[0] == ["", *found]
    cells = found.cells()
    for i, metric in enumerate(found.metrics):
        shown = [f"{text} {mark}" for text, mark in (cells[name][i] for name in found)]
        # The last row's last cell is followed by the text below the table.
        assert rows[1 + i][0] == metric
        assert rows[1 + i][1:-1] == shown[:-1]
        assert rows[1 + i][-1].startswith(shown[-1])


def test_the_page_says_what_the_report_says_and_shows_what_looks_like_markup(found):
    name = "<script>alert(1)</script>&"
    tables = {
        table: {name: entries["model"], "half": entries["half"]}
        for table in ("scores", "sizes", "empty", "left_out", "real_left_out")
        for entries in [getattr(found, table)]
    }
    renamed = replace(found, **tables)
    page = replace(renamed, warnings=("two < three",)).to_html()
    words = " ".join(Reader(page).words)
    assert name in renamed.conclusions[2]
    for said in ("two < three", found.legend(), found.methods, *renamed.conclusions):
        assert said in words
    assert "References: 60 sentences, 0 empty" in words
    assert "half: 30 sentences, 0 empty" in words
    # The planes' points, by their labels.
    for label in ("quality, CR-", "Self-BLEU-", "half"):
        assert label in words
    assert name in Reader(page).rows[0]
    assert "script" not in {tag for tag, _ in Reader(page).tags}


def test_the_page_needs_no_other_file_and_is_the_same_twice(found, page):
    assert page == found.to_html()
    for tag, attributes in Reader(page).tags:
        assert tag not in ("script", "link", "img", "iframe")
        for name, value in attributes.items():
            if name in ("href", "xlink:href", "src"):
                assert value.startswith("#")
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
    (svg,) = (a for tag, a in Reader(page).tags if tag == "svg")
    assert svg["role"] == "img"
    assert svg["aria-label"].startswith("Candidates in two planes")


def test_without_matplotlib_the_page_names_what_to_install(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"qdtheory\[plot\]"):
        found.to_html()
