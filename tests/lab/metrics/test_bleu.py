"""BLEU from draws against NLTK, and pooled BLEU against the closed form."""

import numpy as np
import pytest
from lab.metrics.bleu import estimate_bleu, expected_corpus_bleu
from models import sentence_bleu
from refusals import refused
from scipy.stats import t as student

import qdtheory as qd

pytestmark = pytest.mark.filterwarnings("ignore:\\s*The hypothesis contains 0 counts")


def test_pooled_bleu_of_one_candidate_is_expected_bleu():
    space = qd.TextSpace(2, (1, 2, 3))
    q, p = np.random.default_rng(6).dirichlet(np.ones(14), 2)
    p[3] = 0
    p /= p.sum()
    for max_order, n in ((1, 1), (2, 2), (4, 2)):
        for smoothing in (None, "epsilon"):
            one = expected_corpus_bleu(space, q, p, max_order, n, 1, smoothing)
            exact = qd.expected_bleu(space, q, p, max_order, n, smoothing)
            np.testing.assert_allclose(one, exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("smoothing", [None, "epsilon"])
def test_monte_carlo_is_the_mean_of_nltks_scores(smoothing):
    rng = np.random.default_rng(8)
    texts, others = rng.integers(3, size=(60, 8)), rng.integers(3, size=(60, 3, 7))
    for tokens in (texts, others):
        sizes = rng.integers(1, tokens.shape[-1] + 1, size=(*tokens.shape[:-1], 1))
        tokens[np.arange(tokens.shape[-1]) >= sizes] = -1

    def words(text):
        return text[text >= 0].tolist()

    scores = [
        [sentence_bleu(words(c), [*map(words, r)], n, smoothing) for n in (1, 2, 3)]
        for c, r in zip(texts, others, strict=True)
    ]
    mean, error = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1) / 60**0.5
    found = estimate_bleu(texts, others, 3, smoothing)
    np.testing.assert_allclose(found.value, mean, atol=1e-14)
    np.testing.assert_allclose(found.standard_error, error, atol=1e-14)
    ends = student.interval(0.95, 59, mean, error)
    np.testing.assert_allclose((found.low, found.high), ends, atol=1e-13)


def test_bad_input_is_refused(as_a_user):
    corpus, by_draws = expected_corpus_bleu, estimate_bleu
    space, p = qd.TextSpace(2, 2), np.full(4, 0.25)
    texts, others = np.zeros((3, 2), int), np.zeros((3, 1, 2), int)
    refused(
        ("num_candidates must be a whole", corpus, space, p, p, 2, 2, 0),
        ("multisets of references, 1,000,000", corpus, space, p, p, 2, 500),
        ("(3, 2) and (2, 1, 2)", by_draws, texts, others[:2]),
        ("at least 2 draws, got 1", by_draws, texts[:1], others[:1]),
        ("no text may be empty", by_draws, texts - 1, others),
    )
