"""Slides and a handout of each lecture, from the notebooks as committed.

Cells tagged `slide` begin a slide, those tagged `slide-continued` join the one before.
Of a code cell a slide shows the outputs, and the paragraph below as their caption. The
title comes from the heading above; the first slide is the opening with the lecture's
cover, the last one what to remember. If a cell's metadata have a `slide`, these words
are its slide, a title and text, beside the cell's figure alone; `notes` are for the
speaker. A handout holds the cover, what is claimed, the statements, what to remember
and the exercises, on at most two printed pages. Both stand in the site's folders
`slides` and `handouts`, need no network and read without scripts.

As a script it writes `_build/class.zip`, the course without solutions and without the
key of the exam: `python docs/course_pages.py`.
"""

import hashlib
import html
import importlib.util
import posixpath
import re
import shutil
import textwrap
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import lecture_figures
from address import RELEASED, WHEEL
from downloads import install, wheel
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from notebook_cells import cells_of, joined, lectures, source_of, tags_of

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "docs/static"
TEACHING = ROOT / "docs/teaching.md"

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
MARKDOWN.use(dollarmath_plugin, renderer=lambda tex, options: formula(tex, options))

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="../_static/{style}.css">
<link rel="stylesheet" href="../_static/scrolls.css">
<script defer src="../_static/scrolls.js"></script>
<script defer src="../_static/tex-svg-full.js"></script>
{script}</head>
<body>
{body}
</body>
</html>
"""
CLASS_README = """\
WHAT QUALITY AND DIVERSITY SAY ABOUT A TEXT GENERATOR

notebooks/  the lectures. Begin with 00b, then 00 to 09; a lecture whose
            number has a letter is a detour, 10 and later ones are research.
            Each says at the top how long it takes and what to read before.
handouts/   a lecture on two pages to print, with its exercises; the exam.

Install
{install}
Work
  Run a lecture from its first cell. Each claim is a sentence with its number,
  T2.1 or N8.11: change a number in its cell and run it again. If the claim no
  longer holds, the cell stops.
  The exercises are at the end. Write an answer in place of None and run the
  cell below: it says "right", or what is wrong. A formula may be written as
  text, "x log x", or as a function, a number as 1/3 or .3333.
  Save the notebook with its output, and hand in the file as it is.

Text and figures may be used under CC BY 4.0, the code under its licence.
"""
DECK_SCRIPT = '<script defer src="../_static/slides.js"></script>\n'


@dataclass
class Slide:
    """One slide: its title, what is on it as HTML, and what the speaker says."""

    title: str
    parts: list[str] = field(default_factory=list)
    notes: str = ""


def formula(tex: str, options: dict) -> str:
    """A formula between the delimiters that MathJax looks for."""
    begin, end = (r"\[", r"\]") if options.get("display_mode") else (r"\(", r"\)")
    return f"{begin}{html.escape(tex)}{end}"


def page(title: str, body: str, style: str = "handout", script: str = "") -> str:
    """A page of its own."""
    return PAGE.format(title=html.escape(title), style=style, script=script, body=body)


def to_html(markdown: str, folder: str = "notebooks") -> str:
    """HTML of a text of a folder; its links to pages lead into the site."""

    def address(link: re.Match) -> str:
        return f"]({posixpath.normpath(f'../{folder}/{link[1]}')}.html{link[2] or ''})"

    local = r"\]\((?!https?:)([\w/.-]+)\.(?:ipynb|md)(#[\w-]+)?\)"
    return MARKDOWN.render(re.sub(local, address, markdown))


def title_of(path: Path) -> str:
    """The lecture's title, with its number."""
    heading = re.search(r"^# (.+)$", source_of(cells_of(path)[0]), re.MULTILINE)
    return f"{path.stem.split('_')[0]} · {heading[1] if heading else path.stem}"


def opening(path: Path) -> str:
    """The paragraph below the lecture's title."""
    return source_of(cells_of(path)[0]).split("\n\n")[1]


def section(cells: Sequence[dict], heading: str) -> str:
    """The text below a heading of the second level, up to the next; may be empty."""
    text = "\n\n".join(source_of(c) for c in cells if c["cell_type"] == "markdown")
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found[1].strip() if found else ""


# --- what a cell shows --------------------------------------------------------


def picture_file(figure: lecture_figures.Figure) -> tuple[str, bytes]:
    """Place and content of a picture: those that MyST-NB gives it in the site."""
    content = figure.picture
    if figure.kind == "image/svg+xml":
        content = b"\n".join(content.splitlines())
    kind = "png" if figure.kind == "image/png" else "svg"
    return f"_images/{hashlib.sha256(content).hexdigest()}.{kind}", content


def picture(figure: lecture_figures.Figure) -> str:
    """A figure with its caption."""
    address = f"../{picture_file(figure)[0]}"
    image = f'<img alt="{html.escape(figure.alt)}" src="{address}">'
    image = f'<a href="{address}">{image}</a>'
    caption = f"<figcaption>{to_html(figure.caption)}</figcaption>"
    return f"<figure>{image}{caption if figure.caption else ''}</figure>"


