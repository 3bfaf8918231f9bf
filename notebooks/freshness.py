"""What the notebooks of a source read, by digest: a committed record of each run.

`build.py` writes `records/NAME.json` when it has executed the notebooks of a source and
found them well: the files of this project that they read, each with its digest, and
their own. They are fresh as long as no digest changes, on every Python and platform. Of
a module only the code counts, so that a docstring or a comment may change.

Two branches that build one notebook conflict in the last line of its record. Take
either side and build it again: each is stale until then.
"""

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

# The kernel's first cell notes which files are opened, without a name of its own.
NOTE_OPENED = """\
(lambda sys: (
    setattr(sys, "opened", set()),
    sys.addaudithook(
        lambda event, of: event == "open" and sys.opened.add(str(of[0]))
    ),
))(__import__("sys"))
"""
# The last cell of a run. Names of the library are imported when they are first used,
# so these are the modules that the notebooks need and no others.
PRINT_READ = """\
import os, sys
modules = {getattr(module, "__file__", None) for module in [*sys.modules.values()]}
for path in {*modules, *sys.opened} - {None}:
    print(os.path.realpath(path))
"""
NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(module: str) -> set[int]:
    """Numbers of the lines that docstrings take, from 1."""
    return {
        line
        for node in ast.walk(ast.parse(module))
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }


def code(module: str) -> str:
    """The lines of a module that hold code, without docstrings and comments."""
    lines, kept = module.split("\n"), set()
    for token in tokenize.generate_tokens(io.StringIO(module).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            lines[line - 1] = lines[line - 1][:column].rstrip()
        elif token.type not in NO_CODE:
            kept |= {*range(token.start[0], token.end[0] + 1)}
    return "\n".join(lines[line - 1] for line in sorted(kept - docstrings(module)))


@cache
def digest_of(content: bytes, suffix: str) -> str:
    """The first digits of SHA-256 of what counts in a file."""
    if suffix == ".py":
        content = code(content.decode()).encode()
    elif suffix == ".txt":  # the lock, which says in comments what asked for a package
        content = re.sub(rb"(?m)^ *#.*\n", b"", content)
    return sha256(content).hexdigest()[:16]


def digest(path: Path) -> str | None:
    """Digest of a file, or None where there is no such file."""
    return digest_of(path.read_bytes(), path.suffix) if path.exists() else None


def together(digests: Mapping[str, str | None]) -> str:
    """One digest of all, which a record put together from two builds lacks."""
    return digest_of(json.dumps(digests, sort_keys=True).encode(), "")


def own_files(name: str, folder: Path) -> set[Path]:
    """The source and the notebooks made of it."""
    made = (folder / f"{name}.ipynb", folder / f"solutions/{name}.ipynb")
    return {folder / f"src/{name}.md", *(path for path in made if path.exists())}


def files_read(name: str, paths: Iterable[str], folder: Path) -> set[Path]:
    """The files that decide what the notebooks of a source hold.

    Of what their run read, that is the library, the lab and the tables. Stubs are left
    out: a new public name leaves every notebook as it is.
    """
    root, own = folder.parent, own_files(name, folder)
    read = {
        path
        for path in map(Path, paths)
        if {root / "qdtheory", folder / "lab", folder / "data"} & {*path.parents}
        and path.suffix != ".pyi"
        and path.parent.name != "__pycache__"  # where half written ones have any suffix
    }
    if any("!qdtheory" in path.read_text(encoding="utf-8") for path in own):
        read |= {*root.glob("qdtheory/**/*.py")}  # in a process of its own
    return {*read, *own, folder / "build.py", root / "requirements/lock.txt"}


def record_of(name: str, folder: Path) -> Path:
    """The file that holds the record of a source's notebooks."""
    return folder / "records" / f"{name}.json"


def record(name: str, paths: Iterable[str], folder: Path) -> None:
    """Record what a run that went well read."""
    digests = {
        path.relative_to(folder.parent).as_posix(): digest(path)
        for path in files_read(name, paths, folder)
    }
    place = record_of(name, folder)
    place.parent.mkdir(exist_ok=True)
    kept = {"read": dict(sorted(digests.items())), "together": together(digests)}
    place.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8", newline="\n")


def changed(name: str, folder: Path) -> list[str]:
    """The files that changed since the notebooks of a source were built, own first."""
    place, root = record_of(name, folder), folder.parent
    digests = {
        path.relative_to(root).as_posix(): "" for path in own_files(name, folder)
    }
    recorded = {}
    if place.exists():
        recorded = json.loads(place.read_text(encoding="utf-8"))
        digests |= recorded["read"]
    found = [path for path, old in digests.items() if digest(root / path) != old]
    if not found and recorded["together"] != together(digests):
        found = [place.relative_to(root).as_posix()]
    return sorted(found, key=lambda path: (Path(path).stem != name, path))


def told(name: str, found: Sequence[str]) -> str:
    """What makes the notebooks of a source stale, in a line."""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"{name} is stale, run `make book`: {', '.join(found[:3])}{more} changed"
