"""The steps to a new metric work, on a copy of the project."""

import os
import re
import shlex
from functools import partial

import processes
import pytest
from other_pythons import ROOT, copy_checkout

# The indentation of a step's blocks, the language and the text.
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
EXERCISES = '\n+++ {"tags": ["exercise"]}'


def steps(title):
    """The blocks of a section, their indentation removed."""
    text = (ROOT / "docs/adding.md").read_text()
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    for indent, language, block in BLOCK.findall(section):
        yield language, re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)


@pytest.fixture
def project(tmp_path):
    copy_checkout(tmp_path)
    return tmp_path


def append(path, text):
    path.write_text(path.read_text() + text)


def insert(path, line, text):
    """Put text below a line of a file."""
    before, line, after = path.read_text().partition(f"{line}\n")
    assert line
    path.write_text(f"{before}{line}    {text}{after}")


@pytest.mark.slow
def test_a_diversity_is_added_as_the_page_says(project):
    python = partial(processes.python, cwd=project, PYTHONPATH=str(project))
    blocks = list(steps("Adding a diversity"))
    languages = [language for language, _ in blocks]
    assert languages == ["python", "sh", "python", "python", "text", "sh"]
    function, check, test, cell, row, build = (block for _, block in blocks)
    functions = project / "qdtheory/functions.py"
    before, families, after = functions.read_text().partition("\n\n# --- Families")
    assert families
    functions.write_text(f"{before}\n\n{function}{families}{after}")
    program, *arguments = shlex.split(check.partition("  # ")[0])
    assert program == ".venv/bin/qdtheory"
    said = python("-c", f"from qdtheory.commands.cli import app; app({arguments})")
    assert said.startswith(f"{check.partition('  # ')[2].strip()}: ")
    append(project / "tests/test_functions.py", f"\n\n{test}")
    program, script, name = shlex.split(build)
    assert program == ".venv/bin/python"
    source = project / f"notebooks/src/{name}.md"
    before, exercises, after = source.read_text().partition(EXERCISES)
    assert exercises
    cell = f"\n```{{code-cell}} ipython3\n{cell}```\n"
    source.write_text(before + cell + exercises + after)
    python(script, name)
    append(project / "docs/coverage.csv", row)
    style = ["qdtheory/functions.py", "tests/test_functions.py"]
    python("-m", "ruff", "check", *style)
    python("-m", "ruff", "format", "--check", *style)
    claim = re.search(r'claim\("(.+?)"\)', test)[1]
    shown = python("-m", "pytest", "-q", "--claim", claim)
    assert "1 passed" in shown
    contracts = [f"tests/test_{name}.py" for name in ("claims", "coverage_page")]
    python("-m", "pytest", "-q", "-m", "not slow", *contracts)


@pytest.mark.slow
def test_a_metric_of_texts_is_added_as_the_page_says(project):
    python = partial(processes.python, cwd=project, PYTHONPATH=str(project))
    blocks = list(steps("Adding a metric of texts"))
    languages = [language for language, _ in blocks]
    expected = ["python", "python", "sh", "python", "toml", "sh", "python"]
    assert languages == expected
    function, name, names, row, entry, commands, test = (block for _, block in blocks)
    append(project / "qdtheory/text/repetition.py", f"\n\n{function}")
    insert(project / "qdtheory/text/__init__.pyi", "from .repetition import (", name)
    insert(
        project / "qdtheory/text/metric_names.py",
        "WITHOUT_ORDER: dict[str, Callable[..., float]] = {",
        row,
    )
    append(project / "qdtheory/catalogue/metrics.toml", f"\n{entry}")
    append(project / "tests/text/test_repetition.py", f"\n\n{test}")
    added, written = map(shlex.split, names.splitlines())
    append(project / added[-1], f"{added[1]}\n")
    path, _, script = written
    path = path.removeprefix("PYTHONPATH=")
    python(script, PYTHONPATH=f"{project}{os.pathsep}{project / path}")
    lines = ("".join(f"{word} " for word in f"{k:05b}") for k in range(2_100))
    (project / "real.txt").write_text("\n".join(lines))
    known, measured = map(shlex.split, commands.splitlines())
    assert known[0] == measured[0] == ".venv/bin/qdtheory"
    said = python("-m", "qdtheory", *known[1:])
    assert said.startswith(f"{known[-1]} (diversity). No verdict: ")
    said = python("-m", "qdtheory", *measured[1:])
    assert measured[-1] in said
    style = ["qdtheory/text", "tests/text"]
    python("-m", "ruff", "check", *style)
    python("-m", "ruff", "format", "--check", *style)
    tests = ["tests/text/test_repetition.py", "tests/text/test_metric_names.py"]
    tests += ["tests/test_release.py", "tests/test_metrics_page.py"]
    tests += ["qdtheory/text/repetition.py"]
    python("-m", "pytest", "-q", "-m", "not slow", *tests)
    python("-m", "pytest", "-q", "tests/catalogue/test_metrics.py", "-k", known[-1])
