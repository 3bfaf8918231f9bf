"""However a function is written, what is sealed is the same: a metamorphic test.

The whole product is in benchmarks/functions_by_hand.py; here is a sample of it.
"""

import functions_by_hand as by_hand
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("as_a_user")


def named(call):
    f, g = call.names
    return f"{call.question}, {f}-{g}, {call.label}, N = {len(call.p)}"


@pytest.mark.parametrize(
    "call", by_hand.sample("text", 0, 3) + by_hand.sample("code", 0, 3), ids=named
)
def test_another_formula_or_code_gets_the_plain_answer(call):
    word, fault = call.judged()
    assert word not in {"wrong", "stopped"}, fault


@pytest.mark.parametrize("g", by_hand.CONCAVE)
@pytest.mark.parametrize("f", by_hand.QUALITIES)
def test_the_plain_answer_is_the_referees(f, g):
    p = np.array(by_hand.REALS[1])
    plain = by_hand.QUALITIES[f], by_hand.DIVERSITIES[g]
    truth = by_hand.true_discrepancy(*plain, p)
    assert truth.upper - truth.lower <= 1e-12
    found = by_hand.plainly("quality_discrepancy", f, g, tuple(p))
    assert found.bounds[0] == pytest.approx(truth.lower, abs=1e-10)
    assert found.sealed
    verdict = by_hand.plainly("check_compatibility", f, g, tuple(p))
    if verdict.sealed and verdict.values[0][0]:
        assert truth.upper <= 1e-12
