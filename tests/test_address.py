"""All that names the repository's address has it from one line, or goes without."""

import json
import re
import runpy
from io import StringIO
from urllib.parse import parse_qs, urlsplit

import address
import pytest
import yaml
from bs4 import BeautifulSoup
from processes import ROOT
from quick import git
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils
from test_project import PROJECT, tracked_files

from qdtheory.commands import cli

MADE_UP = "https://github.com/made-up/somewhere"
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())


def fields(form):
    """The fields of an issue form by id."""
    text = (ROOT / f".github/ISSUE_TEMPLATE/{form}").read_text()
    return {e["id"]: e for e in yaml.safe_load(text)["body"] if "id" in e}


def leads_to(link):
    """The file, or the page of issues, that a link into the repository shows."""
    parts = urlsplit(link)
    kind, *rest = parts.path.removeprefix(urlsplit(MADE_UP).path).split("/")[1:] or [""]
    match kind:
        case "":
            return ROOT
        case "blob" | "edit" | "raw":
            assert rest[0] in ("main", "HEAD")
            return ROOT.joinpath(*rest[1:])
        case "actions":
            assert rest[0] == "workflows"
            return ROOT / ".github/workflows" / rest[1]
        case "issues":
            query = parse_qs(parts.query)
            (form,) = query.pop("template", ["config.yml"])
            assert query.keys() <= fields(form).keys() if query else True
            return ROOT / ".github/ISSUE_TEMPLATE" / form
    return pytest.fail(f"{link} leads nowhere that a test knows")


def notebook_on_binder(link):
    parts = urlsplit(link)
    assert parts.path == "/v2/gh/made-up/somewhere/main"
    # Binder reads this file, and installs the project itself.
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert "-e ." in environment["dependencies"][-1]["pip"]
    (opened,) = parse_qs(parts.query)["urlpath"]
    return ROOT / opened.removeprefix("lab/tree/")


def check_links(links):
    """Each link into the made-up repository, or to Binder, has its file."""
    inside = {link for link in links if link.startswith(MADE_UP)}
    binder = {link for link in links if link.startswith(f"{address.BINDER}/v2")}
    for link in inside:
        assert leads_to(link).exists(), link
    for link in binder:
        assert notebook_on_binder(link).exists(), link
    return inside, binder


# --- the one line, and the files that name it -----------------------------------


def test_the_address_is_that_of_a_repository_or_empty():
    known = r"(https://github\.com/[\w-]+/[\w.-]*[\w-])?"
    assert re.fullmatch(known, address.REPOSITORY)


def test_the_files_say_what_the_one_line_does():
    # `.venv/bin/python docs/address.py` writes them anew.
    for name, text in address.files(address.REPOSITORY, address.RELEASED).items():
        assert (ROOT / name).read_text() == text, name


def test_without_an_address_no_file_has_a_link_or_a_badge():
    for name, text in address.files("", False).items():
        assert not re.search(r"github\.com/made|badge\.svg|mybinder", text), name
        assert not re.search(r"^ *repository(-code)?:", text, re.MULTILINE), name
    told = json.loads(address.files("", False)["codemeta.json"])
    assert not {"codeRepository", "issueTracker"} & told.keys()
    hook = runpy.run_path(ROOT / "hatch_build.py")
    assert hook["urls"]("") == {"Paper": hook["PAPER"]}


def test_every_file_takes_a_made_up_address_and_gives_it_back():
    filled, empty = address.files(MADE_UP, False), address.files("", False)
    text = filled["README.md"]
    links = set(re.findall(r"\]\((https?://[^)]+)\)", text))
    inside, binder = check_links(links)
    assert len(inside) == 4  # badge and its target, two forms
    assert len(binder) == 1
    assert f"git clone {MADE_UP}" in " ".join(text.split())
    assert address.readme(text, "", False) == empty["README.md"]
    citation = yaml.safe_load(filled["CITATION.cff"])
    assert citation["repository-code"] == MADE_UP
    assert (
        yaml.safe_load(filled["recipe/recipe.yaml"])["about"]["repository"] == MADE_UP
    )
    told = json.loads(filled["codemeta.json"])
    assert told["codeRepository"] == MADE_UP
    named = [told[key] for key in ("issueTracker", "continuousIntegration", "readme")]
    assert check_links(named)[0] == {*named}
    for name, key in {"CITATION": "repository-code", "recipe": "  repository"}.items():
        (file,) = (file for file in filled if file.startswith(name))
        assert address.with_line(filled[file], "", key, "") == empty[file]


