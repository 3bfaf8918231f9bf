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
from templates import rendered
from theorem_graph import quoted

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "docs/static"

LETTERS = 18  # pixels, the smallest letters of a slide's figures

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
MARKDOWN.use(dollarmath_plugin, renderer=lambda tex, options: formula(tex, options))


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
    least = figure.size[1] * LETTERS / figure.letters  # its height on a slide
    alt = f'alt="{html.escape(figure.alt)}" style="--least: {least:.0f}px"'
    image = f'<a href="{address}"><img {alt} src="{address}"></a>'
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
        first.parts += [picture(replace(cover, caption=""))] if cover else []
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


def say(path: Path) -> str:
    """What the page on teaching has to say of a lecture, the last cell of its row."""
    text = (ROOT / "docs/teaching.md").read_text("utf-8").partition("# Each lecture")[2]
    found = re.search(rf"/{path.name}\).*\| (.+) \|$", text, re.MULTILINE)
    return to_html(found[1], "docs") if found else ""


def deck_page(path: Path) -> str:
    """The slides of a lecture as one page."""
    title, deck = title_of(path), slides(path)
    inline = MARKDOWN.renderInline
    values = {"title": title, "deck": deck, "to_html": to_html, "inline": inline}
    return rendered("sheet.html", **values, name=path.stem, say=say(path))


# --- handouts -----------------------------------------------------------------


def statements(path: Path) -> str:
    """The definitions and theorems of a lecture, each a quotation."""
    quotations = (words for _, words, _ in quoted(path.stem))
    return "\n\n".join("> " + "\n> ".join(words) for words in quotations)


def exercises(path: Path) -> str:
    """The exercises without their hints."""
    text = section(cells_of(path), "Exercises")
    return re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)


def handout_page(path: Path) -> str:
    """Two pages to print, without figures but the cover and without proofs."""
    title, cells = title_of(path), cells_of(path)
    cover = lecture_figures.covers().get(path.stem)
    parts = [f"# {title}", opening(path), picture(cover) if cover else ""]
    for heading, text in (
        ("What is claimed", section(cells, "What is claimed")),
        ("Definitions and theorems", statements(path)),
        ("What to remember", section(cells, "What to remember")),
        ("Exercises", exercises(path)),
    ):
        parts += [f"## {heading}", text] if text else []
    return rendered("sheet.html", title=title, body=to_html("\n\n".join(parts)))


# --- the site -----------------------------------------------------------------


def index_page(name: str) -> str:
    """A list of all decks or handouts."""
    entries = (f"* [{title_of(path)}]({path.stem}.html)" for path in lectures())
    up = "[Teaching](../docs/teaching.html)"
    body = to_html("\n".join([f"# {name}", "", up, "", *entries]))
    return rendered("sheet.html", title=name, body=body)


def write_course(app, error):
    """Write decks and handouts beside the site's pages."""
    if error or app.builder.format != "html":
        return
    for name, written in (("slides", deck_page), ("handouts", handout_page)):
        folder = Path(app.outdir, name)
        folder.mkdir(exist_ok=True)
        texts = {path.stem: written(path) for path in lectures()}
        for stem, text in (texts | {"index": index_page(name.capitalize())}).items():
            (folder / f"{stem}.html").write_text(text, encoding="utf-8")


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
    return rendered("sheet.html", title="Exam", body=to_html(text, "docs"))


def class_files() -> Iterator[tuple[str, bytes]]:
    """What a class gets, each file's place and content; no solution and no key."""
    packages = install(lectures(), "notebooks").decode()
    yield "README.txt", rendered("class.txt", install=packages).encode()
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
