"""The notebook builder tells a changed number, figure or source from rounding."""

import base64
import copy
import io
import re
import shutil

import build
import freshness
import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image
from processes import python

SOURCE = """\
---
kernelspec:
  display_name: Python 3 (ipykernel)
  name: python3
---

# Count

Set up, count, draw.

**Reading** {minutes} min

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
:notes: Ask how steep it is.
:slide: It rises
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
SAID = "A line from corner to corner: it rises."


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
    said = {"alt": SAID, "notes": "Ask how steep it is.", "slide": "It rises"}
    assert [build.told(c) for c in book.cells] == [{}, {}, {}, said, {}, {}]


def test_the_build_says_how_long_the_words_the_code_and_the_proofs_take(book):
    assert book.cells[0].source.endswith("**Reading** 4 min")  # of four cells of code
    many = [
        {"cell_type": "markdown", "source": ["word " * 200, "word " * 99]},
        {"cell_type": "markdown", "source": "", "tags": ["proof"]},
        {"cell_type": "code", "outputs": [{"data": {"text/markdown": "**N1.1** it"}}]},
    ]
    cells = [{"metadata": {"tags": c.pop("tags", [])}} | c for c in many]
    assert [build.words(cell) for cell in cells] == [299, 0, 2]
    assert build.minutes(cells) == 4  # 301 words, a proof, a cell of code: 3.5
    assert build.minutes(cells[1:]) == 2


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


def test_an_extra_cell_is_a_difference(book):
    longer = copy.deepcopy(book)
    longer.cells.append(new_code_cell("1 + 1"))
    assert build.differences(book, longer) == ["6 cells committed, now 7"]


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
        (svg(10.0, words="half"), "figure that says: committed '0.5', now 'half'"),
        (
            svg(10.0, words="0.5001"),
            "figure that says: number 0.5 committed, now 0.5001",
        ),
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
    drawing = '<path d="M 1.23456 7.005 12 0.5"/><text x="0.1234">0.1234</text>'
    assert build.rounded(drawing) == (
        '<path d="M 1.23 7.00 12 0.5"/><text x="0.12">0.1234</text>'
    )


def swapped(figure):
    return new_output("display_data", figure.data | {"image/png": png(WHITE)})


@pytest.mark.parametrize(
    ("number", "part", "change", "message"),
    [
        (1, "source", lambda old: f"{old} ", "source "),
        (3, "source", lambda old: f"{old} ", "source "),
        (2, "metadata", lambda old: {"tags": ["setup", "loose"]},
         "tags ['setup'] committed, now ['loose', 'setup']"),
        (3, "outputs", lambda old: [], "outputs ['stream'] committed, now []"),
        (4, "metadata", lambda old: old | {"alt": "A line."},
         f"metadata \"{{'alt': '{SAID}', "),
        (4, "outputs", lambda old: [swapped(old[0])], "figure "),
    ],
)  # fmt: skip
def test_an_edited_part_of_a_cell_is_a_difference(book, number, part, change, message):
    other = copy.deepcopy(book)
    other.cells[number - 1][part] = change(other.cells[number - 1][part])
    (found,) = build.differences(book, other)
    assert found.startswith(f"cell {number}: {message}")


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
    program = "import jax; print(jax.devices('cpu')[0].platform)"
    assert python("-c", program, **build.jax_environment(tmp_path)) == "cpu\n"


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A project with a notebook that reads a module and a table, executed once."""
    root = tmp_path_factory.mktemp("executed")
    folder, room = root / "notebooks", root / "qdtheory"
    for place in (folder / "data", room):
        place.mkdir(parents=True)
    for name in ("used", "unused"):
        (room / f"{name}.py").write_text(f'"""The {name}."""\n\nx = "# 1"  # one\n')
        (folder / f"data/{name}.csv").write_text("1\n")
    (room / "__init__.pyi").write_text("")
    imports = "import sys\nsys.path.append('../qdtheory')\nimport used"
    write_source(folder, code(f"{imports}\nopen('data/used.csv').read()"))
    assert run(folder) == 0
    return root


@pytest.fixture
def project(executed, tmp_path):
    """The notebooks' folder of a copy of it."""
    return shutil.copytree(executed, tmp_path / "project") / "notebooks"


BOOK, SOURCE_NAME = "notebooks/01_count.ipynb", "notebooks/src/01_count.md"
READ = "qdtheory/used.py"


