"""A search certified: for its own problem alone, with all that it says anew."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from models import oracle, searched_in_vain

import qdtheory as qd


def test_certify_bounds_and_improves():
    space = qd.TextSpace(4, 3)
    pair = qd.BleuPair(space, 1, 2, 2)
    p = oracle(space, 0, sigma=0.5)
    found = qd.certify(pair, p, searched_in_vain(pair, p, 0.5))
    bounds = qd.certify(pair, p)
    assert found.status == "certified"
    assert (found.qdisc, found.upper_bound) == (bounds.qdisc, bounds.upper_bound)
    assert found.drate == pytest.approx(2 * found.qdisc, rel=1e-15)
    assert found.dominated_in == "quality"
    assert found.reason.endswith("improved on it. Bounded by branch and bound.")
    again = qd.certify(pair, p, dataclasses.replace(found, status="lower_bound"))
    assert again.qdisc == pytest.approx(found.qdisc, abs=1e-15)
    assert again.q is found.q
    assert again.status == "certified"
    assert qd.certify(pair, p, searched_in_vain(pair, p, 0.0)).drate is None


@pytest.mark.claim("N17.13")
def test_certify_leaves_an_interval_where_the_bounds_do_not_meet():
    kernel = np.array([[0.2, 0.9, 0.4], [0.9, 0.1, 0.6], [0.4, 0.6, 0.7]])
    pair, p = qd.KernelPair(kernel), np.array([0.3, 0.3, 0.4])
    found = qd.certify(pair, p, searched_in_vain(pair, p))
    assert found.status == "lower_bound"
    assert found.qdisc + 1e-5 < found.upper_bound < np.inf
    assert found.reason.endswith("Bounded by the doubly nonnegative relaxation.")


def test_certify_keeps_what_is_exact_and_names_what_it_takes(as_a_user):
    p = np.array([0.5, 0.3, 0.2])
    exact = qd.quality_discrepancy(qd.LL_NRR, p)
    assert qd.certify(qd.LL_NRR, p, exact) is exact
    pair, p = qd.BleuPair(qd.TextSpace(2, (1, 2)), 2, 2, 3), np.full(6, 1 / 6)
    with pytest.raises(TypeError, match="an upper bound is known for BLEU of order 1"):
        qd.certify(pair, p, searched_in_vain(pair, p))


def test_certify_takes_a_model_and_the_limits_of_its_method(as_a_user):
    pair, p = qd.BleuPair(qd.TextSpace(2, (1, 2)), 2, 2, 2), np.full(6, 1 / 6)
    found = qd.certify(pair, p, searched_in_vain(pair, p), max_steps=40)
    assert found.steps == 40
    shown = qd.discrepancy.cubic_bound(pair, p, found.evidence)
    assert shown == found.upper_bound
    for once in (qd.KernelPair(np.eye(6)), qd.VendiPair(np.eye(6))):
        with pytest.raises(ValueError, match="leave out tolerance and max_steps"):
            qd.certify(once, p, tolerance=1e-3, max_steps=5)


PAIRS = {
    "kernel": lambda: qd.KernelPair(
        np.array([[1, 0.2, 0], [0.2, 1, 0.1], [0, 0.1, 1]])
    ),
    "BLEU": lambda: qd.BleuPair(qd.TextSpace(3, 1), 1, 2, 2),
    "separable": lambda: qd.SeparablePair(qd.functions.CR, qd.Expression("-x**3")),
    "linear": lambda: qd.LinearPair([0.7, 0.5, 0.4], qd.functions.NRR),
    "concave": lambda: qd.VendiPair(np.eye(3)),
}
CODE = {
    "scores": qd.LinearPair(jnp.sqrt, qd.functions.NRR),
    "f": qd.SeparablePair(lambda x: x, "-x**2"),
    "g": qd.SeparablePair("x", lambda x: -(x**2)),
    "concave": qd.ConcavePair(jnp.log, qd.negative_repetition_rate),
    "functions": qd.FunctionPair(qd.coverage_rate, qd.negative_repetition_rate),
}


@pytest.mark.parametrize("name", CODE)
def test_code_is_not_certified(name):
    with pytest.raises(TypeError, match="code, which is tried and not proved: for a"):
        qd.certify(CODE[name], np.array([0.5, 0.3, 0.2]))


@pytest.mark.parametrize("name", PAIRS)
def test_a_result_is_certified_for_its_own_problem_alone(name):
    p = np.array([0.5, 0.3, 0.2])
    pair, twin = PAIRS[name](), PAIRS[name]()
    found = dataclasses.replace(searched_in_vain(pair, p), status="exact")
    assert qd.certify(pair, p, found) is found
    assert qd.certify(twin, p.copy(), found) is found
    for other, make in PAIRS.items():
        if other != name:
            with pytest.raises(ValueError, match="found must be about this pair"):
                qd.certify(make(), p, found)
    with pytest.raises(ValueError, match="found must be about this p"):
        qd.certify(pair, p[::-1], found)


def test_parameters_tell_pairs_apart():
    # Self-BLEU with 9 references; one entry of a kernel; g of another function.
    p = np.array([0.4, 0.3, 0.2, 0.1])
    space = qd.TextSpace(2, 2)
    found = qd.quality_discrepancy(qd.BleuPair(space, 1, 2, 9), p)
    pair = qd.BleuPair(space, 1, 2, 3)
    with pytest.raises(ValueError, match=r'method="certified"\), which does both'):
        qd.certify(pair, p, found)
    certified = qd.quality_discrepancy(pair, p, method="certified")
    assert certified.status == "certified"
    assert certified.upper_bound < 0.0088 < found.qdisc
    kernel = np.eye(4)
    found = searched_in_vain(qd.KernelPair(kernel), p, 1.0)
    with pytest.raises(ValueError, match="another one, kernel"):
        qd.certify(qd.KernelPair(np.eye(4) * [1, 1, 1, 1 + 1e-15]), p, found)
    with pytest.raises(ValueError, match="another one, NoneType"):
        qd.certify(pair, p, dataclasses.replace(found, pair=None))


@pytest.mark.slow
def test_what_a_result_says_of_its_model_is_computed_anew():
    space = qd.TextSpace(2, 2)
    pair, p = qd.BleuPair(space, 1, 2, 3), np.array([0.4, 0.3, 0.2, 0.1])
    honest = qd.quality_discrepancy(pair, p, method="certified")
    boast = dataclasses.replace(honest, status="lower_bound", qdisc=0.07)
    found = qd.certify(pair, p, boast)
    assert found.qdisc == pytest.approx(honest.qdisc, abs=1e-12)
    # A model that gains more and is less diverse than P.
    best = np.eye(4)[np.asarray(pair.text_quality(p)).argmax()]
    found = qd.certify(pair, p, dataclasses.replace(boast, q=jnp.asarray(best)))
    assert found.qdisc == pytest.approx(honest.qdisc, abs=1e-8)
    assert pair.diversity(found.q) >= pair.diversity(p)


def test_certified_in_one_call_or_refused_before_the_search(as_a_user, monkeypatch):
    p = np.full(4, 0.25)
    exact = qd.quality_discrepancy(qd.LL_NRR, p, method="certified")
    assert exact.status == "exact"
    monkeypatch.delattr("qdtheory.discrepancy.search_each")
    pair = qd.BleuPair(qd.TextSpace(2, 2), 2, 2, 3)
    pair = dataclasses.replace(pair, space=qd.TextSpace(2, 2), smoothing="epsilon")
    with pytest.raises(TypeError, match="an upper bound is known for BLEU of order 1"):
        qd.quality_discrepancy(pair, p, method="certified")
