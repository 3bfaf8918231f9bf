"""The catalogue of metrics: its names, functions and verdicts hold."""

import importlib
import re
from functools import partial
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab import metrics
from lab.metrics.markov import markov_projection
from lab.metrics.since_2020 import compression_table

import qdtheory as qd
from qdtheory.catalogue.metrics import (
    METRICS,
    Kind,
    Status,
    find_metric,
    find_order,
    titled,
)
from qdtheory.support.layout import plain_name

BY_NAME = {metric.name: metric for metric in METRICS}


def test_no_name_stands_twice():
    names = [(plain_name(x), m) for m in METRICS for x in (m.name, *m.other_names)]
    assert len({*names}) == len({name for name, _ in names}) >= 100


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_functions_exist_and_claims_have_the_form_of_claims(metric):
    for typed in (*metric.functions, *metric.in_lab):
        module, _, name = typed.rpartition(".")
        module = re.sub(r"^qd\b", "qdtheory", module)
        assert callable(getattr(importlib.import_module(module), name))
    assert all("." in claim for claim in metric.claims)
    assert metric.functions or metric.in_lab or metric.shown_by


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_functions_can_be_typed_as_they_are_printed(metric):
    shown = dict(metric.summary()[2]).get("functions", "")
    typed = shown.split(", ") if shown else []
    assert typed == [*metric.functions, *metric.in_lab]
    said = " ".join([metric.partner, metric.beside, metric.verdict])
    for name in re.findall(r"`(qd\.[^`]*)`", said):
        assert callable(eval(name, {"qd": qd}))


def test_kinds_and_statuses_are_those_of_the_enumerations():
    assert {metric.kind for metric in METRICS} == {*get_args(Kind)}
    assert {metric.status for metric in METRICS} == {*get_args(Status)}


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_verdict_estimator_and_advice_are_sentences_and_the_status_comes_first(metric):
    first = "no verdict" if metric.status == "none" else metric.status
    assert metric.verdict.lower().startswith(first)
    assert metric.beside.startswith("Print ")
    for sentence in (metric.verdict, metric.estimator, metric.beside):
        assert sentence[0].isupper()
        assert sentence.endswith(".")


SMALL = qd.TextSpace(2, 3)
CLASSES = np.arange(8) % 4
REALS = np.random.default_rng(0).dirichlet(np.full(8, 2.0), 3)


def distinct(orders):
    """Sums of Distinct-n of ten texts, with minus their gradient as quality."""
    parts = [
        partial(qd.ngrams.expected_distinct, SMALL, n=n, num_texts=10) for n in orders
    ]
    return qd.compatible_quality(lambda q: sum(part(q) for part in parts))


def with_its_slope(diversity):
    """A diversity that need not be concave, with the one quality that may fit it."""
    return qd.FunctionPair(lambda q, p: -jax.grad(diversity)(p) @ q, diversity)


def self_repetition(num_texts):
    return lambda q: -metrics.expected_self_repetition(SMALL, q, 2, num_texts)


def compression(num_texts):
    table = jnp.asarray(compression_table(SMALL, num_texts))

    def diversity(q):
        value = table
        for _ in range(num_texts):
            value = value @ q
        return -value

    return diversity


def subsequences(*size):
    return qd.KernelPair(metrics.lcs_kernel(qd.TextSpace(*size)))


def edits(*size):
    return qd.KernelPair(metrics.edit_kernel(qd.TextSpace(*size)))


def coverage(num_draws=5):
    """Of balls around texts that are one token off, given real texts."""
    apart = (SMALL.tokens[:, None] != SMALL.tokens).sum(axis=2)
    balls = jnp.asarray(apart[:6] <= 1, float)
    return lambda q: (1 - (1 - balls @ q) ** num_draws).mean()


def cosines(size=8):
    """Similarities of random embeddings, of full rank."""
    rows = np.random.default_rng(3).normal(size=(size, size + 1))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T


