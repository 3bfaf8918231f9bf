"""Check what changed: `make quick`, a minute on two cores outside the hard rooms.

The files that differ from main, committed or not, name the folders. Checked are the
style of everything, the types of these folders, their tests and examples but for those
marked `slow`, and the contracts of claims, coverage and budgets. Notebooks that read a
file which changed since they were built are named. `make test` checks all.
"""

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = ("claims", "house", "release")


def git(root: Path, *arguments: str) -> str | None:
    """What a git command prints, or None if it fails."""
    command = ["git", *arguments]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return found.stdout if found.returncode == 0 else None


def changed_files(root: Path) -> list[str]:
    """What differs from the commit at which this branch left main, new files too."""
    bases = (git(root, "merge-base", "HEAD", main) for main in ("main", "origin/main"))
    base = next((base.strip() for base in bases if base), "HEAD")
    tracked = git(root, "diff", "--name-only", "--no-renames", "-z", base)
    new = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if tracked is None or new is None:
        sys.exit("`make quick` asks git what changed; here, run `make test`")
    return sorted({name for name in (tracked + new).split("\0") if name})


def touched(files: Iterable[str]) -> set[str]:
    """Names of the folders that files lie in, and of modules outside folders."""
    names = set()
    for file in map(PurePosixPath, files):
        folder, *inner = file.parts
        if folder == "notebooks" and inner[:1] == ["lab"]:
            names.add("lab")
        elif folder in ("qdtheory", "tests") and inner[1:]:
            names.add(inner[0])
        elif file.suffix == ".py":
            names.add(file.stem.removeprefix("test_"))
    return names


def present(names: Iterable[str], *patterns: str) -> Iterator[str]:
    """The files and folders of these patterns that there are."""
    for pattern in patterns:
        for name in sorted(names):
            if (ROOT / pattern.format(name)).exists():
                yield pattern.format(name)


def checks(files: Iterable[str]) -> dict[str, list[str]]:
    """What runs with this Python, under the word for what it checks."""
    names = touched(files)
    files = "qdtheory/{}", "qdtheory/{}.py", "notebooks/{}.py", "notebooks/{}"
    modules = [*present(names, *files)]
    tests = present(names.union(CONTRACTS), "tests/test_{}.py")
    rooms = "tests/{}", "qdtheory/{}", "qdtheory/{}.py", "notebooks/{}"
    books = map(str, ROOT.glob("notebooks/**/*.ipynb"))
    ruff = ["-m", "ruff", "--quiet"]
    found = {
        "types": ["-m", "pyright", *modules],
        "style": [*ruff, "check"],
        "format": [*ruff, "format", "--check"],
        "notebooks' format": [*ruff, "format", "--check", "--line-length=76", *books],
        "notebooks": ["notebooks/build.py", "--stale"],
        "tests": [
            *("-m", "pytest", "-q", "-n2", "--dist=worksteal"),
            "--hypothesis-profile=quick",
            *(*tests, *present(names, *rooms)),
        ],
    }
    if not modules:  # or Pyright would read them all
        del found["types"]
    return found


def main() -> int:
    """Run the checks, types beside the others; the exit status is 1 if one fails."""
    start = time.monotonic()
    files = changed_files(ROOT)
    print("Checking", ", ".join([*sorted(touched(files)), "contracts"]), flush=True)
    running = {}
    for word, arguments in checks(files).items():
        running[word] = subprocess.Popen([sys.executable, *arguments], cwd=ROOT)
        if word != "types":
            running[word].wait()
    failed = [word for word, process in running.items() if process.wait()]
    verdict = f"failed: {', '.join(failed)}" if failed else "well"
    print(f"{verdict} ({time.monotonic() - start:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
