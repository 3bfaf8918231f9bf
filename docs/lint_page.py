"""The rules of lint.md, from the library's lint.toml: as a table and for lint.js.

`python docs/lint_page.py` writes the script that lint.js reads.
"""

import json
import re
from pathlib import Path

from coverage_page import links, table

from qdtheory.metrics.lint import BOOK

DATA = Path(__file__).parent / "static/lint_data.js"
FORMULAS = "when", "low", "high"
ARGUMENTS = ", ".join("mnksabcdef")  # orders, and the entries of a rule
TITLES = ("What holds", "Unless", "Shown by")


def script():
    """The names, patterns and rules, and each formula of them as a function."""
    text = json.dumps(BOOK, separators=(",", ":"), ensure_ascii=False)
    found = {rule[part]: None for rule in BOOK["rules"] for part in FORMULAS}
    functions = ",\n".join(f"{json.dumps(x)}: ({ARGUMENTS}) => {js(x)}" for x in found)
    scope = "{ min, max, log, exp, sqrt, ceil }"
    formulas = f"(({scope}) => ({{\n{functions}\n}}))(Math)"
    return f"const LINT = {text};\nconst LINT_FORMULAS = {formulas};\n"


def js(formula):
    """A formula in JavaScript."""
    return formula.replace(" and ", " && ").replace(" or ", " || ")


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
