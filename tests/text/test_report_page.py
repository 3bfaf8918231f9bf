"""The report as a page: it holds the report's numbers and loads nothing."""

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from qdtheory.text.report_page import report_page


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
    return report_page(found)


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
    tables = found.scores, found.sizes, found.empty
    scores, sizes, empty = ({name: x["model"], "half": x["half"]} for x in tables)
    renamed = replace(found, scores=scores, sizes=sizes, empty=empty)
    page = report_page(replace(renamed, warnings=("two < three",)))
    words = " ".join(Reader(page).words)
    for said in ("two < three", found.legend(), found.methods, *found.pairs):
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