def test_the_metadata_takes_a_made_up_address():
    hook = runpy.run_path(ROOT / "hatch_build.py")
    urls = hook["urls"](MADE_UP)
    assert list(urls) == ["Repository", "Issues", "Changelog", "Paper"]
    assert len(check_links(urls.values())[0]) == 3
    text = hook["standalone"]((ROOT / "README.md").read_text(), MADE_UP)
    inside, _ = check_links(re.findall(r"\]\(([^)]+)\)", text))
    assert len(inside) > 10


def test_codemeta_says_what_the_citation_does():
    told = json.loads((ROOT / "codemeta.json").read_text())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert told["version"] == citation["version"] == address.VERSION
    assert told["datePublished"] == str(citation["date-released"])
    assert told["license"].endswith(f"/{citation['license']}")
    (paper,) = citation["references"]
    assert told["referencePublication"]["name"] == paper["title"]
    families = [one["familyName"] for one in told["referencePublication"]["author"]]
    assert families == [one["family-names"] for one in paper["authors"]]


# --- how to install -------------------------------------------------------------

# Who reads a message of the library has the package, and pip adds what an extra names.
APART = ("qdtheory", "tests")
BY_NAME = re.compile(r"""pip install (?:-\S+ )*\\?["']?qdtheory(?![\w-])""")


def test_before_a_release_no_page_says_to_install_it_by_name():
    assert BY_NAME.search('pip install "qdtheory[train]"')
    assert BY_NAME.search("pip install -U qdtheory`")
    assert not BY_NAME.search(f"pip install {address.WHEEL}")
    told = {
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if path.relative_to(ROOT).parts[0] not in APART and path.exists()
        if BY_NAME.search(path.read_bytes().decode("utf-8", "replace"))
    }
    assert address.RELEASED or told == {"docs/address.py"}  # which decides


@pytest.mark.parametrize("released", [False, True])
def test_a_release_changes_how_to_install(released):
    name = "qdtheory" if released else "."
    said = address.install("", released)
    assert said.count(f"pip install {name}\n") == 1
    assert f'pip install "{name}[plot,' in said
    assert ("copy of this repository" in said) is not released
    package = name if released else f"./{address.WHEEL}"
    ways = address.install_from_the_site(released)
    assert ways.endswith(f"```sh\npip install {package}\n")


# --- the site -------------------------------------------------------------------

NOTEBOOK = {
    "cells": [{"cell_type": "markdown", "metadata": {}, "source": "# Draw\n\nText."}],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "nbformat": 4,
    "nbformat_minor": 4,
}
PAGES = [
    "docs/index",
    "docs/explorer",
    "docs/generated/qdtheory.pairs",
    "docs/generated/qdtheory.text",
    "notebooks/03_pareto_frontier",
    "notebooks/solutions/03_pareto_frontier",
]


def links_of_small_site(folder, repository):
    """For each page of a small site in the book's theme, its links by their texts."""
    for page in PAGES:
        kind = "ipynb" if page.startswith("notebooks") else "md"
        path = folder / f"{page}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(NOTEBOOK) if kind == "ipynb" else "# Page\n")
    (folder / "conf.py").write_text("")
    settings = {
        "extensions": ["address", "myst_nb"],
        "root_doc": "docs/index",
        "nb_execution_mode": "off",
        "html_theme": "sphinx_book_theme",
        "html_theme_options": {"extra_footer": address.LICENCES},
        "repository": repository,
        "suppress_warnings": ["toc.not_included"],
    }
    warnings = StringIO()
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            *(folder, folder, folder / "html", folder / "trees", "html"),
            confoverrides=settings,
            status=None,
            warning=warnings,
        )
        app.build()
    assert warnings.getvalue() == ""
    found = {}
    for page in PAGES:
        soup = BeautifulSoup((folder / f"html/{page}.html").read_text(), "html.parser")
        assert "CC BY 4.0" in soup.find("footer", class_="bd-footer-content").text
        header = soup.find("div", class_="article-header-buttons")
        found[page] = {
            a.text.strip(): a["href"] for a in header.find_all("a", href=True)
        }
    return found


@pytest.mark.filterwarnings("ignore")
def test_the_site_takes_a_made_up_address(tmp_path):
    found = links_of_small_site(tmp_path, MADE_UP)
    for page, links in found.items():
        inside, binder = check_links(links.values())
        assert len(inside) == (4 if page == "docs/explorer" else 3)
        assert len(binder) == page.startswith("notebooks/")
        assert leads_to(links["Edit this page"]) == ROOT / address.source_of_page(page)
    lecture = found["notebooks/03_pareto_frontier"]
    assert lecture["Edit this page"].endswith("/notebooks/src/03_pareto_frontier.md")
    where = parse_qs(urlsplit(lecture["Report a mistake"]).query)["where"]
    assert where == ["notebooks/03_pareto_frontier"]
    reference = found["docs/generated/qdtheory.text"]
    assert reference["Edit this page"].endswith("/main/qdtheory/text/__init__.py")


