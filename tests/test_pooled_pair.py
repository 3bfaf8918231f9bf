"""Pairs on n-grams and classes against the pairs of their distributions."""

import dataclasses
from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from models import (
    CASES,
    SPACES,
    SPACES_OF_ONE_LENGTH,
    beaten,
    counted,
    draw,
    positive,
    seen_sets,
)

import qdtheory as qd

SEEDS = st.integers(0, 2**32 - 1)
few_examples = settings(max_examples=30)

SPACE = qd.TextSpace(4, 3)
ONE_LENGTH = [name for name, space in SPACES.items() if len(space.lengths) == 1]
SMALL = [(qd.TextSpace(2, 3), n) for n in (1, 2, 3)] + [(qd.TextSpace(3, 2), 1)]


@pytest.mark.claim("N2.8")
@pytest.mark.parametrize("base", [qd.CR_NRR, qd.LL_SE], ids=lambda pair: pair.name)
@pytest.mark.parametrize(("name", "n"), CASES)
def test_pair_is_the_pair_of_the_ngram_distributions(base, name, n):
    space = SPACES[name]
    q, p = (draw(seed, space.num_texts) for seed in (1, 2))
    pair = qd.pairs.ngram_pair(space, n, base)
    q_g, p_g = (
        counts / counts.sum() for counts in (counted(space, x, n) for x in (q, p))
    )
    np.testing.assert_allclose(
        pair.quality(q, p), base.quality(q_g, p_g), rtol=1e-13, atol=1e-14
    )
    np.testing.assert_allclose(
        pair.diversity(q), base.diversity(q_g), rtol=1e-13, atol=1e-14
    )
    assert pair.name == f"{base.name} on {n}-grams"


@pytest.mark.claim("N2.8")
@pytest.mark.claim("N9.3")
@pytest.mark.parametrize("name", ONE_LENGTH)
def test_the_longest_ngrams_are_the_texts(name):
    space = SPACES[name]
    pair = qd.pairs.ngram_pair(space, space.max_length)
    for seed in range(5):
        q, p = draw(seed, space.num_texts), draw(seed + 50, space.num_texts)
        grams = space.ngram_distribution(q, space.max_length)
        np.testing.assert_allclose(grams, q, rtol=1e-14)
        np.testing.assert_allclose(pair.quality(q, p), (q * p).sum(), rtol=1e-14)
        np.testing.assert_allclose(pair.diversity(q), -(q @ q), rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_LENGTH)
@pytest.mark.parametrize("base", [qd.CR_NRR, qd.LL_SE], ids=lambda pair: pair.name)
def test_scores_of_texts(name, base):
    space = SPACES[name]
    q, p = (draw(seed, space.num_texts) for seed in (1, 2))
    for n in range(1, space.max_length + 1):
        pair = qd.pairs.ngram_pair(space, n, base)
        scores = pair.text_quality(p)
        np.testing.assert_allclose(
            scores @ q, pair.quality(q, p), rtol=1e-13, atol=1e-14
        )
        gradient = jax.grad(pair.quality)(jnp.asarray(q), p)
        # On the simplex a gradient counts up to a constant.
        np.testing.assert_allclose(
            gradient - gradient.mean(), scores - scores.mean(), atol=1e-13
        )


def test_an_ngram_that_p_lacks_gives_its_texts_no_finite_score():
    space = qd.TextSpace(2, 2)
    p = np.array([1.0, 0.0, 0.0, 0.0])
    scores = qd.pairs.ngram_pair(space, 1, qd.LL_SE).text_quality(p)
    assert scores.tolist() == [0.0, -np.inf, -np.inf, -np.inf]
    assert qd.pairs.ngram_pair(space, 1, qd.LL_SE).quality(p, p) == 0


@pytest.mark.claim("N9.5")
@pytest.mark.parametrize(
    "space", [*SPACES_OF_ONE_LENGTH, qd.TextSpace(3, (1, 2, 3))], ids=str
)
@pytest.mark.parametrize("seed", range(3))
def test_every_curve_through_p_has_slope_minus_two(space, seed):
    p = positive(seed, space.num_texts)
    step = p * np.random.default_rng(seed).normal(size=p.size) / 10
    step -= p * step.sum()
    t, rises = 1e-3, []
    for n in range(1, space.max_length + 1):
        pair = qd.pairs.ngram_pair(space, n)
        ends = p + t * step, p - t * step
        du = float(pair.quality(ends[0], p) - pair.quality(ends[1], p))
        dv = float(pair.diversity(ends[0]) - pair.diversity(ends[1]))
        # Central differences are off by the third order: (t / 10)^3 times a constant.
        np.testing.assert_allclose(dv, -2 * du, atol=1e-11)
        rises.append(abs(du))
    assert max(rises) > 1e-7


