"""Draw static/rooms.svg, CONTRIBUTING's figure: `python docs/rooms_figure.py`.

Rooms go down a staircase, each with its modules beside it. A dot stands where the room
of its row imports from the room above it: that all dots lie below the stairs is what
tests/test_rooms.py proves.
"""

import ast
from functools import cache
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
    return [rest[0] for first, *rest in parts if first == room and rest]


@cache
def imports(room):
    """Rooms that a room imports from; the package itself stands for the exact wing."""
    paths = [path for name, path in MODULES.items() if name.split(".")[1] == room]
    found = {name for path in paths for name in imported(path)}
    whole = ROOMS if "qdtheory" in found else ()
    return {name.split(".")[1] for name in found - {"qdtheory"}}.union(whole) - {room}


STEP, LINE, WIDTH, COLUMNS = 26, 17, 780, 58


def draw():
    """The figure's text."""
    rooms = (*ROOMS, *WINGS)
    beside = STEP * len(rooms) + 96
    rows, y = {}, 20
    for room in rooms:
        lines = wrap(", ".join(contents(room)), COLUMNS, break_on_hyphens=False)
        rows[room] = y, lines
        y += max(STEP, LINE * len(lines) + 9)
    drawn = []
    for i, room in enumerate(rooms):
        top, lines = rows[room]
        x = 12 + STEP * i
        below = [rows[r][0] for r in rooms[i + 1 :] if room in imports(r)]
        if below:
            drawn.append(f'<path d="M{x} {top + 6}V{below[-1] - 4}"/>')
        drawn += [f'<circle cx="{x}" cy="{at - 4}" r="4"/>' for at in below]
        drawn.append(f'<text class="room" x="{x - 6}" y="{top}">{room}</text>')
        drawn += [
            f'<text x="{beside}" y="{top + LINE * line}">{words}</text>'
            for line, words in enumerate(lines)
        ]
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}">',
            "<style>text { font: 13px sans-serif } .room { font-weight: 600 } "
            "path { stroke: #aaa }</style>",
            f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>',
            *drawn,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    FIGURE.write_text(draw())
