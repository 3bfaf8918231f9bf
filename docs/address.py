"""Where the project lives, and all that says so: `python docs/address.py`.

`tool.qdtheory` of pyproject.toml has the address of the repository, empty until there
is one, and whether a package index has a release. This script writes from them parts of
README.md, a line of CITATION.cff and of recipe/recipe.yaml, and codemeta.json; a test
compares. The site takes from them how it says to install, and the buttons of a page:
the repository, the page's source, forms for issues, and Binder. Without an address
there are no such links.

Colab has no button: it opens a notebook without this package and without its tables.
"""

import json
import re
import textwrap
import tomllib
from pathlib import Path
from urllib.parse import quote, urlencode

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
REPOSITORY: str = PROJECT["tool"]["qdtheory"]["repository"]
RELEASED: bool = PROJECT["tool"]["qdtheory"]["released"]
VERSION: str = PROJECT["project"]["version"]
WHEEL = f"qdtheory-{VERSION}-py3-none-any.whl"
BRANCH = "main"
BINDER = "https://mybinder.org"
# What the project's own files need, and nobody else.
INNER = ("peers", "bench", "book", "test")
EXTRAS = [e for e in PROJECT["project"]["optional-dependencies"] if e not in INNER]
FORMS = ("pair", "claim")
LICENCES = (
    'Text and figures: <a href="https://creativecommons.org/licenses/by/4.0/">'
    'CC BY 4.0</a>. Code: <a href="https://www.apache.org/licenses/LICENSE-2.0">'
    "Apache 2.0</a>."
)


# --- addresses in the repository ----------------------------------------------


def file_address(repository: str, path: str, verb: str = "blob") -> str:
    """Where a file of the repository is shown, or with "edit" changed."""
    return f"{repository}/{verb}/{BRANCH}/{path}"


def form_address(repository: str, form: str, **fields: str) -> str:
    """A form for an issue, with fields filled in."""
    return f"{repository}/issues/new?{urlencode({'template': f'{form}.yml'} | fields)}"


def binder_address(repository: str, path: str) -> str:
    """A notebook opened in JupyterLab on Binder."""
    owner_and_name = repository.removeprefix("https://github.com/")
    place = quote(f"lab/tree/{path}", safe="")
    return f"{BINDER}/v2/gh/{owner_and_name}/{BRANCH}?urlpath={place}"


def workflow_address(repository: str) -> str:
    """The runs of the tests."""
    return f"{repository}/actions/workflows/test.yml"


def source_of_page(page: str) -> str:
    """The file that a reader edits to change a page of the site."""
    folder, _, name = page.rpartition("/")
    if folder in ("notebooks", "notebooks/solutions"):
        return f"notebooks/src/{name}.md"
    if folder == "docs/generated":
        module = name.replace(".", "/")
        package = f"{module}/__init__.py"
        return package if (ROOT / package).exists() else f"{module}.py"
    return f"{page}.md"


# --- how to install -----------------------------------------------------------


def requirement(extras: str = "", *, released: bool, copy: str = ".") -> str:
    """What pip is to install, a copy or the release, with extras "a,b"."""
    what = "qdtheory" if released else copy
    return f'"{what}[{extras}]"' if extras else what


def install(repository: str, released: bool) -> str:
    """The README's words and commands."""
    told = "With Python 3.11 or newer"
    if not released:
        told += ", in a copy of this repository"
        told += f" (`git clone {repository}`)" if repository else ""
    told += ", for the library and its command alone:"
    alone = requirement(released=released)
    everything = requirement(",".join(EXTRAS), released=released)
    words = textwrap.fill(told, 90, break_long_words=False, break_on_hyphens=False)
    lines = (f"pip install {alone}", f"pip install {everything}    # with all extras")
    return "\n".join([words, "", "```sh", *lines, "```"])


def install_from_the_site(released: bool) -> str:
    """The same for readers of the site's first page, who find the package there."""
    if released:
        return "To install it: `pip install qdtheory`."
    link = f'<a href="../downloads/{WHEEL}">{WHEEL}</a>'
    return f"To install it, download {link} and type `pip install ./{WHEEL}`."


# --- files that name the address -----------------------------------------------


def badges(repository: str) -> str:
    """Pictures with links: do the tests pass, and the notebooks to run."""
    if not repository:
        return ""
    runs, map_ = workflow_address(repository), "notebooks/00_map.ipynb"
    return (
        f"[![Tests]({runs}/badge.svg)]({runs})\n"
        f"[![Run the notebooks on Binder]({BINDER}/badge_logo.svg)]"
        f"({binder_address(repository, map_)})"
    )


def report(repository: str) -> str:
    """Where to say that something is wrong, or to ask for a pair."""
    if not repository:
        return ""
    pair, claim = (form_address(repository, form) for form in FORMS)
    return f"Ask us to [judge your pair]({pair}), or say that [a claim fails]({claim})."