def ngrams_of(space, n):
    return [frozenset(row) for row in space.ngrams(n).tolist()]


def chance_seen(space, p, n, r, target):
    """Inclusion and exclusion over the subsets of the target."""
    held, total = ngrams_of(space, n), 0.0
    for size in range(len(target) + 1):
        for subset in map(frozenset, combinations(sorted(target), size)):
            stays = sum(x for x, grams in zip(p, held, strict=True) if grams <= subset)
            total += (-1) ** (len(target) - size) * stays**r
    return total


@pytest.mark.claim("N9.17")
@pytest.mark.parametrize(("space", "n"), SMALL, ids=str)
@pytest.mark.parametrize("r", [1, 3, 8])
def test_the_chance_of_each_seen_set_by_recursion(space, n, r):
    p = draw(6, space.num_texts)
    by_recursion = seen_sets(p, r, ngrams_of(space, n))
    everything = frozenset(range(space.vocab_size**n))
    for target in {*by_recursion, everything}:
        np.testing.assert_allclose(
            chance_seen(space, p, n, r, target), by_recursion[target], atol=1e-13
        )


@pytest.mark.claim("N9.18")
@pytest.mark.parametrize(("space", "n"), SMALL, ids=str)
@pytest.mark.parametrize(("s", "r"), [(1, 1), (2, 5), (6, 3)])
def test_the_chance_of_a_finite_log_likelihood_by_recursion(space, n, s, r):
    q, p = draw(7, space.num_texts), draw(8, space.num_texts)
    held = ngrams_of(space, n)
    ours, theirs = seen_sets(q, s, held), seen_sets(p, r, held)
    direct = sum(
        x * y for (a, x), (b, y) in product(ours.items(), theirs.items()) if a <= b
    )
    formula = sum(
        chance_seen(space, p, n, r, seen)
        * sum(x for x, grams in zip(q, held, strict=True) if grams <= seen) ** s
        for seen in theirs
    )
    np.testing.assert_allclose(formula, direct, atol=1e-12)


@pytest.mark.claim("N9.19")
@given(seed=SEEDS, n=st.sampled_from([1, 2, 3]))
@few_examples
def test_only_the_references_must_hold_every_ngram(seed, n):
    rng = np.random.default_rng(seed)
    full, pair = positive(seed, 64), qd.pairs.ngram_pair(SPACE, n, qd.LL_SE)
    # Texts without token 3: no n-gram with it.
    lacking = np.where((SPACE.tokens < 3).all(1), rng.random(64), 0)
    lacking /= lacking.sum()
    assert np.isfinite(pair.quality(lacking, full))
    assert np.isfinite(pair.diversity(lacking))
    assert pair.quality(full, lacking) == -np.inf


@pytest.mark.claim("N9.20")
@given(seed=SEEDS)
@few_examples
def test_smoothed_log_likelihood_goes_like_the_unseen_mass(seed):
    rng = np.random.default_rng(seed)
    q_g, p_hat = draw(seed, 16), rng.multinomial(10, draw(seed + 1, 16)) / 10
    unseen = p_hat == 0
    mass = q_g[unseen].sum()
    assume(mass > 1e-3)
    rest = q_g[~unseen] @ np.log(p_hat[~unseen]) - mass * np.log(16)
    for epsilon in (1e-6, 1e-9):
        smooth = qd.mix(p_hat, np.full(16, 1 / 16), epsilon)
        ll = float(qd.LL_SE.quality(q_g, smooth))
        np.testing.assert_allclose(ll, rest + mass * np.log(epsilon), atol=2 * epsilon)


def assert_ties(pair, q, p, atol):
    """Assert that two distributions have the same quality and diversity."""
    assert abs(float(pair.quality(q, p) - pair.quality(p, p))) <= atol
    assert abs(float(pair.diversity(q) - pair.diversity(p))) <= atol


