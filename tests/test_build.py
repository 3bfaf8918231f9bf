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

SAYING = 'print(f"T1.1  third = {1 / 3:.6g} of 46656 texts, residual {1e-16:.1e}")'
SAID = "A line from corner to corner: it rises."


def code(*cells, options=()):
    """The source of cells of code, the last with options."""
    head = "".join(f":{option}\n" for option in options)
    *others, last = cells
    fenced = [f"```{{code-cell}}\n{cell}\n```" for cell in (*others, head + last)]
    return "\n\n".join(fenced)


def tagged(cell, tags, *options):
    return code(cell, options=[*options, f"tags: [{tags}]"])


SOURCE = "\n\n".join(
    [
        "# Count\n\nSet up, count, draw.\n\n**Reading** {minutes} min",
        tagged("import matplotlib.pyplot as plt", "setup"),
        code(SAYING),
        tagged(
            "line = plt.plot([0, 1])",
            *("loose, cover", f"alt: '{SAID}'", "notes: Ask how.", "slide: It rises"),
        ),
        '+++ {"tags": ["exercise"]}\n\nWhat is two and two?',
        tagged("answer = ...", "stub"),
        tagged('answer = 4\nprint(answer, "third" in globals())', "solution"),
    ]
)


def run(folder, *arguments):
    return build.main(list(arguments), folder)


def write_source(folder, text, name="01_count"):
    folder.joinpath("src").mkdir(exist_ok=True)
    folder.joinpath("src", f"{name}.md").write_text(text)


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


def tags_of(book):
    return [cell.metadata.get("tags") for cell in book.cells]


def test_the_readers_notebook_has_no_solution_and_no_fact_of_a_machine(book):
    tags = [None, ["setup"], None, ["cover", "loose"], ["exercise"], ["stub"]]
    assert tags_of(book) == tags
    assert [c.id for c in book.cells] == [f"cell-{n}" for n in range(1, 7)]
    assert book.metadata == build.METADATA
    said = "T1.1  third = 0.333333 of 46656 texts, residual 1.0e-16\n"
    assert book.cells[2].outputs[0].text == said
    drawn = book.cells[3]
    assert [[*o.data] for o in drawn.outputs] == [["image/png", "text/plain"]]
    kept = {"alt": SAID, "notes": "Ask how.", "slide": "It rises"}
    assert [build.told(c) for c in book.cells] == [{}, {}, {}, kept, {}, {}]
    assert book.cells[0].source.endswith("**Reading** 4 min")  # of four cells of code


def test_solutions_execute_the_setup_and_the_exercises_only(built, tmp_path):
    solved = nbformat.read(built / "solutions" / "01_count.ipynb", as_version=4)
    assert tags_of(solved) == [None, ["setup"], ["exercise"], ["solution"]]
    assert solved.cells[0].source.startswith("# Solutions: Count\n")
    assert "(../01_count.ipynb)" in solved.cells[0].source
    assert solved.cells[-1].outputs[0].text == "4 False\n"
    write_source(tmp_path, "# Nothing to solve")
    (source,) = tmp_path.glob("src/*.md")
    assert list(build.notebooks(source, tmp_path)) == [tmp_path / "01_count.ipynb"]


def test_rounding_leaves_the_file_untouched(built, capsys):
    path = built / "01_count.ipynb"
    rounded = path.read_text().replace("0.333333", "0.333334")
    path.write_text(rounded.replace("1.0e-16", "3.9e-17"))
    committed = path.read_text()
    assert run(built) == 0
    assert path.read_text() == committed
    assert capsys.readouterr().out.count("unchanged") == 2


# --- comparison -----------------------------------------------------------------


def png(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="png")
    return base64.b64encode(buffer.getvalue()).decode()


WHITE = np.full((40, 50, 3), 255, dtype=np.uint8)


def marked(count, level):
    pixels = WHITE.copy()
    pixels.reshape(-1, 3)[:count] = level
    return pixels


def shown(kind, content, tags=()):
    output = new_output("display_data", {kind: content})
    return new_code_cell("draw()", outputs=[output], metadata={"tags": [*tags]})


FEW = "figure with 0.15% of its pixels changed"
MANY = "figure with 3.05% of its pixels changed"
ALL = "figure with 100.00% of its pixels changed"
OTHER_SIZE = "figure of (50, 40) pixels committed, now (50, 39)"


