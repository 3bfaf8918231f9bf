"""Draw static/rooms.svg, the figure of qdtheory/README.md.

`python docs/rooms_figure.py` draws it. Rooms go down a staircase, each with what it is
for and its modules beside it. A dot stands where the room of its row imports from the
room above it: that all dots lie below the stairs is what tests/test_rooms.py proves.
"""

import ast
from functools import cache
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parents[1]
FIGURE = ROOT / "docs/static/rooms.svg"
ROOMS = ("world", "metrics", "formulas", "pairs", "solvers", "theory", "qdisc")
# What stands on all rooms: no room imports from it.
WINGS = ("text", "generators", "course", "plotting", "commands")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted((ROOT / "qdtheory").rglob("*.py"))
    if path.stem not in ("__init__", "__main__")
}


def imported(path):
    """The package's modules that a file imports, late imports and names included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                whole = {f"{module}.{alias.name}" for alias in names}
                found |= {module, *whole}
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
    return {name for name in found if name.split(".")[0] == "qdtheory"}


def contents(room):
    """Names of a room's modules; a module outside the rooms holds none."""
    parts = (name.split(".")[1:] for name in MODULES)
    found = (rest[0] for first, *rest in parts if first == room and rest)
    return [*dict.fromkeys(found)]


@cache
def imports(room):
    """Rooms that a room imports from; the package itself stands for the exact wing."""
    paths = [path for name, path in MODULES.items() if name.split(".")[1] == room]
    found = {name for path in paths for name in imported(path)}
    whole = ROOMS if "qdtheory" in found else ()
    return {name.split(".")[1] for name in found - {"qdtheory"}}.union(whole) - {room}


@cache
def purpose(room):
    """The first line of a room's docstring."""
    path = ROOT / "qdtheory" / room
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return (
        ast.get_docstring(ast.parse(file.read_text())).splitlines()[0].replace("`", "")
    )


STEP, LINE, WIDTH, LETTERS = 24, 16, 860, 82
STYLE = """text { font: 13px sans-serif } .room { font-weight: 600 }
.modules { font-size: 12px; fill: #555 } .wing { fill: #555; font-style: italic }
path { stroke: #999 } .line { stroke-dasharray: 6 4 } circle { fill: #333 }"""


def draw():
    """The figure's text."""
    rooms = (*ROOMS, *WINGS)
    beside = STEP * len(rooms) + 72
    heights, y, line = {}, 20, 0
    for room in rooms:
        if room == WINGS[0]:
            line, y = y - 6, y + 34
        modules = wrap(", ".join(contents(room)), LETTERS, break_on_hyphens=False)
        heights[room] = y, modules
        y += LINE * (1 + len(modules)) + 12
    drawn = [
        f'<path class="line" d="M6 {line}H{WIDTH - 6}"/>',
        f'<text class="wing" x="{beside}" y="{line + 17}">the wings: nothing above '
        "this line imports from below it</text>",
    ]
    for i, room in enumerate(rooms):
        top, modules = heights[room]
        x = 12 + STEP * i
        below = [heights[r][0] for r in rooms[i + 1 :] if room in imports(r)]
        if below:
            drawn.append(f'<path d="M{x} {top + 6}V{below[-1] - 4}"/>')
        drawn += [f'<circle cx="{x}" cy="{at - 4}" r="4"/>' for at in below]
        drawn.append(f'<text class="room" x="{x - 6}" y="{top}">{room}</text>')
        drawn.append(f'<text x="{beside}" y="{top}">{escape(purpose(room))}</text>')
        drawn += [
            f'<text class="modules" x="{beside}" y="{top + LINE * k}">{words}</text>'
            for k, words in enumerate(modules, start=1)
        ]
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>',
            *drawn,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    FIGURE.write_text(draw())
