"""The notebook builder tells a changed number, figure or source from rounding."""

import base64
import copy
import io
import os
import subprocess
import sys

import build
import freshness
import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

SOURCE = """\
---
kernelspec:
  display_name: Python 3 (ipykernel)
  name: python3
---

# Count

Set up, count, draw.

```{code-cell} ipython3
:tags: [setup]

import os

import matplotlib.pyplot as plt
from ipywidgets import IntSlider
```

```{code-cell} ipython3
print(f"T1.1  third = {1 / 3:.6g} of 46656 texts, residual {1e-16:.1e}")
```

```{code-cell} ipython3
:alt: 'A line from corner to corner: it rises.'
:tags: [loose, cover]

fig, ax = plt.subplots(figsize=(1, 1))
line = ax.plot([0, 1])
display(IntSlider())
```

+++ {"tags": ["exercise"]}

What is two and two?

```{code-cell} ipython3
:tags: [stub]

answer = ...
```

```{code-cell} ipython3
:tags: [solution]

answer = 4
print(answer, "third" in globals())
```
"""


def run(folder, *arguments):
    return build.main(list(arguments), folder)


def write_source(folder, text, name="01_count"):
    folder.joinpath("src").mkdir(exist_ok=True)
    folder.joinpath("src", f"{name}.md").write_text(text)