@pytest.mark.filterwarnings("ignore")
def test_without_an_address_the_site_has_no_such_button(tmp_path):
    for links in links_of_small_site(tmp_path, "").values():
        assert not [link for link in links.values() if link.startswith("http")]


def test_every_page_of_the_site_has_a_source_and_says_its_licences(site):
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/parts").glob("*.md")]
    names = [path.relative_to(ROOT).with_suffix("").as_posix() for path in pages]
    for folder in ("notebooks", "notebooks/solutions", "docs/generated"):
        names += [f"{folder}/{path.stem}" for path in (site / folder).glob("*.html")]
    assert len(names) > 120
    package = address.requirement(released=address.RELEASED, copy=address.WHEEL)
    assert package in (site / "docs/index.html").read_text()
    for name in names:
        assert (ROOT / address.source_of_page(name)).exists(), name
        page = (site / f"{name}.html").read_text()
        assert page.count(address.LICENCES) == 1, name
        assert not re.search(r"github\.com/made|mybinder", page), name


# --- licences -------------------------------------------------------------------


def test_code_and_text_have_licences_that_are_there():
    assert PROJECT["license"].split(" AND ") == ["Apache-2.0", "CC-BY-4.0"]
    begin = ["Apache License", "Attribution 4.0 International"]
    for name, first in zip(PROJECT["license-files"], begin, strict=True):
        assert (ROOT / name).read_text().split("\n\n")[0].strip().startswith(first)
        assert f"]({name})" in (ROOT / "README.md").read_text()
    # All eight sections of the public licence.
    text = (ROOT / PROJECT["license-files"][1]).read_text()
    sections = re.findall(r"^Section (\d) -- ", text, re.MULTILINE)
    assert sections == list("12345678")
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())["about"]
    assert recipe["license"] == PROJECT["license"]
    assert recipe["license_file"] == PROJECT["license-files"]


# --- forms and checks on the other side -----------------------------------------

# What the forms' schema allows, by kind of field.
ATTRIBUTES = {
    "markdown": {"value"},
    "input": {"label", "description", "placeholder", "value"},
    "textarea": {"label", "description", "placeholder", "value", "render"},
    "dropdown": {"label", "description", "multiple", "options", "default"},
    "checkboxes": {"label", "description", "options"},
}


@pytest.mark.parametrize("name", address.FORMS)
def test_a_form_is_one(name):
    text = (ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text()
    form = yaml.safe_load(text)
    assert {"name", "description", "body"} <= form.keys()
    assert form.keys() <= {
        "name",
        "description",
        "title",
        "labels",
        "assignees",
        "body",
    }
    assert {type(form[key]) for key in ("name", "description", "title")} == {str}
    ids = [e["id"] for e in form["body"] if "id" in e]
    assert len(ids) == len(set(ids)) > 3
    assert all(re.fullmatch(r"[\w-]+", one) for one in ids)
    for element in form["body"]:
        kind, attributes = element["type"], element["attributes"]
        assert attributes.keys() <= ATTRIBUTES[kind]
        assert element.keys() <= {"type", "id", "attributes", "validations"}
        assert element.get("validations", {}).keys() <= {"required"}
        if kind == "markdown":
            assert element.keys() == {"type", "attributes"}
        else:
            assert attributes["label"]
        if kind == "dropdown":
            options = attributes["options"]
            assert len(options) == len(set(options)) > 1
            assert "None" not in options
    labels = [e["attributes"]["label"] for e in form["body"] if "id" in e]
    assert len(labels) == len(set(labels))


def test_the_commands_that_the_forms_name_exist():
    text = "".join(p.read_text() for p in (ROOT / ".github").rglob("*.yml"))
    commands = {command.callback.__name__ for command in cli.app.registered_commands}
    assert set(re.findall(r"`qdtheory (\w+)", text)) <= commands


def test_the_workflow_runs_what_is_here():
    triggers = WORKFLOW[True]  # YAML 1.1 reads the key `on` so
    assert triggers["push"]["branches"] == [address.BRANCH]
    assert "pull_request" in triggers
    steps = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    commands = {step["run"] for step in steps if "run" in step}
    assert commands == {".ci/run", "make pythons"}
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^pythons:", makefile, re.MULTILINE)
    assert all(
        re.fullmatch(r"actions/\w+[\w-]*@v\d+", s["uses"]) for s in steps if "uses" in s
    )
    versions = " ".join(
        s["with"]["python-version"] for s in steps if "with" in s
    ).split()
    supported = {line.rpartition(" ")[2] for line in PROJECT["classifiers"]}
    assert set(versions) <= supported
    assert git(ROOT, "ls-files", "-s", ".ci/run").startswith("100755")
