"""Transport by linear programming, against sorting, assignment and the tree."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab.generators import (
    WGAN,
    LogitTable,
    optimal_transport,
    sorted_plan,
    train,
    transport,
    wasserstein_critic,
    wasserstein_distance,
)
from refusals import refused
from scipy.optimize import linprog, minimize_scalar
from scipy.stats import wasserstein_distance as on_the_line

import qdtheory as qd

SPACE = qd.TextSpace(3, 2)
MIXED = qd.TextSpace(2, (1, 2, 3))


def distances(space, ground):
    """The distance of every two texts, from its definition."""
    tokens = space.tokens
    differ = tokens[:, None] != tokens
    if ground == "prefix":
        differ = np.logical_or.accumulate(differ, axis=-1)
    return differ.sum(axis=-1).astype(float)


def draws(space, number, seed=0):
    rng, weights = np.random.default_rng(seed), np.full(space.num_texts, 0.3)
    return rng.dirichlet(weights, (number, 2))


@pytest.mark.parametrize(
    ("space", "ground"),
    [(x, "hamming") for x in (SPACE, qd.TextSpace(2, 4))]
    + [(x, "prefix") for x in (SPACE, MIXED)],
)
def test_w1_is_the_transport_between_all_pairs_of_texts(space, ground):
    cost = distances(space, ground)
    for q, p in draws(space, 5):
        coupled = optimal_transport(cost, q, p)
        found = float(wasserstein_distance(q, p, space, ground))
        assert found == pytest.approx(float(coupled.value), abs=1e-8)
        critic = np.asarray(wasserstein_critic(q, p, space, ground))
        assert (critic[:, None] - critic <= cost + 1e-12).all()
        assert critic @ (p - q) == pytest.approx(found, abs=1e-12)


def test_the_plan_is_feasible_and_the_potentials_support_it():
    rng = np.random.default_rng(1)
    for sources, targets in [(1, 4), (4, 1), (7, 9)]:
        cost = rng.normal(size=(sources, targets))
        a, b = (rng.dirichlet(np.full(n, 0.4)) for n in (sources, targets))
        found = optimal_transport(cost, a, b)
        u, v = found.source_potential, found.target_potential
        assert float(jnp.min(found.plan)) >= 0
        np.testing.assert_allclose(found.plan.sum(axis=1), a, atol=1e-14)
        np.testing.assert_allclose(found.plan.sum(axis=0), b, atol=1e-14)
        assert (u[:, None] + v <= cost + 1e-14).all()
        assert float(found.value) == pytest.approx(float(a @ u + b @ v), abs=1e-8)


def test_derivatives_are_the_plan_and_the_potentials():
    rng = np.random.default_rng(4)
    cost, mass = rng.random((4, 5)), rng.normal(size=(2, 4))
    b = rng.dirichlet(np.ones(5))

    @jax.jit
    def value(cost, logits):
        return optimal_transport(cost, jax.nn.softmax(logits), b).value

    slopes = jax.grad(value, argnums=(0, 1))(cost, mass[0])
    for slope, argument in zip(slopes, (0, 1)):
        way = rng.normal(size=slope.shape)
        step = [1e-6 * way if n == argument else 0 for n in (0, 1)]
        ends = [value(cost + s * step[0], mass[0] + s * step[1]) for s in (1, -1)]
        numeric = float(ends[0] - ends[1]) / 2e-6
        assert float((slope * way).sum()) == pytest.approx(numeric, rel=1e-6)
    together = jax.vmap(value, (None, 0))(cost, mass)
    apart = [value(cost, logits) for logits in mass]
    np.testing.assert_allclose(together, apart, rtol=1e-12)


@pytest.mark.parametrize("ground", transport.GROUNDS)
def test_the_critic_is_minus_the_derivative_of_w1_by_the_model(ground):
    (q, p), (other, _) = draws(SPACE, 2, seed=5)
    q, other = 0.02 + 0.82 * q, 0.02 + 0.82 * other
    slope = jax.grad(wasserstein_distance)(jnp.asarray(q), p, SPACE, ground)
    critic = wasserstein_critic(q, p, SPACE, ground)
    np.testing.assert_allclose(slope, -critic, atol=1e-12)
    moved = q + 1e-6 * (other - q), q - 1e-6 * (other - q)
    up, down = (wasserstein_distance(x, p, SPACE, ground) for x in moved)
    numeric = float(up - down) / 2e-6
    assert float(slope @ (other - q)) == pytest.approx(numeric, abs=1e-5)


def test_the_penalised_critic_maximises_along_paths_of_the_tree():
    """The value of each edge, found by search: |s| P(edge) less the penalty on it."""
    space, penalty = qd.TextSpace(2, 2), 0.7
    for q, p in draws(space, 4, seed=6):
        edges = []
        for of_q, of_p in np.transpose([edges_of(q), edges_of(p)]):
            # Mean length of the paths between a text of P and one of Q on this edge.
            length = (of_p * (1 - of_q) + of_q * (1 - of_p)) / 2

            def loss(s, gain=(of_p - of_q) / 2, length=length):
                return -s * gain + penalty * length * (abs(s) - 1) ** 2

            sign = 1 if of_p > of_q else -1
            found = minimize_scalar(loss, (0.5 * sign, 2 * sign), tol=1e-12)
            edges.append(found.x / 2)
        expected = [edges[a] + edges[2 + 2 * a + b] for a in (0, 1) for b in (0, 1)]
        critic = partial(wasserstein_critic, q, p, space, "prefix")
        np.testing.assert_allclose(critic(penalty), expected, atol=1e-6)
        np.testing.assert_allclose(critic(1e9), critic(), atol=1e-8)


def edges_of(x):
    """Mass on the edges of the tree of two tokens, those of the first first."""
    return np.concatenate([x.reshape(2, -1).sum(axis=1), x])


def test_paths_cross_an_edge_as_often_as_said():
    space = qd.TextSpace(2, 2)
    ((q, p),) = draws(space, 1, seed=7)
    edges = edges_of(q), edges_of(p)
    crossed = edges[1] * (1 - edges[0]) + edges[0] * (1 - edges[1])
    mean = p @ distances(space, "prefix") @ q
    assert crossed.sum() / 2 == pytest.approx(mean, abs=1e-14)


@pytest.mark.parametrize("objective", [WGAN(), WGAN("prefix", penalty=10.0)], ids=str)
def test_small_steps_on_the_critic_descend_w1(objective):
    q, p = map(jnp.asarray, draws(SPACE, 1, seed=8)[0])
    model = LogitTable.of(0.9 * q + 0.1 / 9)
    settings = {"optimizer": "sgd", "learning_rate": 1.0}
    ground, penalty = objective.ground, objective.penalty
    found, way = model.probabilities(SPACE), []
    for _ in range(12):
        way.append(float(wasserstein_distance(found, p, SPACE, ground)))
        critic = wasserstein_critic(found, p, SPACE, ground, penalty)
        found = found * np.exp(found * (critic - found @ critic))
        found = found / found.sum()
    assert (np.diff(way) < 0).all()
    run = train(objective, model, SPACE, p, 72, every=12, **settings)
    assert float(run.cr[1]) == pytest.approx(float(found @ p), abs=1e-9)
    last = run.model.probabilities(SPACE)
    assert wasserstein_distance(last, p, SPACE, ground) < 0.5 * way[0]


def test_a_solution_that_is_not_optimal_is_refused(monkeypatch):
    q, p = draws(SPACE, 1, seed=9)[0]

    def spoilt(*args, **settings):
        found = linprog(*args, **settings)
        found.x = found.x + 1e-6
        return found

    monkeypatch.setattr("scipy.optimize.linprog", spoilt)
    with pytest.raises(RuntimeError, match=r"bounds must meet within 1e-08 of 2"):
        wasserstein_distance(q, p, SPACE)
    with pytest.raises(RuntimeError, match="the linear program was not solved"):
        optimal_transport(distances(SPACE, "hamming"), q, p)
    # In a compiled run too, with one line.
    with pytest.raises(RuntimeError, match=r"^the linear program .* cost$"):
        train(WGAN(), LogitTable.of(q), SPACE, p, 3)


@pytest.mark.parametrize("objective", [WGAN(), WGAN("prefix")], ids=str)
def test_a_critic_of_a_model_that_diverged_is_nan_and_training_says_so(objective):
    _, p = draws(SPACE, 1, seed=9)[0]

    @jax.jit
    def critic(q):
        return objective.rewards((), LogitTable(q), q, SPACE, jnp.asarray(p))[0]

    assert np.isnan(critic(jnp.full(9, jnp.nan))).all()
    model = LogitTable(np.r_[np.nan, np.zeros(8)])
    with pytest.raises(FloatingPointError, match="not finite before the first step"):
        train(objective, model, SPACE, p, 3)


def test_edge_cases():
    for ground in transport.GROUNDS:
        single = np.ones(1), np.ones(1), qd.TextSpace(1, 3)
        assert float(wasserstein_distance(*single, ground)) == 0
        ((q, _),) = draws(SPACE, 1)
        assert float(wasserstein_distance(q, q, SPACE, ground)) == pytest.approx(0)
        points = np.eye(9)[[0, 8]]
        assert float(wasserstein_distance(*points, SPACE, ground)) == pytest.approx(2)


@pytest.mark.claim("N22.11")
def test_w1_bends_in_q_where_p_says():
    """A sum of a quality and a diversity would bend at Q alike for every P."""
    rng = np.random.default_rng(11)
    for ground in ("hamming", "prefix"):
        cost, (q, far) = distances(SPACE, ground), rng.dirichlet(np.full(9, 5), 2)
        way = np.zeros(9)
        way[[0, 8]] = 1e-3, -1e-3

        def bend(p, cost=cost, q=q, way=way):
            at = q + way, q - way, q
            up, down, here = (float(optimal_transport(cost, x, p).value) for x in at)
            return up + down - 2 * here

        assert bend(q) == pytest.approx(2e-3 * cost[0, 8], abs=1e-9)
        beyond = 0.5 * q
        beyond[0] += 0.5
        assert bend(beyond) == pytest.approx(0, abs=1e-9)
        assert bend(far) < 1e-3 * cost[0, 8]


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    q, short, mixed = np.full(9, 1 / 9), np.full(8, 1 / 8), np.full(14, 1 / 14)
    w1, critic, ones = wasserstein_distance, wasserstein_critic, np.ones((9, 9))
    one = "Hamming's distance is for texts of one length, got lengths (1, 2, 3); take "
    refused(
        ("must be one of hamming, prefix, got 'edit'", w1, q, q, SPACE, "edit"),
        ("q must have 9 entries, got 8", w1, short, q, SPACE),
        (one + 'ground="prefix"', w1, mixed, mixed, MIXED),
        ("solved on the prefix tree only", critic, q, q, SPACE, "hamming", 10),
        ("must be positive and finite, got 0", critic, q, q, SPACE, "prefix", 0),
        ("got shape (9, 8)", optimal_transport, np.ones((9, 8)), q, q),
        ("cost must be finite", optimal_transport, ones * np.inf, q, q),
        ("a must sum to 1", optimal_transport, ones, 2 * q, q),
    )


@pytest.mark.claim("N23.9")
def test_sorted_plans_are_optimal():
    """On the line, against the linear program, which is checked against SciPy there."""
    rng = np.random.default_rng(0)
    for m, n in ((1, 4), (5, 3), (6, 9)):
        x, y = rng.normal(size=m), rng.normal(size=n)
        a, b = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(n))
        plan = np.asarray(sorted_plan(x, a, y, b))
        np.testing.assert_allclose(plan.sum(axis=1), a, atol=1e-14)
        np.testing.assert_allclose(plan.sum(axis=0), b, atol=1e-14)
        cost = np.abs(x[:, None] - y)
        best = float(optimal_transport(cost, a, b).value)
        assert (plan * cost).sum() == pytest.approx(best, abs=1e-10)
        assert best == pytest.approx(on_the_line(x, y, a, b), abs=1e-12)


def test_ties_move_nothing_twice():
    plan = sorted_plan(jnp.zeros(3), np.full(3, 1 / 3), jnp.zeros(2), np.full(2, 0.5))
    assert float(plan.sum()) == pytest.approx(1)
