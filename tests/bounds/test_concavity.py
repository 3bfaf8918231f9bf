"""What claims to be concave and is not, and what is and must not be refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import entr
from models import entropy, spread

import qdtheory as qd
from qdtheory.bounds.concavity import look_for_violations


def bump(height, centre, width):
    def diversity(q):
        away = (jnp.asarray(q)[0] - centre) / width
        return spread(q) + height * jnp.exp(-(away**2))

    return diversity


@pytest.mark.parametrize(
    "width", [1e-1, pytest.param(1e-2, marks=pytest.mark.slow), 1e-3]
)
@pytest.mark.parametrize("centre", [1e-3, 0.05, 0.3, 0.5003, 0.77, 0.999])
def test_narrow_bumps_are_found(centre, width):
    # Curvature of twice what -q^2 has to spare.
    pair = qd.ConcavePair(lambda p: p, bump(6 * width**2, centre, width))
    with pytest.raises(ValueError, match="must be concave"):
        qd.quality_discrepancy(pair, np.array([0.31, 0.29, 0.21, 0.19]))


def jump(q):
    """Concave inside, and greater where the second text is alone."""
    q = jnp.asarray(q)
    return spread(q) + 2.0 * (q[1] == 1)


def saddle(q):
    """Convex in one direction that no text's own segment shows."""
    q = jnp.asarray(q)
    return 3 * (q[0] - q[1]) * (q[2] - q[3]) + 0.9 * spread(q)


def steps(q):
    return jnp.floor(4 * jnp.asarray(q)[1]) + spread(q)


def nowhere(q):
    return spread(q) + 0 * jnp.log(0.9 - jnp.asarray(q)[0])


@pytest.mark.parametrize("diversity", [jump, saddle, steps, nowhere])
def test_other_violations_are_found(diversity):
    pair = qd.ConcavePair(lambda p: jnp.asarray(p), diversity)
    what = "a number at every model" if diversity is nowhere else "concave"
    with pytest.raises(ValueError, match=f"must be {what}"):
        qd.quality_discrepancy(pair, np.array([0.4, 0.3, 0.2, 0.1]))


CONCAVE = {
    "flat": lambda q: 0 * jnp.asarray(q).sum(),
    "linear": lambda q: jnp.asarray(q) @ jnp.arange(1.0, 7.0),
    "one word": lambda q: entr(jnp.asarray(q).reshape(2, 3).sum(axis=1)).sum(),
    "steep": lambda q: jnp.sqrt(jnp.asarray(q)).sum(),
    "a kink": lambda q: -jnp.abs(jnp.asarray(q) - 0.2).sum(),
    "logarithms": lambda q: jnp.log(jnp.asarray(q)).sum(),
    "norm": lambda q: -jnp.linalg.norm(jnp.asarray(q)),
    "nearly flat": lambda q: -1e-12 * jnp.square(jnp.asarray(q)).sum(),
    "with a large constant": lambda q: 1e6 + entropy(q),
    "in 32 bits": lambda q: spread(jnp.asarray(q).astype("float32")),
    "of large numbers": lambda q: 1e12 * entropy(q),
}


@pytest.mark.parametrize("name", CONCAVE)
def test_what_is_concave_is_not_refused(name):
    rng = np.random.default_rng(0)
    diversity = CONCAVE[name]
    for p in (rng.dirichlet(np.ones(6)), np.full(6, 1 / 6)):
        at = (p + 1 / 6) / 2
        slope = np.asarray(jax.grad(lambda q: diversity(q).astype(float))(at))
        heights = float(diversity(at)) + slope - slope @ at
        # 32-bit values of V miss the plane by their own rounding.
        models = np.stack([p, np.eye(6)[2]])
        num_models = look_for_violations(diversity, (*range(6),), at, heights, models)
        assert num_models > 1e4


def test_texts_of_score_minus_infinity_are_left_out():
    # Their slopes are infinite; the others' segments stay finite.
    p = np.array([0.5, 0.3, 0.2, 0.0])
    pair, exact = qd.ConcavePair(jnp.log, entropy), qd.LL_SE
    found = qd.quality_discrepancy(pair, p)
    assert found.status == "lower_bound"  # V is code
    assert found.qdisc == pytest.approx(qd.quality_discrepancy(exact, p).qdisc)


def test_the_bound_names_the_claim():
    pair = qd.ConcavePair(lambda p: p**2, spread)
    found = qd.quality_discrepancy(pair, np.array([0.5, 0.3, 0.2]))
    assert found.status == "lower_bound"
    assert "if V is concave, as the pair states; no violation found at" in found.reason
    # Where the best texts are diverse enough no tangent is needed.
    pair = qd.ConcavePair(lambda p: jnp.ones(3), spread)
    found = qd.quality_discrepancy(pair, np.array([0.5, 0.3, 0.2]))
    assert "if V is concave" not in found.reason