def figures_at(path: Path, place: int) -> list[lecture_figures.Figure]:
    """The figures of a cell."""
    return [f for f in lecture_figures.figures(path) if f.cell == place]


def shown(path: Path, place: int) -> Iterator[str]:
    """What a cell contributes to a slide, as HTML."""
    cell = cells_of(path)[place]
    if cell["cell_type"] == "markdown":
        text = re.sub(r"^#{1,6} .*\n?", "", source_of(cell), flags=re.MULTILINE)
        yield to_html(text)
        return
    for output in cell["outputs"]:
        printed = output.get("text", "")
        if printed:
            text = html.escape(joined(printed).rstrip())
            yield f"<pre>{text}</pre>"
        if "text/markdown" in output.get("data", {}):
            yield to_html(joined(output["data"]["text/markdown"]))
    yield from map(picture, figures_at(path, place))


# --- slides -------------------------------------------------------------------


def slide_in_words(path: Path, place: int) -> Slide | None:
    """The slide for which a cell has words of its own."""
    facts = cells_of(path)[place]["metadata"]
    if "slide" not in facts:
        return None
    title, _, text = facts["slide"].strip().partition("\n")
    parts = [to_html(text)] if text else []
    parts += [picture(replace(f, caption="")) for f in figures_at(path, place)]
    return Slide(title, parts, facts.get("notes", ""))


def slides(path: Path) -> list[Slide]:
    """The slides of a lecture, the first and the last included."""
    cells = cells_of(path)
    first, heading = slide_in_words(path, 0), title_of(path)
    if first is None:
        first = Slide(heading, [to_html(opening(path))])
        cover = lecture_figures.covers().get(path.stem)
        first.parts += [picture(cover)] if cover else []
    deck = [first]
    for place, cell in enumerate(cells[1:], start=1):
        if cell["cell_type"] == "markdown":
            above = re.findall(r"^#{2,6} (.+)$", source_of(cell), re.MULTILINE)
            heading = above[-1] if above else heading
        own = slide_in_words(path, place)
        if own or "slide" in tags_of(cell):
            deck.append(own or Slide(heading))
        if not own and {"slide", "slide-continued"} & set(tags_of(cell)):
            deck[-1].parts += shown(path, place)
    remember = section(cells, "What to remember")
    if remember and all(slide.title != "What to remember" for slide in deck):
        deck.append(Slide("What to remember", [to_html(remember)]))
    return deck


def notes(path: Path) -> list[str]:
    """The rows of the page on teaching that link a lecture, as HTML."""
    found, columns, heading = [], [], ""
    for line in TEACHING.read_text(encoding="utf-8").splitlines():
        facts = [fact.strip() for fact in line.strip("|").split(" | ")]
        if line.startswith("## "):
            heading = line[3:]
        elif not line.startswith("|"):
            columns = []
        elif not columns:
            columns = facts
        elif f"/{path.name})" in line:
            told = zip(columns, facts, strict=True)
            said = "\n".join(f"* {column}: {fact}" for column, fact in told)
            found.append(to_html(f"**{heading}**\n\n{said}", "docs"))
    return found


def deck_page(path: Path) -> str:
    """The slides of a lecture as one page."""
    deck = slides(path)
    sections = "\n".join(
        f'<section class="slide{" own" if slide.notes else ""}" '
        f'id="slide-{number}" aria-label="Slide {number}">'
        f"<h{min(number, 2)}>{to_html(slide.title)[3:-5]}</h{min(number, 2)}>"
        f"{''.join(slide.parts)}<p class='place'>{number} / {len(deck)}</p></section>"
        for number, slide in enumerate(deck, start=1)
    )
    told = "".join(
        f'<li value="{number}">{to_html(slide.notes)}</li>'
        for number, slide in enumerate(deck, start=1)
        if slide.notes
    )
    said = f"<ol>{told}</ol>" if told else ""
    said += "".join(notes(path))
    aside = (
        f'<aside id="notes"><details><summary>Speaker&rsquo;s notes</summary>{said}'
        f"<p>Keys: arrows or space turn pages, n shows the notes, w shows them in a "
        f"window of their own; print the slides to have all on a sheet. "
        f'<a href="../notebooks/{path.stem}.html">The lecture</a></p>'
        f"</details></aside>"
    )
    body = f"<main>{sections}</main>{aside}"
    return page(title_of(path), body, "slides", DECK_SCRIPT)


# --- handouts -----------------------------------------------------------------


def statements(path: Path) -> list[str]:
    """The definitions and theorems of a lecture: its quoted blocks that name one."""
    quoted = re.compile(r"(?:^> .*\n?|^>\n?)+", re.MULTILINE)
    return [
        block
        for cell in cells_of(path)
        if cell["cell_type"] == "markdown"
        for block in map(str.strip, quoted.findall(source_of(cell)))
        if block.startswith("> **")
    ]


