"""What docs/index.md takes from elsewhere: the pictures' panels, and how to cite."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PICTURES = {name: ROOT / f"docs/static/{name}.svg" for name in ("lots", "frontier")}
CITATION = ROOT / "CITATION.cff"


def picture(name):
    """The panels of static/NAME.svg, which take their colours from the page."""
    drawn = PICTURES[name].read_text("utf-8")
    said = re.search(r'aria-label="([^"]+)"', drawn)[1]
    panels = re.findall(r'<svg class="panel".*?</svg>', drawn, re.DOTALL)
    body = "\n".join(panels)
    return f'<div class="picture" role="img" aria-label="{said}">\n{body}\n</div>'


def author(one):
    """A person, or a group, whose name is kept whole."""
    if "name" in one:
        return f"{{{one['name']}}}"
    return f"{one['family-names']}, {one['given-names']}"


def bibtex(key, cited):
    """An entry of a bibliography."""
    fields = {
        "author": " and ".join(map(author, cited["authors"])),
        "title": f"{{{cited['title']}}}",
        "version": cited.get("version", ""),
        "year": str(cited.get("year") or cited.get("date-released", ""))[:4],
    }
    lines = (f"  {name} = {{{value}}}," for name, value in fields.items() if value)
    return "\n".join([f"@misc{{{key},", *lines, "}"])


def citation():
    """The entries of CITATION.cff: this project, and the paper that it checks."""
    told = yaml.safe_load(CITATION.read_text("utf-8"))
    entries = [bibtex("qdtheory", told), bibtex("li2020", told["references"][0])]
    return "\n".join(["```text", *entries, "```"])


def fill(app, document, source):
    """Put all in the places of their comments."""
    if document == "docs/index":
        for name, path in PICTURES.items():
            source[0] = source[0].replace(f"<!-- {name} -->", picture(name))
            app.env.note_dependency(path)
        source[0] = source[0].replace("<!-- cite -->", citation())
        app.env.note_dependency(CITATION)


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
