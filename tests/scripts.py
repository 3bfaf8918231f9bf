"""The scripts and the tables of `notebooks/data`."""

import importlib
import sys
from pathlib import Path
from unittest.mock import patch

TABLES = Path(__file__).parents[1] / "notebooks" / "data"


def script(name):
    """A script as a module, found as if it were run."""
    with patch.object(sys, "path", [str(TABLES), *sys.path]):
        return importlib.import_module(name)


def rows_of(name):
    """The rows of a table as dicts of text."""
    found = script("tables").read(name)
    assert found, name
    return found