def fitted(p):
    """Log-likelihood of each text under the Markov model of order 1 that fits P."""
    return jnp.log(markov_projection(SMALL, p, 1))


VENDI = qd.VendiPair(metrics.lcs_kernel(SMALL))
# Pairs of each metric with the partner that the table names, compatible for every P.
COMPATIBLE = {
    "LL": [qd.LL_SE],
    "CR": [qd.CR_NRR],
    "exact match": [qd.pairs.distinct_k_pair(5)],
    "BLEU-n": [qd.BleuPair(SMALL, 1, 2, 1), qd.BleuPair(qd.TextSpace(3, 2), 2, 1, 1)],
    "class LL": [qd.PooledPair(qd.LL_SE, CLASSES)],
    "n-gram LL": [qd.pairs.ngram_pair(SMALL, n, qd.LL_SE) for n in (1, 2)],
    "n-gram entropy": [qd.pairs.ngram_pair(SMALL, 2, qd.LL_SE)],
    "squared similarity": [qd.KernelPair(metrics.lcs_kernel(SMALL) ** 2)],
    "Vendi's quality": [VENDI],
    "SE": [qd.LL_SE],
    "NRR": [qd.CR_NRR, qd.pairs.ngram_pair(SMALL, 2)],
    "Tsallis": [
        qd.SeparablePair("x**2/2", qd.Tsallis(3.0)),
        qd.SeparablePair("-2*x**-0.5", qd.Tsallis(0.5)),
    ],
    "Self-BLEU-n": [
        qd.BleuPair(SMALL, 3, 1, 1),
        qd.BleuPair(qd.TextSpace(2, 1), 1, 5, 3),
    ],
    "distinct_k": [qd.pairs.distinct_k_pair(10)],
    "Vendi": [VENDI],
    "Vendi of order 2": [qd.KernelPair(metrics.lcs_kernel(SMALL) ** 2)],
    "semantic entropy": [qd.PooledPair(qd.LL_SE, CLASSES)],
    "Div_pair": [qd.KernelPair(cosines())],
}
# Concave metrics with minus their gradient: compatible by the supporting plane.
CONCAVE = {
    "Distinct-n": distinct([2]),
    "n-gram diversity": distinct([1, 2, 3]),
    "EAD": qd.compatible_quality(
        # Ten texts have twenty pairs of words, of four that there are.
        lambda q: 20 * qd.ngrams.expected_distinct(SMALL, q, 2, 10) / (4 - 4 * 0.75**20)
    ),
    "coverage": qd.compatible_quality(coverage()),
    "Markov-k LL": qd.compatible_quality(lambda q: -q @ fitted(q)),
}
# Pairs that some P refutes, and how many texts a random P has where one is needed.
BEATEN = {
    "exact match": [qd.pairs.distinct_k_pair(5, 3)],
    "distinct_k": [qd.pairs.distinct_k_pair(10, 10)],
    "BLEU-n": [qd.BleuPair(SMALL, 2, 1, 1), qd.BleuPair(qd.TextSpace(3, 2), 1, 2, 1)],
    "Self-BLEU-n": [
        qd.BleuPair(SMALL, 1, 3, 1),
        qd.BleuPair(qd.TextSpace(2, 1), 1, 1, 4),
    ],
    "ROUGE-L": [subsequences(3, 3)],
    "edit similarity": [edits(2, 3), edits(3, 3), edits(2, 4)],
    "pairwise ROUGE-L": [subsequences(4, 2), subsequences(2, 4)],
    "pairwise edit distance": [edits(2, 3), edits(3, 3), edits(2, 4)],
    "self-repetition": [with_its_slope(self_repetition(m)) for m in (2, 3, 10)],
    "compression ratio": [with_its_slope(compression(m)) for m in (2, 3)],
}