@pytest.mark.parametrize(
    ("pixels", "message", "message_if_loose"),
    [
        (marked(2, 0), None, None),  # 1 pixel in 1,000 of 2,000
        (marked(3, 0), FEW, None),
        (marked(61, 0), MANY, MANY),
        (marked(2000, 255 - 32), None, None),
        (marked(2000, 255 - 33), ALL, ALL),
        (WHITE[:-1], OTHER_SIZE, OTHER_SIZE),
    ],
)
def test_figures_agree_up_to_a_few_pixels(pixels, message, message_if_loose):
    for tags, expected in (([], message), (["loose"], message_if_loose)):
        cells = [shown("image/png", png(x), tags) for x in (WHITE, pixels)]
        assert build.cell_difference(*cells) == expected


def svg(x, words="0.5", name="p0123456789"):
    return f'<path id="{name}" d="M 1 2 L {x} 3"/><use href="#{name}"/><t>{words}</t>'


SAYS = "figure that says: "


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (svg(10.51), "figure with points 0.51 pixels off"),
        (svg(10.0, name="p9876543210"), None),  # made of a coordinate's last digits
        (svg(10.0, words="half"), f"{SAYS}committed '0.5', now 'half'"),
        (svg(10.0, words="0.5001"), f"{SAYS}number 0.5 committed, now 0.5001"),
        (svg(10.0) + "<path/>", "figure of other marks or words"),
    ],
)
def test_drawings_agree_up_to_half_a_pixel(new, message):
    cells = [shown(build.SVG, text) for text in (svg(10.0), new)]
    assert build.cell_difference(*cells) == message


@pytest.mark.parametrize(
    ("number", "part", "change", "message"),
    [
        (1, "source", lambda old: f"{old} ", "source "),
        (2, "metadata", lambda old: {"tags": ["setup", "loose"]},
         "tags ['setup'] committed, now ['loose', 'setup']"),
        (4, "metadata", lambda old: old | {"alt": "A line."},
         f"metadata \"{{'alt': '{SAID}', "),
        (4, "outputs", lambda old: shown("image/png", png(WHITE)).outputs, "outputs "),
    ],
)  # fmt: skip
def test_an_edited_part_of_a_cell_is_a_difference(book, number, part, change, message):
    other = copy.deepcopy(book)
    other.cells[number - 1][part] = change(other.cells[number - 1][part])
    (found,) = build.differences(book, other)
    assert found.startswith(f"cell {number}: {message}")
    other = copy.deepcopy(book)
    other.cells.append(new_code_cell("1 + 1"))
    assert build.differences(book, other) == ["6 cells committed, now 7"]


@pytest.mark.parametrize(
    ("old", "new", "same", "same_if_loose"),
    [
        ("x = 1.00000", "x = 1.00009", True, True),
        ("x = 1.00000", "x = 1.00011", False, True),
        ("x = 1.00000", "x = 1.0101", False, True),
        ("x = 1.00000", "x = 1.0202", False, False),
        ("gap 2.2e-16", "gap -9.9e-9", True, True),
        ("[1. 2.]", "[1. 2.00001]", True, True),
        ("gap 2.2e-16", "gap 1.1e-8", False, False),
        ("0 of them", "2.2e-16 of them", True, True),
        ("U 0.31 <= 0.32", "U 0.30 <= 0.32", False, False),
        ("46656 texts.", "46657 texts.", False, True),
        ("T2.1 holds", "T2.2 holds", False, False),
        ("1.5 1.5", "1.5", False, False),
        ("nan", "1.0", False, False),
    ],
)
def test_words_are_compared_exactly_and_numbers_nearly(old, new, same, same_if_loose):
    for tag, expected in (("exact", same), ("loose", same_if_loose)):
        outputs = [[new_output("stream", text=text)] for text in (old, new)]
        facts = {"metadata": {"tags": [tag]}}
        cells = [new_code_cell("x", outputs=output, **facts) for output in outputs]
        books = [new_notebook(cells=[cell]) for cell in cells]
        assert (build.differences(*books) == []) is expected


# --- execution ------------------------------------------------------------------


