"""What notebooks and pages claim is shown by tests, and what they cite is listed."""

import ast
import re
import unicodedata
from collections import Counter, defaultdict
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

import claim_links
import coverage_page as page
import nbformat
import pytest
import theorem_graph
from processes import ROOT
from scripts import frame, published, rows_of

LIBRARY = [p for f in ("qdtheory", "notebooks/lab") for p in ROOT.glob(f"{f}/**/*.py")]

# A claim's line begins with its id: a word, a number, a dot, a number.
LINKED = re.compile(r"\[([^\]]*)\]\(\.\./notebooks/(\w+)\.ipynb\)")
ID = re.compile(r"\b[A-Z][A-Za-z]*\d+\.\d+\b")
PRINTED_ID = re.compile(r"^([A-Z][A-Za-z]*\d+\.\d+)(?=\s)", re.MULTILINE)
NAMING = re.compile(r"^Claims: (.+)\.$", re.MULTILINE)
# Of the tables that the papers publish.
NOT_OF_THE_LIBRARY = {"E13.1", "E13.4", "E13.5"}
# What reads a committed table, and what makes numbers anew besides the library.
READING = {"rows_of", "read", "frame", "published", "column_of"}
COMPUTING = {"default_rng", "load"}


class Mark(NamedTuple):
    """A test of a claim; whether it says that it only recounts a table, and does."""

    claim: str
    test: str
    text: str
    says: bool
    does: bool


def claims(path):
    """(id, source of its cell) of every claim that a notebook prints."""
    for cell in nbformat.read(path, as_version=4).cells:
        printed = "\n".join(map(page.text_of, cell.get("outputs", [])))
        for claim in dict.fromkeys(PRINTED_ID.findall(printed)):
            yield claim, cell.source


def names_in(node):
    """The names in a piece of code, fixtures among them."""
    kinds = "id", "attr", "arg"
    found = {getattr(part, kind, None) for part in ast.walk(node) for kind in kinds}
    return found - {None}


def reach(tree):
    """What each function or variable of a module uses, itself or through others."""
    uses = {}
    for node in tree.body:
        defined = names_in(ast.Tuple(getattr(node, "targets", [])))
        for name in {*defined, getattr(node, "name", None)}:
            uses[name] = names_in(node)
    for _ in range(5):  # no test goes through more
        uses = {
            name: found.union(*(uses.get(other, ()) for other in found))
            for name, found in uses.items()
        }
    return uses


@cache
def module(file):
    """The text of a file of tests, what its functions use, its names of the library."""
    text = (ROOT / file).read_text()
    tree = ast.parse(text)
    library = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
        if re.match("qdtheory|lab", getattr(node, "module", None) or name.name)
    }
    return text, reach(tree), library


def marked():
    """Every test's `pytest.mark.claim(...)`."""
    for claim, tests in theorem_graph.tests().items():
        for test in tests:
            text, uses, library = module(test.file)
            used = uses[test.name]
            does = used & READING and not used & (library | COMPUTING)
            yield Mark(claim, test.name, text, test.recounts, bool(does))


def documented():
    """Every docstring of the library and the lab: its file, whose it is, the text."""
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef
    for path in LIBRARY:
        text = path.read_text()
        if re.search("Claims:|References:", text):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, kinds) and (said := ast.get_docstring(node)):
                    yield path, getattr(node, "name", path.stem), said


NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
CLAIMS = [claim for path in NOTEBOOKS for claim in claims(path)]
IDS = [claim for claim, _ in CLAIMS]
MARKED = list(marked())
DOCUMENTED = list(documented())


def named():
    """The ids in the line `Claims: ...` of a docstring, each with what it documents."""
    for path, name, said in DOCUMENTED:
        lines = NAMING.findall(said)
        assert len(lines) == said.count("Claims:") <= 1, (path, name)
        for claim in lines[0].split(", ") if lines else []:
            yield claim, name


# --- claims and their tests -----------------------------------------------------


def test_every_claim_is_made_once_asserted_and_has_a_test():
    assert sorted(IDS) == sorted(set(IDS))
    assert set(IDS) == {mark.claim for mark in MARKED}
    bare = [id for id, cell in CLAIMS if not re.search(r"^\s*assert\b", cell, re.M)]
    assert bare == []
    assert all(map(claim_links.sentence, page.claims()))


def test_a_test_that_only_recounts_a_table_says_so():
    """Else `recount=True` is missing, or wrong."""
    assert [m.test for m in MARKED if m.says != m.does] == []
    anew = {mark.claim for mark in MARKED if not mark.says}
    hundreds = len(IDS) // 100 * 100  # a new claim need not change the pages
    said = f"{len(set(IDS) - anew)} of more than {hundreds} claims"
    pages = "notebooks/src/00_map", "paper/paper", "paper/jose", "README", "docs/index"
    for name in pages:
        assert said in " ".join((ROOT / f"{name}.md").read_text().split()), name


