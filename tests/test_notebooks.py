"""Every notebook is what its source gives today, and small enough to read."""

import ast
import re

import build
import freshness
import pytest
from notebook_cells import cells_of, joined, lectures, source_of
from processes import python

import qdtheory as qd

FOLDER = build.FOLDER
SOURCES = sorted(FOLDER.glob("src/*.md"))
GRADED = r"\d\d[a-z]?\.\d not attempted$"
NOTEBOOKS = sorted([*FOLDER.glob("*.ipynb"), *FOLDER.glob("solutions/*.ipynb")])


@pytest.mark.parametrize("name", [source.stem for source in SOURCES])
def test_notebook_is_fresh(name):
    if found := freshness.changed(name, FOLDER):
        pytest.fail(freshness.told(name, found), pytrace=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", [source.stem for source in SOURCES])
def test_notebook_shows_what_its_source_gives(name):
    python(FOLDER / "build.py", "--check", name)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_names_of_the_library_exist(path):
    """They may have moved within it, which no file that the notebook read tells."""
    code = [source_of(c) for c in cells_of(path) if c["cell_type"] == "code"]
    for node in ast.walk(ast.parse("\n".join(code))):
        match node:
            case ast.ImportFrom(module=module) if module.startswith("qdtheory"):
                exec(ast.unparse(node))
            case ast.Attribute() if re.fullmatch(r"qd(\.\w+)+", ast.unparse(node)):
                eval(ast.unparse(node), {"qd": qd})


@pytest.mark.parametrize("path", lectures(), ids=lambda path: path.stem)
def test_a_lecture_shows_no_log(path):
    """What is printed is the grader's, and no cell ends in a value of no interest."""
    for number, cell in enumerate(cells_of(path)):
        for output in cell.get("outputs", []):
            lines = joined(output.get("text", "")).splitlines()
            assert all(re.match(GRADED, line) for line in lines), (number, lines)
            assert [*output.get("data", [])] != ["text/plain"], number


def test_every_notebook_has_a_source():
    made = {path for source in SOURCES for path in build.notebooks(source, FOLDER)}
    assert set(NOTEBOOKS) == made
    records = {path.stem for path in FOLDER.glob("records/*.json")}
    assert records == {source.stem for source in SOURCES}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_small(path):
    assert path.stat().st_size < 300_000
    for cell in cells_of(path):
        if cell["cell_type"] == "code":
            # The formatter puts blank lines round a function: they do not count.
            lines = [line for line in source_of(cell).splitlines() if line.strip()]
            assert len(lines) <= 15, lines
            assert all(len(line) <= 76 for line in lines), lines
