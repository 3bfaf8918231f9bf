"""The coverage page leaves out no item of the papers and no claim of the notebooks."""

import re
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import coverage_page as page
import pytest
from scripts import rows_of

ROOT = Path(__file__).parents[1]
ITEMS = page.rows(page.ITEMS)
OF_PAPERS = [row for row in ITEMS if row["paper"] != page.BEYOND]

# Counted in the papers, appendices included.
NUMBERED = {
    "li2020": {
        "Definition": 1,
        "Theorem": 4,
        "Lemma": 2,
        "Equation": 6,
        "Figure": 7,
        "Table": 2,
    },
    "montahaei2019": {"Equation": 3, "Figure": 4, "Table": 4},
    "semeniuta2018": {"Equation": 2, "Figure": 6, "Table": 2},
    "cifka2018": {"Equation": 2, "Figure": 4, "Table": 3},
}
NUMBER = re.compile(r"(Definition|Theorem|Lemma|Equation|Figure|Table) (\d+)")


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_numbered_item_of_a_paper_has_a_row(paper):
    listed = {
        (kind, int(number))
        for row in OF_PAPERS
        if row["paper"] == paper
        for kind, number in NUMBER.findall(row["item"])
    }
    assert listed == {
        (kind, number)
        for kind, count in NUMBERED[paper].items()
        for number in range(1, count + 1)
    }


def test_no_item_stands_twice():
    count = Counter((row["paper"], row["item"]) for row in OF_PAPERS)
    assert [name for name, times in count.items() if times > 1] == []


def test_every_row_is_of_a_known_kind():
    assert {row["paper"] for row in ITEMS} == {*page.PAPERS, page.BEYOND}
    assert {row["status"] for row in OF_PAPERS} == set(page.STATUSES)
    assert all(row["says"] for row in ITEMS)


def test_every_claim_of_the_notebooks_stands_in_a_row_and_no_other():
    listed = {claim for row in ITEMS for claim in page.ids(row["claims"])}
    assert set(page.claims()) - listed == set(), "add them to docs/coverage.csv"
    assert listed - set(page.claims()) == set(), "no notebook prints them"


def test_what_is_done_has_a_claim_and_what_is_not_a_reason():
    done = [row for row in OF_PAPERS if row["status"] != "not done"]
    left = [row for row in OF_PAPERS if row["status"] == "not done"]
    assert [row["item"] for row in done if not row["claims"]] == []
    assert [row["item"] for row in left if row["claims"] or not row["note"]] == []
    beside = [row for row in done if row["status"] == "shown beside"]
    assert [row["item"] for row in beside if not row["published"]] == []


def test_nothing_that_was_searched_or_done_elsewhere_is_called_exact():
    exact = [row for row in OF_PAPERS if row["status"] == "exact"]
    assert [r["item"] for r in exact if "ower bound" in r["note"]] == []
    assert [r["item"] for r in exact if "of our own" in r["note"]] == []
    # The columns of a table of ours say which pair was searched.
    searched = {
        f"BS-{row['order']}"
        for row in rows_of("table1.csv")
        if row["status"] == "lower_bound"
    }
    table_1 = [row for row in OF_PAPERS if row["item"].startswith("Table 1, BS-")]
    assert len(table_1) == 9
    assert searched == {"BS-1", "BS-2"}
    # What was searched for BS-1 is bounded in another table.
    known = {"BS-1": "certified", "BS-2": "searched", "BS-3": "exact"}
    for row in table_1:
        assert row["status"] == known[row["item"].split(", ")[1]]
    assert all(
        float(row["upper"]) - float(row["lower"]) <= 1e-6
        for row in rows_of("table1_bounds.csv")
    )


def test_a_small_world_says_how_small_it_is():
    small = [row for row in OF_PAPERS if row["status"] == "in a small world"]
    size = re.compile(r"\d+ texts|\bof \d+\b|\d+ outcomes")
    assert [row["item"] for row in small if not size.search(row["note"])] == []


