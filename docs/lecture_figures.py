"""The figures of the lectures: what each shows, says and is numbered.

A code cell that draws has its alt text as the metadata `alt`; the first paragraph of
the text below it is the caption. One cell of each lecture has the tag `cover`: its
figure makes the lecture's point.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path

from docutils import nodes
from folds import is_part
from notebook_cells import cells_of, joined, lecture, lectures, source_of, tags_of

ONE_PANEL = 672  # at most that many pixels: such a figure shrinks to a phone
NEAR = 3  # "What is claimed", "What you need" and the first section after them
# Of each pair of axes where it begins, its top and where it ends, in points.
AXES = re.compile(
    rb'"axes_\d+">\s*<g id="\w+">\s*<path d="M ([\d.]+) ([\d.]+) \s*L ([\d.]+)'
)
PICTURES = ("image/svg+xml", "image/png")  # the first that a cell shows


@dataclass(frozen=True)
class Figure:
    """One figure of a lecture.

    Attributes:
        lecture: the notebook's name, "03_pareto_frontier".
        cell: place of its cell in the notebook, from 0.
        number: "3.2", the second figure of lecture 03.
        kind: "image/png" or "image/svg+xml".
        picture: the bytes of the picture.
        alt: what is seen, in plain text; empty if the cell says nothing.
        caption: the paragraph below, in MyST; empty if a heading or code follows.
        cover: whether it is the lecture's cover.
    """

    lecture: str
    cell: int
    number: str
    kind: str
    picture: bytes
    alt: str
    caption: str
    cover: bool

    @property
    def anchor(self) -> str:
        """Its place on the lecture's page."""
        return f"figure-{self.number.replace('.', '-')}"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in the pixels of a screen."""
        if self.kind == "image/png":
            png = self.picture
            return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
        found = re.findall(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"', self.picture)
        width, height = (float(points) * 4 / 3 for points in found[0])
        return round(width), round(height)

    @property
    def letters(self) -> float:
        """Size of the smallest letters in pixels, but for indices and exponents."""
        if self.kind == "image/png":
            return 10 * 100 / 72  # those of a legend, at 100 pixels an inch
        found = re.findall(rb"font(?:-size)?: (?:\w+ )*([\d.]+)px", self.picture)
        return min(size for size in map(float, found) if size > 8) * 4 / 3

    @property
    def cut(self) -> float | None:
        """Where two panels side by side part, as a share of the width, or None."""
        found = [tuple(map(float, axes)) for axes in AXES.findall(self.picture)]
        is_whole = b'\n  <g id="legend' in self.picture  # a legend of both
        if len(found) != 2 or is_whole or found[0][1] != found[1][1]:
            return None
        # The labels between them are those of the second: 3 points for ticks.
        return (found[0][2] + 3) * 4 / 3 / self.size[0]


def lecture_number(name: str) -> str:
    """Number of a lecture as one says it: "3" of "03_pareto_frontier"."""
    return name.split("_")[0].lstrip("0") or "0"


def pictures(cell: dict) -> Iterator[tuple[str, bytes]]:
    """Kind and bytes of each picture that a cell shows."""
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        for kind in PICTURES:
            if kind in data:
                shown = joined(data[kind])
                is_text = kind == "image/svg+xml"
                yield kind, shown.encode() if is_text else base64.b64decode(shown)
                break


def caption(cell: dict | None) -> str:
    """First paragraph of a cell of text, in one line; empty if it is something else."""
    if cell is None or cell["cell_type"] != "markdown":
        return ""
    paragraph = source_of(cell).strip().split("\n\n")[0]
    begins = ("#", ">", "$$", "* ", "- ", "|", "```")
    return "" if paragraph.startswith(begins) else " ".join(paragraph.split())


@cache
def figures(path: Path) -> tuple[Figure, ...]:
    """The figures of a committed notebook, in order."""
    found: list[Figure] = []
    pairs = zip_longest(cells_of(path), cells_of(path)[1:])
    for place, (cell, below) in enumerate(pairs):
        for kind, picture in pictures(cell):
            found.append(
                Figure(
                    lecture=path.stem,
                    cell=place,
                    number=f"{lecture_number(path.stem)}.{len(found) + 1}",
                    kind=kind,
                    picture=picture,
                    alt=cell["metadata"].get("alt", ""),
                    caption=caption(below),
                    cover="cover" in tags_of(cell),
                )
            )
    return tuple(found)


def covers() -> dict[str, Figure]:
    """Each lecture's cover, by the notebook's name; the first figure if none is one."""
    return {
        path.stem: next((figure for figure in drawn if figure.cover), drawn[0])
        for path in lectures()
        if (drawn := figures(path))
    }


# --- on the lecture's page ----------------------------------------------------


def outputs(document):
    """Each output that is a picture, with the cell that it stands in."""
    for output in document.findall(partial(is_part, name="mime_bundle")):
        if any(kind["mime_type"] in PICTURES for kind in output):
            yield output, output.parent.parent


def paragraph_below(cell):
    """The paragraph that follows a cell, or None."""
    following = cell.next_node(descend=False, siblings=True)
    return following if isinstance(following, nodes.paragraph) else None


def set_figure(figure, output, caption):
    """Make a numbered figure of an output; its caption leaves its place."""
    number = nodes.inline("", f"Figure {figure.number}", classes=["caption-number"])
    legend = nodes.caption("", "", number)
    if caption:
        caption.parent.remove(caption)
        legend += [nodes.Text(" "), *caption.children]
    width, _ = figure.size
    classes = ["lecture-figure", *["narrow"] * (width <= ONE_PANEL)]
    framed = nodes.figure("", ids=[figure.anchor], classes=classes)
    output.replace_self(framed)
    framed += [output, legend]
    for image in output.findall(nodes.image):
        image["alt"] = figure.alt or legend.astext()
        image["width"] = f"{width}px"  # with it, Sphinx links the picture
        if figure.cut:  # lecture.js parts them on a phone
            image["classes"].append(f"cut-{1000 * figure.cut:.0f}")


def sections_before(figure):
    """How many sections of a lecture begin before a figure."""
    above = cells_of(lecture(figure.lecture))[: figure.cell]
    texts = (source_of(cell) for cell in above if cell["cell_type"] == "markdown")
    return sum(len(re.findall(r"^## ", text, re.MULTILINE)) for text in texts)


def set_cover(document, anchor):
    """Repeat a figure below the page's first paragraph, as a link to its place."""
    (figure,) = (f for f in document.findall(nodes.figure) if anchor in f["ids"])
    output, legend = figure.deepcopy().children
    number = nodes.reference("", legend[0].astext(), refid=anchor, internal=True)
    legend[0] = number
    for image in output.findall(nodes.image):
        image.attributes.pop("width", None)
    picture = nodes.reference("", "", output, refid=anchor, internal=True)
    cover = nodes.figure(
        "", picture, legend, ids=["cover"], classes=["lecture-figure", "cover"]
    )
    opening = next(document.findall(nodes.paragraph))
    opening.parent.insert(opening.parent.index(opening) + 1, cover)


def set_figures(app, document):
    """Number the figures of a lecture; a cover but the first is at the head too."""
    path = lecture(Path(app.env.docname).name)
    if app.env.docname != f"notebooks/{path.stem}":
        return
    drawn = figures(path)
    for figure, (output, cell) in zip(drawn, [*outputs(document)], strict=True):
        set_figure(figure, output, paragraph_below(cell))
    for figure in drawn:
        if figure.cover and sections_before(figure) > NEAR:  # not twice on one screen
            set_cover(document, figure.anchor)


def setup(app):
    app.connect("doctree-read", set_figures)
    app.add_css_file("lecture.css")
    return {"parallel_read_safe": True}
