"""A downloaded notebook runs where nothing else of the repository is."""

import re
import zipfile

import downloads
import nbformat
import notebook_cells
import pytest
from processes import python

LECTURES = notebook_cells.lectures()
# Cheap, and it reads several tables and a module.
RUN = "12b_samples_of_any_size"


@pytest.mark.parametrize("notebook", LECTURES, ids=lambda path: path.stem)
def test_an_archive_holds_what_the_cells_name(notebook, tmp_path):
    downloads.pack(notebook, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = {name.partition("/")[2] for name in archive.namelist()}
        text = archive.read(f"{notebook.stem}/README.txt").decode()
    assert {notebook.name, "README.txt"} <= names
    assert f"jupyter lab {notebook.name}" in text
    cells = nbformat.read(notebook, 4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    tables = {path.name for path in (downloads.NOTEBOOKS / "data").iterdir()}
    # However a cell writes it, a table's name is not found by chance.
    named = {name for name in tables if re.search(rf"\b{re.escape(name)}\b", code)}
    modules = {f"{m}.py" for m in re.findall(r"from data\.(\w+)", code)}
    assert names - {notebook.name, "README.txt"} == {
        f"data/{name}" for name in named | modules
    }


def test_two_archives_are_the_same_bytes(tmp_path):
    for name in ("one.zip", "two.zip"):
        downloads.pack(LECTURES[8], tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


@pytest.mark.slow
def test_a_downloaded_notebook_runs_alone(tmp_path):
    notebook = notebook_cells.lecture(RUN)
    downloads.pack(notebook, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path)
    cells = nbformat.read(tmp_path / RUN / notebook.name, 4).cells
    code = "\n\n".join(cell.source for cell in cells if cell.cell_type == "code")
    (tmp_path / RUN / "cells.py").write_text(code)
    assert "N12.25" in python("cells.py", cwd=tmp_path / RUN, MPLBACKEND="agg")