def test_cells_that_fail_are_shown_and_nothing_is_written(tmp_path, capsys):
    warns = code("import warnings", "warnings.warn('old')")
    fails = code("x = 2", "# T9.9\nassert x == 3, 'x is 2'")
    raising = tagged("1 / 0", "raises-exception")
    cells = (warns, fails, code("import os", "os._exit(1)"), raising)
    for number, source in enumerate(cells):
        write_source(tmp_path, source, f"0{number}_wrong")
    assert run(tmp_path) == 1
    printed = capsys.readouterr().out
    said = ["cell 2 wrote to stderr", "old", "AssertionError: x is 2", "# T9.9"]
    for message in (*said, "died", "cell 1 raised ZeroDivisionError"):
        assert message in printed
    assert "\x1b" not in printed
    assert not list(tmp_path.glob("*.ipynb"))


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


# --- freshness ------------------------------------------------------------------


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
    (room / "used.pyi").write_text("x: str")
    imports = "import sys\nsys.path.append('../qdtheory')\nimport used"
    reads = f"{imports}\nopen('data/used.csv').read()"
    write_source(folder, code("!jupytext --version", reads))
    assert run(folder) == 0
    return root


@pytest.fixture
def project(executed, tmp_path):
    """The notebooks' folder of a copy of it."""
    return shutil.copytree(executed, tmp_path / "project") / "notebooks"


BOOK, SOURCE_NAME = "notebooks/01_count.ipynb", "notebooks/src/01_count.md"
READ = "qdtheory/used.py"


def test_the_kernel_finds_this_interpreters_commands_and_the_notebooks_folder(project):
    first, second = nbformat.read(project / "01_count.ipynb", as_version=4).cells
    assert first.outputs[0].text.startswith("1.")
    assert second.outputs[0].data["text/plain"] == r"'1\n'"


@pytest.mark.parametrize(
    ("name", "old", "new", "status"),
    [
        (READ, "# 1", "# 2", 0),
        ("notebooks/data/used.csv", "1", "2", 0),
        (SOURCE_NAME, "import used", "import used  # here", 1),
        (BOOK, "'1", "'2", 1),
        (READ, '"""The used."""', '"""Other\n\nwords."""\n# Why.', None),
        (READ, "# one", "# two", None),
        ("qdtheory/unused.py", "1", "2", None),
        ("qdtheory/used.pyi", "str", "int", None),
    ],
)
def test_what_was_read_makes_a_notebook_stale_but_for_words(
    project, capsys, name, old, new, status
):
    path = project.parent / name
    text = path.read_text()
    assert text.count(old) == 1
    stale = f"01_count is stale, run `make book`: {name} changed\n"
    said = "" if status is None else stale
    for change in (path.write_text, lambda _: path.unlink()):
        capsys.readouterr()
        change(text.replace(old, new))
        assert run(project, "--stale", "01_count") == (status or 0)
        assert capsys.readouterr().out == said
        if name == SOURCE_NAME or status is None:
            break
    path.write_text(text)
    assert run(project, "--stale") == 0
    assert capsys.readouterr().out == ""


def test_only_a_build_that_went_well_is_recorded(project, capsys):
    record, table = freshness.record_of("01_count", project), project / "data/used.csv"
    kept = record.read_bytes()
    table.write_text("2\n")
    assert run(project, "--check") == 1
    assert "cell 2: " in capsys.readouterr().out
    table.unlink()
    assert run(project) == 1
    assert record.read_bytes() == kept
    table.write_text("2\n")
    assert run(project) == 0
    assert record.read_bytes() != kept
    # A record put together from two builds.
    table.write_text("1 ")
    old = re.search(r'used.csv": "(\w+)"', record.read_text())[1]
    record.write_text(record.read_text().replace(old, freshness.digest(table)))
    assert freshness.changed("01_count", project) == ["notebooks/records/01_count.json"]
    record.unlink()
    assert freshness.changed("01_count", project) == [BOOK, SOURCE_NAME]


def test_code_is_what_is_left_without_docstrings_and_comments():
    text = '    text = """no docstring\n    # no comment\n\n    """\n'
    shown = """        return f"{self!r:>{len('#')}} # {{}}\""""
    head = '# Comment\n"""Module."""\n\nclass A:  # comment\n    """Class."""\n\n'
    inner = '\n    def f(self) -> str:  # comment\n        """Function,\n\n        F.\n'
    module = f'{head}{text}{inner}        """\n{shown}  # comment\n'
    left = f"class A:\n{text}    def f(self) -> str:\n{shown}"
    assert freshness.code(module) == left


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