def test_no_number_stands_beside_one_that_a_claim_does_not_give():
    """N22.13 and N22.14 have orders: no NLL, no distinct n-grams, no ratings."""
    orders = {"N22.13", "N22.14"}
    columns = ("NLL", "Unique", "Human", "Self-BLEU4", "FD", "Relevance", "Fluency")
    for row in OF_PAPERS:
        shown = row["published"].rsplit(":", 1)[-1]
        if shown.startswith(columns) and row["claims"]:
            assert set(page.ids(row["claims"])) - orders, row["item"]


def test_a_row_of_a_table_shows_all_its_published_values():
    values = page.rows(page.PUBLISHED)
    for column in ("Forward", "Reverse", "FID"):
        (row,) = (r for r in OF_PAPERS if r["published"] == f"cifka2018:1:*:{column}")
        shown = page.published(row["published"]).split(", ")
        assert len(shown) == sum(
            r["paper"] == "cifka2018" and r["column"] == column for r in values
        )
        assert len(shown) == 15


def test_every_ratio_of_table_2_is_shown():
    """Self-Ratio and Ref-Ratio, ours and both papers', of each corpus."""
    of_table = [r for r in OF_PAPERS if r["paper"] == "li2020" and r["lines"]]
    rows = [r for r in of_table if r["item"].startswith("Table 2")]
    assert len(rows) == 6 * 2 + 4
    for row in rows:
        *_, ratios = (
            page.line("10b_noise_family", path) for path in page.parts(row["lines"])
        )
        published = {
            value.split()[-1] for value in page.published(row["published"]).split(", ")
        }
        assert len(ratios.split()) == 7
        assert len(published & set(ratios.split())) >= 2


def test_a_range_of_claims_lies_in_one_notebook():
    for part in (part for row in ITEMS for part in page.parts(row["claims"])):
        assert len({page.claims()[claim][0] for claim in page.ids(part)}) == 1, part


def test_every_selector_finds_published_values():
    values = [":".join(list(r.values())[:4]) for r in page.rows(page.PUBLISHED)]
    for row in OF_PAPERS:
        for selector in page.parts(row["published"]):
            assert any(fnmatchcase(value, selector) for value in values), selector
    tables = {value.rsplit(":", 2)[0] for value in values}
    shown = " ".join(row["published"] for row in OF_PAPERS)
    assert [table for table in tables if f"{table}:" not in shown] == []


def test_published_values_are_told_apart_by_the_words_they_do_not_share():
    assert page.published("li2020:1:BS-1:sigma=0.5*") == "QDisc 0.01287, DRate (%) 2.55"
    assert page.published("li2020:1:BS-*:sigma=0.5 QDisc").startswith("BS-1 0.01287, ")
    assert page.published("li2020:1:BS-1:sigma=0.5 QDisc") == "0.01287"
    assert page.published("") == ""


def test_a_figure_is_what_the_claim_prints():
    notebook, figures = page.claims()["T2.9"]
    assert notebook == "03b_ends_of_the_frontier"
    assert len(figures) == 1
    assert figures[0].startswith("If all texts are equally likely, the optima ")
    assert [*page.ids("N6.7-N6.9;T2.1")] == ["N6.7", "N6.8", "N6.9", "T2.1"]
    line = page.line("10b_noise_family", "COCO QDisc > CN-2")
    assert line.startswith("CN-2 2.29e-06 ")


def test_the_tables_fill_the_page():
    source = (ROOT / "docs/coverage.md").read_text()
    tables = page.tables()
    places = re.findall(r"<!-- (\w+) -->", source)
    assert sorted(places) == sorted(tables)
    totals = re.findall(r"- (\d+)$", tables["totals"], re.MULTILINE)
    assert int(totals[-1]) == len(OF_PAPERS)