def readme(text: str, repository: str, released: bool) -> str:
    """README.md with the parts between its comments written anew."""
    parts = {
        "badges": badges(repository),
        "install": install(repository, released),
        "report": report(repository),
    }
    for name, part in parts.items():
        place = rf"<!-- {name} -->\n.*?<!-- end of {name} -->"
        filled = "\n".join(
            filter(None, [f"<!-- {name} -->", part, f"<!-- end of {name} -->"])
        )
        text, count = re.subn(place, lambda _, to=filled: to, text, flags=re.DOTALL)
        assert count == 1, f"README.md: expected one part {name}, found {count}"
    return text


def with_line(text: str, after: str, key: str, value: str) -> str:
    """YAML with `key: value` below the line that begins with `after`, or without it."""
    text = re.sub(rf"^{key}: .*\n", "", text, flags=re.MULTILINE)
    if not value:
        return text
    return re.sub(
        rf"^({after}: .*\n)", rf"\1{key}: {value}\n", text, flags=re.MULTILINE
    )


def codemeta(citation: dict, repository: str) -> str:
    """codemeta.json, of what CITATION.cff says."""
    cited = citation["references"][0]

    def person(one: dict) -> dict:
        if "name" in one:
            return {"@type": "Organization", "name": one["name"]}
        names = {"givenName": one["given-names"], "familyName": one["family-names"]}
        return {"@type": "Person"} | names

    told = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": "qdtheory",
        "alternateName": citation["title"],
        "description": PROJECT["project"]["description"],
        "version": citation["version"],
        "datePublished": str(citation["date-released"]),
        "license": f"https://spdx.org/licenses/{citation['license']}",
        "author": [person(one) for one in citation["authors"]],
        "keywords": PROJECT["project"]["keywords"],
        "programmingLanguage": "Python",
        "runtimePlatform": f"Python {PROJECT['project']['requires-python']}",
        "referencePublication": {
            "@type": "ScholarlyArticle",
            "name": cited["title"],
            "datePublished": str(cited["year"]),
            "author": [person(one) for one in cited["authors"]],
        },
    }
    if repository:
        told |= {
            "codeRepository": repository,
            "issueTracker": f"{repository}/issues",
            "continuousIntegration": workflow_address(repository),
            "readme": file_address(repository, "README.md"),
        }
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def files(repository: str, released: bool) -> dict[str, str]:
    """Each file that names the address or says how to install, as it is to be."""
    names = ("README.md", "CITATION.cff", "recipe/recipe.yaml")
    text = {name: (ROOT / name).read_text("utf-8") for name in names}
    citation = yaml.safe_load(text["CITATION.cff"])
    return {
        "README.md": readme(text["README.md"], repository, released),
        "CITATION.cff": with_line(
            text["CITATION.cff"], "license", "repository-code", repository
        ),
        "recipe/recipe.yaml": with_line(
            text["recipe/recipe.yaml"], "  license_file", "  repository", repository
        ),
        "codemeta.json": codemeta(citation, repository),
    }


# --- the site -------------------------------------------------------------------


def buttons(page: str, repository: str) -> list[dict]:
    """What a page's header links in the repository."""
    source = file_address(repository, source_of_page(page), "edit")
    claim = form_address(repository, "claim", where=page)
    links = [
        ("Repository", repository, "fab fa-github"),
        ("Edit this page", source, "fas fa-pencil"),
        ("Report a mistake", claim, "fas fa-lightbulb"),
    ]
    if page == "docs/explorer":
        links.append(
            ("Judge my pair", form_address(repository, "pair"), "fas fa-scale-balanced")
        )
    if page.startswith("notebooks/"):
        address = binder_address(repository, f"{page}.ipynb")
        links.append(("Run on Binder", address, "fas fa-rocket"))
    return [
        {
            "type": "link",
            "text": text,
            "tooltip": text,
            "url": url,
            "icon": icon,
            "label": "source-button",
        }
        for text, url, icon in links
    ]


def offer(app, page, template, context, doctree):
    """Add the buttons to a page that has a source."""
    if app.config.repository and doctree is not None:
        group = {
            "type": "group",
            "tooltip": "Where this page lives",
            "icon": "fab fa-github",
            "buttons": buttons(page, app.config.repository),
            "label": "source-buttons",
        }
        context.setdefault("header_buttons", []).append(group)


def fill(app, document, source):
    """Say on the first page how to install."""
    said = install_from_the_site(RELEASED)
    source[0] = source[0].replace("<!-- install -->", said)


def setup(app):
    app.add_config_value("repository", REPOSITORY, "html")
    app.connect("source-read", fill)
    # After the theme, which makes its own buttons at 501.
    app.connect("html-page-context", offer, priority=600)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    for name, text in files(REPOSITORY, RELEASED).items():
        (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