def test_what_a_claim_is_about_names_it_and_is_known_to_its_tests():
    """Every theorem, lemma and slip is named by what it is about."""
    about, tests = list(named()), defaultdict(str)
    wanted = {claim for claim in IDS if claim[0] in "TLE"} - NOT_OF_THE_LIBRARY
    assert wanted - {claim for claim, _ in about} == set()
    for mark in MARKED:
        tests[mark.claim] += mark.text
    assert [
        (claim, name)
        for claim, name in about
        if not re.search(rf"\b{name}\b", tests[claim])
    ] == []


LINKS = "errata", "what_to_report", "which_decoder", "teaching", "summary", "questions"


@pytest.mark.parametrize("name", LINKS)
def test_every_claim_of_a_page_is_printed_by_the_notebook_it_links(name):
    text = (ROOT / f"docs/{name}.md").read_text()
    found = LINKED.findall(text)
    linked = [(id, book) for ids, book in found for id in ID.findall(ids)]
    assert len(linked) >= 14
    # The site, built without a warning, has an id outside of a link in a notebook.
    assert [(id, book) for id, book in linked if page.claims()[id][0] != book] == []


# What the first page says of a claim, and what the claim prints, if it is not the same.
NUMBERS = {
    "some model scores higher than real text in both; 6 are safe": (
        *("N14.1", "6 pairs compatible, 192 not"),
    ),
    "some model beats the real distribution itself in both": (
        *("N8.11", "at its Self-BLEU-2 the best model found has 0.0334 more"),
    ),
    "20.6, 20.5 and 19.4, real text 25.1": ("N10.42", "20.6, 20.5 and 19.4"),
}


def test_the_first_page_says_what_the_claims_print():
    text = " ".join((ROOT / "docs/index.md").read_text().split())
    for here, (claim, there) in NUMBERS.items():
        assert f"({claim})" in text.partition(here)[2][:200]
        assert there in " ".join(page.claims()[claim][1])


PAIR = re.compile(r"(\S+) with ([^ ,]+)(?:, (one|two) references?| of ten texts)?")


def test_the_summary_says_of_pairs_what_the_compatibility_matrix_does():
    keys = ("quality", "references", "diversity", "self_references")
    rows = (r for r in rows_of("compatibility_matrix.csv") if float(r["sigma"]) == 1)
    matrix = {tuple(row[key] for key in keys): row for row in rows}
    summary = (ROOT / "docs/summary.md").read_text()
    for title, verdict in (("Not compatible", "incompatible"), ("Compatible",) * 2):
        table = re.search(rf"\| {title} \|.*\n\|---\|---\|\n((?:\|.*\n)+)", summary)[1]
        pairs = re.findall(r"^\| *(.+?) *\| *(.+?) *\|$", table, re.MULTILINE)
        assert len(pairs) > 1
        for pair, said in pairs:
            for n in ("-1", "-2"):  # a name without "-n" is the same twice
                quality, diversity, number = PAIR.fullmatch(
                    pair.replace("-n", n)
                ).groups(default="")
                number = {"one": "1", "two": "2", "": ""}[number]
                row = matrix[quality, number, diversity, number]
                assert row["verdict"] == verdict.lower()
                two_digits = float(f"{100 * float(row['drate']):.2g}")
                assert verdict == title or float(said.removesuffix(" %")) == two_digits


# --- the items of the papers ----------------------------------------------------

ITEMS = page.rows(page.ITEMS)
OF_PAPERS = [row for row in ITEMS if row["paper"] != page.BEYOND]
# Counted in the papers, appendices included.
NUMBERED = {
    "li2020": "1 Definition 4 Theorem 2 Lemma 6 Equation 7 Figure 2 Table",
    "montahaei2019": "3 Equation 4 Figure 4 Table",
    "semeniuta2018": "2 Equation 6 Figure 2 Table",
    "cifka2018": "2 Equation 4 Figure 3 Table",
}
NUMBER = re.compile(r"(Definition|Theorem|Lemma|Equation|Figure|Table) (\d+)")


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_numbered_item_of_a_paper_has_a_row(paper):
    rows = [row["item"] for row in OF_PAPERS if row["paper"] == paper]
    listed = {(kind, int(n)) for item in rows for kind, n in NUMBER.findall(item)}
    counts = re.findall(r"(\d+) (\w+)", NUMBERED[paper])
    assert listed == {(kind, n + 1) for most, kind in counts for n in range(int(most))}


def test_every_claim_stands_in_a_row_of_a_known_kind_and_no_item_twice():
    count = Counter((row["paper"], row["item"]) for row in OF_PAPERS)
    assert max(count.values()) == 1
    assert {row["paper"] for row in ITEMS} == {*page.PAPERS, page.BEYOND}
    assert all(row["says"] for row in ITEMS)
    assert all(None not in row for row in ITEMS), "quote a cell that holds a comma"
    listed = {claim for row in ITEMS for claim in page.ids(row["claims"])}
    assert set(page.claims()) - listed == set(), "add them to docs/coverage.csv"
    assert listed - set(page.claims()) == set(), "no notebook prints them"
    for part in (part for row in ITEMS for part in page.parts(row["claims"])):
        assert len({page.claims()[claim][0] for claim in page.ids(part)}) == 1, part


