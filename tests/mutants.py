"""Plant small mistakes in a copy of the library and see which tests find them.

    python tests/mutants.py [--parts PART ...] [--rows NUMBER ...] [--all]

Each row of mutants.toml is a mistake. It runs the examples of the file and the tests
nearest to it, then all others, without slow ones unless `--all` is given; the first
that fails has caught it. The exit status is 1 if a mistake survives or a row fits no
line.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from other_pythons import copy_checkout

NEAR = 6  # files of tests
SECONDS = 1800  # a mistake may make a loop endless
PYTEST = [sys.executable, "-m", "pytest", "-qx", "--no-header", "--tb=no"]


def fails(checkout: Path, options: list[str], tests: Iterable[Path]) -> str | None:
    """The first test to fail, or None."""
    folders = checkout, checkout / "notebooks"  # before those of the environment
    there = [path.relative_to(checkout) for path in tests if path.exists()]
    try:
        run = subprocess.run(
            [*PYTEST, *options, *there],
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} s"
    if run.returncode in (0, 5):  # passed, or nothing to run
        return None
    named = [x for x in run.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    return named[0].split(" - ")[0] if named else f"pytest ended with {run.returncode}"


def tests_of(checkout: Path, path: Path) -> dict[str, list[Path]]:
    """The examples of a file and the tests that name most of it; then the rest."""
    names = re.findall(r"^(?:class|def) (\w+)", path.read_text(), re.MULTILINE)
    part = checkout / "tests" / path.relative_to(checkout / "qdtheory").parent
    tests = sorted(checkout.glob("tests/**/test_*.py"))
    tests.sort(key=lambda test: -sum(map(test.read_text().count, names)))
    tests.sort(key=lambda test: part not in test.parents)
    return {"near": [path, *tests[:NEAR]], "rest": tests[NEAR:]}


def files_of(checkout: Path, part: str) -> Iterable[Path]:
    """The files of a part: a folder of the library, or the flat files."""
    if part == "flat":
        return (checkout / "qdtheory").glob("*.py")
    return (checkout / "qdtheory" / part).rglob("*.py")


def verdict(checkout: Path, options: list[str], part: str, old: str, new: str) -> str:
    """What became of one mistake, told in a line; the file is as before again."""
    hits = [x for x in files_of(checkout, part) for _ in x.read_text().split(old)[1:]]
    if len(hits) != 1:
        return "NO ROW: what is to be changed does not stand there just once"
    path, text = hits[0], hits[0].read_text()
    path.write_text(text.replace(old, new))
    try:
        for stage, tests in tests_of(checkout, path).items():
            if tests and (found := fails(checkout, options, tests)):
                return f"caught by {stage}: {found}"
    finally:
        path.write_text(text)
    return "SURVIVED"


def main() -> int:
    """Plant one after another."""
    rows = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())
    parser = argparse.ArgumentParser(description="Plant mistakes, see what finds them.")
    parser.add_argument("--parts", nargs="+", choices=rows, default=[*rows])
    parser.add_argument("--rows", nargs="+", type=int, help="of each part, from 0 on")
    parser.add_argument("--all", action="store_true", help="with slow tests")
    options = parser.parse_args()
    became = {part: Counter[str]() for part in options.parts}
    with tempfile.TemporaryDirectory(prefix="qdtheory-") as folder:
        copy_checkout(Path(folder))
        for part, counts in became.items():
            for number, (old, new) in enumerate(rows[part]):
                if options.rows and number not in options.rows:
                    continue
                said = verdict(Path(folder), ["--all"] * options.all, part, old, new)
                print(f"{part} {number}: {new}\n    {said}", flush=True)
                counts[said.partition(":")[0]] += 1
    for part, counts in became.items():
        caught = sum(n for how, n in counts.items() if how.startswith("caught"))
        how = ", ".join(f"{how} {n}" for how, n in counts.most_common())
        print(f"{part}: caught {caught} of {counts.total()} ({how})")
    return 1 if any({"SURVIVED", "NO ROW"} & {*x} for x in became.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
