"""The compatibility matrix on other distributions and by other routes."""

from functools import cache, partial
from itertools import combinations, product

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from referees import metrics_by_text as by_text
from referees.conic import DIVERSITIES, most_gained
from scripts import frame
from scripts import script as load

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=4, lengths=3)
# Pairs of metrics since 2020.
# Pairs of metrics since 2020.
NAMED = {
    ("Match", 9, "distinct_10", 0),
    ("Class LL", 0, "Class SE", 0),
    ("Vendi LL", 0, "log Vendi", 0),
    ("Cosine^2", 1, "NCosine^2", 1),
}


KEYS = ["quality", "references", "diversity", "self_references"]
ROWS = frame("compatibility_matrix.csv").fillna(dict.fromkeys(KEYS, 0))


@cache
def script():
    found = load("make_compatibility_matrix")
    # The script's own setting is for a process of its own.
    jax.config.update("jax_cpu_enable_async_dispatch", True)
    return found


def ticks():
    kept = ROWS[ROWS.verdict == "compatible"]
    return {tuple(x) for x in kept[KEYS].itertuples(index=False)}


@cache
def diversities():
    """Their values, by name and references; 0 are none."""
    named = script().diversities()
    return {(v.name, v.self_references or 0): jax.jit(v.value) for v in named}


@cache
def qualities():
    """Scores from P, by name and references."""
    return {(u, r or 0): jax.jit(f) for (u, r), f in script().qualities().items()}


def both(p):
    """Scores and slopes of all metrics."""
    slopes = {name: jax.grad(f)(p) for name, f in diversities().items()}
    scores = {name: f(p) for name, f in qualities().items()}
    return [{k: np.asarray(x) for k, x in y.items()} for y in (scores, slopes)]


def dirichlet(seed, concentration=1.0, floor=0.0):
    p = np.random.default_rng(seed).dirichlet(np.full(64, concentration)) + floor
    return p / p.sum()


def correlation(p, u, v):
    u, v = u - p @ u, v - p @ v
    return float(p @ (u * v) / np.sqrt((p @ u**2) * (p @ v**2)))


@pytest.mark.claim("N14.1", "N14.13", "N14.15")
def test_ticks_are_where_scores_and_gradients_cancel():
    p = dirichlet(0)  # no language model
    u, v = both(p)
    cancel = {a + b for a in u for b in v if 1 + correlation(p, u[a], v[b]) < 1e-12}
    kernels = {(x, 1, f"N{x}", 1) for x in ("ROUGE-L", "Edit")}
    assert cancel == ticks() | {("BLEU-2", 1, "NSBLEU-2", 1)} | kernels
    assert len({a[:2] for a in ticks()}) == len(ticks()) == 10
    assert ticks() > NAMED
    others = ROWS[ROWS.verdict != "compatible"]
    assert len(others) == 3 * (192 + 278)
    assert {*others.verdict} == {"incompatible"}
    gains = others[others.basis != ""][["quality_gain", "diversity_gain"]]
    assert gains.min().min() > 1e-13
    # Of qualities two are equal, and both have the same partner.
    pairs = combinations(sorted(u), 2)
    equal = {x for x in pairs if 1 - correlation(p, u[x[0]], u[x[1]]) < 1e-12}
    assert equal == {(("BLEU-3", 1), ("CR", 0))}
    partners = [{a[2:] for a in ticks() if a[:2] == x} for x in equal.pop()]
    assert partners[0] == partners[1] != set()
    # Two diversities of one quality would have parallel gradients.
    parallel = [correlation(p, *pair) for pair in combinations(v.values(), 2)]
    assert max(parallel) < 0.9999


@pytest.mark.claim("N14.2")
@pytest.mark.parametrize("concentration", [0.3, 10.0])
def test_ticks_hold_on_any_distribution(concentration):
    p = dirichlet(1, concentration, 1e-9)
    scores, slopes = both(p)
    models = np.random.default_rng(1).dirichlet(np.full(64, 0.5), 500)
    models[1:251] += 20 * p
    models = np.vstack([p, models / models.sum(axis=1, keepdims=True)])
    for kind in ticks():
        u, v = scores[kind[:2]], slopes[kind[2:]]
        assert 1 + correlation(p, u, v) < 1e-12
        diversity = np.asarray(jax.vmap(diversities()[kind[2:]])(models))
        wins = ((models - p) @ u > 1e-12) & (diversity - diversity[0] > 1e-12)
        assert not wins.any()


@pytest.mark.claim("N14.5")
@pytest.mark.parametrize("seed", range(3))
def test_kernel_of_bleu_2_is_beaten_at_random_distributions(seed):
    pair, p = qd.BleuPair(SPACE, 2, 1, 1), dirichlet(seed, floor=1e-6)
    kernel = np.asarray(jax.vmap(pair.text_quality)(jnp.eye(64)))
    value = jax.jit(pair.diversity)
    name, q = script().witness(p, kernel @ p, -2 * kernel @ p, value)
    assert name == "second-order test"
    assert (q - p) @ kernel @ p > 1e-9
    assert p @ kernel @ p - q @ kernel @ q > 1e-9


def test_listed_gains_equal_those_of_a_conic_solver():
    p, rows = script().real(0, 0.5), ROWS[ROWS.sigma == 0.5]
    listed = dict(zip(map(tuple, rows[KEYS[:3]].values), rows.qdisc_0))
    shares = np.asarray(qd.ngrams.ngram_matrix(SPACE, 2)) / 2
    conic = {"SE": DIVERSITIES["SE"], "NRR-2": lambda q: -cp.sum_squares(shares @ q)}
    kinds = ("LL", 0), ("CR-1", 0), ("BLEU-2", 10)
    for (name, r), (partner, of) in product(kinds, conic.items()):
        gained = most_gained(np.asarray(qualities()[name, r](p)), p, of)
        # Clarabel's gap is 1e-8, of scores up to 10 in size.
        assert gained == pytest.approx(listed[name, r, partner], abs=1e-5)


DEFINED = {
    "distinct_10": "distinct_10",
    "Class SE": "semantic entropy",
    "log Vendi": "Vendi",
    "NCosine^2": "Vendi of order 2",
    "NSelf-repetition": "self-repetition",
}


@pytest.mark.claim("N14.4", "N14.17")
@pytest.mark.parametrize("name", DEFINED)
def test_witnesses_of_recent_metrics_win_by_their_definitions(name):
    p = dirichlet(17, floor=1e-4)
    ((key, value),) = ((k, f) for k, f in diversities().items() if k[0] == name)
    of = partial(by_text.diversity, DEFINED[name], None, by_text.texts_of(4, 3))
    assert of(p) == pytest.approx(float(value(p)), rel=1e-10)
    slope, unbeaten = np.asarray(jax.grad(value)(p)), set()
    for kind, score in qualities().items():
        u = np.asarray(score(p))
        if found := script().witness(p, u, slope, value):
            assert min((found[1] - p) @ u, of(found[1]) - of(p)) > 1e-12
        else:
            unbeaten.add((*kind, *key))
    assert unbeaten == {x for x in NAMED if x[2] == name}
