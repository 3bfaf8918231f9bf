"""The tables of your_paper.md, made from coverage.csv and what the notebooks print.

A row of coverage.csv is an item of a paper: what it says in our words, its status, the
claims that show it, a note, the place of the words that it was compared with, whether
it agrees, and the size. Of the first claim the sentence is shown; `lines` names printed
lines of the same notebook by how they begin, "COCO > BS-2" being the first BS-2 after
COCO. `published` selects from published.csv, "paper:table:row:column" with wildcards.
Lists are separated by semicolons, "N8.3-N8.5" stands for three claims.
"""

import csv
import re
from collections import Counter
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from folds import fold
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
VERDICTS = "agrees", "differs", "answered", "not done"
BEYOND = "beyond"  # in place of a paper: claims that no paper makes

CLAIM = re.compile(r"^([A-Z][A-Za-z]*\d+\.\d+)\s+", re.MULTILINE)


def rows(path):
    """Rows of a table, each a dictionary; a short row ends in empty cells."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, restval=""))


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
    """Claims after a link to each lecture that makes them."""
    names = {}
    for part in parts(cell):
        notebook, _ = claims()[part.split("-")[0]]
        names.setdefault(notebook, []).append(part.replace("-", " to "))
    return "<br>".join(
        f"[{name.split('_')[0]}](../notebooks/{name}.ipynb): {', '.join(found)}"
        for name, found in names.items()
    )


def named(row):
    """An item and its place, which repeats no section or table of the item."""
    head, _, rest = row["place"].partition(", ")
    place = rest if rest and row["item"].startswith(head) else row["place"]
    return f"**{row['item']}**<br>{place}"


def judged(row):
    """Whether an item agrees, how that is known, and at which size."""
    known = f", {row['status']}" * (row["status"] != row["verdict"])
    return f"**{row['verdict']}**{known}<br>{row['size'] or row['note']}"


def shown(row):
    """What was measured: published values, printed lines or a claim, and a note."""
    found = [row["published"] and f"published: {published(row['published'])}"]
    if row["claims"]:
        notebook, figures = claims()[next(ids(row["claims"]))]
        lines = [f"`{line(notebook, path)}`" for path in parts(row["lines"])]
        found += lines or figures
    return "<br>".join(filter(None, [*found, row["note"] * bool(row["size"])]))


def published(cell):
    """Selected values, each with the words that tell it from the others."""
    chosen = [
        ([*r["row"].split(), *r["column"].split()], r["value"])
        for selector in parts(cell)
        for r in rows(PUBLISHED)
        if all(map(fnmatchcase, list(r.values())[:4], selector.split(":")))
    ]
    common = set.intersection(*(set(name) for name, _ in chosen))
    words = ([w for w in name if w not in common] for name, _ in chosen)
    return ", ".join(
        " ".join([*w, value]) for w, (_, value) in zip(words, chosen, strict=True)
    )


def table(header, widths, cells, kind="stacked"):
    """A table in MyST; on a small screen the cells of a row stand below each other."""
    lines = ["```{list-table}", ":header-rows: 1", f":class: {kind}"]
    lines += [f":widths: {widths}", ""]
    for row in (header, *cells):
        lines += [f"{'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join([*lines, "```"])


def paper_tables(items):
    """A paper's items, and under a fold what was measured for each."""
    head = "Section, figure or table", "What it says", "Lecture: claims", "Here"
    front = ((named(r), r["says"], links(r["claims"]), judged(r)) for r in items)
    behind = ((f"**{row['item']}**", what) for row in items if (what := shown(row)))
    measured = table(("Item", "Printed there, measured here"), "20 80", behind)
    number = f"What was measured, for each of {len(items)} rows"
    return f"{table(head, '22 28 15 35', front)}\n\n{fold(number, measured)}"


def beyond_table(items):
    """What the notebooks show that no paper claims."""
    cells = (
        (f"**{r['item']}**<br>{links(r['claims'])}", r["says"], shown(r)) for r in items
    )
    return fold(
        "The subjects", table(("Subject", "What", "Shown by"), "20 34 46", cells)
    )


def totals(items):
    """Items by paper and verdict."""
    count = Counter((row["paper"], row["verdict"]) for row in items)
    lines = [(name, *(count[p, v] for v in VERDICTS)) for p, name in PAPERS.items()]
    lines.append(("**All four**", *map(sum, [*zip(*lines, strict=True)][1:])))
    head = "Paper", *VERDICTS, "rows"
    cells = ((*numbers, sum(numbers[1:])) for numbers in lines)
    return table(head, "25 15 15 15 15 15", cells, "numbers")


def texts():
    """The tables by the names of their comments in your_paper.md."""
    items = rows(ITEMS)
    by = {p: [r for r in items if r["paper"] == p] for p in (*PAPERS, BEYOND)}
    made = {"totals": totals(items), BEYOND: beyond_table(by.pop(BEYOND))}
    return made | {paper: paper_tables(found) for paper, found in by.items()}