def test_every_status_of_a_pair_is_checked():
    statuses = {name: metric.status for name, metric in BY_NAME.items()}
    asked = {x for x, s in statuses.items() if s in ("compatible", "conditional")}
    assert asked == {*COMPATIBLE, *CONCAVE}
    for name in BEATEN:
        assert statuses[name] != "compatible" or "no other" in BY_NAME[name].verdict
    asked = {x for x, s in statuses.items() if s in ("conditional", "incompatible")}
    assert asked <= {*BEATEN}


@pytest.mark.parametrize("name", COMPATIBLE)
def test_what_is_called_compatible_is_so_for_every_p(name):
    for pair in COMPATIBLE[name]:
        assert qd.check_compatibility(pair).status == "compatible"


@pytest.mark.parametrize(
    "name",
    [
        "Distinct-n",
        "EAD",
        "coverage",
        "Markov-k LL",
        pytest.param("n-gram diversity", marks=pytest.mark.slow),
    ],
)
def test_no_model_beats_p_in_a_concave_metric_and_its_slope(name):
    pair = CONCAVE[name]
    models = np.random.default_rng(1).dirichlet(np.full(8, 0.5), 200)
    quality = jax.vmap(pair.quality, (0, None))
    diversity = jax.vmap(pair.diversity)(models)
    for p in REALS:
        assert qd.check_compatibility(pair, p).status == "undecided"  # code has no seal
        lost = pair.quality(p, p) - quality(models, p) + pair.diversity(p) - diversity
        assert float(lost.min()) > 0  # the supporting plane lies above


@pytest.mark.parametrize("name", BEATEN)
def test_what_is_not_compatible_in_some_setting_has_a_witness_there(name):
    for pair in BEATEN[name]:
        by_slope = isinstance(pair, qd.FunctionPair)
        verdict = qd.check_compatibility(pair, num_texts=8 if by_slope else None)
        assert verdict.status == "incompatible"
        p, q = verdict.witness.p, verdict.witness.q
        assert float(pair.quality(q, p)) > float(pair.quality(p, p))
        assert float(pair.diversity(q)) > float(pair.diversity(p))


def test_where_the_table_says_that_every_p_is_beaten_all_are():
    repetition, ratio = (
        np.asarray(jax.hessian(diversity)(REALS[0])) / -2
        for diversity in (self_repetition(2), compression(2))
    )
    beaten = [subsequences(4, 2), subsequences(3, 3), subsequences(2, 4)]
    beaten += [edits(3, 3), edits(2, 4)]
    for kernel in (repetition, ratio, *(pair.kernel for pair in beaten)):
        assert qd.kernel_criterion(kernel).all_dominated
    # And not in the spaces that it leaves out.
    kept = [subsequences(2, 3), subsequences(3, 2), *(edits(v, 2) for v in (2, 3, 4))]
    for pair in kept:
        assert qd.kernel_criterion(pair.kernel).compatible
    assert not qd.kernel_criterion(edits(2, 3).kernel).all_dominated


def test_the_quality_that_fits_a_markov_model_is_its_log_likelihood():
    for p in REALS:
        scores = np.asarray(CONCAVE["Markov-k LL"].text_quality(p))
        expected = np.asarray(fitted(p))
        np.testing.assert_allclose(scores - scores.max(), expected - expected.max())


def test_both_halves_of_bleu_name_the_same_settings():
    bleu, self_bleu = BY_NAME["BLEU-n"].verdict, BY_NAME["Self-BLEU-n"].verdict
    assert bleu.replace("with Self-BLEU", "with BLEU", 1) == self_bleu


BIGRAMS = np.asarray(qd.ngrams.ngram_matrix(SMALL, 2)) / 2
KERNEL = metrics.lcs_kernel(SMALL)
FEATURES = SMALL.tokens.astype(float)
APART = np.linalg.norm(FEATURES[:, None] - FEATURES, axis=2)


