"""How long each lecture is: words, lines of code and of print, cells, minutes.

As a script it prints a table of the lectures as built, or of another commit's:

    python docs/lecture_sizes.py [COMMIT]

Words are those of the text and of the claims; minutes are what the lecture says at its
head, which notebooks/build.py puts there.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lecture_figures import pictures
from notebook_cells import NOTEBOOKS, cells_of, joined, lectures, source_of

sys.path.append(str(NOTEBOOKS))
from build import minutes, words

# Lectures 00 to 09: what a student reads in an afternoon.
SPINE = 10


class Size(NamedTuple):
    """Size of one lecture."""

    words: int
    code: int
    printed: int
    cells: int
    words_to_figure: int
    code_to_figure: int
    minutes: int


def size(cells: Sequence[dict]) -> Size:
    """Size of a lecture that has these cells."""
    read = code = printed = 0
    to_figure = None
    for cell in cells:
        if to_figure is None and any(pictures(cell)):
            to_figure = read, code
        read += words(cell)
        if cell["cell_type"] == "code":
            code += sum(map(bool, map(str.strip, source_of(cell).splitlines())))
        for output in cell.get("outputs", []):
            printed += len(joined(output.get("text", "")).splitlines())
    return Size(
        read, code, printed, len(cells), *(to_figure or (read, code)), minutes(cells)
    )


def sizes(commit: str | None = None) -> dict[str, Size]:
    """Size of each lecture by its name, as it is here or in a commit."""
    if commit is None:
        return {path.stem: size(cells_of(path)) for path in lectures()}

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], check=True, capture_output=True, text=True
        ).stdout

    paths = git("ls-tree", "--name-only", commit, "notebooks/").splitlines()
    books = [path for path in paths if path.endswith(".ipynb")]
    return {
        Path(path).stem: size(json.loads(git("show", f"{commit}:{path}"))["cells"])
        for path in books
    }


def is_spine(name: str) -> bool:
    """Whether a lecture belongs to the spine: 00 to 09, without 03b and the like."""
    number = name.split("_")[0]
    return number.isdigit() and int(number) < SPINE


if __name__ == "__main__":
    found = sizes(*sys.argv[1:])
    spine = [x for name, x in found.items() if is_spine(name)]
    titles = [name.replace("_", " ") for name in Size._fields]
    print(f"{'':42}" + "".join(f"{title:>16}" for title in titles))
    for name, row in (*found.items(), ("the spine", [*map(sum, zip(*spine))])):
        print(f"{name:42}" + "".join(f"{value:16,}" for value in row))
