"""A fold that a reader opens: code, a proof, a whole file.

The element `details` opens without a script, and stays closed in print. In MyST:

    ```{folded} Proof
    Text.
    ```

A cell of text that carries the tag `proof` is folded under "Proof".
"""

import json
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from notebook_cells import source_of, tags_of
from sphinx.util.docutils import SphinxDirective

FENCE = "`" * 12  # more than a cell's own


class folded(nodes.General, nodes.Element):
    """What lies under a `summary`."""


def visit(translator, node):
    opened = {"open": "open"} if node.get("open") else {}
    translator.body.append(translator.starttag(node, "details", **opened))
    summary = translator.encode(node["summary"])
    translator.body.append(f"<summary>{summary}</summary>\n")


def depart(translator, node):
    translator.body.append("</details>\n")


class Folded(SphinxDirective):
    """Fold the content under the title."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {"class": directives.class_option}

    def run(self):
        classes = ["folded", *self.options.get("class", [])]
        node = folded(summary=self.arguments[0], classes=classes)
        node += self.parse_content_to_nodes()
        return [node]


def fold_proofs(app, document, source):
    """Put the cells of a notebook that are a proof into the directive."""
    if not document.startswith("notebooks/"):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        is_text = cell["cell_type"] == "markdown"
        if is_text and "proof" in tags_of(cell):
            head = f"{FENCE}{{folded}} Proof\n:class: proof\n\n"
            cell["source"] = head + source_of(cell) + f"\n{FENCE}"
    source[0] = json.dumps(notebook)


def setup(app):
    app.add_node(folded, html=(visit, depart))
    app.add_directive("folded", Folded)
    app.connect("source-read", fold_proofs)
    return {"parallel_read_safe": True}
