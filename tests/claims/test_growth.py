"""How the loss grows with sizes and references: other distributions, other routes."""

from itertools import product

import numpy as np
import pytest
from models import oracle
from referees import metrics_by_text as by_text
from referees.conic import DIVERSITIES, most_gained
from referees.enumerated_bleu import diversity, listed_bleu, quality
from scripts import frame

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=4, lengths=3)
GROWTH = frame("growth.csv")
BIGRAMS = np.asarray(qd.ngrams.ngram_matrix(SPACE, 2)) / 2


def coverage(p):
    """Scores of CR of bigrams."""
    return BIGRAMS.T @ (BIGRAMS @ p)


def test_exact_rows_equal_a_conic_solver():
    p, rows = oracle(SPACE, 2, 0.5, size=32), GROWTH.query("method == 'exact'")
    rows = rows.query("seed == 2 and sigma == 0.5").set_index("pair").qdisc
    for pair, score in (("LL-NRR", np.log(p)), ("CR2-SE", coverage(p))):
        gained = most_gained(score, p, DIVERSITIES[pair.split("-")[1]])
        # Clarabel's gap is 1e-8, of scores up to 10 in size.
        assert gained == pytest.approx(rows[pair], abs=1e-6)


@pytest.mark.claim("N19.2")
@pytest.mark.parametrize("seed", range(3))
def test_gain_near_uniform_distributions_of_any_shape(seed):
    way = np.random.default_rng(seed).normal(size=64)
    e = 1e-3 * (way - way.mean()) / 64
    u = coverage(e) - coverage(e).mean()
    second = np.sqrt((u @ u) * (e @ e)) - u @ e
    line = np.stack([np.ones(64), e], axis=1)
    rest = e**2 - line @ np.linalg.lstsq(line, e**2)[0]
    fourth = 64**3 * (rest @ rest) / 8
    pair = qd.LinearPair(coverage, qd.functions.SE)
    # The next order is smaller by N e, 1e-3, times a factor of a few.
    for of, expected in ((pair, second), (qd.LL_NRR, fourth)):
        found = qd.quality_discrepancy(of, 1 / 64 + e).qdisc
        assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.claim("N19.3")
@pytest.mark.parametrize("order", [1, 2])
def test_uniform_distribution_is_beaten_under_enumerated_bleu(order):
    score = listed_bleu(qd.TextSpace(vocab_size=3, lengths=3), order)
    p = np.full(27, 1 / 27)
    u = np.einsum("cab,a,b->c", score, p, p)
    v = -u - 2 * np.einsum("cab,c,b->a", score, p, p)
    u, v = u - u.mean(), v - v.mean()
    way = u / np.linalg.norm(u) + v / np.linalg.norm(v)
    q = p + 0.02 / 27 * way / np.abs(way).max()
    # The gain is of first order in the step; sums of 27^3 terms round at 1e-14.
    assert quality(score, q - p, p) > 1e-7
    assert diversity(score, q) > diversity(score, p) + 1e-7


@pytest.mark.claim("N19.4")
@pytest.mark.parametrize("sizes", [(3, 2), (2, 4)])
def test_no_model_gains_more_than_the_chance_to_miss_the_own_text(sizes):
    space, rng = qd.TextSpace(*sizes), np.random.default_rng(0)
    for order, n in product(range(1, sizes[1] + 1), (1, 2, 7, 100)):
        pair = qd.BleuPair(space, order, n, 1)
        for concentration in (0.1, 1.0, 10.0):
            p = rng.dirichlet(np.full(space.num_texts, concentration))
            score = np.asarray(pair.text_quality(p))
            # All models together, whatever their diversity; 1e-12 for rounding.
            assert score.max() - score @ p <= p @ (1 - p) ** n + 1e-12


@pytest.mark.claim("N19.5")
def test_all_of_the_quality_is_gained_against_many_candidates():
    space = qd.TextSpace(vocab_size=3, lengths=3)
    p = np.random.default_rng(1).dirichlet(np.full(27, 5.0))
    shares = []
    for k in (300, 3000):
        pair = qd.BleuPair(space, 2, 2, k)
        score = np.asarray(pair.text_quality(p))
        q = np.where(np.arange(27) == score.argmax(), 1 - 26 / k, 1 / k)
        assert pair.diversity(q) > pair.diversity(p)
        shares.append((q - p) @ score / (score.max() - score @ p))
    # What is lost is 26 / k of the range of scores.
    assert (1 - shares[0]) / (1 - shares[1]) == pytest.approx(10, rel=1e-6)


@pytest.mark.claim("N19.11")
@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_built_model_keeps_a_text_that_parts_of_others_do_not_match(order):
    """By enumeration of what k references can hold, over the texts of two words.

    A larger number of copies changes nothing: BLEU takes the largest count in one.
    """
    texts, score = by_text.texts_of(2, 3), {}
    for drawn, _ in by_text.sets_drawn(np.full(8, 1 / 8), 8):
        seen = [texts[i] for i in drawn]
        score[drawn] = np.array([by_text.bleu(text, seen, order) for text in texts])

    def lost(x, k):
        """1 - Self-BLEU of a model with k references."""
        sets = by_text.sets_drawn(x, k)
        return float(sum(chance * (1 - score[drawn]) @ x for drawn, chance in sets))

    p = np.random.default_rng(order).dirichlet(np.full(8, 5.0))
    for k, best in product((20, 200, 2000), (0, 3)):  # aaa, the best; abb
        q = np.where(np.arange(8) == best, 1 - 7 / k, 1 / k)
        floor = (1 - (2 / 3) ** (1 / order)) / k * (1 - 1 / k) ** k
        # Sums of 256 terms of both signs.
        assert lost(q, k) >= floor - 1e-11
        assert lost(p, k) <= p @ (1 - p) ** k + 1e-11
        assert k < 2000 or lost(q, k) > lost(p, k) + 1e-11


@pytest.mark.claim("N19.10")
def test_loss_of_bleu_2_rises_and_its_share_falls_for_another_oracle():
    pair = qd.BleuPair(SPACE, 2, 2, 2)
    ps = (oracle(SPACE, 60, sigma, size=32) for sigma in (1 / 16, 1 / 2))
    found = [qd.quality_discrepancy(pair, p) for p in ps]
    assert found[1].qdisc > 1.2 * found[0].qdisc
    assert found[1].drate < 0.8 * found[0].drate
