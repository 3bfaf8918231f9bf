"""The scripts and the tables of `notebooks/data`."""

import importlib
import sys
from pathlib import Path
from unittest.mock import patch

import pandas as pd

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


def frame(name):
    """A table with numbers where there are numbers; texts that are missing are ""."""
    table = pd.DataFrame(rows_of(name))
    for column in table:
        numbers = pd.to_numeric(table[column], errors="coerce")
        if (numbers.notna() | (table[column] == "")).all() and numbers.notna().any():
            table[column] = numbers
    return table


PUBLISHED = {
    (row["paper"], row["table"], row["row"], row["column"]): row["value"]
    for row in rows_of("published.csv")
}


def published(paper, table, row, column):
    return float(PUBLISHED[paper, table, row, column])


def column_of(paper, table, column):
    keys = [key for key in PUBLISHED if key[:2] + key[3:] == (paper, table, column)]
    return {key[2]: float(PUBLISHED[key]) for key in keys}
