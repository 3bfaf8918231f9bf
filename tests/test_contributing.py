"""CONTRIBUTING's steps to a new diversity work, on a copy of the project."""

import re
import shlex
from functools import partial

import processes
import pytest
from other_pythons import ROOT, copy_checkout

# The indentation of a step's blocks, the language and the text.
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
EXERCISES = '\n+++ {"tags": ["exercise"]}'


def steps():
    """The blocks of the section, their indentation removed."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("\n## Adding a diversity\n")[2].partition("\n## ")[0]
    for indent, language, block in BLOCK.findall(section):
        yield language, re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)


@pytest.fixture
def project(tmp_path):
    copy_checkout(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_diversity_is_added_as_the_page_says(project):
    python = partial(processes.python, cwd=project, PYTHONPATH=str(project))

    def append(name, text):
        path = project / name
        path.write_text(path.read_text() + text)

    blocks = list(steps())
    languages = [language for language, _ in blocks]
    assert languages == ["python", "sh", "python", "python", "text", "sh"]
    function, check, test, cell, row, build = (block for _, block in blocks)
    append("qdtheory/formulas/scalar_functions.py", f"\n\n{function}")
    program, *arguments = shlex.split(check.partition("  # ")[0])
    assert program == ".venv/bin/qdtheory"
    said = python("-c", f"from qdtheory.commands.cli import app; app({arguments})")
    assert said.startswith(f"{check.partition('  # ')[2].strip()}: ")
    append("tests/formulas/test_scalar_functions.py", f"\n\n{test}")
    program, script, name = shlex.split(build)
    assert program == ".venv/bin/python"
    source = project / f"notebooks/src/{name}.md"
    before, exercises, after = source.read_text().partition(EXERCISES)
    assert exercises
    cell = f"\n```{{code-cell}} ipython3\n{cell}```\n"
    source.write_text(before + cell + exercises + after)
    python(script, name)
    append("docs/coverage.csv", row)
    style = ["qdtheory/pairs", "tests/pairs"]
    python("-m", "ruff", "check", *style)
    python("-m", "ruff", "format", "--check", *style)
    claim = re.search(r'claim\("(.+?)"\)', test)[1]
    shown = python("-m", "pytest", "-q", "--claim", claim)
    assert "1 passed" in shown
    contracts = [f"tests/test_{name}.py" for name in ("claims", "coverage_page")]
    python("-m", "pytest", "-q", "-m", "not slow", *contracts)