def exercises(path: Path) -> str:
    """The exercises without their hints."""
    text = section(cells_of(path), "Exercises")
    return re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)


def handout_page(path: Path) -> str:
    """Two pages to print, without figures but the cover and without proofs."""
    cover = lecture_figures.covers().get(path.stem)
    parts = [f"<h1>{html.escape(title_of(path))}</h1>"]
    parts.append(to_html(opening(path)))
    if cover:
        parts.append(picture(cover))
    for heading, text in (
        ("What is claimed", section(cells_of(path), "What is claimed")),
        ("Definitions and theorems", "\n\n".join(statements(path))),
        ("What to remember", section(cells_of(path), "What to remember")),
        ("Exercises", exercises(path)),
    ):
        if text:
            parts += [f"<h2>{heading}</h2>", to_html(text)]
    return page(title_of(path), f"<main>{''.join(parts)}</main>")


# --- the site -----------------------------------------------------------------


def index_page(folder: str, name: str) -> str:
    """A list of all decks or handouts."""
    entries = "".join(
        f'<li><a href="{path.stem}.html">{html.escape(title_of(path))}</a></li>'
        for path in lectures()
    )
    up = '<p><a href="../docs/teaching.html">Teaching</a></p>'
    return page(name, f"<main><h1>{name}</h1>{up}<ul>{entries}</ul></main>")


def write_pages(folder: Path) -> None:
    """Write decks and handouts into a folder's `slides` and `handouts`."""
    for name, written in (("slides", deck_page), ("handouts", handout_page)):
        target = folder / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        index = index_page(name, name.capitalize())
        (target / "index.html").write_text(index, encoding="utf-8")
        for path in lectures():
            (target / f"{path.stem}.html").write_text(written(path), encoding="utf-8")
    (folder / "_images").mkdir(exist_ok=True)
    for figure in (f for path in lectures() for f in lecture_figures.figures(path)):
        name, content = picture_file(figure)
        if not (folder / name).exists():  # the lecture's page has it already
            (folder / name).write_bytes(content)


def write_course(app, error):
    """Write decks and handouts beside the site's pages."""
    if not error and app.builder.format == "html":
        write_pages(Path(app.outdir))


def link_course(app, document, source):
    """Link each lecture's deck and handout in the tables of the page on teaching.

    They are no pages of Sphinx, so the page as it stands in the repository cannot.
    """
    if document == "docs/teaching":
        source[0] = re.sub(
            r"^\| (\[\d\d[a-z]? [^]]+\]\(\.\./notebooks/(\w+)\.ipynb\)) \|",
            r'| \1 (<a href="../slides/\2.html">slides</a>, '
            r'<a href="../handouts/\2.html">handout</a>) |',
            source[0],
            flags=re.MULTILINE,
        )


def setup(app):
    app.connect("source-read", link_course)
    app.connect("build-finished", write_course)
    return {"parallel_read_safe": True}


# --- the class's copy ---------------------------------------------------------


def exam_page() -> str:
    """The exam as a page to print, without its key."""
    text = (ROOT / "docs/exam.md").read_text(encoding="utf-8")
    return page("Exam", f"<main>{to_html(text, 'docs')}</main>")


def class_files() -> Iterator[tuple[str, bytes]]:
    """What a class gets, each file's place and content; no solution and no key."""
    packages = textwrap.indent(install(lectures(), "notebooks").decode(), "  ")
    yield "README.txt", CLASS_README.format(install=packages).encode()
    if not RELEASED:
        yield WHEEL, wheel()
    beside = [*ROOT.glob("notebooks/data/*.*"), *ROOT.glob("notebooks/lab/**/*.py*")]
    for path in [*lectures(), *sorted(p for p in beside if p.suffix != ".pyc")]:
        yield str(path.relative_to(ROOT)), path.read_bytes()
    handouts = {path.stem: handout_page(path) for path in lectures()}
    for name, text in (handouts | {"exam": exam_page()}).items():
        # Beside the notebooks themselves, not beside their pages.
        near = re.sub(r'(href="\.\./notebooks/\w+)\.html', r"\1.ipynb", text)
        yield f"handouts/{name}.html", near.encode()
    yield from map(picture_file, lecture_figures.covers().values())
    names = ("handout.css", "scrolls.css", "scrolls.js")
    for path in (*map(STATIC.joinpath, names), mathjax()):
        yield f"_static/{path.name}", path.read_bytes()


def mathjax() -> Path:
    """MathJax in one file, from the package that the site takes it from."""
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    (folder,) = package.submodule_search_locations
    return Path(folder, "static/mathjax/tex-svg-full.js")


def write_class(path: Path) -> None:
    """Write the class's copy as a zip file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in class_files():
            file.writestr(f"qdtheory_class/{name}", content)


if __name__ == "__main__":
    target = ROOT / "_build/class.zip"
    write_class(target)
    print(f"Hand out {target}")
