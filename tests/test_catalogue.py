"""The catalogue of metrics: its names, functions and verdicts hold."""

import importlib
from functools import partial

import numpy as np
import pytest

import qdtheory as qd
from qdtheory.catalogue import METRICS, find_metric
from qdtheory.metrics.compression import compression_table

BY_NAME = {metric.name: metric for metric in METRICS}
SPACE = qd.TextSpace(2, 4)
CLASSES = np.arange(8) % 4


def test_no_name_stands_twice():
    names = [x.lower() for m in METRICS for x in (m.name, *m.other_names)]
    assert len(names) == len({*names}) >= 60


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_functions_exist_and_claims_have_the_form_of_claims(metric):
    for path in metric.functions:
        module, _, name = path.rpartition(".")
        assert callable(getattr(importlib.import_module(f"qdtheory.{module}"), name))
    assert all("." in claim for claim in metric.claims)
    assert metric.functions or metric.status == "none"


def of_two(kernel):
    return qd.KernelPair((kernel + kernel.T) / 2)


def self_repetition(space, n):
    contains = (qd.ngram_matrix(space, n) > 0).astype(float)
    return np.log1p(contains.T @ contains)


def distinct(space, n):
    return qd.compatible_quality(
        partial(qd.expected_distinct, space, n=n, num_texts=10)
    )


SMALL = qd.TextSpace(2, 3)
# Of each metric, a pair that it is half of, with the partner that the table names.
PAIRS = {
    "LL": qd.LL_SE,
    "CR": qd.CR_NRR,
    "exact match": qd.distinct_k_pair(5),
    "BLEU-n": qd.BleuPair(SMALL, 1, 1, 1),
    "ROUGE-L": qd.KernelPair(qd.lcs_kernel(SPACE)),
    "class LL": qd.ClusterPair(CLASSES),
    "Vendi's quality": qd.VendiPair(qd.lcs_kernel(SMALL)),
    "SE": qd.LL_SE,
    "NRR": qd.CR_NRR,
    "Tsallis": qd.SeparablePair("x**2/2", qd.Tsallis(3.0)),
    "Self-BLEU-n": qd.BleuPair(SMALL, 3, 1, 1),
    "self-repetition": of_two(self_repetition(SMALL, 2)),
    "distinct_k": qd.distinct_k_pair(10),
    "Vendi": qd.VendiPair(qd.lcs_kernel(SMALL)),
    "Vendi of order 2": qd.KernelPair(qd.lcs_kernel(qd.TextSpace(2, 2)) ** 2),
    "pairwise ROUGE-L": qd.KernelPair(qd.lcs_kernel(SPACE)),
    "pairwise edit distance": qd.KernelPair(qd.edit_kernel(SPACE)),
    "semantic entropy": qd.ClusterPair(CLASSES),
    "compression ratio": of_two(compression_table(SMALL, 2)),
}
CONCAVE = {"Distinct-n", "n-gram diversity"}  # decided at a given P only


def test_every_status_of_a_pair_is_checked():
    asked = {m.name for m in METRICS if m.status in ("compatible", "incompatible")}
    assert asked == {*PAIRS, *CONCAVE}


@pytest.mark.parametrize("name", PAIRS)
def test_the_verdict_is_that_of_check_compatibility(name):
    verdict = qd.check_compatibility(PAIRS[name])
    assert verdict.compatible is (BY_NAME[name].status == "compatible")
    if not verdict.compatible:
        assert qd.kernel_criterion(PAIRS[name].kernel).all_dominated


@pytest.mark.claim("N25.18")
def test_distinct_n_and_the_ngrams_of_real_texts():
    p = np.random.default_rng(0).dirichlet(np.ones(8))
    contains = qd.ngram_matrix(SMALL, 2) > 0
    lacking = contains.T @ (1 - contains @ p) ** 9  # n-grams that nine real texts lack
    scores = np.asarray(distinct(SMALL, 2).text_quality(p))
    np.testing.assert_allclose(scores, -lacking / 2, atol=1e-12)
    assert qd.check_compatibility(distinct(SMALL, 2), p).compatible is True


def test_names_are_found_by_any_of_them():
    assert find_metric("VENDI SCORE").name == "Vendi"
    assert find_metric("bleu-2").name == "BLEU-n"
    assert find_metric("distinct_10").name == "distinct_k"
    assert find_metric("pass@5").name == "pass@k"
    assert find_metric("distinct-2").name == "Distinct-n"
    with pytest.raises(ValueError, match="do you mean vendi"):
        find_metric("vend")
    with pytest.raises(ValueError, match=r"no metric is called 'zzzz'$"):
        find_metric("zzzz")
