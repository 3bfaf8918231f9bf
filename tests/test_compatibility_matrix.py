"""The compatibility matrix on other distributions and by other routes."""

from itertools import combinations

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import oracle
from referees import metrics_by_text as by_text
from referees.conic import DIVERSITIES, most_gained
from referees.enumerated_bleu import diversity, listed_bleu, quality
from scripts import rows_of
from scripts import script as load

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=4, lengths=3)
# Pairs of metrics since 2020.
NAMED = {
    ("Match", "9", "distinct_10", ""),
    ("Class LL", "", "Class SE", ""),
    ("Vendi LL", "", "log Vendi", ""),
    ("Cosine^2", "1", "NCosine^2", "1"),
}


@pytest.fixture(scope="module")
def script():
    found = load("make_compatibility_matrix")
    # The script's own setting is for a process of its own.
    jax.config.update("jax_cpu_enable_async_dispatch", True)
    return found


@pytest.fixture(scope="module")
def table():
    found = {}
    for row in rows_of("compatibility_matrix.csv"):
        kind = [row["quality"], row["references"], row["diversity"]]
        found[*kind, row["self_references"], float(row["sigma"])] = row
    return found


@pytest.fixture(scope="module")
def ticks(table):
    return {k[:4] for k, row in table.items() if row["verdict"] == "compatible"}


@pytest.fixture(scope="module")
def metrics(script):
    """Scores from P and gradients from Q, by name and references."""
    scores = {(u, str(r or "")): jax.jit(f) for (u, r), f in script.qualities().items()}
    slopes = {
        (v.name, str(v.self_references or "")): jax.jit(jax.grad(v.value))
        for v in script.diversities()
    }
    return scores, slopes


def correlation(p, u, v):
    u, v = u - p @ u, v - p @ v
    return float(p @ (u * v) / np.sqrt((p @ u**2) * (p @ v**2)))


@pytest.mark.claim("N14.1", "N14.8", "N14.13", "N14.15", "N14.16")
def test_ticks_are_where_scores_and_gradients_cancel(table, ticks, metrics):
    scores, slopes = metrics
    p = np.random.default_rng(0).dirichlet(np.ones(64))  # no language model
    u = {name: np.asarray(f(p)) for name, f in scores.items()}
    v = {name: np.asarray(f(p)) for name, f in slopes.items()}
    cancel = {a + b for a in u for b in v if 1 + correlation(p, u[a], v[b]) < 1e-12}
    kernels = {(x, "1", f"N{x}", "1") for x in ("ROUGE-L", "Edit")}
    assert cancel == ticks | {("BLEU-2", "1", "NSBLEU-2", "1")} | kernels
    assert len({a[:2] for a in ticks}) == len(ticks) == 10
    assert ticks > NAMED
    others = [row for k, row in table.items() if k[:4] not in ticks]
    assert len(others) == 3 * (192 + 278)
    assert all(row["verdict"] == "incompatible" for row in others)
    for gain in ("quality_gain", "diversity_gain"):
        assert min(float(row[gain]) for row in others if row["basis"]) > 1e-13
    # Of qualities two are equal, and both have the same partner.
    pairs = combinations(sorted(u), 2)
    equal = {x for x in pairs if 1 - correlation(p, u[x[0]], u[x[1]]) < 1e-12}
    assert equal == {(("BLEU-3", "1"), ("CR", ""))}
    partners = [{a[2:] for a in ticks if a[:2] == x} for x in equal.pop()]
    assert partners[0] == partners[1] != set()
    # Two diversities of one quality would have parallel gradients.
    parallel = [correlation(p, *pair) for pair in combinations(v.values(), 2)]
    assert max(parallel) < 0.9999


