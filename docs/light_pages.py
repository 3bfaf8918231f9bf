"""Leave out of the site what no reader sees.

Names, brackets and spaces in code have the colour of text, so they need no element of
their own: these were a sixth of all pages. The theme brings two thousand icons, of
which the pages show some twenty, maps for debugging its scripts, and words in other
languages.
"""

import re
import shutil
from pathlib import Path

from pygments.formatters import HtmlFormatter
from pygments.token import Name, Punctuation, Whitespace
from sphinx.highlighting import PygmentsBridge

PLAIN = {Name, Punctuation, Whitespace}

# An icon in the script of Font Awesome: its name, other names, and its outline.
ICON = re.compile(
    r'"?([a-z0-9-]+)"?:\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",'
    r'(?:"[^"]*"|\[(?:"[^"]*",?)+\])\],?'
)


class PlainFormatter(HtmlFormatter):
    """Code without elements for what has no colour."""

    def _get_css_classes(self, ttype):
        return "" if ttype in PLAIN else super()._get_css_classes(ttype)


def icons(texts):
    """The names of the icons that pages and scripts ask for."""
    return {name for text in texts for name in re.findall(r"\bfa-([a-z0-9-]+)", text)}


def without_others(script, names):
    """The script with these icons alone."""

    def kept(match):
        found = {match[1], *re.findall(r'"([^"]+)"', match[2])}
        return match[0] if found & names else ""

    return ICON.sub(kept, script)


def prune(app, exception):
    """Remove what only the theme's authors, or other sites, need."""
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    for path in static.rglob("*.map"):
        path.unlink()
    shutil.rmtree(static / "locales", ignore_errors=True)
    script = static / "scripts/fontawesome.js"
    others = [*static.rglob("*.js"), *Path(app.outdir).rglob("*.html")]
    others.remove(script)
    names = icons(path.read_text("utf-8") for path in others)
    script.write_text(without_others(script.read_text("utf-8"), names), "utf-8")


def setup(app):
    PygmentsBridge.html_formatter = PlainFormatter
    app.connect("build-finished", prune)
    return {"parallel_read_safe": True}
