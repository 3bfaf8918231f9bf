"""The tables of coverage.md, made from coverage.csv and what the notebooks print.

A row of coverage.csv is an item of a paper: what it says in our words, its status, the
claims that show it, and a note. Of the first claim the sentence is shown; `lines` names
printed lines of the same notebook by how they begin, "COCO > BS-2" being the first BS-2
after COCO. `published` selects from published.csv, "paper:table:row:column" with
wildcards. Lists are separated by semicolons, "N8.3-N8.5" stands for three claims.
"""

import csv
import re
from collections import Counter
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from notebook_cells import NOTEBOOKS, cells_of, joined, lectures

DOCS = Path(__file__).parent
ITEMS = DOCS / "coverage.csv"
PUBLISHED = NOTEBOOKS / "data/published.csv"

PAPERS = {
    "li2020": "Li 2020",
    "montahaei2019": "Montahaei 2019",
    "semeniuta2018": "Semeniuta 2018",
    "cifka2018": "Cífka 2018",
}
STATUSES = (
    "proved",
    "exact",
    "certified",
    "searched",
    "in a small world",
    "on other text",
    "shown beside",
    "not done",
)
BEYOND = "beyond"  # in place of a paper: claims that no paper makes

CLAIM = re.compile(r"^([A-Z][A-Za-z]*\d+\.\d+)\s+", re.MULTILINE)


def rows(path):
    """Rows of a table, each a dictionary."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def parts(cell):
    """Entries of a list in a cell."""
    return [part.strip() for part in cell.split(";") if part.strip()]


# --- what the notebooks print -------------------------------------------------


@cache
def printed():
    """What the cells of each notebook print or show, in plain text."""
    return {
        path.stem: [
            text_of(output)
            for cell in cells_of(path)
            for output in cell.get("outputs", [])
        ]
        for path in lectures()
    }


def text_of(output):
    """What an output says in plain text."""
    return joined(output.get("text") or output.get("data", {}).get("text/plain", ""))


@cache
def claims():
    """Each claim's notebook, and what is said of it after its id."""
    found = {}
    for notebook, texts in printed().items():
        for text in texts:
            _, *pieces = CLAIM.split(text)
            for claim, figure in zip(pieces[::2], pieces[1::2], strict=True):
                _, figures = found.setdefault(claim, (notebook, []))
                figures.append(" ".join(figure.split()))
    return found


def ids(cell):
    """Claims named in a cell, ranges written out."""
    for part in parts(cell):
        first, _, last = part.partition("-")
        stem, start = first.rsplit(".", 1)
        for number in range(int(start), int((last or first).rsplit(".", 1)[1]) + 1):
            yield f"{stem}.{number}"


def line(notebook, beginnings):
    """The line a path like "COCO > BS-2" leads to."""
    lines = "\n".join(printed()[notebook]).splitlines()
    left = (" ".join(text.split()) for text in lines)
    for beginning in beginnings.split(" > "):
        found = next(text for text in left if text.startswith(beginning))
    return found


# --- the cells of the page ----------------------------------------------------


def links(cell):
    """Claims as links to their notebooks, one link a notebook."""
    names = {}
    for part in parts(cell):
        notebook, _ = claims()[part.split("-")[0]]
        names.setdefault(notebook, []).append(part.replace("-", " to "))
    return ", ".join(
        f"[{', '.join(found)}](../notebooks/{notebook}.ipynb)"
        for notebook, found in names.items()
    )


def said(row):
    """What an item says; the note there too, unless it is the reason for a gap."""
    note = row["note"] if row["claims"] else ""
    return "<br>".join(filter(None, [row["says"], note]))


def shown(row):
    """Published values beside what the notebook prints, or why there is nothing."""
    values = row["published"] and f"published: {published(row['published'])}"
    if not row["claims"]:
        return "<br>".join(filter(None, [values, row["note"]]))
    notebook, figures = claims()[next(ids(row["claims"]))]
    if row["lines"]:
        figures = [f"`{line(notebook, path)}`" for path in parts(row["lines"])]
    return "<br>".join(filter(None, [links(row["claims"]), values, *figures]))


def published(cell):
    """Selected values, each with the words that tell it from the others."""
    chosen = [
        ([*r["row"].split(), *r["column"].split()], r["value"])
        for selector in parts(cell)
        for r in rows(PUBLISHED)
        if all(map(fnmatchcase, list(r.values())[:4], selector.split(":")))
    ]
    names = [name for name, _ in chosen]
    for _ in range(2):  # cut the common beginning, turn round, cut the common end
        while names and all(names) and len({name[0] for name in names}) == 1:
            names = [name[1:] for name in names]
        names = [name[::-1] for name in names]
    return ", ".join(
        " ".join([*name, value]) for name, (_, value) in zip(names, chosen, strict=True)
    )


def table(header, widths, cells, kind="stacked"):
    """A table in MyST; on a small screen the cells of a row stand below each other."""
    lines = ["```{list-table}", ":header-rows: 1", f":class: {kind}"]
    lines += [f":widths: {widths}", ""]
    for row in (header, *cells):
        lines += [f"{'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join([*lines, "```"])


def paper_table(items):
    """A paper's items and what shows them."""
    cells = (
        (
            f"**{row['item']}**<br>{row['status']}",
            said(row),
            shown(row),
        )
        for row in items
    )
    return table(("Item", "What it says, in our words", "Shown by"), "20 34 46", cells)


def beyond_table(items):
    """What the notebooks show that no paper claims."""
    cells = ((f"**{row['item']}**", row["says"], shown(row)) for row in items)
    return table(("Subject", "What is shown", "Shown by"), "20 34 46", cells)


def totals(items):
    """Items by paper and status."""
    count = Counter((row["paper"], row["status"]) for row in items)
    by_paper = {
        name: [count[paper, status] for status in STATUSES]
        for paper, name in PAPERS.items()
    }
    by_paper["**All four**"] = [sum(x) for x in zip(*by_paper.values(), strict=True)]
    cells = ((name, *numbers, sum(numbers)) for name, numbers in by_paper.items())
    return table(
        ("Paper", *STATUSES, "items"), "16 11 10 12 12 13 12 13 13 10", cells, "numbers"
    )


def tables():
    """Every table of the page under the name of its place."""
    items = rows(ITEMS)
    by_paper = {
        paper: [r for r in items if r["paper"] == paper] for paper in (*PAPERS, BEYOND)
    }
    return {
        "totals": totals(items),
        BEYOND: beyond_table(by_paper.pop(BEYOND)),
        **{paper: paper_table(chosen) for paper, chosen in by_paper.items()},
    }


def fill(app, document, source):
    """Put the tables where coverage.md has comments with their names."""
    if document == "docs/coverage":
        for name, text in tables().items():
            source[0] = source[0].replace(f"<!-- {name} -->", text)
        for path in (ITEMS, PUBLISHED, *lectures()):
            app.env.note_dependency(path)


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