@pytest.mark.parametrize(
    ("name", "old", "new", "status"),
    [
        (READ, "# 1", "# 2", 0),
        (READ, "x", "if 1:\n  x", 0),
        ("notebooks/data/used.csv", "1", "2", 0),
        (SOURCE_NAME, "import used", "import used  # here", 1),
        (BOOK, "'1", "'2", 1),
    ],
)
def test_a_changed_file_makes_what_read_it_stale(
    project, capsys, name, old, new, status
):
    path = project.parent / name
    text = path.read_text()
    assert text.count(old) == 1
    capsys.readouterr()
    path.write_text(text.replace(old, new))
    assert run(project, "--stale", "01_count") == status
    said = f"01_count is stale, run `make book`: {name} changed\n"
    assert capsys.readouterr().out == said
    if name != SOURCE_NAME:
        path.unlink()
        assert run(project, "--stale", "01_count") == status
        assert capsys.readouterr().out == said
    path.write_text(text)
    assert run(project, "--stale") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (READ, 'x = "# 1"\n'),
        (READ, '"""Other\n\nwords."""\n# Why.\n\n\nx = "# 1"  # two\n'),
        ("qdtheory/unused.py", "x = 2"),
        ("qdtheory/__init__.pyi", "from used import x as x\n"),
        ("notebooks/data/unused.csv", "2"),
    ],
)
def test_words_and_files_that_were_not_read_may_change(project, capsys, name, text):
    (project.parent / name).write_text(text)
    capsys.readouterr()
    assert run(project, "--stale") == 0
    assert capsys.readouterr().out == ""


def test_only_a_build_that_went_well_is_recorded(project, capsys):
    record, table = freshness.record_of("01_count", project), project / "data/used.csv"
    kept = record.read_bytes()
    table.write_text("2\n")
    assert run(project, "--check") == 1
    assert record.read_bytes() == kept
    table.unlink()
    assert run(project) == 1
    assert record.read_bytes() == kept
    table.write_text("2\n")
    assert run(project) == 0
    assert record.read_bytes() != kept
    record.unlink()
    capsys.readouterr()
    assert run(project, "--stale") == 1
    sources = f"{BOOK}, {SOURCE_NAME}"
    assert capsys.readouterr().out.endswith(f": {sources} changed\n")


def test_a_record_put_together_from_two_builds_is_stale(project):
    record, table = freshness.record_of("01_count", project), project / "data/used.csv"
    table.write_text("1 ")
    text = record.read_text()
    old = re.search(r'used.csv": "(\w+)"', text)[1]
    record.write_text(text.replace(old, freshness.digest(table)))
    assert freshness.changed("01_count", project) == ["notebooks/records/01_count.json"]


def test_code_is_what_is_left_without_docstrings_and_comments():
    module = '''
# Comment
"""Module."""

class A:  # comment
    """Class."""

    text = """no docstring
    # no comment

    """

    def f(self) -> str:  # comment
        """Function,

        at length.
        """
        return f"{self!r:>{len('#')}} # {{}}"  # comment
'''
    assert (
        freshness.code(module)
        == '''\
class A:
    text = """no docstring
    # no comment

    """
    def f(self) -> str:
        return f"{self!r:>{len('#')}} # {{}}"'''
    )


def test_the_lock_may_give_other_reasons():
    lock = [
        b"jax==1 \\\n    --hash=sha256:0\n    # via %s\n" % of for of in (b"a", b"b")
    ]
    digests = {freshness.digest_of(text, ".txt") for text in lock}
    assert len(digests) == 1
    assert freshness.digest_of(lock[0].replace(b"1", b"2"), ".txt") not in digests


def test_a_notebook_that_runs_the_command_reads_the_whole_library(tmp_path):
    folder, module = tmp_path / "notebooks", tmp_path / "qdtheory/pairs.py"
    for path in (folder / "src", module.parent):
        path.mkdir(parents=True)
    module.write_text("")
    source = folder / "src/01_count.md"
    for command, read in (("!qdtheory --help", True), ("!jupytext --help", False)):
        source.write_text(command)
        assert (module in freshness.files_read("01_count", [], folder)) is read
    # Python writes a compiled module under a name of its own, and then renames it.
    compiled = module.parent / "__pycache__/base.cpython-312.pyc"
    half_written = compiled.with_name(f"{compiled.name}.140464558574144")
    outside = tmp_path / ".venv/lib/numpy.py", tmp_path.parent / "json.py"
    paths = [module, module.with_suffix(".pyi"), compiled, half_written, *outside]
    read = freshness.files_read("01_count", map(str, paths), folder)
    assert read & {*paths} == {module}


def test_a_fresh_lecture_from_10_on_is_executed_only_if_all_are(tmp_path, capsys):
    for name in ("09_first", "10_later"):
        write_source(tmp_path, "# Only text", name)

    def executed(*arguments):
        assert run(tmp_path, *arguments) == 0
        printed = capsys.readouterr().out
        assert ("Not executed: 1 lectures" in printed) == ("10_later" not in printed)
        return {name for name in ("09_first", "10_later") if name in printed}

    assert executed() == executed("--all") == {"09_first", "10_later"}
    assert executed() == {"09_first"}
    write_source(tmp_path, "# Another text", "10_later")
    assert executed() == {"09_first", "10_later"}


def test_an_unknown_name_and_a_notebook_without_source_are_named(tmp_path, capsys):
    write_source(tmp_path, "# Only text")
    with pytest.raises(SystemExit):
        run(tmp_path, "02_none")
    assert "no source src/02_none.md; there are: 01_count" in capsys.readouterr().err
    nbformat.write(new_notebook(), tmp_path / "00_old.ipynb")
    assert run(tmp_path) == 1
    assert "00_old.ipynb has no source in src/" in capsys.readouterr().out
