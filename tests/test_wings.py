"""Metrics of spaces and of corpora: one limit."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from lab import metrics
from lab.corpora import frechet_distance

import qdtheory as qd
from qdtheory import text

# Thousands of calls: their types are checked in the metrics' own tests.
pytestmark = pytest.mark.usefixtures("as_a_user")

SPACE = qd.TextSpace(vocab_size=2, lengths=(1, 3, 5))
Q, P = np.random.default_rng(0).dirichlet(np.ones(SPACE.num_texts), 2)
TEXTS = text.as_corpus([row[row >= 0].tolist() for row in SPACE.tokens])


def features(texts):
    return np.array([[len(x), x.count(0), x[0]] for x in texts], float)


def bigrams(metric, *distributions):
    return metric(*(SPACE.ngram_distribution(x, 2) for x in distributions))


def repetition(candidates, _):
    return text.negative_repetition_rate(candidates, 2)


# The exact value, and the same of candidates and references. Means of the metrics that
# depend on the sizes of samples are exact in tests/claims/test_estimation.py.
METRICS = {
    "MS-Jaccard": (lambda: qd.ms_jaccard(SPACE, Q, P), text.ms_jaccard),
    "CR-2": (lambda: bigrams(qd.coverage_rate, Q, P), partial(text.coverage_rate, n=2)),
    "NRR-2": (lambda: bigrams(qd.negative_repetition_rate, Q), repetition),
    "CND-2": (lambda: bigrams(qd.cnd, Q, P), partial(text.cnd, n=2)),
    "Frechet": (
        lambda: metrics.frechet_distance(Q, P, features(TEXTS)),
        lambda c, r: frechet_distance(features(c), features(r)),
    ),
}


@pytest.mark.parametrize("name", METRICS)
def test_samples_converge_to_the_exact_value(name):
    exact, metric = METRICS[name]
    value, rng = np.asarray(exact()), np.random.default_rng(1)

    def error(size):
        found = metric(*(TEXTS[rng.choice(len(x), size, p=x)] for x in (Q, P)))
        assert np.shape(found) == value.shape
        return np.abs(found - value).max()

    few, many = (np.mean([error(size) for _ in range(5)]) for size in (60, 1500))
    # By the square root of 25, up to the chance of five samples.
    assert many < few / 2
    assert many < 0.03


@pytest.mark.parametrize("smoothing", [None, "epsilon"])
def test_one_candidate_with_one_reference_at_every_order(smoothing):
    points = np.eye(SPACE.num_texts)[::3]
    for (q, c), (p, r) in product(zip(points, TEXTS[::3], strict=True), repeat=2):
        exact = qd.expected_bleu(SPACE, q, p, 6, 1, smoothing)
        found = text.bleu([c], [r], 6, smoothing)
        np.testing.assert_allclose(exact, found, rtol=0, atol=1e-12)
