import functools
import math

import numpy as np
import pytest

import qdtheory as qd
from qdtheory.pairs.given import given_pair, num_arguments

P = np.array([0.4, 0.3, 0.2, 0.1])
pytestmark = pytest.mark.usefixtures("as_a_user")


def repetition(q):
    return -(q @ q)


# Each is LL or CR with NRR or SE, whose numbers are known.
@pytest.mark.parametrize(
    ("quality", "diversity", "same"),
    [
        ("LL-NRR", None, qd.LL_NRR),
        ("ll-nrr", None, qd.LL_NRR),
        (qd.LL_NRR, None, qd.LL_NRR),
        ("log(x)", "-x**2", qd.LL_NRR),
        ("LL", "NRR", qd.LL_NRR),
        ("LL", lambda x: -(x**2), qd.LL_NRR),
        (qd.formulas.LL, "-x*x", qd.LL_NRR),
        (lambda x: x, qd.formulas.SE, qd.CR_SE),
        (functools.partial(lambda a, x: a * x, 1.0), "SE", qd.CR_SE),
        (P, "SE", qd.CR_SE),
        (P.tolist(), qd.formulas.SE, qd.CR_SE),
        (np.log(P).astype("float32").astype(float), "NRR", None),
        (lambda q, p: q @ p, repetition, qd.CR_NRR),
        (lambda q, p, scale=1.0: scale * (q @ p), repetition, qd.CR_NRR),
    ],
)
def test_all_spellings_mean_the_same_pair(quality, diversity, same):
    pair = given_pair(quality, diversity)
    q = P[::-1].copy()
    if same is not None:
        assert float(pair.quality(q, P)) == pytest.approx(float(same.quality(q, P)))
        assert float(pair.diversity(q)) == pytest.approx(float(same.diversity(q)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("LL-XX",), ValueError, "no pair is called 'LL-XX'; there are LL-SE"),
        (("log(x)",), ValueError, "a formula f needs a g"),
        (("log(y)", "x"), ValueError, "y is not allowed"),
        (("ln(x)", "x"), ValueError, r"natural logarithm is log\(x\)"),
        ((qd.LL_SE, "x"), TypeError, "leave the diversity out"),
        ((math.log,), TypeError, "alone"),
        ((None,), TypeError, "got None alone"),
        ((3, "SE"), ValueError, r"shape \(N,\), got shape \(\)"),
        (([], "SE"), ValueError, r"got shape \(0,\)"),
        ((["a"], "SE"), TypeError, "one number a text"),
        (([1.0, [2.0]], "SE"), TypeError, "one number a text"),
        (([1.0, np.nan], "SE"), ValueError, "got nan for text 1"),
        (([np.inf, 1.0], "SE"), ValueError, "got inf for text 0"),
        ((lambda q, p: q @ p, "SE"), TypeError, r"a function diversity\(q\)"),
        (("log(x)", 3), TypeError, "g: expected"),
    ],
)
def test_mistakes(arguments, error, message):
    with pytest.raises(error, match=message):
        given_pair(*arguments)


def test_scores_of_another_number_of_texts():
    pair = qd.LinearPair([1.0, 2.0], "SE")
    with pytest.raises(ValueError, match=r"one score a text, shape \(4,\)"):
        qd.quality_discrepancy(pair, P)


def test_given_scores_and_a_function_of_them_agree():
    p, scores = np.array([0.5, 0.3, 0.2, 0.0]), [3.0, 1.0, 2.0, -np.inf]
    given = qd.quality_discrepancy(qd.LinearPair(scores, "SE"), p)
    code = qd.LinearPair(lambda p: np.array(scores), qd.formulas.SE)
    other = qd.quality_discrepancy(code, p)
    assert given.status == other.status == "exact"
    assert given.qdisc == other.qdisc


def test_pairs_of_equal_scores_are_equal():
    assert qd.LinearPair([1, 2], "SE") == qd.LinearPair(
        np.array([1.0, 2.0]), qd.formulas.SE
    )
    assert qd.LinearPair([1, 2], "SE") != qd.LinearPair([1, 3], "SE")
    assert repr(qd.LinearPair([1, 2], "SE").scores) == "<2 scores>"


def test_a_function_without_a_signature_is_one_of_numbers():
    assert num_arguments(dict) == 1
    assert num_arguments("x") is None
