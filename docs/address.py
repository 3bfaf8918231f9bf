"""Where the project lives, and all that says so: `python docs/address.py`.

`tool.qdtheory` of pyproject.toml has the address of the repository, empty until there
is one, and whether a package index has a release. This script writes from them parts of
README.md, a line of CITATION.cff and one of recipe/recipe.yaml; a test compares. The
site takes from them how it says to install, and the theme's buttons: the repository, an
issue, and Binder. Without an address there are no such links.

Colab has no button: it opens a notebook without this package and without its tables.
"""

import re
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
REPOSITORY: str = PROJECT["tool"]["qdtheory"]["repository"]
RELEASED: bool = PROJECT["tool"]["qdtheory"]["released"]
VERSION: str = PROJECT["project"]["version"]
WHEEL = f"qdtheory-{VERSION}-py3-none-any.whl"
BINDER = "https://mybinder.org"
# What the project's own files need, and nobody else.
INNER = ("peers", "bench", "book", "test")
EXTRAS = [e for e in PROJECT["project"]["optional-dependencies"] if e not in INNER]
LICENCES = (
    'Text and figures: <a href="https://creativecommons.org/licenses/by/4.0/">'
    'CC BY 4.0</a>. Code: <a href="https://www.apache.org/licenses/LICENSE-2.0">'
    "Apache 2.0</a>."
)


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


def install_from_the_site() -> str:
    """The same for readers of the site's first page, who find the package there."""
    if RELEASED:
        return "To install it: `pip install qdtheory`."
    link = f'<a href="../downloads/{WHEEL}">{WHEEL}</a>'
    return f"To install it, download {link} and type `pip install ./{WHEEL}`."


# --- the theme's buttons --------------------------------------------------------


def buttons(repository: str) -> dict:
    """The theme's options for links into the repository, none without an address."""
    if not repository:
        return {}
    return {
        "repository_url": repository,
        "repository_branch": "main",
        "use_repository_button": True,
        "use_issues_button": True,
        "launch_buttons": {"binderhub_url": BINDER, "notebook_interface": "jupyterlab"},
    }


# --- files that name the address -----------------------------------------------


def badges(repository: str) -> str:
    """Pictures with links: do the tests pass, and the notebooks to run."""
    if not repository:
        return ""
    runs = f"{repository}/actions/workflows/test.yml"
    owner_and_name = repository.removeprefix("https://github.com/")
    place = "urlpath=lab/tree/notebooks/00_map.ipynb"
    return (
        f"[![Tests]({runs}/badge.svg)]({runs})\n"
        f"[![Run the notebooks on Binder]({BINDER}/badge_logo.svg)]"
        f"({BINDER}/v2/gh/{owner_and_name}/main?{place})"
    )


def report(repository: str) -> str:
    """Where to say that something is wrong, or to ask for a pair."""
    if not repository:
        return ""
    form = f"{repository}/issues/new?template="
    return (
        f"Ask us to [judge your pair]({form}pair.yml),"
        f" or say that [a claim fails]({form}claim.yml)."
    )


def readme(text: str, repository: str, released: bool) -> str:
    """README.md with the parts between its comments written anew."""
    parts = {
        "badges": badges(repository),
        "install": install(repository, released),
        "report": report(repository),
    }
    for name, part in parts.items():
        place = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
        filled = f"{part}\n" if part else ""
        text, count = re.subn(place, rf"\g<1>{filled}\2", text, flags=re.DOTALL)
        assert count == 1, f"README.md: expected one part {name}, found {count}"
    return text


def with_line(text: str, after: str, key: str, value: str) -> str:
    """YAML with `key: value` below the line that begins with `after`, or without it."""
    text = re.sub(rf"^{key}: .*\n", "", text, flags=re.MULTILINE)
    line = f"{key}: {value}\n" if value else ""
    return re.sub(rf"^({after}: .*\n)", rf"\1{line}", text, flags=re.MULTILINE)


def files(repository: str, released: bool) -> dict[str, str]:
    """Each file that names the address or says how to install, as it is to be."""
    names = ("README.md", "CITATION.cff", "recipe/recipe.yaml")
    own, citation, recipe = ((ROOT / name).read_text("utf-8") for name in names)
    citation = with_line(citation, "license", "repository-code", repository)
    recipe = with_line(recipe, "  license_file", "  repository", repository)
    texts = readme(own, repository, released), citation, recipe
    return dict(zip(names, texts, strict=True))


if __name__ == "__main__":
    for name, text in files(REPOSITORY, RELEASED).items():
        (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
