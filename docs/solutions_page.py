"""Solutions below a lecture's exercises, folded, as the solution notebook ran them.

A reader's notebook has no solutions. On the site, the text, code and output that a
solution notebook holds between two cells of an exercise stand folded after the second.
"""

import json
from pathlib import Path

from notebook_cells import cells_of, source_of, tags_of

SOLUTIONS = Path(__file__).parents[1] / "notebooks/solutions"


def markdown(source):
    """A cell of text."""
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def from_below(cell):
    """A cell of the folder below: the links of its text lead from this folder."""
    if cell["cell_type"] != "markdown":
        return cell
    return cell | {"source": source_of(cell).replace("](../", "](")}


def folded(cells, name):
    """The cells of a solution under a switch, with a link to the notebook that ran."""
    link = (
        f"[The solutions as a notebook](solutions/{name}.ipynb), to download and run."
    )
    return [
        markdown('<details class="solution">\n<summary>Solutions</summary>'),
        *map(from_below, cells),
        markdown(f"{link}\n\n</details>"),
    ]


def with_solutions(cells, solved, name):
    """The cells of a lecture, each group of solutions after the cell that checks it."""
    groups, group = {}, []
    for cell in solved:
        if "solution" in tags_of(cell):
            group.append(cell)
        elif group:
            groups[source_of(cell)] = folded(group, name)
            group = []
    assert not group, f"{name}: no cell checks the last solution"
    found = [cell for one in cells for cell in (one, *groups.pop(source_of(one), ()))]
    assert not groups, f"{name} lacks the cell {next(iter(groups))!r}"
    return found


def fill(app, document, source):
    """Put a lecture's solutions into it, and their page below it in the sidebar."""
    folder, _, name = document.rpartition("/")
    path = SOLUTIONS / f"{name}.ipynb"
    if folder != "notebooks" or not path.exists():
        return
    app.env.note_dependency(path)
    book = json.loads(source[0])
    cells = with_solutions(book["cells"], cells_of(path), name)
    cells.append(markdown(f"```{{toctree}}\n:hidden:\n\nsolutions/{name}\n```"))
    for number, cell in enumerate(cells, start=1):
        cell["id"] = f"cell-{number}"
    source[0] = json.dumps(book | {"cells": cells})


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
