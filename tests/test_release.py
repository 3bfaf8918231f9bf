"""What is released agrees with itself: versions, public names, recipe, paper."""

import importlib
import inspect
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from coverage_page import claims
from packaging.requirements import Requirement

import qdtheory as qd

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
NAMES = Path(__file__).with_name("public_names.txt")


def test_every_file_names_the_same_version():
    version = PROJECT["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    zenodo = json.loads((ROOT / ".zenodo.json").read_text())
    newest, day = re.findall(r"^## (\S+) \((.+)\)$", CHANGELOG, re.MULTILINE)[0]
    assert [citation["version"], recipe["context"]["version"], newest] == [version] * 3
    assert zenodo["version"] == version
    assert str(citation["date-released"]) == day


def public_names():
    """The names at the top, all of them, and those of modules that are listed."""
    names = [line.partition("(")[0] for line in NAMES.read_text().splitlines()]
    flat = {path.stem for path in (ROOT / "qdtheory").iterdir()}
    top = sorted({*dir(qd)} - flat - {"__version__"})
    listed = [name for name in names if name.count(".") > 1]
    for name in (*(f"qdtheory.{name}" for name in top), *listed):
        module, _, last = name.rpartition(".")
        value = getattr(importlib.import_module(module), last)
        assert inspect.getdoc(value), name
        yield f"{name}{parameters(value)}"


def parameters(value):
    """What a function takes, and the fields of a class: "(pair, p, found)"."""
    if not inspect.isfunction(value) and not inspect.isclass(value):
        return ""
    if inspect.isclass(value) and issubclass(value, Warning):  # of one message
        return ""
    if getattr(value, "_is_protocol", False):  # nobody makes one
        return ""
    return f"({', '.join(inspect.signature(value).parameters)})"


def test_no_public_name_or_parameter_is_lost_unnoticed():
    # A stable name that goes was deprecated first: docs/stability.md. Write the file
    # anew with `python tests/test_release.py`.
    assert [*public_names()] == NAMES.read_text().splitlines()


def test_the_recipe_requires_what_the_package_does():
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    # conda's syntax for `name >=version` is pip's, so one parser reads both lists.
    _, *packages = recipe["requirements"]["run"]
    wanted = {str(Requirement(entry)) for entry in PROJECT["dependencies"]}
    assert {str(Requirement(entry)) for entry in packages} == wanted
    (script,) = recipe["build"]["python"]["entry_points"]
    assert script.split(" = ") == [*next(iter(PROJECT["scripts"].items()))]


PAPER, COURSE = ((ROOT / f"paper/{n}.md").read_text() for n in ("paper", "jose"))


def test_the_papers_cite_what_they_list_and_name_claims_that_exist():
    listed = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper/paper.bib").read_text(), re.M)
    assert set(re.findall(r"@(\w+\d{4})", PAPER)) == set(listed)
    assert set(re.findall(r"@(\w+\d{4})", COURSE)) <= set(listed)
    named = set(re.findall(r"\b[TLNE]\d+\.\d+\b", PAPER))
    assert len(named) > 8
    assert named | set(re.findall(r"\b[TLNE]\d+\.\d+\b", COURSE)) <= claims().keys()


@pytest.mark.parametrize(
    ("paper", "headings"),
    [
        (PAPER, ["Summary", "Statement of need", "State of the field"]),
        (
            COURSE,
            [
                *("Summary", "Statement of need", "Instructional design"),
                *("How it is used", "The story of the project"),
            ],
        ),
    ],
)
def test_a_paper_has_the_parts_that_a_review_asks_for(paper, headings):
    assert [h for h in headings if f"\n# {h}\n" not in paper] == []


def test_the_notebooks_counted_in_words_are_those_there():
    assert len([*ROOT.glob("notebooks/*.ipynb")]) == 47
    assert "Forty-seven" in PAPER


if __name__ == "__main__":
    lines = [f"{name}\n" for name in public_names()]
    NAMES.write_text("".join(lines))
