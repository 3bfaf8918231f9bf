import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.formulas.tracing import require_traceable

P = np.array([0.4, 0.3, 0.2, 0.1])
pytestmark = pytest.mark.usefixtures("as_a_user")


@pytest.mark.parametrize(
    "function",
    [
        math.log,
        np.log,
        lambda x: x if x > 0.5 else 1 - x,
        lambda x: jnp.array(float(x)),
    ],
)
def test_code_for_numbers_alone_is_refused_where_a_pair_is_made(function):
    for call in (
        lambda: qd.SeparablePair(function, qd.functions.SE),
        lambda: qd.SeparablePair(qd.functions.LL, function),
        lambda: qd.LinearPair([1.0, 2.0], function),
    ):
        with pytest.raises(TypeError, match=r"JAX cannot trace [fg] .*jax\.numpy"):
            call()


NO_NUMBERS = [1, None, (0.5, 0.5), np.ones(2), jnp.ones((1,)), 1j, True]
NO_NUMBER, STOPS = "must return one real number", "stops at a number with ZeroDivision"


@pytest.mark.parametrize(
    ("function", "what"),
    [(lambda x: 1 / 0, STOPS), *((lambda x, y=y: y, NO_NUMBER) for y in NO_NUMBERS)],
)
def test_a_result_that_is_no_real_number_or_an_error_is_refused(function, what):
    with pytest.raises(TypeError, match=f"f {what}"):
        require_traceable(function, np.array(0.5), name="f")


def distinct_words(q):
    return len({round(float(x), 3) for x in q})


METHODS = {
    "qdisc": qd.quality_discrepancy,
    "search": qd.search.search,
    "certify": lambda pair, p: qd.quality_discrepancy(pair, p, method="certified"),
    "check": qd.check_compatibility,
}


@pytest.mark.parametrize("method", METHODS)
def test_metrics_of_distributions_are_refused_with_a_word(method):
    counts = qd.FunctionPair(lambda q, p: q @ p, distinct_words)
    scorer = qd.FunctionPair(lambda q, p: float(np.dot(q, p)), lambda q: -(q @ q))
    concave = qd.ConcavePair(lambda p: p, lambda q: -float(np.dot(q, q)))
    for pair, name in ((counts, "diversity"), (scorer, "quality"), (concave, "dive")):
        with pytest.raises(TypeError, match=rf"JAX cannot trace {name}"):
            METHODS[method](pair, P)


@pytest.mark.parametrize("method", METHODS)
def test_a_traced_distribution_is_refused_with_a_word(method):
    call = jax.jit(lambda p: METHODS[method](qd.LL_NRR, p) and 0)
    with pytest.raises(TypeError, match=r"p is traced.*outside jax\.jit"):
        call(P)
