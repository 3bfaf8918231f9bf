"""Sphinx settings: the notebooks as committed, and the reference from docstrings."""

import importlib.util
import re
import sys
import typing
from pathlib import Path

# jaxtyping writes `Float[Array, "texts"]` in signatures if this is set before it,
# or anything that imports it, is loaded.
typing.GENERATING_DOCUMENTATION = "qdtheory"

project = "qdtheory"
author = "The qdtheory authors"
copyright = author
sys.path.append(str(Path(__file__).parent))  # where the pages' tables are
extensions = [
    "course_pages",
    "coverage_page",
    "metrics_page",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]

ROOT = Path(__file__).parents[1]

# The source folder is the repository, so that notebooks stay where they are.
root_doc = "docs/index"
include_patterns = ["docs/*.md", "docs/generated/*", "notebooks/**.ipynb"]
# Absolute: autosummary would look beside the sources, not beside this file.
templates_path = [str(Path(__file__).parent / "templates")]

nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # a property listed among the attributes is no duplicate
napoleon_attr_annotations = False  # `*batch` would begin an emphasis

html_theme = "sphinx_book_theme"
html_title = "qdtheory"
html_show_copyright = False
# The download button gives a page's source: the notebook itself.
# One level of the sidebar: the theme gives the switches of deeper ones no name.
html_theme_options = {"max_navbar_depth": 1, "use_download_button": True}
html_context = {"default_mode": "auto"}  # else the theme's script logs an error
# A summary is fetched from the page, which a browser refuses to pages on the disk.
html_show_search_summary = False

# MathJax comes from a package, so that the site asks nothing of the network.
(mathjax,) = importlib.util.find_spec(
    "sphinx-mathjax-offline"
).submodule_search_locations
html_static_path = [
    "static",
    str(Path(mathjax, "static", "mathjax", "tex-svg-full.js")),
]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
mathjax_path = "tex-svg-full.js"


def markup(match):
    """Turn dollars into Sphinx's maths, and keep `|V|`, a size, as it is."""
    display, formula, size = match.groups()
    if display:
        return f"\n\n.. math:: {' '.join(display.split())}\n\n"
    return f":math:`{formula}`" if formula else rf"\|{size}\|"


def plain_to_rst(app, what, name, obj, options, lines):
    """Rewrite a docstring, in place, for Sphinx; a formula may span lines."""
    pattern = r"\$\$([^$]+)\$\$|\$([^$]+)\$|\|(\w+)\|"
    lines[:] = re.sub(pattern, markup, "\n".join(lines)).split("\n")


def number_the_notebooks(app, document, source):
    """Give the notebooks their files' numbers in the first page's tables of contents.

    The option `glob` stays: it has Sphinx read the page again when one is added.
    """
    if document != root_doc:
        return
    for folder in ("notebooks", "notebooks/solutions"):
        entries = ""
        for path in sorted((ROOT / folder).glob("*.ipynb")):
            text = ROOT / "notebooks/src" / f"{path.stem}.md"
            app.env.note_dependency(text)
            title = re.search(r"^# (.+)$", text.read_text("utf-8"), re.MULTILINE)[1]
            entries += f"{path.stem.split('_')[0]} {title} <../{folder}/{path.stem}>\n"
        pattern = f"../{folder}/*\n"
        source[0] = source[0].replace(pattern, entries)


def setup(app):
    app.connect("source-read", number_the_notebooks)
    app.connect("autodoc-process-docstring", plain_to_rst)
