"""Slides and a handout of each lecture, from the notebooks as committed.

Cells tagged `slide` begin a slide, those tagged `slide-continued` join the one before.
Of a code cell a slide shows the outputs, and the paragraph below as their caption. The
title comes from the heading above; a title slide with the lecture's cover and a last one
with what to remember are added. A handout holds the statements, the cover, what to
remember and the exercises, on two printed pages. Both stand in the site's folders
`slides` and `handouts`, need no network and read without scripts.
"""

import base64
import html
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import lecture_figures
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
STATIC = Path(__file__).parent / "static"

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
MARKDOWN.use(dollarmath_plugin, renderer=lambda tex, options: formula(tex, options))

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="../_static/{style}.css">
<script defer src="../_static/tex-svg-full.js"></script>
{script}</head>
<body>
{body}
</body>
</html>
"""
DECK_SCRIPT = '<script defer src="../_static/slides.js"></script>\n'


@dataclass
class Slide:
    """One slide: its title, and what is on it as HTML."""

    title: str
    parts: list[str] = field(default_factory=list)


def formula(tex: str, options: dict) -> str:
    """A formula between the delimiters that MathJax looks for."""
    begin, end = (r"\[", r"\]") if options.get("display_mode") else (r"\(", r"\)")
    return f"{begin}{html.escape(tex)}{end}"


def to_html(markdown: str) -> str:
    """HTML of a cell's text; links lead into the site."""
    linked = re.sub(
        r"\]\((?!https?:)([\w/.]+)\.ipynb(#[\w-]+)?\)",
        r"](../notebooks/\1.html\2)",
        markdown,
    )
    return MARKDOWN.render(linked)


@cache
def cells_of(path: Path) -> list[dict]:
    """The cells of a committed notebook."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(cell: dict) -> str:
    """Text of a cell."""
    return lecture_figures.text(cell["source"])


def tags(cell: dict) -> list[str]:
    """Tags of a cell."""
    return cell["metadata"].get("tags", [])


def lectures() -> list[Path]:
    """The notebooks, in order."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def title_of(path: Path) -> str:
    """The lecture's title, with its number."""
    heading = re.search(r"^# (.+)$", source(cells_of(path)[0]), re.MULTILINE)
    return f"{path.stem.split('_')[0]} · {heading[1] if heading else path.stem}"


def section(cells: Sequence[dict], heading: str) -> str:
    """The text below a heading of the second level, up to the next; may be empty."""
    text = "\n\n".join(source(c) for c in cells if c["cell_type"] == "markdown")
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found[1].strip() if found else ""


# --- what a cell shows --------------------------------------------------------


def picture(figure: lecture_figures.Figure) -> str:
    """A figure with its caption, held by the page itself."""
    data = base64.b64encode(figure.picture).decode()
    image = f'<img alt="{html.escape(figure.alt)}" src="data:{figure.kind};base64,{data}">'
    return f"<figure>{image}<figcaption>{to_html(figure.caption)}</figcaption></figure>"


def shown(path: Path, place: int) -> Iterator[str]:
    """What a cell contributes to a slide, as HTML."""
    cell = cells_of(path)[place]
    if cell["cell_type"] == "markdown":
        text = re.sub(r"^#{1,6} .*\n?", "", source(cell), flags=re.MULTILINE)
        yield to_html(text)
        return
    for output in cell["outputs"]:
        printed = output.get("text", "")
        if printed:
            text = html.escape(lecture_figures.text(printed).rstrip())
            yield f"<pre>{text}</pre>"
    for figure in lecture_figures.figures(path):
        if figure.cell == place:
            yield picture(figure)


# --- slides -------------------------------------------------------------------


def slides(path: Path) -> list[Slide]:
    """The slides of a lecture, the first and the last included."""
    cells, heading = cells_of(path), ""
    cover = lecture_figures.covers().get(path.stem)
    opening = source(cells[0]).split("\n\n")[1]
    deck = [Slide(title_of(path), [to_html(opening)])]
    if cover:
        deck[0].parts.append(picture(cover))
    for place, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            above = re.findall(r"^#{2,6} (.+)$", source(cell), re.MULTILINE)
            heading = above[-1] if above else heading
        if "slide" in tags(cell):
            deck.append(Slide(heading))
        if {"slide", "slide-continued"} & set(tags(cell)):
            deck[-1].parts += shown(path, place)
    remember = section(cells, "What to remember")
    if remember and all(slide.title != "What to remember" for slide in deck):
        deck.append(Slide("What to remember", [to_html(remember)]))
    return [slide for slide in deck if slide.parts]


