"""The code of the lectures under a fold, with what it prints; what it shows stays.

Claims, figures and tables are shown. Exercises, their stubs and their solutions stay
open, as they are what one comes for, and so does the code of a lecture's first three
claims. Cells that show nothing share the fold of the cell of code that follows. A
switch that `static/lecture.js` puts on the page opens all.
"""

from docutils import nodes
from folded import folded

OPEN = {"exercise", "stub", "solution"}
CENTRAL = 3  # claims whose code is open


def is_part(node, name):
    """Whether a node is a cell of code, its source or its output, as MyST-NB has it."""
    return isinstance(node, nodes.container) and node.get("nb_element") == name


def foldable(node):
    """Whether a node is a cell of code to be folded."""
    if not is_part(node, "cell_code"):
        return False
    return not OPEN & set(node["cell_metadata"].get("tags", []))


def after(node):
    """The next node beside this one, or None."""
    place = node.parent.index(node) + 1
    return node.parent[place] if place < len(node.parent) else None


def fold(app, document):
    """Put the source of each cell, and what it prints, under a fold."""
    central, folds = 0, []  # the second of the cells before that show nothing
    for cell in [*document.findall(foldable)]:
        logs = [*cell.findall(is_log)]
        for log in logs:
            log.parent.remove(log)
        cell[1:1] = logs
        empty = [x for x in cell if is_part(x, "cell_code_output") and not len(x)]
        shown = [x for x in cell if is_part(x, "cell_code_output") and len(x)]
        folds += [x for x in cell if x not in [*empty, *shown]]
        if not shown and foldable(after(cell)):
            cell.parent.remove(cell)
            continue
        is_central = central < CENTRAL and shows_claim(cell)
        central += is_central
        fold = folded("", *folds, summary="Code", classes=["folded", "code"])
        fold["open"] = is_central
        cell.clear()
        cell += [fold, *shown]
        folds = []


def shows_claim(cell):
    """Whether a cell shows the sentence of a claim."""
    return any("claim" in node["classes"] for node in cell.findall(nodes.paragraph))


def is_log(node):
    """Whether a node is what a cell prints."""
    return isinstance(node, nodes.literal_block) and "stream" in node["classes"]


def setup(app):
    app.setup_extension("folded")
    # After the claims, which know a cell by its place.
    app.connect("doctree-read", fold, priority=600)
    app.add_js_file("lecture.js", defer="defer")
    app.add_css_file("lecture.css")
    return {"parallel_read_safe": True}
