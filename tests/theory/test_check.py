import numpy as np
import pytest
from jax.scipy.special import digamma

import qdtheory as qd

P = np.array([0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize(
    ("pair", "status"),
    [
        (("LL-SE",), "compatible"),
        (("log(x)", "-x**2"), "incompatible"),
        (("x", lambda x: -(x**2)), "compatible"),  # code is read as a formula
        # Other code is not.
        (("x", lambda x: -(digamma(1 + x) ** 0) * x**2), "undecided"),
        ((lambda q, p: q @ p, lambda q: -(q**3).sum()), "incompatible"),
        ((P, "-x**2"), "not_beaten_at_p"),  # the scores of CR-NRR at this P
    ],
)
def test_every_form_of_a_pair_is_judged(as_a_user, pair, status):
    assert qd.check(*pair, p=P).status == status


def test_it_is_the_verdict_on_the_pair():
    assert qd.check("x", "-x**2", num_texts=4) == qd.check_compatibility(qd.CR_NRR)


def test_what_the_caller_states_is_passed_on(as_a_user):
    g = lambda x: -(digamma(1 + x) ** 0) * x**2  # noqa: E731
    found = qd.check(lambda x: x, g, stated="matched")
    assert found.compatible
    assert "stated by the caller" in found.reason
