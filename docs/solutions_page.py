"""Solutions behind a link below a lecture's exercises; other lectures below it.

A reader's notebook has no solutions: the solution notebook, as it ran, is a page of its
own. In the sidebar it stands below its lecture.
"""

import json

from notebook_cells import NOTEBOOKS, tags_of
from parts_page import below, contents

LINK = "**[Solutions](solutions/{}.ipynb)**, as a notebook that ran."


def fill(app, document, source):
    """Link a lecture's solutions, and give the sidebar what stands below it."""
    folder, _, name = document.rpartition("/")
    if folder != "notebooks":
        return
    text, pages = "", contents(below(name)) if below(name) else ""
    if (NOTEBOOKS / f"solutions/{name}.ipynb").exists():
        text = LINK.format(name)
        pages += f"\n\n```{{toctree}}\n:hidden:\n\nSolutions <solutions/{name}>\n```"
    book = json.loads(source[0])
    cells = book["cells"]
    checks = [i for i, cell in enumerate(cells) if "exercise" in tags_of(cell)]
    cell = {"cell_type": "markdown", "metadata": {}, "source": text + pages}
    cells.insert(max(checks, default=len(cells)) + 1, cell | {"id": "solutions"})
    source[0] = json.dumps(book)


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