def notes(path: Path) -> list[str]:
    """The rows of the page on teaching that link a lecture, as HTML."""
    text = (ROOT / "docs/teaching.md").read_text(encoding="utf-8")
    found, heading = [], ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("|") and f"/{path.name})" in line:
            facts = [fact.strip() for fact in line.strip("|").split("|")]
            row = to_html(": ".join([f"**{heading}**", " · ".join(facts)]))
            found.append(row.replace("../notebooks/../notebooks/", "../notebooks/"))
    return found


def deck_page(path: Path) -> str:
    """The slides of a lecture as one page."""
    deck = slides(path)
    sections = "\n".join(
        f'<section class="slide" id="slide-{number}" aria-label="Slide {number}">'
        f"<h{min(number, 2)}>{to_html(slide.title)[3:-5]}</h{min(number, 2)}>"
        f"{''.join(slide.parts)}<p class='place'>{number} / {len(deck)}</p></section>"
        for number, slide in enumerate(deck, start=1)
    )
    said = "".join(notes(path)) or "<p>No notes.</p>"
    aside = (
        f'<aside id="notes"><details><summary>Speaker’s notes</summary>{said}'
        f'<p>Keys: arrows or space turn pages, n shows the notes. '
        f'<a href="../notebooks/{path.stem}.html">The lecture</a></p>'
        f"</details></aside>"
    )
    body = f"<main>{sections}</main>{aside}"
    title = html.escape(title_of(path))
    return PAGE.format(title=title, style="slides", script=DECK_SCRIPT, body=body)


# --- handouts -----------------------------------------------------------------


def statements(path: Path) -> list[str]:
    """The definitions and theorems of a lecture: its quoted blocks that name one."""
    quoted = re.compile(r"(?:^> .*\n?|^>\n?)+", re.MULTILINE)
    return [
        block
        for cell in cells_of(path)
        if cell["cell_type"] == "markdown"
        for block in quoted.findall(source(cell))
        if block.startswith("> **")
    ]


def exercises(path: Path) -> str:
    """The exercises without their hints."""
    text = section(cells_of(path), "Exercises")
    return re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)


def handout_page(path: Path) -> str:
    """Two pages to print: statements, the cover, what to remember, exercises."""
    cover = lecture_figures.covers().get(path.stem)
    parts = [f"<h1>{html.escape(title_of(path))}</h1>"]
    parts.append(to_html(source(cells_of(path)[0]).split("\n\n")[1]))
    parts += [to_html(block) for block in statements(path)]
    if cover:
        parts.append(picture(cover))
    for heading, text in (
        ("What to remember", section(cells_of(path), "What to remember")),
        ("Exercises", exercises(path)),
    ):
        if text:
            parts += [f"<h2>{heading}</h2>", to_html(text)]
    body = f"<main>{''.join(parts)}</main>"
    title = html.escape(title_of(path))
    return PAGE.format(title=title, style="handout", script="", body=body)


# --- the site -----------------------------------------------------------------


def index_page(folder: str, name: str) -> str:
    """A list of all decks or handouts."""
    entries = "".join(
        f'<li><a href="{path.stem}.html">{html.escape(title_of(path))}</a></li>'
        for path in lectures()
    )
    body = (
        f'<main><h1>{name}</h1><p><a href="../docs/teaching.html">Teaching</a></p>'
        f"<ul>{entries}</ul></main>"
    )
    return PAGE.format(title=name, style="handout", script="", body=body)


def write_course(app, error):
    """Write decks and handouts beside the site's pages."""
    if error or app.builder.format != "html":
        return
    for folder, name, page in (
        ("slides", "Slides", deck_page),
        ("handouts", "Handouts", handout_page),
    ):
        target = Path(app.outdir, folder)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        (target / "index.html").write_text(index_page(folder, name), "utf-8")
        for path in lectures():
            (target / f"{path.stem}.html").write_text(page(path), "utf-8")


def setup(app):
    app.connect("build-finished", write_course)
    return {"parallel_read_safe": True}
