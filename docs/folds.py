"""Folds that a reader opens: proofs, whole files, tables, and the code of the lectures.

The element `details` opens without a script, and stays closed in print. GitHub shows it
too. Of the code of a lecture what it prints is under the fold; claims, figures and
tables are shown. Exercises, their stubs and their solutions stay open, as they are what
one comes for, and so does the code of a lecture's first three claims. Cells that show
nothing share the fold of the cell of code that follows. A switch that
`static/lecture.js` puts on the page opens all.
"""

from html import escape

from docutils import nodes

OPEN = {"exercise", "stub", "solution"}
CENTRAL = 3  # claims whose code is open


def opening(title, classes="folded", is_open=False):
    """The HTML that a fold begins with; `</details>` ends it."""
    more = " open" * is_open
    return f'<details class="{classes}"{more}>\n<summary>{escape(title)}</summary>\n'


def fold(title, text, classes="folded"):
    """Text in MyST under a fold."""
    return f"{opening(title, classes)}\n{text}\n\n</details>\n"


def is_part(node, name):
    """Whether a node is a cell of code, its source or its output, as MyST-NB has it."""
    return isinstance(node, nodes.container) and node.get("nb_element") == name


def foldable(node):
    """Whether a node is a cell of code to be folded."""
    if not is_part(node, "cell_code"):
        return False
    return not OPEN & set(node["cell_metadata"].get("tags", []))


def fold_code(app, document):
    """Put the source of each cell, and what it prints, under a fold."""
    central, folds = 0, []  # the second of the cells before that show nothing
    for cell in [*document.findall(foldable)]:
        logs = [*cell.findall(is_log)]
        for log in logs:
            log.parent.remove(log)
        cell[1:1] = logs
        outputs = [x for x in cell if is_part(x, "cell_code_output")]
        folds += [x for x in cell if x not in outputs]
        shown = [x for x in outputs if len(x)]
        following = cell.next_node(descend=False, siblings=True)
        if not shown and following is not None and foldable(following):
            cell.parent.remove(cell)
            continue
        is_central = central < CENTRAL and shows_claim(cell)
        central += is_central
        begin = nodes.raw("", opening("Code", "folded code", is_central), format="html")
        end = nodes.raw("", "</details>", format="html")
        cell.clear()
        cell += [begin, *folds, end, *shown]
        folds = []


def shows_claim(cell):
    """Whether a cell shows the sentence of a claim."""
    return any("claim" in node["classes"] for node in cell.findall(nodes.paragraph))


def is_log(node):
    """Whether a node is what a cell prints."""
    return isinstance(node, nodes.literal_block) and "stream" in node["classes"]


def setup(app):
    # After the claims, which know a cell by its place.
    app.connect("doctree-read", fold_code, priority=600)
    app.add_js_file("lecture.js", defer="defer")
    app.add_css_file("lecture.css")
    return {"parallel_read_safe": True}
