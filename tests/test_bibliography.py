"""Every work that a notebook or a docstring cites is in the bibliography."""

import ast
import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def entries():
    """Authors, title, address and year of each work in the bibliography."""
    text = " ".join((ROOT / "docs/bibliography.md").read_text().split())
    found = re.findall(r"\* ([^\[*]+), \[\*(.+?)\*\]\((\S+)\), .+?, (\d{4})\.", text)
    assert len(found) == text.count("* ") - text.count("*Sources* ")
    return found


ENTRIES = entries()


def sources(path):
    """Each work or group of works in a notebook's section Sources."""
    section = path.read_text().partition("\n## Sources\n")[2]  # the last one
    items = re.split(r"\n[*-] |\n\n", "\n" + section.strip())
    return [" ".join(item.split()) for item in items if item.strip()]


NOTEBOOKS = sorted((ROOT / "notebooks/src").glob("*.md"))
SOURCES = [(path.stem, item) for path in NOTEBOOKS for item in sources(path)]


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def references(path):
    """Each work or group of works in the sections References of a module."""
    text = path.read_text()
    # To parse all modules takes long.
    for node in ast.walk(ast.parse(text)) if "References:" in text else ():
        text = (isinstance(node, DOCUMENTED) and ast.get_docstring(node)) or ""
        for section in re.findall(r"^References:\n((?:    .*\n?)+)", text, re.M):
            yield from " ".join(section.split()).split("; ")


FOLDERS = ROOT / "qdtheory", ROOT / "notebooks/lab"
MODULES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))
REFERENCES = [(path.stem, item) for path in MODULES for item in references(path)]


def surnames(text):
    """Capitalised words, without their accents."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return {word for word in re.findall(r"[^\W\d_]{2,}", plain) if word[0].isupper()}


def matches(entry, item):
    """Is the work cited in the item: by its year and a name, or by its title?"""
    authors, title, _, year = entry
    named = surnames(authors) & surnames(item)
    return bool(named) and (year in YEAR.findall(item) or f"*{title}" in item)


def test_every_notebook_ends_in_its_sources():
    assert {path.stem for path in NOTEBOOKS} == {name for name, _ in SOURCES}


@pytest.mark.parametrize(("notebook", "item"), SOURCES)
def test_every_source_is_in_the_bibliography(notebook, item):
    titles = {title for _, title, *_ in ENTRIES}
    for cited in re.findall(r"\*([^*]+)\*", item):
        cited = cited.rstrip(".")
        assert any(title.startswith(cited) for title in titles), cited
    for year in YEAR.findall(item):
        of_the_year = [entry for entry in ENTRIES if entry[3] == year]
        assert any(matches(entry, item) for entry in of_the_year), (year, item)


def test_every_work_that_a_docstring_cites_is_in_the_bibliography():
    cited = [(*at, year) for at in REFERENCES for year in YEAR.findall(at[1])]
    assert len(cited) > 50
    for module, item, year in cited:
        of_the_year = [entry for entry in ENTRIES if entry[3] == year]
        assert any(matches(entry, item) for entry in of_the_year), (module, item)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry[1])
def test_every_work_of_the_bibliography_is_cited(entry):
    assert any(matches(entry, item) for _, item in SOURCES + REFERENCES)


def test_works_have_addresses_that_last():
    addresses = [address for *_, address, _ in ENTRIES]
    assert len(set(addresses)) == len(addresses)
    lasting = re.compile(
        r"https://(doi\.org/10\.\d{4,5}/\S+|arxiv\.org/abs/\d{4}\.\d{4,5}"
        r"|aclanthology\.org/\S+/|proceedings\.mlr\.press/v\d+/\w+\.html|jmlr\.org/papers/\S+\.html"
        r"|cir\.nii\.ac\.jp/crid/\d+|www\.nltk\.org/book/"
        r"|www\.rti\.org/publication/[\w-]+)"
    )
    assert [address for address in addresses if not lasting.fullmatch(address)] == []
