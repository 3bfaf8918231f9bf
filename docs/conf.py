"""Sphinx settings: the notebooks as committed, and the reference from docstrings."""

import os
import re
import sys
import typing
from pathlib import Path

# jaxtyping writes `Float[Array, "texts"]` in signatures if this is set before it,
# or anything that imports it, is loaded.
typing.GENERATING_DOCUMENTATION = "qdtheory"
sys.path.append(str(Path(__file__).parent))  # where the pages' modules are
import address  # noqa: E402
from course_pages import mathjax  # noqa: E402

project = "qdtheory"
author = "The qdtheory authors"
copyright = author
extensions = [
    "api_page",
    "claim_links",
    "course_pages",
    "downloads",
    "folds",
    "lecture_figures",
    "lecture_page",
    "light_pages",
    "made_pages",
    "theorem_boxes",
    "myst_nb",
    "parts_page",
    "search_page",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]

version = release = address.VERSION

# The source folder is the repository, so that notebooks stay where they are.
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/parts/*.md",
    "docs/generated/*",
    "notebooks/**.ipynb",
]
# Absolute: autosummary would look beside the sources, not beside this file.
templates_path = [str(Path(__file__).parent / "templates")]

nb_execution_mode = "off"
nb_render_markdown_format = "myst"  # of outputs: claims with math, tables
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
html_copy_source = False  # archives hold the notebooks
html_theme_options = {
    "logo": {"text": project},
    "use_download_button": False,  # the head of a lecture links its archive
    "extra_footer": address.LICENCES,
} | address.buttons(address.REPOSITORY)
# A summary is fetched from the page, which a browser refuses to pages on the disk:
# search_page.py brings the pages' texts in a script.
html_show_search_summary = False
html_extra_path = ["entrance"]  # `/` leads to the first page
html_favicon = html_logo = "static/favicon.svg"
# Where the site is published; other sites show a picture only of such an address.
html_baseurl = os.environ.get("SITE_ADDRESS", "")
# Without the mode the theme's script logs an error.
html_context = {"default_mode": "auto", "site": html_baseurl.rstrip("/")}

# MathJax comes from a package, so that the site asks nothing of the network.
html_static_path = ["static", str(mathjax())]
html_sidebars = {
    "**": [
        "navbar-logo.html",
        "version.html",
        "search-button-field.html",
        "sidebar_nav.html",
        "sidebar_place.html",
    ]
}
html_css_files = ["site.css", "scrolls.css"]
html_js_files = ["site.js", "scrolls.js"]
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


def setup(app):
    app.connect("autodoc-process-docstring", plain_to_rst)
