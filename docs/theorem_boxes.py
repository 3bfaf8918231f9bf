"""The statements of the lectures in numbered boxes, each with what vouches for it.

A quotation whose paragraph begins in bold, `> **Theorem 2 (1), Li et al. 2020.** Let`,
is a statement: "Theorem 3.2 (Theorem 2 (1), Li et al. 2020)", the second of lecture 03.
Below it stand, from its row in theorems.csv, the claims that check it, the second route
by which the tests do, and a link to its statement in Coq where a machine has checked a
proof; `part` says of what, if not of all.

sphinx-proof (0.4.0) would have the statements in directives, which GitHub and
JupyterLab do not show, counts each kind through the whole book, and gives all boxes
of a page one id. So a box is an admonition of docutils.
"""

import re

from coverage_page import DOCS, parts, rows
from docutils import nodes
from lecture_figures import lecture_number
from sphinx import addnodes

TABLE = DOCS / "theorems.csv"
DEFINITIONS = ("Definition", "Property")
KINDS = ("Theorem", "Lemma", "Definition", "Proposition", "Corollary", "Property")


def kind_and_name(label):
    """Kind of a statement and what else it is called, of the words in bold.

    >>> kind_and_name("Theorem 2 (1), Li et al. 2020")
    ('Theorem', 'Theorem 2 (1), Li et al. 2020')
    >>> kind_and_name("Definition 1 (Li et al. 2020)")
    ('Definition', 'Definition 1, Li et al. 2020')
    >>> kind_and_name("Lemma (two texts)")
    ('Lemma', 'two texts')
    >>> kind_and_name("Corollary of Theorem 3 (section 5.1)")
    ('Corollary', 'of Theorem 3, section 5.1')
    >>> kind_and_name("Weak duality")
    ('Proposition', 'Weak duality')
    """
    first, _, rest = label.partition(" ")
    if first not in KINDS:
        return "Proposition", label
    # A number is that of the paper; "Theorem" alone would be said twice.
    name = label if re.match(r"\d", rest) else rest.removeprefix("(").removesuffix(")")
    return first, re.sub(r" \((\D[^()]*)\)?$", r", \1", name)


def label_of(node):
    """The words in bold that a paragraph begins with, or None."""
    if not isinstance(node, nodes.paragraph):
        return None
    node.children = [child for child in node if child.astext()]  # MyST begins with ""
    if not isinstance(node[0], nodes.strong):
        return None
    straight = node[0].astext().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return " ".join(straight.split()).rstrip(".")


def title(paragraph, label):
    """Kind and full name; the words leave the paragraph unless they open a sentence."""
    kind, name = kind_and_name(label)
    strong, *rest = paragraph
    text = rest.pop(0) if rest and isinstance(rest[0], nodes.Text) else nodes.Text("")
    source = re.match(r"\s*\(([^()]*)\)\.", text)
    if not source and not strong.astext().endswith("."):
        return kind, ""
    if source:
        name = f"{name}, {source[1]}" if name else source[1]
        text = text[source.end() :]
    paragraph.clear()
    paragraph += [nodes.Text(text.lstrip()), *rest]
    return kind, name


# --- what vouches for a statement -----------------------------------------------


def machine_checked(row):
    """Links to the statements in Coq."""
    part = f" ({row['part']})" if row["part"] else ""
    kind, _ = kind_and_name(row["label"])
    said = "in Coq" if kind in DEFINITIONS else "machine-checked"
    yield nodes.Text(f"{said}{part}: ")
    for number, name in enumerate(parts(row["coq"])):
        if number:
            yield nodes.Text(", ")
        yield addnodes.pending_xref(
            "",
            nodes.inline("", name),
            refdomain="std",
            reftype="ref",
            reftarget=name.lower(),
            refexplicit=True,
            refwarn=True,
        )


def badges(row):
    """The line below a statement."""
    claims = ", ".join(part.replace("-", " to ") for part in parts(row["claims"]))
    line = nodes.paragraph("", classes=["badges"])
    if claims:
        line += nodes.inline("", f"checked in {claims}")
    if row["second_route"]:
        line += nodes.inline("", f"second route: {row['second_route']}")
    if row["coq"]:
        line += nodes.inline("", "", *machine_checked(row))
    return line


# --- the boxes ------------------------------------------------------------------


def statements(quotation):
    """The paragraphs of a quotation by the statement that they belong to."""
    found = []
    for node in quotation:
        if label_of(node):
            found.append([])
        if not found:
            return []
        found[-1].append(node)
    return found


def box(number, content, row):
    """One statement in its box."""
    kind, name = title(content[0], label_of(content[0]))
    anchor = f"{kind.lower()}-{number.replace('.', '-')}"
    head = nodes.title("", "", nodes.Text(f"{kind} {number}"))
    if name:
        head += nodes.inline("", f" ({name})", classes=["name"])
    head += nodes.reference("", "#", refid=anchor, classes=["headerlink"])
    classes = ["statement", kind.lower()]
    framed = nodes.admonition("", head, *content, ids=[anchor], classes=classes)
    if row:
        framed += badges(row)
    return framed


def set_boxes(app, document):
    """Put the statements of a lecture in boxes, in the order of their rows."""
    folder, _, lecture = app.env.docname.partition("/")
    if folder != "notebooks" or "/" in lecture:
        return
    app.env.note_dependency(str(TABLE))
    left = [row for row in rows(TABLE) if row["notebook"] == lecture]
    number = 0
    for quotation in [*document.findall(nodes.block_quote)]:
        boxes = []
        for content in statements(quotation):
            number += 1
            label = label_of(content[0])
            row = next((row for row in left if row["label"] == label), None)
            if row:
                left.remove(row)
            boxes.append(box(f"{lecture_number(lecture)}.{number}", content, row))
        if boxes:
            place = quotation.parent.index(quotation)
            quotation.parent[place : place + 1] = boxes


def setup(app):
    app.connect("doctree-read", set_boxes)
    app.add_css_file("lecture.css")
    return {"parallel_read_safe": True}
