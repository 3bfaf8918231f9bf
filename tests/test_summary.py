"""The summary's tables of pairs say what the compatibility matrix says."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scripts import rows_of

import qdtheory as qd

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


def test_a_lead_is_no_proof_of_a_better_fit_be_it_smaller_or_larger_than_qdisc():
    assert "no proof of a better fit, be it smaller or larger than QDisc" in " ".join(
        SUMMARY.split()
    )
    p = np.array([0.4, 0.3, 0.2, 0.1])
    found = qd.quality_discrepancy(qd.LL_NRR, p)
    best, qdisc = np.asarray(found.q), found.qdisc
    assert qdisc > 0.001

    def away(q):
        return float(qd.metrics.total_variation(q, p))

    def lead(q, other):
        return (q - other) @ np.log(p)

    def repetition(q):
        return q @ q - p @ p

    # Smaller: of models as diverse as P, on the way from P to the best.
    way = best - p
    assert repetition(best) == pytest.approx(0, abs=1e-9)
    middle = p + 0.5 * way
    middle += brentq(lambda t: repetition(middle + t * (middle - 0.25)), 0, 1) * (
        middle - 0.25
    )
    # Larger: over a model that is as diverse and a little worse than P.
    worse = p - 0.02 * way
    worse += brentq(lambda t: repetition(worse + t * (worse - 0.25)), -0.5, 0.5) * (
        worse - 0.25
    )
    for q in (middle, worse):
        assert q.min() > 0
        assert repetition(q) == pytest.approx(0, abs=1e-12)
    assert 0 < lead(middle, p) < qdisc < lead(best, worse)
    assert away(middle) > 0
    assert away(best) > away(worse)