def code(*cells):
    return "\n\n".join(f"```{{code-cell}}\n{cell}\n```" for cell in cells)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with one source and its two notebooks, executed once."""
    folder = tmp_path_factory.mktemp("project") / "notebooks"
    folder.mkdir()
    write_source(folder, SOURCE)
    assert run(folder) == 0
    return folder


@pytest.fixture
def book(built):
    return nbformat.read(built / "01_count.ipynb", as_version=4)


def test_the_readers_notebook_has_no_solution_and_no_fact_of_the_machine(book):
    assert [c.metadata.get("tags") for c in book.cells] == [
        None,
        ["setup"],
        None,
        ["cover", "loose"],
        ["exercise"],
        ["stub"],
    ]
    assert [c.id for c in book.cells] == [f"cell-{n}" for n in range(1, 7)]
    assert book.metadata == build.METADATA
    assert book.cells[2].outputs[0].text == (
        "T1.1  third = 0.333333 of 46656 texts, residual 1.0e-16\n"
    )


def test_a_figure_keeps_what_is_said_of_it(book):
    said = "A line from corner to corner: it rises."
    assert [c.metadata.get("alt") for c in book.cells] == [
        *[None] * 3,
        said,
        *[None] * 2,
    ]
    other = edited(book, 4, metadata=book.cells[3].metadata | {"alt": "A line."})
    assert build.differences(book, other) == [
        f"cell 4: alt '{said}' committed, now 'A line.'"
    ]
    assert build.content(book) != build.content(other)


def test_the_view_of_a_widget_is_left_out(book):
    assert [[*output.data] for output in book.cells[3].outputs] == [
        ["image/png", "text/plain"]
    ]


def test_solutions_execute_the_setup_and_the_exercises_only(built):
    solved = nbformat.read(built / "solutions" / "01_count.ipynb", as_version=4)
    assert [c.metadata.get("tags") for c in solved.cells] == [
        None,
        ["setup"],
        ["exercise"],
        ["solution"],
    ]
    assert solved.cells[0].source.startswith("# Solutions: Count\n")
    assert "(../01_count.ipynb)" in solved.cells[0].source
    assert solved.cells[-1].outputs[0].text == "4 False\n"


def test_a_source_without_solutions_yields_no_solution_notebook(tmp_path):
    write_source(tmp_path, "# Nothing to solve")
    (source,) = tmp_path.glob("src/*.md")
    assert list(build.notebooks(source, tmp_path)) == [tmp_path / "01_count.ipynb"]


def test_rounding_leaves_the_file_untouched(built, capsys):
    path = built / "01_count.ipynb"
    committed = path.read_text().replace("0.333333", "0.333334")
    committed = committed.replace("1.0e-16", "3.9e-17")
    path.write_text(committed)
    assert run(built) == 0
    assert path.read_text() == committed
    assert capsys.readouterr().out.count("unchanged") == 2


@pytest.mark.slow
def test_check_names_the_falsified_cell_and_build_repairs_it(built, capsys):
    path = built / "01_count.ipynb"
    honest = path.read_text()
    falsified = honest.replace("0.33333", "0.33433")
    path.write_text(falsified)
    assert run(built, "--check") == 1
    assert path.read_text() == falsified
    assert "cell 3: number 0.33433" in capsys.readouterr().out
    assert run(built, "src/01_count.md") == 0
    assert "0.333333" in path.read_text()
    assert run(built, "--check", "01_count") == 0


def edited(book, number, **changes):
    copied = copy.deepcopy(book)
    copied.cells[number - 1].update(changes)
    return copied


@pytest.mark.parametrize("number", [1, 3])
def test_an_edited_source_is_a_difference(book, number):
    other = edited(book, number, source=book.cells[number - 1].source + " ")
    (found,) = build.differences(book, other)
    assert found.startswith(f"cell {number}: source")


def test_an_edited_tag_an_extra_cell_and_a_lost_output_are_differences(book):
    other = edited(book, 2, metadata={"tags": ["setup", "loose"]})
    assert build.differences(book, other) == [
        "cell 2: tags ['setup'] committed, now ['loose', 'setup']"
    ]
    longer = copy.deepcopy(book)
    longer.cells.append(new_code_cell("1 + 1"))
    assert build.differences(book, longer) == ["6 cells committed, now 7"]
    silent = edited(book, 3, outputs=[])
    assert build.differences(book, silent) == [
        "cell 3: outputs ['stream'] committed, now []"
    ]


def png(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="png")
    return base64.b64encode(buffer.getvalue()).decode()


WHITE = np.full((40, 50, 3), 255, dtype=np.uint8)


def marked(count, level):
    pixels = WHITE.copy()
    pixels.reshape(-1, 3)[:count] = level
    return pixels


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (marked(2, 0), None),  # 1 pixel in 1,000 of 2,000
        (marked(3, 0), "figure with 0.15% of its pixels changed"),
        (marked(2000, 255 - 32), None),
        (marked(2000, 255 - 33), "figure with 100.00% of its pixels changed"),
        (marked(3, (255, 0, 255)), "figure with 0.15% of its pixels changed"),
        (WHITE[:-1], "figure of (50, 40) pixels committed, now (50, 39)"),
    ],
)
def test_figures_agree_up_to_a_few_pixels(pixels, message):
    assert build.image_difference(png(WHITE), png(pixels), build.PIXELS) == message


def with_figure(pixels, tags):
    output = new_output("display_data", {"image/png": png(pixels)})
    return new_code_cell("draw()", outputs=[output], metadata={"tags": tags})


@pytest.mark.parametrize(
    ("count", "same", "same_if_loose"),
    [(2, True, True), (3, False, True), (60, False, True), (61, False, False)],
)
def test_figures_of_loose_cells_may_drift(count, same, same_if_loose):
    for tags, expected in (([], same), (["loose"], same_if_loose)):
        cells = with_figure(WHITE, tags), with_figure(marked(count, 0), tags)
        assert (build.cell_difference(*cells) is None) is expected


def svg(x, words="0.5", name="p0123456789"):
    return f'<path id="{name}" d="M 1 2 L {x} 3"/><use href="#{name}"/><t>{words}</t>'


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (svg(10.0), None),
        (svg(10.5), None),
        (svg(10.51), "figure with points 0.51 pixels off"),
        (svg(10.0, name="p9876543210"), None),  # made of a coordinate's last digits
        (svg(10.0, words="half"), "figure of other marks or words"),
        (svg(10.0) + "<path/>", "figure of other marks or words"),
    ],
)
def test_drawings_agree_up_to_half_a_pixel(new, message):
    assert build.drawing_difference(svg(10.0), new, build.SHIFT) == message
    cells = [
        new_code_cell("draw()", outputs=[new_output("display_data", {build.SVG: text})])
        for text in (svg(10.0), new)
    ]
    assert build.cell_difference(*cells) == message


@pytest.mark.parametrize(
    ("size", "loose", "kept"),
    [
        (build.LARGEST_DRAWING, False, build.SVG),
        (build.LARGEST_DRAWING + 1, False, "image/png"),
        (10, True, "image/png"),
    ],
)
def test_a_small_drawing_is_kept_and_a_large_one_becomes_pixels(size, loose, kept):
    data = {"image/png": png(WHITE), build.SVG: "x" * size}
    build.keep_one_picture(data, loose=loose)
    assert [*data] == [kept]


def test_a_kept_drawing_is_in_hundredths_of_a_pixel():
    assert build.rounded("M 1.23456 7.005 12 0.5") == "M 1.23 7.00 12 0.5"


def test_a_swapped_figure_is_a_difference(book):
    output = new_output("display_data", copy.deepcopy(book.cells[3].outputs[0].data))
    output.data["image/png"] = png(WHITE)
    (found,) = build.differences(book, edited(book, 4, outputs=[output]))
    assert found.startswith("cell 4: figure")


@pytest.mark.parametrize(
    ("old", "new", "same", "same_if_loose"),
    [
        ("x = 1.00000", "x = 1.00009", True, True),
        ("x = 1.00000", "x = 1.00011", False, True),
        ("x = 1.00000", "x = 1.0101", False, True),
        ("x = 1.00000", "x = 1.0202", False, False),
        ("gap 2.2e-16", "gap -9.9e-9", True, True),
        ("gap 2.2e-16", "gap 1.1e-8", False, False),
        ("0 of them", "2.2e-16 of them", True, True),
        ("gap 3.1e-07 <= 1e-6", "gap 9.9e-07 <= 1e-6", True, True),
        ("gap 0.0e+00 <= 1e-6", "gap 9.9e-07 <= 1e-6", True, True),
        ("gap 3.1e-07 <= 1e-6", "gap 1.1e-06 <= 1e-6", False, False),
        ("gap 3.1e-07 <= 1e-6", "gap 3.1e-07 <= 1e-5", False, False),
        ("U 0.31 <= 0.32", "U 0.30 <= 0.32", False, False),
        ("46656 texts", "46657 texts", False, True),
        ("46656 texts.", "46657 texts.", False, True),
        ("3 texts", "4 texts", False, False),
        ("[1. 2.]", "[1. 2.00001]", True, True),
        ("a   1.5\n", "a 1.5", True, True),
        ("T2.1 holds", "T2.2 holds", False, False),
        ("key 3f2a", "key 3f2b", False, False),
        ("key 12e4a", "key 13e4a", False, False),
        ("1.5 1.5", "1.5", False, False),
        ("nan", "1.0", False, False),
        ("yes", "no", False, False),
    ],
)
def test_words_are_compared_exactly_and_numbers_nearly(old, new, same, same_if_loose):
    for tag, expected in (("exact", same), ("loose", same_if_loose)):
        outputs = [[new_output("stream", text=text)] for text in (old, new)]
        cells = [
            new_code_cell("x", outputs=output, metadata={"tags": [tag]})
            for output in outputs
        ]
        books = [new_notebook(cells=[cell]) for cell in cells]
        assert (build.differences(*books) == []) is expected


@pytest.mark.parametrize(
    ("cells", "messages"),
    [
        (
            ["import warnings", "warnings.warn('old')"],
            ["cell 2 wrote to stderr", "old"],
        ),
        (
            ["x = 2", "# T9.9\nassert x == 3, 'x is 2'"],
            ["AssertionError", "x is 2", "# T9.9"],
        ),
        (["import os", "os._exit(1)"], ["died"]),
        ([":tags: [raises-exception]\n1 / 0"], ["cell 1 raised ZeroDivisionError"]),
    ],
)
def test_a_failing_cell_is_shown_and_nothing_is_written(
    tmp_path, capsys, cells, messages
):
    write_source(tmp_path, code(*cells))
    assert run(tmp_path) == 1
    printed = capsys.readouterr().out
    assert all(message in printed for message in messages)
    assert "\x1b" not in printed
    assert not list(tmp_path.glob("*.ipynb"))


def test_the_kernel_finds_this_interpreters_commands_and_the_notebooks_folder(
    tmp_path,
):
    (tmp_path / "table.csv").write_text("7\n")
    write_source(tmp_path, code("print(open('table.csv').read())\n!jupytext --version"))
    assert run(tmp_path) == 0
    (cell,) = nbformat.read(tmp_path / "01_count.ipynb", as_version=4).cells
    assert cell.outputs[0].text.startswith("7\n\n1.")


@pytest.mark.parametrize(
    ("jaxlib", "old"),
    [
        *[(known, True) for known in ("0.7.0", "0.10.2", "0.11.0", "0.11.0.1")],
        *[(other, False) for other in ("0.11.1", "0.11.1.dev3", "0.12.0.1", "1.0")],
    ],
)
def test_a_flag_is_passed_to_the_versions_that_know_it_only(jaxlib, old):
    flags = build.compiler_flags(jaxlib).split()
    assert ("--xla_cpu_use_fusion_emitters=false" in flags) is old
    assert "--xla_backend_optimization_level=0" in flags


@pytest.mark.parametrize("flags", ["", "--xla_cpu_max_isa=AVX"])
def test_the_readers_own_flags_are_kept(monkeypatch, tmp_path, flags):
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert build.jax_environment(tmp_path)["XLA_FLAGS"] == flags


def test_the_installed_jax_takes_the_flags(monkeypatch, tmp_path):
    monkeypatch.delenv("XLA_FLAGS")
    result = subprocess.run(
        [sys.executable, "-c", "import jax; print(jax.devices('cpu')[0].platform)"],
        env=os.environ | build.jax_environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert result.stdout == "cpu\n", result.stderr


def test_a_notebook_is_fresh_until_a_file_that_it_read_changes(tmp_path, capsys):
    folder = tmp_path / "notebooks"
    for name in ("data", "solutions"):
        (folder / name).mkdir(parents=True)
    table, module, other = (folder / f"data/{n}" for n in ("a.csv", "a.py", "b.py"))
    table.write_text("1\n")
    module.write_text("a = 1\n")
    other.write_text("b = 1\n")
    write_source(folder, code("import sys\nsys.path.append('data')\nimport a"))

    def stale():
        status = run(folder, "--stale")
        return status, capsys.readouterr().out

    assert stale() == (1, f"01_count: {build.UNBUILT}\n")
    assert run(folder) == 0
    capsys.readouterr()
    assert stale() == (0, "")
    other.write_text("b = 2\n")
    assert stale() == (0, "")
    assert run(folder, "--check") == 0
    assert "unchanged" in capsys.readouterr().out  # executed, though fresh
    book, source = folder / "01_count.ipynb", folder / "src/01_count.md"
    for path in (table, module, book):
        old = path.read_text()
        path.write_text(old + "\n")
        assert stale() == (0, "01_count: read what changed since they ran here\n")
        path.unlink()
        if path is not book:
            assert stale() == (0, "01_count: read what changed since they ran here\n")
        path.write_text(old)
        assert stale() == (0, "")
    source.write_text(source.read_text() + "\nMore.\n")
    assert stale() == (1, f"01_count: {build.UNBUILT}\n")


def test_a_run_that_went_wrong_leaves_no_note(tmp_path, capsys):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    write_source(folder, code("x = 1"))
    assert run(folder) == 0
    book = folder / "01_count.ipynb"
    book.write_text(book.read_text().replace("x = 1", "x = 2"))
    assert run(folder, "--check") == 1
    book.write_text(book.read_text().replace("x = 2", "x = 1"))
    capsys.readouterr()
    assert run(folder, "--stale") == 0
    assert capsys.readouterr().out == "01_count: did not run here yet\n"


def test_a_notebook_that_runs_the_command_reads_the_whole_library(tmp_path):
    folder, module = tmp_path / "notebooks", tmp_path / "qdtheory/pairs/base.py"
    for path in (folder, module.parent):
        path.mkdir(parents=True)
    module.write_text("")
    book = folder / "01_count.ipynb"
    for command, read in (("!qdtheory --help", True), ("!jupytext --help", False)):
        book.write_text(command)
        assert (module in freshness.files_read(book, [], folder)) is read
    inside = [module, tmp_path / ".venv/lib/numpy.py", tmp_path.parent / "json.py"]
    book.write_text("")
    read = freshness.files_read(book, map(str, inside), folder)
    assert read & {*inside} == {module}


def test_an_unknown_name_and_a_notebook_without_source_are_named(tmp_path, capsys):
    write_source(tmp_path, "# Only text")
    with pytest.raises(SystemExit):
        run(tmp_path, "02_none")
    assert "no source src/02_none.md; there are: 01_count" in capsys.readouterr().err
    nbformat.write(new_notebook(), tmp_path / "00_old.ipynb")
    assert run(tmp_path) == 1
    assert "00_old.ipynb has no source in src/" in capsys.readouterr().out
