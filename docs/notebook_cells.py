"""The committed notebooks and their cells, which hold texts whole or line by line."""

import json
from functools import cache
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def lectures() -> list[Path]:
    """The notebooks, in order."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def lecture(name: str) -> Path:
    """The notebook of a name."""
    return NOTEBOOKS / f"{name}.ipynb"


@cache
def cells_of(path: Path) -> list[dict]:
    """The cells of a notebook."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def joined(lines: str | list[str]) -> str:
    """Text of a cell or an output."""
    return "".join(lines)


def source_of(cell: dict) -> str:
    """Text of a cell."""
    return joined(cell["source"])


def tags_of(cell: dict) -> list[str]:
    """Tags of a cell."""
    return cell["metadata"].get("tags", [])
