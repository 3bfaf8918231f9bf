"""The number of a claim, on any page, as a link to the sentence that states it.

The sentence that `claim("T2.1 ...")` shows in a lecture gets an anchor T2.1. Wherever
the number is mentioned it becomes a link there, with the sentence as hover text: alone,
in a range (`N14.15-17`, `T2.3 to T2.5`), or in a link to a notebook whose text is
numbers only.
A number that no notebook claims is a warning.
"""

import re
import textwrap

from coverage_page import claims
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

logger = logging.getLogger(__name__)

ID = r"[TLNE]\d+\.\d+"
MENTION = re.compile(rf"\b({ID})(?:([-\N{{EN DASH}}])(\d+)\b(?!\.\d))?")
ONLY_NUMBERS = re.compile(rf"(?:{MENTION.pattern}|,|\bto\b|\band\b|\s)+")
MARKDOWN = "text/markdown"
LONGEST = 240  # characters of hover text

# Where a number stays as it is: code, formulas, other links, and headings, which the
# tables of contents repeat.
LEFT = (
    nodes.FixedTextElement,
    nodes.literal,
    nodes.math,
    nodes.raw,
    nodes.reference,
    nodes.title,
    addnodes.pending_xref,
    addnodes.desc_signature,
)


def sentence(claim):
    """What a claim says after its number, in one line."""
    _, figures = claims()[claim]
    return textwrap.shorten(" ".join(figures), LONGEST, placeholder=" …")


def mentioned(text):
    """The numbers in a text, those that a range ends with written out."""
    for first, _, last in MENTION.findall(text):
        yield first
        if last:
            yield f"{first.split('.')[0]}.{last}"


def inside(node, kinds):
    """Whether a node lies in one of these kinds."""
    while node := node.parent:
        if isinstance(node, kinds):
            return True
    return False


# --- anchors ------------------------------------------------------------------


def set_anchors(app, document):
    """Give the sentence of each claim its anchor, and its number a link to it."""
    for output in [*document.findall(is_markdown)]:
        strong = output.next_node(nodes.strong)
        number = strong.astext() if strong else ""
        if re.fullmatch(ID, number):
            link = nodes.reference("", number, refid=number, internal=True)
            sentence = strong.parent
            sentence["classes"].append("claim")
            sentence["ids"].append(number)
            strong.replace_self(link)
            output.parent.replace_self(sentence)  # without its plain text


def is_markdown(node):
    """Whether a node is what a cell shows as Markdown, as MyST-NB has it."""
    return isinstance(node, nodes.container) and node.get("mime_type") == MARKDOWN


# --- links --------------------------------------------------------------------


class LinkClaims(SphinxPostTransform):
    """Make links of the numbers on a page."""

    default_priority = 5  # links to pages are resolved from 9 on

    def run(self, **kwargs):
        """Unwrap the links that are numbers only, then link each number."""
        for link in [*self.document.findall(addnodes.pending_xref)]:
            if ONLY_NUMBERS.fullmatch(link.astext()):
                link.replace_self(nodes.Text(link.astext()))
        for text in [*self.document.findall(nodes.Text)]:
            if MENTION.search(text) and not inside(text, LEFT):
                text.parent.replace(text, [*self.linked(text)])

    def linked(self, text):
        """A text with its numbers as links."""
        end = 0
        for match in MENTION.finditer(text):
            first, dash, last = match.groups()
            yield nodes.Text(text[end : match.start()])
            yield self.link(first, first, text.parent)
            if last:
                yield nodes.Text(dash)
                yield self.link(f"{first.split('.')[0]}.{last}", last, text.parent)
            end = match.end()
        yield nodes.Text(text[end:])

    def link(self, claim, shown, place):
        """One number as a link, or as it is if no notebook claims it."""
        if claim not in claims():
            logger.warning(
                "no notebook makes the claim %s", claim, location=place, type="claims"
            )
            return nodes.Text(shown)
        link = make_refnode(
            self.app.builder,
            self.env.docname,
            f"notebooks/{claims()[claim][0]}",
            claim,
            nodes.Text(shown),
            sentence(claim),
        )
        link["classes"].append("claim-link")
        return link


def setup(app):
    app.connect("doctree-read", set_anchors)
    app.add_post_transform(LinkClaims)
    return {"parallel_read_safe": True}
