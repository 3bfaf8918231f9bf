"""Every notebook is what its source gives today, and small enough to read."""

import subprocess
import sys

import build
import nbformat
import pytest

FOLDER = build.FOLDER
SOURCES = sorted(FOLDER.glob("src/*.md"))
NOTEBOOKS = sorted([*FOLDER.glob("*.ipynb"), *FOLDER.glob("solutions/*.ipynb")])


@pytest.mark.notebook
@pytest.mark.parametrize("name", [source.stem for source in SOURCES])
def test_notebook_is_fresh(name):
    result = subprocess.run(
        [sys.executable, FOLDER / "build.py", "--check", name],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_notebook_has_a_source():
    made = {path for source in SOURCES for path in build.notebooks(source, FOLDER)}
    assert set(NOTEBOOKS) == made


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_small(path):
    assert path.stat().st_size < 300_000
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            # The formatter puts blank lines round a function: they do not count.
            lines = [line for line in cell.source.splitlines() if line.strip()]
            assert len(lines) <= 15, cell.source
            assert all(len(line) <= 76 for line in lines), cell.source