def brier_lm(q, p):
    """The geometric mean of the parts for one to three tokens."""
    product_ = 1.0
    for n in (1, 2, 3):
        first = FEATURES[:, :n] @ 2 ** np.arange(n)
        same = (first[:, None] == first).astype(float)
        product_ *= 2 * q @ same @ p - q @ same @ q
    return max(product_, 0) ** (1 / 3)


# Each metric that is a divergence by itself, negated where it is greatest at Q = P.
DIVERGENCES = {
    "CND": lambda q, p: qd.cnd(BIGRAMS @ q, BIGRAMS @ p),
    "MMD": lambda q, p: qd.pairs.squared_mmd(KERNEL, q, p),
    "quantum relative entropy": lambda q, p: metrics.quantum_relative_entropy(
        q, p, KERNEL
    ),
    "NLL": lambda q, p: qd.cross_entropy(p, q),
    "KL": qd.kl_divergence,
    "JS": qd.jensen_shannon_divergence,
    "total variation": qd.divergences.total_variation,
    "Hellinger": qd.divergences.hellinger_distance,
    "MS-Jaccard": lambda q, p: -qd.ms_jaccard(SMALL, q, p, 2)[-1],
    "Frechet distance": lambda q, p: metrics.frechet_distance(q, p, FEATURES),
    "MAUVE": lambda q, p: -metrics.mauve(q, p),
    "BrierLM": lambda q, p: -brier_lm(q, p),
    "energy score": lambda q, p: q @ APART @ p - q @ APART @ q / 2,
    "precision and recall": lambda q, p: (
        -metrics.prd_f_scores(metrics.precision_recall_distributions(q, p)).min()
    ),
}


def test_a_divergence_is_least_at_the_real_distribution():
    found = {name for name, m in BY_NAME.items() if m.status == "a divergence"}
    assert found == {*DIVERGENCES}
    models = np.random.default_rng(2).dirichlet(np.ones(8), 5)
    for name, divergence in DIVERGENCES.items():
        for p in REALS:
            least = float(divergence(p, p))
            assert min(float(divergence(q, p)) for q in models) > least + 1e-4, name


@pytest.mark.claim("N25.18")
def test_distinct_n_and_the_ngrams_of_real_texts():
    p = np.random.default_rng(0).dirichlet(np.ones(8))
    contains = qd.ngrams.ngram_matrix(SMALL, 2) > 0
    lacking = contains.T @ (1 - contains @ p) ** 9  # n-grams that nine real texts lack
    scores = np.asarray(distinct([2]).text_quality(p))
    np.testing.assert_allclose(scores, -lacking / 2, atol=1e-12)


def test_names_are_found_by_any_of_them():
    assert find_metric("VENDI SCORE").name == "Vendi"
    assert find_metric("bleu-2").name == "BLEU-n"
    assert find_metric("distinct_10").name == "distinct_k"
    assert find_metric("Distinct 10").name == "distinct_k"
    assert find_metric("distinct_2").name == "Distinct-n"
    assert titled(*find_order("rarefaction-2")) == "distinct_2"
    assert titled(*find_order("type-token ratio")) == "Distinct-1"
    assert titled(*find_order("2-GRAM entropy")) == "2-gram entropy"
    assert titled(*find_order("NRR 2")) == "NRR-2"
    assert find_metric("pass@5").name == "pass@k"
    assert find_metric("distinct-2").name == "Distinct-n"
    assert titled(*find_order("BLEU\u20112")) == titled(*find_order("BLEU\u20132"))
    assert find_metric("log-likelihood").name == "LL"
    with pytest.raises(ValueError, match="no metric is called 'BLEU-2-2'; do you mean"):
        find_metric("BLEU-2-2")
    with pytest.raises(ValueError, match="do you mean Vendi"):
        find_metric("vend")
    with pytest.raises(ValueError, match="no metric is called 'zzzz'; give your own"):
        find_metric("zzzz")
