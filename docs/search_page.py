"""The texts that the page of search results quotes, and where a search leads at once.

A browser lets no script read other pages from the disk. So each build writes them, by
page and section, into a script that static/search_results.js looks through.
search_words.csv lists what people type, and the section that answers it: its words need
not stand on the page, which gets them as its keywords.
"""

import json
import re
from pathlib import Path

from coverage_page import CLAIM, parts, rows
from docutils import nodes
from parts_page import place_of
from sphinx import addnodes
from sphinx.util import logging

logger = logging.getLogger(__name__)

WORDS = Path(__file__).with_name("search_words.csv")
TEXTS = "_static/search_texts.js"
MARKUP = re.compile(r"\\(?:text|mathrm|mathbb|left|right|,|;|!)|[\\{}]")  # of formulas


def section_of(node):
    """The nearest anchor above a node, with its name: a section or a definition."""
    while node is not None:
        if isinstance(node, nodes.section):
            return node["ids"][0], node[0].astext()
        if isinstance(node, addnodes.desc) and (ids := node[0]["ids"]):
            return ids[0], ids[0].rpartition(".")[2]
        node = node.parent
    return "", ""


def quoted(node):
    """What can be quoted of a node: a paragraph, and of what cells print the claims."""
    if isinstance(node, nodes.paragraph):
        said = MARKUP.sub("", node.astext().replace("<br>", " "))
        return " ".join(said.split())
    if isinstance(node, nodes.literal_block):
        return " ".join(node.astext().split()) if CLAIM.match(node.astext()) else ""
    return ""


def texts(doctree):
    """Anchor, name and text of each section of a page."""
    found = {}
    for node in doctree.findall():
        if said := quoted(node):
            found.setdefault(section_of(node), []).append(said)
    return [(*where, "\n".join(said)) for where, said in found.items()]


def add_keywords(app, document):
    """Have searches, ours and others, find a page by the words of its rows."""
    listed = (row["words"] for row in rows(WORDS) if row["page"] == app.env.docname)
    words = dict.fromkeys(re.findall(r"\w+", " ".join(listed)))
    if words:
        document += nodes.meta("", name="keywords", content=", ".join(words))
        app.env.note_dependency(str(WORDS))


def shortcuts(pages):
    """The rows of search_words.csv: words, page and anchor of each."""
    for row in rows(WORDS):
        page, anchor = row["page"], row["anchor"]
        known = {id for id, *_ in pages.get(page, {}).get("texts", [])}
        if anchor not in {"", *known} or page not in pages:
            logger.warning("%s: no section %s of %s", WORDS.name, anchor, page)
        yield [parts(row["words"]), page, anchor]


def write(app, exception):
    """Write the texts of all pages, and the shortcuts."""
    if exception or app.builder.format != "html":
        return
    pages = {
        name: {
            "title": app.env.titles[name].astext(),
            "place": place_of(name),
            "texts": texts(app.env.get_doctree(name)),
        }
        for name in sorted(app.env.found_docs)
    }
    script = "".join(
        f"const {name} = {json.dumps(value, ensure_ascii=False)};\n"
        for name, value in (("PAGES", pages), ("SHORTCUTS", [*shortcuts(pages)]))
    )
    Path(app.outdir, TEXTS).write_text(script, encoding="utf-8")


def setup(app):
    app.connect("doctree-read", add_keywords)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
