"""The spine is read in an afternoon, and a figure comes early."""

import subprocess
import sys

import lecture_sizes
import pytest
from notebook_cells import NOTEBOOKS

SIZES = lecture_sizes.sizes()
SPINE = [*filter(lecture_sizes.is_spine, SIZES)]


def cell(kind, source, *outputs, tags=()):
    made = {"cell_type": kind, "source": source, "metadata": {"tags": [*tags]}}
    return made | ({"outputs": [*outputs]} if kind == "code" else {})


def test_the_size_of_a_small_lecture():
    cells = [
        cell("markdown", ["# Draw\n", "\n", "One two."]),
        cell("code", "a = 1\n\nb = 2", {"text": ["said\n", "so\n"]}),
        cell("code", "draw()", {"data": {"image/png": "aGlnaA=="}}),
        cell("code", "claim(1)", {"data": {"text/markdown": "**N1.1** it is"}}),
        cell("markdown", "Add.", tags=["proof"]),
    ]
    found = lecture_sizes.size(cells)
    assert found == lecture_sizes.Size(
        words=8,
        code=4,
        printed=2,
        cells=5,
        words_to_figure=4,
        code_to_figure=2,
        minutes=4,
    )
    bare = lecture_sizes.size(cells[:2])
    assert (bare.words_to_figure, bare.code_to_figure) == (4, 2)


def test_the_spine_is_00_to_09_without_detours():
    assert [name[:2] for name in SPINE] == [f"0{n}" for n in range(10)]
    assert all(name[2] == "_" for name in SPINE)


def test_the_spine_is_read_in_an_afternoon():
    words, code, *_ = map(sum, zip(*(SIZES[name] for name in SPINE), strict=True))
    assert words <= 18_000
    assert code <= 1_800


@pytest.mark.parametrize("name", SPINE)
def test_a_lecture_of_the_spine_is_short_and_shows_early(name):
    found = SIZES[name]
    assert found.cells <= 45
    assert found.words_to_figure <= 600
    assert found.code_to_figure <= 60


@pytest.mark.parametrize("name", ["10c", "13", "14", "15", "21"])
def test_a_lecture_beyond_that_was_long_is_so_no_more(name):
    (found,) = (size for full, size in SIZES.items() if full.startswith(f"{name}_"))
    assert found.cells <= 60


def test_the_script_prints_a_row_a_lecture_and_one_for_the_spine():
    script = NOTEBOOKS.parent / "docs/lecture_sizes.py"
    said = subprocess.check_output([sys.executable, script], text=True)
    rows = said.splitlines()
    assert len(rows) == len(SIZES) + 2
    assert rows[-1].startswith("the spine ")
