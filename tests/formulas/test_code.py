"""Code read as formulas: values and slopes of idioms against the code itself."""

import functions_by_hand as by_hand
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import digamma, entr, erf

import qdtheory as qd
from qdtheory.formulas.code import Code, formula_of_code
from qdtheory.formulas.expressions import Expression
from qdtheory.formulas.scalar_functions import scalar_function


@jax.custom_jvp
def square(x):
    return x * x


square.defjvp(lambda primals, tangents: (square(*primals), 0 * tangents[0]))

ENTROPIES = by_hand.ways("SE", by_hand.DIVERSITIES["SE"], "code")
UNREAD = {"sum of entr", "log x by arcsinh"}
UNREAD |= {f"x by {name}" for name in ("erf", "interp", "stack", "sine")}


@pytest.mark.parametrize("name", ENTROPIES)
def test_the_entropy_written_in_many_ways(name):
    h = formula_of_code(ENTROPIES[name])
    assert isinstance(h, str) == (name in UNREAD)
    if isinstance(h, Expression):
        x = np.r_[10.0 ** -np.arange(1, 80, 9), 0.3, 0.99]
        both = jax.vmap(jax.value_and_grad(h))
        value, slope = jax.jit(lambda x: both(x))(x)  # the formula is a long name
        np.testing.assert_allclose(value, entr(x), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(slope, -np.log(x) - 1, rtol=1e-10)
        assert float(h(0.0)) == pytest.approx(0, abs=1e-300)


OTHERS = {
    "tanh": jnp.tanh,
    "sinh and cosh": lambda x: jnp.sinh(x) / jnp.cosh(x / 2),
    "erf": erf,
    "sine": lambda x: jnp.sin(3 * x) + jnp.cos(x) * jnp.tan(x / 2),
    "cube root": lambda x: jnp.cbrt(x - 0.5),
    "softplus": jax.nn.softplus,
    "not": lambda x: jnp.where(~(x > 0.5), x, 2.0),
    "or": lambda x: jnp.where((x > 0.7) | (x < 0.2), x, -x),
    "sign and floor": lambda x: jnp.sign(x - 0.4) * jnp.floor(5 * x - 0.5),
    "polyval": lambda x: jnp.polyval(jnp.array([1.0, -2.0, 3.0]), x),
    "an irrational power": lambda x: x ** jnp.sqrt(2.0),
    "a power of x": lambda x: 2.0**x,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_operations_are_the_codes(name):
    h = formula_of_code(OTHERS[name])
    assert isinstance(h, Expression)
    x = np.linspace(0.013, 0.987, 41)
    expected = np.array([float(OTHERS[name](value)) for value in x])
    np.testing.assert_allclose(jax.vmap(h)(x), expected, rtol=1e-12, atol=1e-12)


def test_a_slope_is_that_of_the_function_whatever_a_rule_says():
    for h in (square, lambda x: x * jax.lax.stop_gradient(x)):
        assert float(jax.grad(scalar_function(h, "g"))(0.3)) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("h", "why"),
    [
        (lambda x: jnp.asarray(x, jnp.float32) ** 2, "float32"),
        (lambda x: jnp.interp(x, jnp.arange(3.0), jnp.arange(3.0)), "has no formula"),
        (digamma, "digamma"),
        (lambda x: 1.0 * (x > 0), "jumps at 0"),
        (lambda x: jnp.where(x < 1, -(x**2), -5.0), "jumps at 1"),
        (lambda x: jnp.linspace(0.0, x, 5).sum(), "arrays"),
    ],
)
def test_what_stays_code_says_why(h, why):
    found = scalar_function(h, "g")
    assert isinstance(found, Code)
    assert why in found.why
    assert found.__name__ == h.__name__
    # It is the code itself where it is trusted.
    assert float(found(0.37)) == float(h(0.37))


def test_code_is_its_tangent_where_it_cannot_be_trusted():
    knots = jnp.linspace(0.0, 1.0, 3001)
    found = scalar_function(lambda x: jnp.interp(x, knots, knots**2) + 1, "g")
    assert 1e-12 <= found.trusted <= 1e-2
    assert float(found(0.0)) == pytest.approx(1.0, abs=1e-12)
    rounded = scalar_function(lambda x: jnp.float32(1 + x) ** 2, "g")
    assert rounded.trusted >= 1e-3
    assert rounded.zero == pytest.approx((1.0, 2.0), abs=0.1)


# -x**2, but for an operation that has no formula.
CODE = qd.SeparablePair("log(x)", lambda x: -(x**2) + 0 * digamma(1 + x))
P = np.array([0.6, 0.3, 0.1])


def test_no_frontier_and_no_verdict_rests_on_code():
    assert qd.pareto_frontier(CODE, P, 5).status == "lower_bound"
    assert qd.pareto_frontier(qd.LL_NRR, P, 5).status == "exact"
    assert qd.check_compatibility(CODE).compatible is not True


@pytest.mark.slow
def test_no_seal_rests_on_code():
    found = qd.quality_discrepancy(CODE, P)
    plain = qd.quality_discrepancy(qd.LL_NRR, P)
    assert found.status == "lower_bound"
    assert "by its code only, as the operation digamma has no formula" in found.reason
    assert found.qdisc == pytest.approx(plain.qdisc, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("question", by_hand.QUESTIONS)
def test_nothing_calls_code_where_it_is_not_trusted(question):
    called = []

    def cancelling(x):
        jax.debug.callback(lambda value: called.append(np.asarray(value)), x)
        return 1 + 2 * x - (1 + x) ** 2

    code = scalar_function(cancelling, "g")
    assert "debug_callback" in code.why
    assert 1e-7 < code.trusted < 1e-3
    jax.effects_barrier()
    called.clear()
    for f, g in (("log(x)", code), (code, "-x**2")):
        by_hand.ask(question, f, g, [0.6, 0.3, 1e-9, 0.1 - 1e-9])
    jax.effects_barrier()
    x = np.concatenate([values.ravel() for values in called])
    assert x.size > 0
    assert ((x == 0) | (x >= code.trusted)).all()


def test_a_verdict_is_not_given_where_code_is_not_trusted():
    digits_lost = qd.SeparablePair(
        "log(x)", lambda x: digamma(1 + x) - digamma(1.0) - x
    )
    p = np.array([0.6, 0.4 - 1e-12, 1e-12])
    verdict = qd.check_compatibility(digits_lost, p)
    assert verdict.status == "undecided"
    assert "64 bits do not determine the code below" in verdict.reason
