"""What the notebooks claim is what the tests show by another route."""

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from coverage_page import claims as printed_claims
from coverage_page import text_of
from processes import ran

TESTS = Path(__file__).parent
NOTEBOOKS = sorted(TESTS.parent.glob("notebooks/*.ipynb"))

# A claim's line begins with its id: a word, a number, a dot, a number.
LINKED = re.compile(r"\[([^\]]*)\]\(\.\./notebooks/(\w+)\.ipynb\)")
ID = re.compile(r"\b[A-Z][A-Za-z]*\d+\.\d+\b")
PRINTED_ID = re.compile(r"^([A-Z][A-Za-z]*\d+\.\d+)(?=\s)", re.MULTILINE)
NAMING = re.compile(r"^Claims: (.+)\.$", re.MULTILINE)
# Of the tables that the papers publish.
NOT_OF_THE_LIBRARY = {"E13.1", "E13.4", "E13.5"}
ASSERTION = re.compile(r"^\s*assert\b", re.MULTILINE)
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
        printed = "\n".join(map(text_of, cell.get("outputs", [])))
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


def marked():
    """Every test's `pytest.mark.claim(...)`."""
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        if "mark.claim(" not in text:  # to parse all files takes long
            continue
        tree = ast.parse(text)
        uses = reach(tree)
        library = {
            name.asname or name.name
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in node.names
            if re.match("qdtheory|lab", getattr(node, "module", None) or name.name)
        }
        for node in tree.body:
            for mark in getattr(node, "decorator_list", []):
                if "mark.claim(" in ast.unparse(mark):
                    used = uses[node.name]
                    does = used & READING and not used & (library | COMPUTING)
                    says = bool(mark.keywords)
                    for claim in map(ast.literal_eval, mark.args):
                        yield Mark(claim, node.name, text, says, bool(does))


def named():
    """The ids in the line `Claims: ...` of a docstring, each with what it documents."""
    folders = TESTS.parent / "qdtheory", TESTS.parent / "notebooks/lab"
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "Claims:" in text else ():
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                doc = ast.get_docstring(node) or ""
                lines = NAMING.findall(doc)
                assert len(lines) == doc.count("Claims:") <= 1, (path, node.name)
                for claim in ", ".join(lines).split(", ") if lines else []:
                    yield claim, node.name


CLAIMS = [claim for path in NOTEBOOKS for claim in claims(path)]
IDS = [claim for claim, _ in CLAIMS]
MARKED = list(marked())
NAMED = list(named())


def test_every_claim_has_a_test_and_every_marked_test_a_claim():
    assert set(IDS) == {mark.claim for mark in MARKED}


def test_a_test_that_only_recounts_a_table_says_so():
    """Else `recount=True` is missing, or wrong."""
    assert [m.test for m in MARKED if m.says != m.does] == []


@pytest.mark.parametrize(
    "page",
    ["notebooks/src/00_map", "paper/paper", "paper/jose", "README", "docs/index"],
)
def test_the_pages_say_how_many_claims_rest_on_a_recount(page):
    anew = {mark.claim for mark in MARKED if not mark.says}
    text = " ".join((TESTS.parent / f"{page}.md").read_text().split())
    hundreds = len(IDS) // 100 * 100  # a new claim need not change the pages
    assert f"{len(set(IDS) - anew)} of more than {hundreds} claims" in text


def test_every_theorem_lemma_and_slip_is_named_by_what_it_is_about():
    about = {claim for claim in IDS if claim[0] in "TLE"} - NOT_OF_THE_LIBRARY
    assert about - {claim for claim, _ in NAMED} == set()


def test_the_tests_of_a_claim_know_what_it_is_about():
    tests = defaultdict(str)
    for mark in MARKED:
        tests[mark.claim] += mark.text
    assert [
        (claim, name)
        for claim, name in NAMED
        if not re.search(rf"\b{name}\b", tests[claim])
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "shown"),
    [("L1.1", " deselected)"), ("T2.99", "no test collected shows a claim T2.99")],
)
def test_the_tests_of_one_claim_are_chosen(claim, shown):
    command = ["-m", "pytest", "--collect-only", "-q", "--claim", claim]
    result = ran(sys.executable, *command)
    assert shown in result.stdout + result.stderr


def test_no_two_cells_claim_the_same():
    assert sorted(IDS) == sorted(set(IDS))


@pytest.mark.parametrize("source", [source for _, source in CLAIMS], ids=IDS)
def test_the_claims_cell_asserts(source):
    assert ASSERTION.search(source)


@pytest.mark.parametrize(
    "page",
    ["errata", "what_to_report", "which_decoder", "teaching", "summary", "questions"],
)
def test_every_claim_of_a_page_is_printed_by_the_notebook_it_links(page):
    text = (TESTS.parent / f"docs/{page}.md").read_text()
    linked = [
        (id, name) for ids, name in LINKED.findall(text) for id in ID.findall(ids)
    ]
    assert len(linked) >= 14
    # The site, built without a warning, has an id outside of a link in a notebook.
    assert [(id, name) for id, name in linked if printed_claims()[id][0] != name] == []
