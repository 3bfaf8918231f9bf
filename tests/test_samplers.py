"""One sampler for all prompts: its theorems by other routes, and samplers.csv."""

from functools import cache
from math import exp, log

import mpmath
import numpy as np
import pytest
from lab.generators import (
    MinP,
    PLess,
    Temperature,
    TopH,
    decode,
    next_token_distributions,
    text_distribution,
)
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq, minimize
from scipy.special import entr, softmax
from scripts import frame
from scripts import script as load

import qdtheory as qd

TABLE = frame("samplers.csv")
SPACE = qd.TextSpace(vocab_size=8, lengths=3)


def powers(p, beta):
    """Of each row, by sums of exponentials."""
    return softmax(np.reshape(beta, (-1, 1)) * np.log(p), axis=1)


def common(p, weights, se):
    return brentq(lambda b: weights @ entr(powers(p, b)).sum(1) - se, 1e-6, 200)


def optimum(p, weights, quality, diversity, floor):
    """The best mean quality of any model whose mean diversity is at least a number."""

    def model(x):
        return softmax(x.reshape(p.shape), axis=1)

    found = minimize(
        lambda x: -(weights @ quality(model(x))),
        np.log(p).ravel() * 1.1,
        constraints={
            "type": "ineq",
            "fun": lambda x: weights @ diversity(model(x)) - floor,
        },
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    return -found.fun


@pytest.mark.claim("N24.19")
def test_a_model_loses_its_mean_divergence_from_one_power():
    """The best of all models, found by a search that knows no powers."""
    rng = np.random.default_rng(19)
    for prompts, texts in ((2, 3), (3, 4), (2, 5)):
        p, q = rng.dirichlet(np.full(texts, 2.0), (2, prompts))
        weights = rng.dirichlet(np.full(prompts, 3.0))
        se = weights @ entr(q).sum(1)
        best = optimum(
            p,
            weights,
            lambda q, p=p: (q * np.log(p)).sum(1),
            lambda q: entr(q).sum(1),
            se,
        )
        beta, divergence = common(p, weights, se), 0.0
        for weight, row, real in zip(weights, q.tolist(), p.tolist()):
            z = sum(x**beta for x in real)
            divergence += weight * sum(
                x * log(x * z / y**beta) for x, y in zip(row, real)
            )
        lost = best - weights @ (q * np.log(p)).sum(1)
        assert lost == pytest.approx(divergence / beta, abs=1e-6)


@pytest.mark.claim("N24.20")
def test_no_two_temperatures_of_answers_are_better_than_one():
    """Two prompts: the first exponent on a grid, the second from the entropy."""
    rng = np.random.default_rng(20)
    for _ in range(8):
        p, weights = rng.dirichlet(np.full(5, 1.5), 2), rng.dirichlet([4, 4])
        beta = rng.uniform(0.5, 2.5)
        se = weights @ entr(powers(p, beta)).sum(1)
        best, at = -np.inf, None
        for first in beta * np.linspace(0.8, 1.25, 46):
            rest = (se - weights[0] * entr(powers(p[:1], first)).sum()) / weights[1]

            def excess(b, p=p, rest=rest):
                return entr(powers(p[1:], b)).sum() - rest

            if excess(0.01) < 0 or excess(60) > 0:
                continue
            both = [first, brentq(excess, 0.01, 60, xtol=1e-13)]
            ll = weights @ (powers(p, both) * np.log(p)).sum(1)
            if ll > best:
                best, at = ll, both
        one = weights @ (powers(p, beta) * np.log(p)).sum(1)
        assert best <= one + 1e-12
        assert at == pytest.approx([beta, beta], rel=0.02)


@pytest.mark.claim("N24.21")
def test_the_cost_of_unequal_temperatures_in_fifty_digits():
    rng = np.random.default_rng(21)
    for _ in range(2):
        p = [[mpmath.mpf(x) for x in row] for row in rng.dirichlet(np.ones(4), 3)]
        weights = [mpmath.mpf(x) for x in rng.dirichlet(np.ones(3))]
        beta, steps = mpmath.mpf(rng.uniform(0.5, 3)), rng.normal(size=3).tolist()

        def moments(row, b):
            z = mpmath.fsum(x**b for x in row)
            q, logs = [x**b / z for x in row], [mpmath.log(x) for x in row]
            mean = mpmath.fdot(q, logs)
            square = mpmath.fdot(q, [x * x for x in logs])
            return mean, mpmath.log(z) - b * mean, square - mean**2

        with mpmath.workdps(50):
            ratios = []
            for size in ("1e-3", "1e-5"):
                own = [beta + mpmath.mpf(size) * step for step in steps]
                each = [moments(row, b) for row, b in zip(p, own)]
                ll, se, _ = (mpmath.fdot(weights, x) for x in zip(*each))

                def excess(b, p=p, weights=weights, se=se):
                    return mpmath.fdot(weights, [moments(r, b)[1] for r in p]) - se

                one = mpmath.findroot(excess, beta)
                rows = [moments(row, one) for row in p]
                lost = mpmath.fdot(weights, [x[0] for x in rows]) - ll
                v = [w * x[2] for w, x in zip(weights, rows)]
                mean = mpmath.fdot(v, own) / sum(v)
                said = mpmath.fdot(v, [(b - mean) ** 2 for b in own]) / (2 * mean)
                ratios.append(abs(lost / said - 1))
            assert ratios[1] < ratios[0] / 50 < 1e-3


@pytest.mark.claim("N24.22")
def test_fifty_prompts():
    """The same worlds; what is lost is summed as a divergence."""
    rng, weights = np.random.default_rng([24, 22]), np.full(50, 0.02)
    p = [rng.dirichlet(np.full(200, a)) for a in np.geomspace(0.02, 3, 50)]
    p = (1 - 1e-6) * np.array(p) + 1e-6 / 200

    def lost(q):
        beta = common(p, weights, weights @ entr(q).sum(1))
        best = powers(p, beta)
        return weights @ (q * np.log(q / best)).sum(1) / beta

    found = []
    for sd in (0.1, 0.3, 0.5):
        drawn = np.exp(sd * rng.normal(size=(40, 50)))
        found.append(np.mean([lost(powers(p, own)) for own in drawn]))
    assert found == pytest.approx([0.0050, 0.0473, 0.1227], abs=6e-5)
    level = entr(p).sum(1).mean()
    equal = np.concatenate(
        [powers(row[None], common(row[None], np.ones(1), level)) for row in p]
    )
    assert lost(equal) == pytest.approx(0.47, abs=0.005)


@pytest.mark.claim("N24.23")
def test_the_common_dial_of_coverage_and_repetition_is_a_tilt():
    rng, tilts = np.random.default_rng(23), 0
    for weight in (1.0, 1.0, 30.0, 30.0):
        p, q = rng.dirichlet(np.full(4, weight), (2, 2))
        weights = rng.dirichlet([3, 3])
        repeats = weights @ (q**2).sum(1)
        best = optimum(
            p,
            weights,
            lambda q, p=p: (p * q).sum(1),
            lambda q: -(q**2).sum(1),
            -repeats,
        )
        # Of all interior models of equal repetition: 1/4 + slope (P - 1/4).
        spread = weights @ ((p - 0.25) ** 2).sum(1)
        slope = np.sqrt((repeats - 0.25) / spread)
        tilted = 0.25 + slope * (p - 0.25)
        if tilted.min() < 0:
            continue
        tilts += 1
        lost = weights @ ((q - tilted) ** 2).sum(1) / (2 * slope)
        assert best == pytest.approx(weights @ (tilted * p).sum(1), abs=1e-6)
        assert best - weights @ (p * q).sum(1) == pytest.approx(lost, abs=1e-6)
    assert tilts >= 2


@pytest.mark.claim("N24.24")
def test_token_temperatures_of_their_own_can_be_better():
    """Two prompts of random laws: both temperatures moved at one mean entropy."""
    rng, space, better = np.random.default_rng(24), qd.TextSpace(3, 3), 0
    for _ in range(10):
        laws = [rng.dirichlet(np.full(3, 0.7), (2, 3**i)) for i in range(3)]
        p = [text_distribution([law[c] for law in laws], space) for c in (0, 1)]

        def at(c, t, p=p):
            q = decode(p[c], space, Temperature(float(t)))
            return q @ np.log(p[c]), entr(q).sum()

        one = np.mean([at(c, 0.45) for c in (0, 1)], axis=0)
        gain = -np.inf
        for first in 0.45 * np.linspace(0.8, 1.25, 19):
            u, h = at(0, first)

            def excess(t, h=h, at=at, one=one):
                return (h + at(1, t)[1]) / 2 - one[1]

            if excess(0.1) < 0 < excess(3):
                other = at(1, brentq(excess, 0.1, 3, xtol=1e-12))
                gain = max(gain, (u + other[0]) / 2 - one[0])
        better += bool(gain > 1e-7)
    assert better >= 9


@pytest.mark.claim("N24.32")
def test_temperatures_undo_what_a_model_is_too_sure_of():
    p = np.random.default_rng(32).dirichlet(np.ones(5), 2)
    model, weights = powers(p, [2.0, 0.5]), np.array([0.5, 0.5])

    def below(q):
        se = weights @ entr(q).sum(1)
        best = powers(p, common(p, weights, se))
        return weights @ ((best - q) * np.log(p)).sum(1)

    # The temperatures 2 t and t / 2 of the model are t of P; one is not.
    for t in (0.5, 1.0, 2.0):
        assert abs(below(powers(model, [1 / (2 * t), 2 / t]))) <= 1e-9
        assert below(powers(model, 1 / t)) > 0.01


# --- samplers.csv -------------------------------------------------------------------


@cache
def real():
    return np.array([qd.oracle(SPACE, seed) for seed in range(100)])


@cache
def frontiers(k):
    """LL by SE and CR by repetition, of an oracle, as curves."""
    p = real()[k]
    q = powers(p[None], np.geomspace(40, 0.3, 300))
    ll = PchipInterpolator(entr(q).sum(1), q @ np.log(p))
    # The optimum of CR is the projection of a multiple of P.
    slopes, m = np.geomspace(0.3, 3e4, 500)[:, None], np.arange(1, 513)
    tau = ((slopes * np.sort(p)[::-1].cumsum() - 1) / m).max(axis=1, keepdims=True)
    best = np.maximum(slopes * p - tau, 0)
    x, first = np.unique((best**2).sum(1), return_index=True)
    return ll, PchipInterpolator(x, (best @ p)[first])


def medians(decoders, blur, kept=None):
    """Over the oracles, of the medians over a dial: nats, and the share of CR."""
    laws = next_token_distributions(real(), SPACE)
    laws = [(1 - blur) * law + blur / 8 for law in laws]
    nats, shares = [[] for _ in real()], [[] for _ in real()]
    for decoder in decoders:
        q = text_distribution([decoder(law) for law in laws], SPACE)
        for k, (mine, p) in enumerate(zip(q, real())):
            part = entr(mine).sum() / entr(p).sum()
            near = 0.25 < part < 0.95 if kept is None else abs(part - kept) <= 0.05
            if near:
                nats[k].append(frontiers(k)[0](entr(mine).sum()) - mine @ np.log(p))
            if 0.25 < log(mine @ mine) / log(p @ p) < 0.95:
                best = frontiers(k)[1](mine @ mine)
                shares[k].append((best - mine @ p) / (best - p @ p))
    return [np.median([np.median(x) for x in y if x]) for y in (nats, shares)]


def row_of(world, sampler, measure, kept=None):
    rows = TABLE.query(f"world == '{world}' and measure == '{measure}'")
    rows = rows[rows.sampler == sampler]
    rows = rows[rows.kept.isna() if kept is None else rows.kept == kept]
    return rows.iloc[0]


@pytest.mark.claim("N24.28")
@pytest.mark.claim("N24.30")
def test_the_rows_of_p_less_by_interpolated_frontiers():
    """By interpolated frontiers, where the table has roots and identities."""
    nats, share = medians([PLess()], 0.0)
    assert row_of("itself", "p-less", "nats").q50 == pytest.approx(nats, rel=2e-3)
    assert row_of("itself", "p-less", "of CR").q50 == pytest.approx(share, rel=2e-2)


GRID = np.linspace(0.025, 0.975, 39)
DIALS = {
    "temperature": [Temperature(t) for t in np.geomspace(0.05, 0.95, 39)],
    "min-p": [MinP(share) for share in GRID],
    "top-H": [TopH(share) for share in GRID],
}


@pytest.mark.slow
@pytest.mark.claim("N24.28")
@pytest.mark.claim("N24.29")
@pytest.mark.claim("N24.30")
@pytest.mark.claim("N24.31")
@pytest.mark.parametrize("sampler", DIALS)
def test_rows_of_the_table_by_interpolated_frontiers(sampler):
    for name, blur in (("itself", 0.0), ("blurred", 0.1)):
        nats, share = medians(DIALS[sampler], blur)
        near, _ = medians(DIALS[sampler], blur, 0.7)
        found = [
            row_of(name, sampler, "nats").q50,
            row_of(name, sampler, "nats", 0.7).q50,
        ]
        assert found == pytest.approx([nats, near], rel=5e-3)
        assert row_of(name, sampler, "of CR").q50 == pytest.approx(share, rel=3e-2)


@pytest.mark.claim("N24.31", recount=True)
def test_temperatures_lose_least_in_the_blurred_world_too():
    for name in ("itself", "blurred"):
        rows = TABLE[(TABLE.world == name) & (TABLE.measure == "nats")]
        whole = rows[rows.kept.isna()].set_index("sampler").q50.sort_values()
        assert set(whole.index[:2]) == {"temperature", "EDT"}
        assert whole.iloc[2] > 3 * whole.iloc[1]
        assert len(whole) == 18


def test_edt_is_a_temperature_that_follows_the_entropy():
    assert set(TABLE.sampler) == set(load("make_samplers").samplers())
    edt = load("make_samplers").Edt(0.7, 0.5)
    for law in np.random.default_rng(0).dirichlet(np.ones(5), 20):
        t = 0.7 * exp(log(0.8) * 0.5 / entr(law).sum())
        np.testing.assert_allclose(edt(law), Temperature(t)(law), rtol=1e-12)
