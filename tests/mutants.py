"""Plant small mistakes in a copy of the library and see which tests find them.

    python tests/mutants.py [--parts PART ...] [--all]

Each row of mutants.toml is a mistake. It runs the tests of the file, then those of
its part, without slow ones unless `--all` is given; the first that fails has caught it.
The exit status is 1 if a mistake survives or a row fits no line.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

from other_pythons import copy_checkout

SECONDS = 1800  # a mistake may make a loop endless
PYTEST = [sys.executable, "-m", "pytest", "-qx", "--no-header", "--tb=no"]


def fails(checkout: Path, options: list[str], *tests: str) -> str | None:
    """The first test to fail, or None."""
    there = [name for name in tests if (checkout / name).exists()]
    try:
        run = subprocess.run(
            [*PYTEST, *options, *there],
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": str(checkout)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} s"
    if run.returncode in (0, 5):  # passed, or nothing to run
        return None
    lines = run.stdout.splitlines()
    named = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return named[0].split(" - ")[0] if named else f"pytest ended with {run.returncode}"


def tests_of(path: Path) -> tuple[list[str], list[str]]:
    """The tests of a file and its examples, then those of the part that it is in."""
    lab = path.parts[0] == "notebooks"
    inside = Path(*path.parts[1:]).with_name(f"test_{path.name}")
    own = [f"tests/{inside}", str(path)]
    part = f"tests/{inside.parts[0]}" if lab or len(inside.parts) > 1 else "tests"
    return own, [part]


def files_of(checkout: Path, part: str) -> Iterable[Path]:
    """The files of a part: a folder of the library, the flat files, or the lab."""
    if part == "flat":
        return (checkout / "qdtheory").glob("*.py")
    folder = "notebooks/lab" if part == "lab" else f"qdtheory/{part}"
    return (checkout / folder).rglob("*.py")


def verdict(checkout: Path, options: list[str], part: str, old: str, new: str) -> str:
    """What became of one mistake, told in a line; the file is as before again."""
    hits = {path: path.read_text() for path in files_of(checkout, part)}
    hits = {path: text for path, text in hits.items() if old in text}
    if sum(text.count(old) for text in hits.values()) != 1:
        return "no row: what is to be changed does not stand there just once"
    ((path, text),) = hits.items()
    path.write_text(text.replace(old, new))
    try:
        own, others = tests_of(path.relative_to(checkout))
        found = fails(checkout, options, *own) or fails(checkout, options, *others)
    finally:
        path.write_text(text)
    return f"caught: {found}" if found else "SURVIVED"


def main() -> int:
    """Plant one after another."""
    rows = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())
    parser = argparse.ArgumentParser(description="Plant mistakes, see what finds them.")
    parser.add_argument("--parts", nargs="+", choices=rows, default=[*rows])
    parser.add_argument("--rows", nargs="+", type=int, help="of each part, from 0 on")
    parser.add_argument("--all", action="store_true", help="with slow tests")
    options = parser.parse_args()
    caught = count = 0
    with tempfile.TemporaryDirectory(prefix="qdtheory-") as folder:
        copy_checkout(Path(folder))
        for part in options.parts:
            for number, (old, new) in enumerate(rows[part]):
                if options.rows and number not in options.rows:
                    continue
                said = verdict(Path(folder), ["--all"] * options.all, part, old, new)
                print(f"{part} {number}: {new}\n    {said}", flush=True)
                count += 1
                caught += said.startswith("caught")
    print(f"{caught} of {count} caught")
    return 0 if caught == count else 1


if __name__ == "__main__":
    sys.exit(main())
