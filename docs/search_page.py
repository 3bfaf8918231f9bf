"""The texts that the page of search results quotes.

A browser lets no script read other pages from the disk. So each build writes them, by
page and section, into a script that static/search_results.js looks through.
"""

import json
import re
from pathlib import Path

from coverage_page import CLAIM
from docutils import nodes
from parts_page import place_of
from sphinx import addnodes

TEXTS = "_static/search_texts.js"
MARKUP = re.compile(r"\\(?:text|mathrm|mathbb|left|right|,|;|!)|[\\{}]")  # of formulas


def section_of(node):
    """The nearest anchor above a node, with its name: a section or a definition."""
    while node is not None:
        if isinstance(node, nodes.section):
            return node["ids"][0], node[0].astext()
        if isinstance(node, addnodes.desc):
            ids = node[0]["ids"]
            return (
                (ids[0], ids[0].rpartition(".")[2]) if ids else section_of(node.parent)
            )
        node = node.parent
    return "", ""


def quoted(node):
    """What can be quoted of a node: a paragraph, and of printed lines the claims."""
    if isinstance(node, nodes.paragraph):
        said = MARKUP.sub("", node.astext().replace("<br>", " "))
        return " ".join(said.split())
    if isinstance(node, nodes.literal_block):
        lines = (line for line in node.astext().splitlines() if CLAIM.match(line))
        return " ".join(" ".join(line.split()) for line in lines)
    return ""


def texts(doctree):
    """Anchor, name and text of each section of a page."""
    found = {}
    for node in doctree.findall():
        if said := quoted(node):
            found.setdefault(section_of(node), []).append(said)
    return [(*where, "\n".join(said)) for where, said in found.items()]


def write(app, exception):
    """Write the texts of all pages."""
    if exception or app.builder.format != "html":
        return
    pages = {
        name: {"place": place_of(name), "texts": texts(app.env.get_doctree(name))}
        for name in sorted(app.env.found_docs)
    }
    script = f"const PAGES = {json.dumps(pages, ensure_ascii=False)};\n"
    Path(app.outdir, TEXTS).write_text(script, encoding="utf-8")


def setup(app):
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
