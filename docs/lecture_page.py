"""What the page of a lecture has beside its notebook.

Its proofs, cells of text tagged `proof`, are folded. Where it says what it needs it
links its archive and the package, which are no files of the repository. Below its
exercises is a link to the solutions: a reader's notebook has none, the solution
notebook, as it ran, is a page of its own. In the sidebar that stands below its lecture,
as do lectures with its number and a letter.
"""

import json

from address import RELEASED, WHEEL
from downloads import NEEDS
from folds import fold
from notebook_cells import NOTEBOOKS, source_of, tags_of
from parts_page import below, contents

LINK = "**[Solutions](solutions/{}.ipynb)**, as a notebook that ran."


def alone(name):
    """Links to all that a notebook needs to run alone."""
    link = f'<a href="../downloads/{name}.zip">the notebook with its tables</a>'
    if not RELEASED:
        link += f' and <a href="../downloads/{WHEEL}">the package</a>'
    return f"**To run it alone** {link}"


def complete(app, document, source):
    """Add to a notebook's source what its page has beside."""
    folder, _, name = document.rpartition("/")
    if not document.startswith("notebooks/"):
        return
    book = json.loads(source[0])
    cells = book["cells"]
    for cell in cells:
        if cell["cell_type"] == "markdown" and "proof" in tags_of(cell):
            cell["source"] = fold("Proof", source_of(cell), "folded proof")
    if folder == "notebooks":
        for cell in cells[:4]:
            said = rf"\g<0> · {alone(name)}"
            cell["source"] = NEEDS.sub(said, source_of(cell))
        is_solved = (NOTEBOOKS / f"solutions/{name}.ipynb").exists()
        entry = [f"Solutions <solutions/{name}>"] * is_solved
        text = LINK.format(name) * is_solved + contents(below(name), *entry)
        checks = [i for i, cell in enumerate(cells) if "exercise" in tags_of(cell)]
        cell = {"cell_type": "markdown", "metadata": {}, "source": text}
        cells.insert(max(checks, default=len(cells)) + 1, cell | {"id": "solutions"})
    source[0] = json.dumps(book)


def setup(app):
    app.connect("source-read", complete)
    return {"parallel_read_safe": True}
