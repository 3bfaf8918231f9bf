"""The door of the seals: what a wrong answer is refused for."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import qdtheory as qd
from qdtheory.bounds.seal import seal
from qdtheory.discrepancy import Discrepancy
from qdtheory.pairs import pose

P = np.array([0.5, 0.3, 0.2])
ROOT = Path(qd.__file__).parent


def test_a_right_answer_is_sealed():
    posed = pose(qd.LL_NRR, P)
    found = qd.quality_discrepancy(qd.LL_NRR, P)
    q = np.asarray(found.q)
    assert seal(posed, q, found.qdisc, found.upper_bound, "exact") == ("exact", "")
    assert seal(posed, q, found.qdisc, found.qdisc + 1e-3, "exact")[0] == "lower_bound"


@pytest.mark.parametrize(
    ("q", "gain", "upper", "why"),
    [
        ([0.5, 0.6, -0.1], 0.0, 0.0, "no distribution"),
        ([0.5, 0.3, 0.3], 0.0, 0.0, "no distribution"),
        ([np.nan, 0.3, 0.3], 0.0, 0.0, "no distribution"),
        ([0.52, 0.29, 0.19], 0.01, 0.01, "falls short of the diversity of P"),
        ([0.5, 0.3, 0.2], 0.1, 0.0, "the bound is below the gain"),
        ([0.5, 0.3, 0.2], 0.0, np.nan, "the bound is below the gain"),
    ],
)
def test_a_wrong_answer_is_told_by_what_is_wrong(q, gain, upper, why):
    status, fault = seal(pose(qd.LL_NRR, P), np.array(q), gain, upper, "exact")
    assert status == "lower_bound"
    assert why in fault


def test_a_rare_text_of_huge_score_is_no_unit():
    # f = -1/x^2: the score of the rare text is -1e22, and what is missed 1.
    p = np.array([0.5, 0.3, 0.2 - 1e-11, 1e-11])
    posed = pose(qd.LinearPair([3.0, 2.0, 1.0, -1e11], qd.functions.NRR), p)
    assert seal(posed, p, 0.0, 1e-3, "exact")[0] == "lower_bound"
    assert seal(posed, p, 0.0, 1e-3, "certified")[0] == "lower_bound"


def test_a_record_has_no_status_by_default():
    for record in (Discrepancy, qd.ParetoFrontier):
        (status,) = (x for x in fields(record) if x.name == "status")
        with pytest.raises(TypeError):
            status.default + 0


def test_one_place_writes_a_seal_and_no_other_knows_of_1e_100():
    sealing = {"bounds/seal.py", "frontier.py"}
    for path in ROOT.rglob("*.py"):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text()
        code = "\n".join(
            line for line in text.splitlines() if not line.strip().startswith("#")
        )
        writes = 'status="exact"' in code or 'status = "exact"' in code
        assert not writes or name in sealing, name
        assert "1e-100" not in code or name == "support/numbers.py", name


@pytest.mark.parametrize("g", ["-x*log(1/x)", "-x**2 + 1/x", lambda x: 1 / x, "log(x)"])
def test_a_pole_of_g_at_a_p_of_0_is_named(g):
    p = np.array([0.6, 0.4, 0.0])
    pair = qd.SeparablePair("x", g)
    if g == "-x*log(1/x)":  # convex, without a pole
        assert qd.quality_discrepancy(pair, p).status == "lower_bound"
        return
    with pytest.raises(ValueError, match="V\\(P\\) must be a finite number"):
        qd.quality_discrepancy(pair, p)


@pytest.mark.slow
def test_a_g_of_no_end_ends():
    pair = qd.SeparablePair("x", "x**20 - 4*x**2 - 0.1*(1-x)**20")
    found = qd.quality_discrepancy(pair, P)
    assert 0 <= found.qdisc <= found.upper_bound
