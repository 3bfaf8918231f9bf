"""Weigh the project by room: `python benchmarks/weigh.py [COMMIT ...]`.

Counts the files, the lines of code and the lines of docstrings of each room of the
library, of the tests and of the scripts, and the public names. A line of code holds a
token that is neither comment nor docstring. Without a commit it weighs the working
tree; two commits stand beside each other.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "notebooks"))
import freshness

CORE = {"world", "metrics", "formulas", "pairs", "solvers", "theory", "qdisc"}
CORE |= {"discrepancy", "certificates"}  # what qdisc was before 0.9
OTHERS = ("tests", "benchmarks", "docs", "notebooks")


def lines(text: str) -> tuple[int, int]:
    """Number of lines of code and of docstrings of a file."""
    code = freshness.code(text)
    return code.count("\n") + bool(code), len(freshness.docstrings(text))


def files(commit: str | None) -> Iterator[tuple[str, str]]:
    """Path and text of each file of Python or of public names."""
    root = Path(__file__).parents[1]

    def git(*words: str) -> str:
        run = ("git", "-C", str(root), *words)
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout

    if commit is None:
        listed = git("ls-files", "--cached", "--others", "--exclude-standard")
    else:
        listed = git("ls-tree", "-r", "--name-only", commit)
    for path in listed.splitlines():
        if path.endswith(".py") or path == "tests/public_names.txt":
            if commit is not None:
                yield path, git("show", f"{commit}:{path}")
            elif (root / path).exists():
                yield path, (root / path).read_text("utf-8")


def weights(commit: str | None) -> Counter[str]:
    """Numbers by their names, in the order of the table."""
    found = Counter()
    for path, text in files(commit):
        folder, *rest = path.split("/")
        if path == "tests/public_names.txt":
            found["names at the top"] = sum(
                line.split("(")[0].count(".") == 1 for line in text.splitlines()
            )
        elif folder in OTHERS:
            found[f"{folder}, files"] += 1
            found[f"{folder}, code"] += lines(text)[0]
        elif folder == "qdtheory":
            room = rest[0].removesuffix(".py")
            code, docstrings = lines(text)
            wholes = ["library", *(["core"] if room in CORE else []), f"  {room}"]
            for name in wholes:
                found[f"{name}, files"] += 1
                found[f"{name}, code"] += code
                found[f"{name}, docstrings"] += docstrings
    return found


def main(commits: list[str]) -> None:
    """Print a table with a column for each commit."""
    columns = [weights(commit) for commit in commits or [None]]
    names = sorted(set().union(*columns), key=lambda name: (name[0] == " ", name))
    print(f"{'':26}", *(f"{name[:10]:>10}" for name in commits or ["now"]))
    for name in names:
        print(f"{name:26}", *(f"{column[name]:10,}" for column in columns))


if __name__ == "__main__":
    main(sys.argv[1:])
