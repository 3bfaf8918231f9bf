"""The pages' claims, figures, code and boxes are where readers look for them."""

import json

import lecture_figures
import pytest


@pytest.fixture
def lecture(tmp_path):
    """A lecture of two figures, the second its cover."""

    def cell(kind, source, metadata=None, *outputs):
        found = {"cell_type": kind, "source": source, "metadata": metadata or {}}
        return found | ({"outputs": list(outputs)} if kind == "code" else {})

    png = {"data": {"image/png": "aGlnaA==\n", "text/plain": ["<Figure>"]}}
    svg = {"data": {"image/svg+xml": ["<svg>", "</svg>"]}}
    cells = [
        cell("markdown", ["# Draw\n", "\n", "Two figures."]),
        cell("code", "draw()", {}, {"text": "drawn"}, png),
        cell("markdown", "## Again"),
        cell("code", "again()", {"alt": "A line.", "tags": ["cover", "loose"]}, svg),
        cell("markdown", ["It *rises*\n", "(T2.1).\n", "\n", "And so on."]),
    ]
    path = tmp_path / "03_draw.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    return path


def test_a_figure_has_a_number_an_alt_text_and_a_caption(lecture):
    first, second = lecture_figures.figures(lecture)
    assert (first.number, first.kind, first.picture) == ("3.1", "image/png", b"high")
    assert (first.alt, first.caption, first.cover) == ("", "", False)
    assert (second.number, second.anchor) == ("3.2", "figure-3-2")
    assert (second.kind, second.picture) == ("image/svg+xml", b"<svg></svg>")
    assert (second.alt, second.caption) == ("A line.", "It *rises* (T2.1).")


def test_the_cover_is_the_figure_with_the_tag_or_the_first(lecture, monkeypatch):
    monkeypatch.setattr(lecture_figures, "NOTEBOOKS", lecture.parent)
    assert lecture_figures.covers()["03_draw"].number == "3.2"
    lecture.with_stem("04_plain").write_text(lecture.read_text().replace("cover", "x"))
    assert lecture_figures.covers()["04_plain"].number == "4.1"
