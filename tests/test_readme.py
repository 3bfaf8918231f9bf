"""Every command and block of code in the README, and of teaching, does what it says."""

import contextlib
import io
import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import address
import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement
from typer.testing import CliRunner

import qdtheory as qd
from qdtheory.commands import cli
from qdtheory.course import check

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FENCED = re.compile(r"^(`{3,}|~{3,})[ ]*(.*?)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """The fenced blocks of a page, each its language and its text."""
    return [found[1:] for found in FENCED.findall((ROOT / page).read_text())]


BLOCKS = blocks("README.md")


# --- commands -------------------------------------------------------------------


def run_make(arguments, said):
    """The target exists, and `make help` knows it."""
    (target,) = arguments
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert f'@echo "make {target} ' in makefile


def run_qdtheory(arguments, said):
    """The command ends well, and begins with the word that the README gives."""
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"{said}: " if said else "")


def environment():
    return yaml.safe_load((ROOT / "environment.yml").read_text())


def run_conda(arguments, said):
    """The file exists, and the environment has its name."""
    match arguments:
        case ["env", "create", "-f", name]:
            assert name == "environment.yml"
        case ["activate", name]:
            assert name == environment()["name"]
        case _:
            pytest.fail(f"no test runs conda {shlex.join(arguments)}")


def run_jupyter(arguments, said):
    """JupyterLab is in conda's environment, and the folder is there."""
    assert arguments[0] == "lab"
    packages = [p for p in environment()["dependencies"] if isinstance(p, str)]
    assert "jupyterlab" in {Requirement(package).name for package in packages}
    assert [*(ROOT / arguments[1]).glob("*.ipynb")]


def run_pip(arguments, said):
    """It installs this project, with extras that it has: all, if it says so."""
    command, requirement = arguments
    assert command == "install"
    # A copy of the project is its folder.
    wanted = Requirement(re.sub(r"^\.", "qdtheory", requirement))
    assert requirement.startswith("qdtheory" if address.RELEASED else ".")
    assert wanted.name == address.PROJECT["project"]["name"]
    extras = address.PROJECT["project"]["optional-dependencies"]
    of_the_project = {"peers", "bench", "book", "test"}
    assert wanted.extras == (extras.keys() - of_the_project if said else set())


RUNNERS = {
    "make": run_make,
    "pip": run_pip,
    ".venv/bin/qdtheory": run_qdtheory,
    "conda": run_conda,
    "jupyter": run_jupyter,
}
LINES = [
    line for language, text in BLOCKS if language == "sh" for line in text.splitlines()
]


def test_no_block_is_left_out():
    languages = [language for language, _ in BLOCKS]
    assert set(languages) == {"sh", "python", "text"}
    # Output follows the code that prints it.
    after = [languages[i - 1] for i, kind in enumerate(languages) if kind == "text"]
    assert after == ["python"] * languages.count("python")
    # Every fence opens or closes one of the blocks; nothing is code by indentation.
    assert len(re.findall(r"^\s*(?:```|~~~)", README, re.MULTILINE)) == 2 * len(BLOCKS)
    prose = FENCED.sub("", README)
    assert not re.search(r"\n\n(?: {4}|\t)", prose)


@pytest.mark.parametrize("line", LINES)
def test_command(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("model.txt", "real.txt"):
        Path(name).write_text("a model wrote this one\n" * 3 + "or not this one\n")
    Path("table.csv").write_text("model,BLEU-4,BLEU-5\nours,.50,.62\n")
    words = np.random.default_rng(0).integers(20, size=(2_000, 4))
    np.savetxt("reviews.txt", words, "%d")
    rows = [
        {"prompt": f"{i}", "outputs": ["a", "b"], "references": ["a"]} for i in "ab"
    ]
    Path("table.csv").write_text("system,BLEU-4,BLEU-5\nours,.31,.35\n")
    Path("outputs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    graded = {"output_type": "stream", "name": "stdout", "text": "03.1 right\n"}
    answers = {"cells": [{"cell_type": "code", "outputs": [graded]}]}
    Path("answers.ipynb").write_text(json.dumps(answers))
    command, _, said = line.partition("  # ")
    program, *arguments = shlex.split(command)
    assert program in RUNNERS, f"no test runs {program}"
    RUNNERS[program](arguments, said.strip())


def test_the_formulas_of_quality_and_diversity_are_those_of_a_pair():
    formulas = re.findall(r"`(sum\(.*?\))`", README)
    assert len(formulas) == 2
    p, q = np.random.default_rng(0).dirichlet(np.ones(6), 2)
    names = {"p": p, "q": q, "f": np.log, "g": lambda x: -(x**2), "sum": np.sum}
    told = [eval(formula, names) for formula in formulas]
    pair = qd.SeparablePair(qd.functions.LL, qd.functions.NRR)
    found = [float(pair.quality(q, p)), float(pair.diversity(q))]
    assert told == pytest.approx(found, rel=1e-14)


def test_every_subcommand_is_shown():
    shown = {shlex.split(line)[1] for line in LINES if "bin/qdtheory" in line}
    commands = cli.app.registered_commands
    assert shown == {command.callback.__name__ for command in commands}


# --- code and picture -----------------------------------------------------------


@pytest.mark.parametrize("page", ["README.md", "docs/teaching.md"])
def test_the_code_prints_what_the_page_says(page):
    (pair,) = (
        (code, printed)
        for (language, code), (_, printed) in pairwise(blocks(page))
        if language == "python"
    )
    code, printed = pair
    assert len(code.strip().splitlines()) <= 10
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, page, "exec"), {})
    assert out.getvalue() == printed


def test_the_wrong_statements_of_the_lectures_are_exercises_with_a_letter(capsys):
    page = (ROOT / "docs/teaching.md").read_text()
    rows = re.findall(r"^\| \d\. .* \|([^|]+)\|$", page, re.MULTILINE)
    ids = [exercise for row in rows for exercise in row.strip().split(", ")]
    assert len(rows) == 6
    assert len(set(ids)) == len(ids) >= 6
    for exercise in ids:
        check(exercise, 7)
        printed = capsys.readouterr().out
        assert printed == (
            f"{exercise} not yet: 7, expected a letter and a claim, like 'A N1.1'\n"
        )


def test_the_picture_is_there_and_told_in_words():
    ((words, address),) = re.findall(r"!\[([^]]+)\]\(([^)]+)\)", README)
    assert len(words.split()) >= 20
    root = ElementTree.parse(ROOT / address).getroot()
    # The ground, drawn first, is opaque: the picture reads on a dark page too.
    ground = root[0]
    assert ground.tag.endswith("}rect")
    assert ground.attrib == {"width": "100%", "height": "100%", "fill": "#fffdf8"}
    shown = [
        value
        for element in root.iter()
        for key, value in element.attrib.items()
        if key.endswith("href")
    ]
    assert all(value.startswith("#") for value in shown)
