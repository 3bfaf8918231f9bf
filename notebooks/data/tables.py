"""What scripts and notebooks share: the corpora's folder and the form of a table.

Lines of provenance begin with "# "; the header and the rows follow.
"""

import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path


def corpora() -> Path:
    """The folder that QDTHEORY_DATA names."""
    folder = os.environ.get("QDTHEORY_DATA")
    if not folder:
        sys.exit("set QDTHEORY_DATA to the folder of the corpora, see the docstring")
    return Path(folder)


def versions(*packages: str) -> str:
    """Of qdtheory and other packages, as in "qdtheory 0.1.0, numpy 2.4.6"."""
    return ", ".join(f"{name} {version(name)}" for name in ("qdtheory", *packages))


def read(name: str) -> list[dict[str, str]]:
    """The rows of a table beside this file, as text; none if it is not there yet."""
    path = Path(__file__).with_name(name)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def provenance(name: str) -> list[str]:
    """The lines of a table that say how it was made."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith("#")]


def part(
    path: Path, settings: str, rows: Callable[[], Iterable[Iterable]]
) -> list[list[str]]:
    """Rows of a table from a file of their own, made if it is not there.

    The file appears whole, so that a run that is killed loses the part under way only,
    and another takes up where it stands. Floats have five digits. The first line is the
    settings; a file with other ones ends the run.
    """
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([settings])
            for row in rows():
                cells = (f"{x:.5g}" if isinstance(x, float) else x for x in row)
                writer.writerow(cells)
        os.replace(unfinished, path)
    with path.open(encoding="utf-8", newline="") as file:
        (found,), *table = csv.reader(file)
    if found != settings:
        sys.exit(f"{path} was made with {found}; this script has {settings}")
    return table


def write(
    name: str,
    comments: Iterable[str],
    columns: Sequence[str],
    rows: Iterable[Iterable],
) -> None:
    """Write a table beside this file, in one go; floats with six digits, None empty."""
    text = io.StringIO(newline="")
    text.writelines(f"# {comment}\n" for comment in comments)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = [f"{x:.6g}" if isinstance(x, float) else x for x in row]
        if len(cells) != len(columns):
            raise ValueError(f"{name}: expected {len(columns)} cells, got {cells}")
        writer.writerow(cells)
    path = Path(__file__).with_name(name)
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
