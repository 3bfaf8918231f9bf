"""The summary's tables of pairs say what the compatibility matrix says."""

import re
from pathlib import Path

import pytest
from scripts import rows_of

ROOT = Path(__file__).parents[1]
PAIR = re.compile(r"(\S+) with ([^ ,]+)(?:, (one|two) references?| of ten texts)?")
REFERENCES = {"one": "1", "two": "2", "": ""}


def matrix():
    """Rows of the oracles of sigma 1, by metrics and numbers of references."""
    keys = ("quality", "references", "diversity", "self_references")
    return {
        tuple(row[key] for key in keys): row
        for row in rows_of("compatibility_matrix.csv")
        if float(row["sigma"]) == 1
    }


MATRIX = matrix()
SUMMARY = (ROOT / "docs/summary.md").read_text()


def pairs(title):
    """Rows of the table whose first column has this title: pair, second column."""
    table = re.search(rf"\| {title} \|.*\n\|---\|---\|\n((?:\|.*\n)+)", SUMMARY)[1]
    return [
        tuple(cell.strip() for cell in row.strip("|").split("|", 1))
        for row in table.splitlines()
    ]


def row_of(pair):
    quality, diversity, references = PAIR.fullmatch(pair).groups(default="")
    number = REFERENCES[references]
    return MATRIX[quality, number, diversity, number]


@pytest.mark.parametrize(("pair", "drate"), pairs("Not compatible"))
def test_incompatible_pairs_lose_what_the_matrix_says(pair, drate):
    row = row_of(pair)
    assert row["verdict"] == "incompatible"
    shown = float(drate.removesuffix(" %"))
    # Two digits.
    assert shown == float(f"{100 * float(row['drate']):.2g}")


@pytest.mark.parametrize(("pair", "divergence"), pairs("Compatible"))
def test_compatible_pairs_are_ticks_of_the_matrix(pair, divergence):
    names = {pair.replace("-n", f"-{n}") for n in (1, 2)}
    assert {row_of(name)["verdict"] for name in names} == {"compatible"}