@pytest.mark.claim("N14.2", "N14.3")
def test_ticks_hold_on_any_distribution(ticks, script, metrics):
    scores, slopes = metrics
    rng = np.random.default_rng(1)
    values = {
        (v.name, str(v.self_references or "")): v.value for v in script.diversities()
    }
    for kind in ticks:
        value = jax.jit(jax.vmap(values[kind[2:]]))
        for concentration in (0.3, 1.0, 10.0):
            p = rng.dirichlet(np.full(64, concentration)) + 1e-9
            p /= p.sum()
            u, v = np.asarray(scores[kind[:2]](p)), np.asarray(slopes[kind[2:]](p))
            assert 1 + correlation(p, u, v) < 1e-12
            models = np.vstack([p, rng.dirichlet(np.full(64, 0.5), 500)])
            models[1:251] += 20 * p
            models /= models.sum(axis=1, keepdims=True)
            diversity = np.asarray(value(models))
            wins = ((models - p) @ u > 1e-12) & (diversity - diversity[0] > 1e-12)
            assert not wins.any()


@pytest.mark.claim("N14.4")
def test_witnesses_on_another_oracle_win_by_enumerated_bleu(script, metrics):
    p = oracle(SPACE, 30, 2.0)
    scores, slopes = metrics
    found = {v.name + str(v.self_references or ""): v for v in script.diversities()}
    score = listed_bleu(SPACE, 2)
    given = found["NSBLEU-22"]
    u, v = np.asarray(scores["BLEU-2", "2"](p)), np.asarray(slopes["NSBLEU-2", "2"](p))
    name, q = script.witness(p, u, v, jax.jit(given.value))
    assert name == "first-order test"
    # The oracle is peaked, so that gains are small; sums round at 1e-14.
    assert quality(score, q, p) > quality(score, p, p) + 1e-10
    assert diversity(score, q) > diversity(score, p) + 1e-10


@pytest.mark.claim("N14.5")
def test_kernel_of_bleu_2_is_beaten_at_random_distributions(script):
    pair = qd.BleuPair(SPACE, 2, 1, 1)
    kernel = np.asarray(jax.vmap(pair.text_quality)(jnp.eye(64)))
    value, rng = jax.jit(pair.diversity), np.random.default_rng(2)
    for _ in range(10):
        p = rng.dirichlet(np.ones(64)) + 1e-6
        p /= p.sum()
        name, q = script.witness(p, kernel @ p, -2 * kernel @ p, value)
        assert name == "second-order test"
        assert (q - p) @ kernel @ p > 1e-9
        assert p @ kernel @ p - q @ kernel @ q > 1e-9


@pytest.mark.claim("N14.6")
def test_listed_gains_equal_those_of_a_conic_solver(table, script, metrics):
    p = script.real(0, 0.5)
    shares = np.asarray(qd.ngrams.ngram_matrix(SPACE, 2)) / 2
    conic = {"SE": DIVERSITIES["SE"], "NRR-2": lambda q: -cp.sum_squares(shares @ q)}
    for kind in (("LL", ""), ("CR-1", ""), ("BLEU-2", "10")):
        for name, of in conic.items():
            listed = float(table[*kind, name, "", 0.5]["qdisc_0"])
            gained = most_gained(np.asarray(metrics[0][kind](p)), p, of)
            # Clarabel's gap is 1e-8, of scores up to 10 in size.
            assert gained == pytest.approx(listed, abs=1e-5)


DEFINED = {
    "distinct_10": "distinct_10",
    "Class SE": "semantic entropy",
    "log Vendi": "Vendi",
    "NCosine^2": "Vendi of order 2",
    "NSelf-repetition": "self-repetition",
}


@pytest.mark.claim("N14.17")
@pytest.mark.parametrize("name", DEFINED)
def test_witnesses_of_recent_metrics_win_by_their_definitions(script, metrics, name):
    texts = by_text.texts_of(4, 3)

    def by_definition(q):
        return by_text.diversity(DEFINED[name], None, texts, q)

    p = np.random.default_rng(17).dirichlet(np.ones(64)) + 1e-4
    p /= p.sum()
    given = next(v for v in script.diversities() if v.name == name)
    value = jax.jit(given.value)
    assert by_definition(p) == pytest.approx(float(value(p)), rel=1e-10)
    slope, unbeaten = np.asarray(jax.grad(value)(p)), set()
    for kind, score in metrics[0].items():
        u = np.asarray(score(p))
        if found := script.witness(p, u, slope, value):
            q = found[1]
            assert min((q - p) @ u, by_definition(q) - by_definition(p)) > 1e-12
        else:
            unbeaten.add(kind)
    assert unbeaten == {x[:2] for x in NAMED if x[2] == name}