def test_every_row_of_a_paper_has_a_place_a_size_and_words_that_the_page_explains():
    page_text = " ".join((page.DOCS / "your_paper.md").read_text().split())
    known = {x.lower() for x in re.findall(r"\*([A-Z][a-z ]+)\*", page_text)}
    for row in OF_PAPERS:
        assert re.match(r"Abstract;|Append\w+ [A-G]|[A-Z][a-z]+ \d", row["place"])
        assert {row["verdict"], row["status"]} <= known
        assert (row["verdict"] == "not done") == (row["status"] == "not done")
        assert row["size"] or row["note"], row["item"]


def test_the_sizes_of_table_2_are_those_of_the_tables():
    t = frame("table2.csv").query("source == 'resample' and length == 'same'")
    means = t.groupby(["corpus", "pair", "order"]).qdisc.mean()
    for row in (row for row in OF_PAPERS if re.match("Table 2.*(BS|CN)-", row["item"])):
        pair, n, other = re.search(r"(..)-(\d), (\w+)$", row["item"]).groups()
        ours, theirs = re.findall(r"(?:QDisc|printed of \S+) ([\d.e-]*\d)", row["size"])
        mean = means["COCO" if other == "MSCOCO" else "reviews", pair, int(n)]
        assert float(ours) == pytest.approx(mean, rel=0.02)
        paper = row["published"].partition(":")[0]
        assert float(theirs) == published(paper, "2", f"{pair}-{n}", f"{other} QDisc")


OURS = re.compile("ower bound|of our own")
SIZE = re.compile(r"\d+ texts|\bof \d+\b|\d+ outcomes")
# What a row of a status, or of any other, must not be.
WRONG = {
    "not done": lambda row: row["claims"] or not row["note"],
    "shown beside": lambda row: not row["claims"] or not row["published"],
    "in a small world": lambda row: not row["claims"] or not SIZE.search(row["note"]),
    "timed": lambda row: row["claims"] or "benchmarks/" not in row["note"],
    "exact": lambda row: not row["claims"] or OURS.search(row["note"]),
}


def test_what_is_done_has_a_claim_and_what_is_not_a_reason():
    for row in OF_PAPERS:
        wrong = WRONG.get(row["status"], lambda row: not row["claims"])
        assert not wrong(row), row["item"]


def test_every_selector_finds_published_values_and_every_table_is_shown():
    values = [":".join(list(r.values())[:4]) for r in page.rows(page.PUBLISHED)]
    for row in OF_PAPERS:
        for selector in page.parts(row["published"]):
            assert any(fnmatchcase(value, selector) for value in values), selector
    tables = {value.rsplit(":", 2)[0] for value in values}
    shown = " ".join(row["published"] for row in OF_PAPERS)
    assert [table for table in tables if f"{table}:" not in shown] == []


# --- the works that are cited ---------------------------------------------------

YEAR = re.compile(r"\b(?:19|20)\d\d\b")
WORK = re.compile(r"\* ([^\[*]+), \[\*(.+?)\*\]\((\S+)\), .+?, (\d{4})\.")


def sources():
    """Each work or group of works in a notebook's section Sources."""
    for path in sorted(ROOT.glob("notebooks/src/*.md")):
        section = path.read_text().partition("\n## Sources\n")[2]  # the last one
        items = re.split(r"\n[*-] |\n\n", f"\n{section.strip()}")
        assert any(map(str.strip, items)), f"{path.stem} ends without its sources"
        yield from ((path.stem, " ".join(x.split())) for x in items if x.strip())


def references():
    """Each work or group of works in the sections References of a docstring."""
    for path, _, said in DOCUMENTED:
        for section in re.findall(r"^References:\n((?:    .*\n?)+)", said, re.M):
            for item in " ".join(section.split()).split("; "):
                yield path.stem, item


def surnames(text):
    """Capitalised words, without their accents."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return {word for word in re.findall(r"[^\W\d_]{2,}", plain) if word[0].isupper()}


def matches(work, item):
    """Is the work cited in the item: by its year and a name, or by its title?"""
    authors, title, _, year = work
    named = surnames(authors) & surnames(item)
    return bool(named) and (year in YEAR.findall(item) or f"*{title}" in item)


def test_every_work_that_is_cited_is_in_the_bibliography_and_every_one_there_is_cited():
    text = " ".join((ROOT / "docs/bibliography.md").read_text().split())
    works = WORK.findall(text)
    assert len(works) == text.count("* ") - text.count("*Sources* ")
    cited = [*sources(), *references()]
    assert len(cited) > 50
    for place, item in cited:
        for year in YEAR.findall(item):
            of_the_year = [work for work in works if work[3] == year]
            assert any(matches(work, item) for work in of_the_year), (place, year, item)
    for work in works:
        assert any(matches(work, item) for _, item in cited), work
    addresses = [address for *_, address, _ in works]
    assert len(set(addresses)) == len(addresses)
    assert all(address.startswith("https://") for address in addresses)
