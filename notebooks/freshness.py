"""Which files a notebook's run read, and which of them changed since.

`build.py` notes the files of each notebook that it executed and found well, with their
digests; `make quick` passes over a notebook all of whose files are as they were then.
The notes lie in _build, which git ignores: what ran well is a fact of this machine.
"""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

# The last cell of a run. Names of the library are imported when they are first used,
# so these are the modules that the notebook needs and no others.
LOADED = """\
import sys
for module in [*sys.modules.values()]:
    if path := getattr(module, "__file__", None):
        print(path)
"""


def note_of(notebook: Path, folder: Path) -> Path:
    """The file that holds the notes on a notebook."""
    place = folder.parent / "_build/read" / notebook.relative_to(folder)
    return place.with_suffix(".json")


def files_read(notebook: Path, loaded: Iterable[str], folder: Path) -> set[Path]:
    """The project's files that decide what a notebook holds."""
    root, venv = folder.parent, folder.parent / ".venv"
    modules = {Path(path).resolve() for path in loaded}
    if "!qdtheory" in notebook.read_text(encoding="utf-8"):  # in a process of its own
        modules |= {*root.glob("qdtheory/**/*.py")}
    return {
        *(p for p in modules if root in p.parents and venv not in p.parents),
        *root.glob("qdtheory/*.mplstyle"),
        *folder.glob("data/*.csv"),
        *folder.glob("*.py"),
        *root.glob("requirements/lock.txt"),
        folder / f"src/{notebook.stem}.md",
        notebook,
    }


def digest(path: Path) -> str | None:
    """SHA-256 of a file's bytes, or None where there is no such file."""
    return sha256(path.read_bytes()).hexdigest() if path.exists() else None


def note(notebook: Path, loaded: Iterable[str], folder: Path) -> None:
    """Note what a run that went well read."""
    read = files_read(notebook, loaded, folder)
    digests = {str(path.relative_to(folder.parent)): digest(path) for path in read}
    place = note_of(notebook, folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(digests, indent=1, sort_keys=True))


def changed(notebook: Path, folder: Path) -> list[str] | None:
    """The files that changed since, or None if the notebook never ran well here."""
    place = note_of(notebook, folder)
    if not place.exists():
        return None
    digests = json.loads(place.read_text())
    root = folder.parent
    return [name for name, old in digests.items() if digest(root / name) != old]