@pytest.mark.claim("N5.17")
@given(sizes=st.lists(st.integers(-5, 5), min_size=3, max_size=3).filter(any))
def test_swaps_that_keep_all_bigrams_tie(sizes):
    """aba and bab have the bigrams ab and ba, both."""
    space = qd.TextSpace(vocab_size=3, lengths=3)
    q = np.full(27, 1 / 27)
    for size, (a, b) in zip(sizes, ((0, 1), (0, 2), (1, 2)), strict=True):
        q[space.index(np.array([a, b, a]))] += size / 200
        q[space.index(np.array([b, a, b]))] -= size / 200
    p = np.full(27, 1 / 27)
    assert_ties(qd.pairs.ngram_pair(space, 2), q, p, 1e-15)
    assert abs(q - p).max() > 1e-3


# --- Classes of texts ---------------------------------------------------------------
CLASSES = [0, 1, 0, 2, 2, 3, 0]


def models(seed, number):
    return np.random.default_rng(seed).dirichlet(np.ones(len(CLASSES)), number)


@pytest.mark.claim("N25.16")
@pytest.mark.parametrize("pair", [qd.LL_SE, qd.CR_NRR, qd.LL_NRR])
def test_values_are_those_of_the_classes(pair):
    on_classes = qd.PooledPair(pair, CLASSES)
    q, p = models(0, 2)
    of_q, of_p = (np.bincount(CLASSES, x) for x in (q, p))
    for value, expected in (
        (on_classes.quality(q, p), pair.quality(of_q, of_p)),
        (on_classes.quality(q, p), q @ on_classes.text_quality(p)),
        (on_classes.diversity(q), pair.diversity(of_q)),
    ):
        assert float(value) == pytest.approx(float(expected), abs=1e-14)


@pytest.mark.claim("N25.16")
def test_the_verdict_is_that_of_the_classes():
    assert qd.check_compatibility(qd.PooledPair(qd.LL_SE, CLASSES)).compatible is True
    pair = qd.PooledPair(qd.LL_NRR, CLASSES)
    for real in (None, models(1, 1)[0]):
        verdict = beaten(pair, real)
        if real is not None:
            np.testing.assert_allclose(verdict.witness.p, real, atol=1e-15)
    with pytest.raises(ValueError, match="the pair is of 7 texts, got 3"):
        qd.check_compatibility(pair, num_texts=3)


@pytest.mark.claim("N25.17")
def test_mass_moved_within_a_class_changes_nothing():
    (p,) = models(2, 1)
    q = p.copy()
    q[0], q[2] = p[0] + p[2], 0
    assert_ties(qd.PooledPair(qd.LL_SE, CLASSES), q, p, 1e-14)
    assert float(qd.divergences.total_variation(q, p)) == pytest.approx(p[2])


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    "classes", [[0, 2], [-1, 0], [0.5], [], [[0], [2]], [[[0]]], [True]]
)
def test_bad_classes_are_refused(classes):
    with pytest.raises(ValueError, match="classes must be one whole number a text"):
        qd.PooledPair(qd.LL_SE, classes)


def test_another_map_is_read_anew():
    pair = qd.PooledPair(qd.LL_SE, CLASSES)
    other = dataclasses.replace(pair, map=np.array([[0, 1], [1, -1]]), of="tokens")
    assert (other.num_outcomes, other.one_length) == (2, False)
    assert (pair.num_outcomes, pair.one_length) == (4, True)
    assert (pair.name, other.name) == ("LL-SE on 4 classes", "LL-SE on tokens")


@pytest.mark.parametrize("pair", [None, "LL-SE", 3, len])
def test_classes_of_no_pair_are_refused_at_once(as_a_user, pair):
    with pytest.raises(TypeError, match=r"^pair must be a pair, such as qd.LL_SE"):
        qd.PooledPair(pair, [0, 1])


@pytest.mark.parametrize("classes", [None, "ab", 3, [None, 1], [[-1], [-1]], [1, 2]])
def test_no_classes_are_refused_at_once(as_a_user, classes):
    with pytest.raises(ValueError, match=r"^classes must be one whole number a text"):
        qd.PooledPair(qd.LL_SE, classes)
