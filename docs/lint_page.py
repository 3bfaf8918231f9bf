"""The rules of lint.md, from the library's lint.toml: as a table and for lint.js.

`python docs/lint_page.py` writes the script that lint.js reads.
"""

import json
import re
from pathlib import Path

from coverage_page import links, table

from qdtheory.metrics.lint import BOOK

DATA = Path(__file__).parent / "static/lint_data.js"
TITLES = ("What holds", "Unless", "Shown by")


def script():
    """The names, patterns and rules."""
    text = json.dumps(BOOK, separators=(",", ":"), ensure_ascii=False)
    return f"const LINT = {text};\n"


def cells(rule):
    """The row of one rule."""
    columns = [re.sub("-[ks]$", "", column) for column in rule["columns"]]
    words = dict(zip("abcd", columns), m="m", n="n")
    says, unless = (rule[part].format(**words) for part in ("says", "unless"))
    metrics = f", X being {', '.join(rule['each'])}" if "each" in rule else ""
    shown = rule["shown"]
    if re.fullmatch(r"[A-Z]\d+\.\d+", shown):
        shown = links(shown)
    return f"`{says}`{metrics}", unless or "no exception", shown


def fill(app, document, source):
    """Put the table and the names where lint.md has comments."""
    if document == "docs/lint":
        rules = table(TITLES, "50 35 15", map(cells, BOOK["rules"]))
        sizes = {*BOOK["sizes"]}
        names = ", ".join(name for name in BOOK["names"] if name not in sizes)
        source[0] = source[0].replace("<!-- rules -->", rules)
        source[0] = source[0].replace("<!-- names -->", names)


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    DATA.write_text(script(), encoding="utf-8")
