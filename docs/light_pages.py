"""Leave out of the site what no reader sees.

Names, brackets and spaces in code have the colour of text, so they need no element of
their own: these were a sixth of all pages. The theme brings maps for debugging its
scripts, and words in other languages.
"""

import shutil
from pathlib import Path

from pygments.formatters import HtmlFormatter
from pygments.token import Name, Punctuation, Whitespace
from sphinx.highlighting import PygmentsBridge

PLAIN = {Name, Punctuation, Whitespace}


class PlainFormatter(HtmlFormatter):
    """Code without elements for what has no colour."""

    def _get_css_classes(self, ttype):
        return "" if ttype in PLAIN else super()._get_css_classes(ttype)


def prune(app, exception):
    """Remove the theme's files that only its authors need."""
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    for path in static.rglob("*.map"):
        path.unlink()
    shutil.rmtree(static / "locales", ignore_errors=True)


def setup(app):
    PygmentsBridge.html_formatter = PlainFormatter
    app.connect("build-finished", prune)
    return {"parallel_read_safe": True}
