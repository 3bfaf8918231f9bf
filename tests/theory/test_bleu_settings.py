"""The classification of BLEU against Self-BLEU, against gradients and witnesses."""

from itertools import product

import jax
import numpy as np
import pytest
import sympy

import qdtheory as qd
from qdtheory.theory.bleu_settings import compatible_setting, is_classified


def listed_bleu(space, order, k):
    """BLEU of each text, the first axis, with each k references."""
    value = 1.0
    for n in range(1, order + 1):
        hits = 0
        for row in qd.metrics.ngram_matrix(space, n):
            most = row
            for _ in range(k - 1):
                most = np.maximum(most[..., None], row)
            hits = hits + np.minimum(row.reshape(-1, *[1] * k), most)
        value = value * (hits / (space.max_length - n + 1)) ** (1 / order)
    return value


def mean_over_references(value, p, number):
    for _ in range(number):
        value = value @ p
    return value


def misfit(space, order, r, k, p):
    """1 + cosine of the gradients, by the list of all references; 0 if antiparallel."""
    u = mean_over_references(listed_bleu(space, order, r), p, r)
    value = listed_bleu(space, order, k)
    v = -mean_over_references(value, p, k)
    v = v - k * mean_over_references(np.tensordot(p, value, 1), p, k - 1)
    u, v = (x - x.mean() for x in (u, v))
    return ((u / np.linalg.norm(u) + v / np.linalg.norm(v)) ** 2).sum() / 2


def test_the_listed_gradients_are_those_of_the_pair():
    space, p = qd.TextSpace(2, 2), np.array([0.4, 0.3, 0.2, 0.1])
    pair = qd.BleuPair(space, 2, 3, 2)
    u = np.asarray(pair.text_quality(p))
    v = np.asarray(jax.grad(pair.diversity)(p))
    u, v = (x - x.mean() for x in (u, v))
    gap = ((u / np.linalg.norm(u) + v / np.linalg.norm(v)) ** 2).sum() / 2
    assert misfit(space, 2, 3, 2, p) == pytest.approx(gap, abs=1e-13)


def expected(vocab_size, length, order, r, k):
    """The classification, as its docstring states it."""
    if length == 1 and vocab_size == 2:
        return k <= 3
    if order == 1 and vocab_size == 2:
        return max(r, k) <= 2
    return r == k == 1 and order in (1, length)


@pytest.mark.claim("N25.20")
@pytest.mark.claim("N25.21")
@pytest.mark.parametrize("size", [(2, 2), (2, 3), (3, 2)])
def test_gradients_are_antiparallel_in_the_compatible_settings_only(size):
    space = qd.TextSpace(*size)
    reals = np.random.default_rng(0).dirichlet(np.ones(space.num_texts), 3)
    for order, r, k in product(range(1, size[1] + 1), (1, 2, 3, 4), (1, 2, 3)):
        gap = max(misfit(space, order, r, k, p) for p in reals)
        # With a kernel they are antiparallel for every order, safe or not.
        fits = expected(*size, order, r, k) or r == k == 1
        assert (gap < 1e-20) == fits


@pytest.mark.claim("N25.20")
@pytest.mark.parametrize(
    ("size", "order", "r", "k"),
    [
        ((2, 1), 1, 2, 2),
        ((2, 1), 1, 5, 3),
        ((2, 1), 1, 1, 4),
        ((2, 3), 1, 2, 2),
        ((2, 3), 2, 1, 1),
        ((2, 2), 2, 1, 1),
        ((2, 2), 2, 2, 2),
        ((2, 2), 1, 3, 1),
        ((3, 2), 1, 1, 1),
    ],
)
def test_check_decides_every_setting(size, order, r, k):
    pair = qd.BleuPair(qd.TextSpace(*size), order, r, k)
    verdict = qd.check_compatibility(pair)
    assert verdict.compatible is expected(*size, order, r, k)
    if not verdict.compatible:
        p, q = verdict.witness.p, verdict.witness.q
        assert float(pair.quality(q, p)) > float(pair.quality(p, p))
        assert float(pair.diversity(q)) > float(pair.diversity(p))


@pytest.mark.claim("N25.21")
@pytest.mark.parametrize(("r", "k"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_two_words_the_divergence_is_that_of_the_numbers_of_ones(r, k):
    space = qd.TextSpace(2, 4)
    pair = qd.BleuPair(space, 1, r, k)
    alpha = qd.check_compatibility(pair).alpha
    ones = space.tokens.sum(axis=1)
    p, *models = np.random.default_rng(1).dirichlet(np.ones(16), 6)
    for q in models:
        gap = alpha * (pair.quality(p, p) - pair.quality(q, p))
        gap += (1 - alpha) * (pair.diversity(p) - pair.diversity(q))
        steps = np.cumsum(np.bincount(ones, q - p))[:-1]
        assert float(gap) == pytest.approx(2 / (2 + k) / 4 * steps @ steps, abs=1e-14)


@pytest.mark.claim("N25.22")
def test_three_texts_without_common_ngrams_leave_one_reference_each():
    x = sympy.Symbol("x")
    for r, k in product(range(1, 7), range(1, 4)):
        f, g = 1 - (1 - x) ** r, -x + x * (1 - x) ** k
        slope = sympy.diff(g, x)
        swapped = slope.subs(x, 1 - x) * f - slope * f.subs(x, 1 - x)
        assert (sympy.expand(swapped) == 0) == (r == k == 1)
        pair = qd.BleuPair(qd.TextSpace(3, 2), 1, r, k)
        assert (compatible_setting(pair) is None) == (r > 1 or k > 1)
    # The terms at the ends on which the proof rests, for r = 2k.
    for k in (2, 3, 4):
        f, g = 1 - (1 - x) ** (2 * k), -x + x * (1 - x) ** k
        h = sympy.diff(g, x) / f
        rise = sympy.limit(sympy.diff(h, x), x, 0)
        assert rise == -sympy.Rational(k + 1, 4)
        at_one = -sympy.limit(sympy.diff(h, x), x, 1)
        assert at_one == (-2 if k == 2 else 0)


def test_the_classification_is_of_one_length_without_smoothing():
    assert is_classified(qd.BleuPair(qd.TextSpace(2, 2), 2))
    for other in (
        qd.BleuPair(qd.TextSpace(2, (1, 2)), 1),
        qd.BleuPair(qd.TextSpace(2, 2), 1, smoothing="epsilon"),
        qd.BleuPair(qd.TextSpace(2, 2), 3),
    ):
        assert not is_classified(other)
        assert compatible_setting(other) is None
    with pytest.raises(ValueError, match="the space has 4 texts, got 5"):
        qd.check_compatibility(qd.BleuPair(qd.TextSpace(2, 2), 1), num_texts=5)
