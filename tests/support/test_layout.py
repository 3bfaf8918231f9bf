"""Answers fit a terminal of any width, with all their words; notebooks escape them."""

from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import qdtheory as qd
from qdtheory.catalogue.metrics import METRICS
from qdtheory.support.layout import (
    fact_lines,
    laid_out,
    number,
    table_lines,
    wrapped,
)

P = np.array([0.5, 0.3, 0.2])
TEXTS = st.text(st.sampled_from("ab 文é\u0301-"), max_size=60)
ROWS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=4)


def letters(*texts):
    return sorted("".join("".join(texts).split()))


@given(TEXTS, st.integers(6, 50), st.sampled_from(["", "  "]))
def test_a_wrapped_text_has_all_its_letters_in_lines_that_fit(text, width, rest):
    lines = wrapped(text, width, rest=rest)
    assert max(map(cell_len, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())
    words = text.split()
    if max(map(cell_len, words), default=0) <= width - len(rest):
        assert [word for line in lines for word in line.split()] == words


@given(ROWS, st.integers(10, 60))
def test_tables_and_facts_fit_and_lose_nothing(rows, width):
    titles = "a", "b", "c"
    lines = table_lines(titles, rows, width)
    if rows:
        assert max(map(cell_len, lines), default=0) <= width
    shown, expected = letters(*lines), letters(*map("".join, rows))
    for letter in {*expected} - {*"abc-"}:
        assert shown.count(letter) == expected.count(letter)
    facts = [(name, value) for name, value, _ in rows]
    lines = fact_lines(facts, width)
    assert max(map(cell_len, lines), default=0) <= width
    kept = [name + value for name, value in facts if value.strip()]
    assert letters(*lines) == letters(*kept)


def test_wide_and_combining_letters_are_measured():
    assert cell_len("模型") == 4
    assert cell_len("e\u0301") == cell_len("é") == 1
    lines = table_lines(("模型", "n"), [("模型甲", "1"), ("ab", "2")], 40)
    assert [line.index(x) for line, x in zip(lines[2:], "12")] == [5, 8]
    rows = [("b", "10", "c")]
    assert table_lines(("a", "n", "d"), rows, 40, numbers=True)[0] == "a   n  d"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (20.999999999996, "21"),
        (1 / 3, "0.333333"),
        (-1.2345e-301, "-1.2345e-301"),
        (10**7, "10000000"),
        (jnp.asarray(0.208), "0.208"),
        (None, ""),
        (P, "0.5 0.3 0.2"),
    ],
)
def test_numbers_are_written_in_one_way(value, shown):
    assert number(value) == shown


# -- what prints itself ---------------------------------------------------------------


class Tags(HTMLParser):
    """Notes what is open at the end."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


ANSWERS = {
    "compatible": lambda: qd.check_compatibility(qd.LL_SE),
    "beaten": lambda: qd.check_compatibility(qd.LL_NRR),
    "at P": lambda: qd.check_compatibility(qd.LL_NRR, np.full(3, 1 / 3)),
    "undecided": lambda: qd.Verdict(None, " ".join(["a reason of many words"] * 9)),
    "discrepancy": lambda: qd.quality_discrepancy(qd.LL_NRR, P),
    "bounds": lambda: qd.certify(qd.LL_NRR, P),
    "metric": lambda: METRICS[3],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_prints_its_whole_reason_and_shows_it_in_a_notebook(name):
    found = ANSWERS[name]()
    title, sentences, facts = found.summary()
    facts = [fact for fact in facts if fact[1]]
    for width in (40, 80, 200):
        text = found.to_text(width)
        assert max(map(cell_len, text.splitlines())) <= width
        assert " ".join(text.split()).startswith(" ".join([title, *sentences]).strip())
        words = " ".join(text.split())
        assert all(" ".join(value.split()) in words for _, value in facts)
    assert str(found) == found.to_text(80)
    assert getattr(found, "reason", "") in " ".join(str(found).split())
    page = Tags(found._repr_html_())
    assert page.open == []
    assert page.text == "".join([title, *sentences, *map("".join, facts)])


def test_the_catalogue_is_a_table_in_a_notebook():
    page = METRICS._repr_html_()
    assert Tags(page).open == []
    assert page.count("<tr>") == 1 + len(METRICS)
    assert page.index("incompatible") > page.index("ROUGE-L")


def test_markup_in_a_name_stays_text():
    found = qd.Verdict(None, "<b>f & g</b>", psi="<script>")
    assert "<script>" not in found._repr_html_()
    assert laid_out(("", [], [("a", "")]), 40) == ""
