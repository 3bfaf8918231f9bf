"""However a function is written, what is sealed is the same: a metamorphic test.

The whole product is in benchmarks/functions_by_hand.py; here is a sample of it.
"""

import functions_by_hand as by_hand
import pytest

pytestmark = pytest.mark.usefixtures("as_a_user")


def named(call):
    f, g = call.names
    return f"{call.question}, {f}-{g}, {call.label}, N = {len(call.p)}"


@pytest.mark.parametrize("call", by_hand.sample("text", 0, 3), ids=named)
def test_another_formula_gets_the_plain_answer(call):
    word, fault = call.judged()
    assert word not in {"wrong", "stopped"}, fault


@pytest.mark.parametrize("call", by_hand.sample("code", 0, 3), ids=named)
def test_other_code_gets_the_plain_answer(call):
    word, fault = call.judged()
    assert word not in {"wrong", "stopped"}, fault
