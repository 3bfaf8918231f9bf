"""The parts of the book: which lecture is in which, what pages and sidebar say of it.

`parts/NAME.md` lists its lectures by their numbers, "* [03](...ipynb): what it shows."
That list is the only one: titles and reading times come from the lectures, the picture
at `<!-- cover: NAME -->` is that lecture's cover, `{minutes NAME}` its time to read.
docs/index.md names the parts in their order. In the sidebar a lecture whose number has
a letter stands below the one before it.
"""

import re
from functools import cache
from pathlib import Path

from lecture_figures import covers, lecture_number
from notebook_cells import cells_of, source_of
from notebook_cells import lecture as of

DOCS = Path(__file__).parent
SOURCES = DOCS.parent / "notebooks/src"
COVERS = DOCS / "generated/covers"  # not committed, as the rest of the folder

ENTRY = re.compile(r"^\* \[(\w+)\]\(\.\./\.\./notebooks/(\w+)\.ipynb\):", re.MULTILINE)
MINUTES = re.compile(r"\{minutes (\w+)\}")
COVER = re.compile(r"<!-- cover: (\w+) -->")
PART = re.compile(r"^parts/(\w+)$", re.MULTILINE)


def source(lecture):
    """The source of a lecture."""
    return SOURCES / f"{lecture}.md"


@cache
def heading(path):
    """The title of a page."""
    return re.search(r"^# (.+)$", path.read_text("utf-8"), re.MULTILINE)[1]


def titled(lecture):
    """A lecture's number and title."""
    return f"{lecture.split('_')[0]} {heading(source(lecture))}"


def minutes(lecture):
    """How long a lecture takes to read, as its head says."""
    text = "\n".join(map(source_of, cells_of(of(lecture))))
    return re.search(r"\*\*Reading\*\* (\d+ min)", text)[1]


@cache
def lectures(part):
    """The lectures of a part, in order."""
    text = (DOCS / f"parts/{part}.md").read_text("utf-8")
    return [name for _, name in ENTRY.findall(text)]


@cache
def parts():
    """The parts, in order."""
    return PART.findall((DOCS / "index.md").read_text("utf-8"))


def part_of(lecture):
    """The part that a lecture belongs to."""
    return next(part for part in parts() if lecture in lectures(part))


def entry(match):
    """A line of a part's list: title and reading time in place of the number."""
    number, lecture = match.groups()
    assert lecture.startswith(f"{number}_"), f"{number} is not {lecture}"
    link = f"[**{titled(lecture)}**](../../notebooks/{lecture}.ipynb)"
    return f"* {link} ({minutes(lecture)}):"


def cover(match):
    """A lecture's cover, with its caption and the way to its place."""
    found = covers()[match[1]]
    suffix = found.kind.partition("/")[2].partition("+")[0]
    COVERS.mkdir(parents=True, exist_ok=True)
    (COVERS / f"{found.lecture}.{suffix}").write_bytes(found.picture)
    return "\n".join(
        [
            f"```{{figure}} /docs/generated/covers/{found.lecture}.{suffix}",
            f":alt: {found.alt or heading(source(found.lecture))}",
            ":class: cover",
            f"{found.caption} *From [lecture {lecture_number(found.lecture)}]"
            f"(/notebooks/{found.lecture}.ipynb).*",
            "```",
        ]
    )


def below(lecture):
    """The lectures below one in the sidebar: those with its number and a letter."""
    names, number = lectures(part_of(lecture)), lecture.split("_")[0]
    after = names[names.index(lecture) + 1 :]
    return [name for name in after if re.match(rf"{number}[a-z]_", name)]


def contents(names, *more):
    """These lectures, and other entries, in the sidebar."""
    links = (f"{titled(name)} </notebooks/{name}>" for name in names)
    return "\n".join(["", "", "```{toctree}", ":hidden:", "", *links, *more, "```"])


def fill(app, document, text):
    """Complete the first page and the parts' pages."""
    if document.startswith("docs/parts/"):
        listed = lectures(document.rpartition("/")[2])
        nested = {one for name in listed for one in below(name)}
        text[0] = ENTRY.sub(entry, text[0])
        text[0] += contents(name for name in listed if name not in nested)
    if document.startswith(("docs/parts/", "docs/index")):
        text[0] = COVER.sub(cover, MINUTES.sub(lambda m: minutes(m[1]), text[0]))


def place_of(document):
    """Where in the book a page is: the names of its part and lecture, if any."""
    folder, _, name = document.rpartition("/")
    if folder not in ("notebooks", "notebooks/solutions"):
        return []
    part = heading(DOCS / f"parts/{part_of(name)}.md")
    return [f"Part {part}", f"Lecture {name.split('_')[0]}"]


def neighbour(app, pagename, step):
    """The page before or after one; no solution is, it hangs under its lecture."""
    found = app.builder.relations.get(pagename, (None, None, None))[step]
    while found and found.startswith("notebooks/solutions/"):
        found = app.builder.relations[found][step]
    if found is None:
        return None
    folder, _, name = found.rpartition("/")
    title = app.builder.render_partial(app.env.titles[found])["title"]
    return {
        "link": app.builder.get_relative_uri(pagename, found),
        "title": titled(name) if folder == "notebooks" else title,
    }


def place(app, pagename, templatename, context, doctree):
    """Say of a page where in the book it is, with links to the part and the lecture."""
    name = pagename.rpartition("/")[2]
    told = place_of(pagename)
    pages = (f"docs/parts/{part_of(name)}", f"notebooks/{name}") if told else ()
    context["above"] = [
        (app.builder.get_relative_uri(pagename, page) * (page != pagename), text)
        for page, text in zip(pages, told, strict=True)
    ]
    context["prev"] = neighbour(app, pagename, 1)
    context["next"] = neighbour(app, pagename, 2)


def setup(app):
    app.connect("source-read", fill)
    app.connect("html-page-context", place)
    return {"parallel_read_safe": True}
