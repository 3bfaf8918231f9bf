"""How long each lecture is: words, lines of code, cells, minutes.

    python docs/lecture_sizes.py [COMMIT]

Words are those of the text and of the claims; minutes are what the lecture says at its
head, which notebooks/build.py puts there.
"""

import json
import subprocess
import sys

from notebook_cells import NOTEBOOKS, source_of

sys.path.append(str(NOTEBOOKS))
from build import minutes, words


def git(*arguments: str) -> str:
    """What git prints."""
    return subprocess.run(
        ["git", *arguments], check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    commit = [*sys.argv[1:], "HEAD"][0]
    print(f"{'':42}{'words':>8}{'code':>8}{'cells':>8}{'minutes':>8}")
    for path in git("ls-tree", "--name-only", commit, "notebooks/").splitlines():
        if path.endswith(".ipynb"):
            cells = json.loads(git("show", f"{commit}:{path}"))["cells"]
            code = [source_of(x) for x in cells if x["cell_type"] == "code"]
            lines = sum(bool(line.strip()) for x in code for line in x.splitlines())
            row = sum(map(words, cells)), lines, len(cells), minutes(cells)
            print(f"{path[10:-6]:42}" + "".join(f"{x:8,}" for x in row))
