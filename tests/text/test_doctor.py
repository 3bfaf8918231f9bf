"""Verdicts from samples, against laws of which the verdict is known."""

import shelve
import sys
from collections import Counter

import numpy as np
import pytest
from scipy.stats import kendalltau

from qdtheory import text

module = sys.modules[text.doctor.__module__]

WORDS = "abcdefgh"
P = np.arange(1.0, 9) ** 1.5
P /= P.sum()
LOG_P = dict(zip(WORDS, np.log(P).tolist()))
# What a judge of single words says.
MARKS = dict(zip(WORDS, [3, 1, 2, 0, 1, 3, 0, 1]))


def words(size, seed=0):
    return np.random.default_rng(seed).choice([*WORDS], size, p=P).tolist()


def log_likelihood(texts, references):
    return np.mean([LOG_P[x] for x in texts])


def judge(texts, references):
    return np.mean([MARKS[x] for x in texts])


def coverage(texts, references):
    p = Counter(references)
    return np.mean([p[x] for x in texts]) / len(references)


def frequencies(texts):
    return np.array([*Counter(texts).values()]) / len(texts)


def entropy(texts):
    q = frequencies(texts)
    return -(q * np.log(q)).sum()


def simpson(texts):
    return -(frequencies(texts) ** 2).sum()


def correlation_at_p(u, v):
    """Of two influences under P, which is that of large lots."""
    u, v = u - P @ u, v - P @ v
    return P @ (u * v) / np.sqrt((P @ u**2) * (P @ v**2))


@pytest.mark.parametrize(
    ("quality", "diversity"),
    [(log_likelihood, entropy), (coverage, simpson)],
    ids=["LL-SE", "CR-NRR"],
)
def test_the_errors_of_sound_pairs_cancel(quality, diversity):
    found = text.doctor(quality, diversity, words(20_000), calls=200)
    assert found.beaten is False, found
    assert found.verdict == "no deviation found"
    assert found.correlation.value < -0.9
    assert found.deviation.low <= 0 < found.visible < 0.2
    assert f"{found.visible:.2g} or more would have been seen" in found.reason


def test_a_pair_of_log_p_and_simpson_has_the_correlation_of_its_influences():
    expected = correlation_at_p(np.log(P), -2 * P)
    found = text.doctor(log_likelihood, simpson, words(40_000), calls=300)
    assert expected > -0.95
    assert found.correlation.low < expected < found.correlation.high
    assert found.deviation.low < 1 + expected < found.deviation.high


def test_a_judge_beside_repetition_is_beaten():
    texts = words(20_000)
    found = text.doctor(judge, simpson, texts)
    expected = correlation_at_p(np.array([*MARKS.values()], float), -2 * P)
    assert found.correlation.low < expected < found.correlation.high
    assert found.beaten, found
    assert found.p_value < found.alpha == 0.05
    assert found.num_blocks * found.lot == len(found.witness)
    assert not Counter(found.witness) - Counter(texts)
    # The law of its sentences has more of both, and P is known here.
    q = np.array([found.witness.count(x) for x in WORDS]) / len(found.witness)
    assert q @ [*MARKS.values()] > P @ [*MARKS.values()] + 0.1
    assert q @ q < P @ P - 0.01


def test_lots_that_are_all_equal_have_no_correlation():
    assert module._correlation(np.ones((9, 2))).value == 0


def test_few_lots_do_not_blur_errors_that_cancel():
    """As do those that have a text which repeats much, by the usual estimate."""
    x = np.random.default_rng(6).normal(size=(60, 2)) * [1, 0.05]
    x[:, 1] -= x[:, 0]
    x[:2] += [3, 20]
    found = module._correlation(x)
    assert np.corrcoef(x.T)[0, 1] > 0
    assert found.value < -0.95


def test_the_correlation_is_that_of_normal_errors():
    """By scipy's tau, and by simulation of the interval."""
    rng, held = np.random.default_rng(5), 0
    for _ in range(200):
        x = rng.normal(size=(60, 2))
        x[:, 1] -= 3 * x[:, 0]
        found = module._correlation(x)
        tau = kendalltau(*x.T)[0]
        assert found.value == pytest.approx(np.sin(np.pi / 2 * tau), abs=1e-12)
        held += found.low < -3 / np.sqrt(10) < found.high
    assert 180 <= held <= 198


@pytest.mark.slow
def test_sound_pairs_are_beaten_as_seldom_as_the_level_says():
    # 200 runs: at most 18 at a level of .05, with a chance below 1 %.
    pairs = [(log_likelihood, entropy), (coverage, simpson)] * 100
    beaten = [
        text.doctor(*pair, words(4_000, seed), calls=150, seed=seed).beaten
        for seed, pair in enumerate(pairs)
    ]
    assert beaten.count(True) <= 18


# --- Functions of all kinds ---------------------------------------------------------


def test_answers_that_are_kept_are_not_asked_for_again(tmp_path):
    texts, asked = words(4_000), []

    def diversity(lot, fails=False):
        asked.append(lot)
        if len(asked) == 50:
            raise RuntimeError("the server is gone")
        return simpson(lot)

    with shelve.open(str(tmp_path / "answers")) as cache:
        with pytest.raises(ValueError, match=r"RuntimeError: the server is gone"):
            text.doctor(judge, diversity, texts, calls=100, cache=cache)
        found = text.doctor(judge, diversity, texts, calls=100, cache=cache)
        num_calls = len(asked)
        again = text.doctor(judge, diversity, texts, calls=100, cache=cache)
        assert again == found
        assert len(asked) == num_calls  # the one that failed is asked twice
        # Other texts have other answers.
        text.doctor(judge, diversity, words(4_000, 1), calls=100, cache=cache)
        assert len(asked) > num_calls
    plain = text.doctor(judge, simpson, texts, calls=100)
    assert plain.lots.tolist() == found.lots.tolist()


def test_the_budget_of_calls_is_kept():
    asked = []

    def diversity(lot):
        asked.append(len(lot))
        return simpson(lot)

    for calls in (100, 200, 450):
        asked.clear()
        text.doctor(judge, diversity, words(20_000), calls=calls)
        assert calls / 2 < len(asked) <= 1.25 * calls


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda lot: float("nan"), "expected a finite number from the function, got"),
        (lambda lot: "high", "got 'high'; it was given 10 texts"),
        (lambda lot: None, "got None"),
        (lambda lot: lot[10**6], "the function raised IndexError"),
        (lambda: 0.5, "the function raised TypeError"),
        (lambda lot: 0.5, "gives 0.5 for each of 26 lots of real text"),
    ],
    ids=["NaN", "a word", "nothing", "raises", "no argument", "a constant"],
)
def test_a_function_that_is_no_metric_has_one_line(function, said):
    with pytest.raises(ValueError, match=r"diversity|lambda") as refusal:
        text.doctor(judge, function, words(4_000), calls=200)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("said", "settings"),
    [
        ("texts: expected at least 2,000 real ones, got 100", {"texts": words(100)}),
        ("alpha: expected a number between 0 and 0.5, got 1", {"alpha": 1}),
        ("calls: expected a whole number from 100 on, got 5", {"calls": 5}),
        ("lot: expected a whole number from 10 to 40, a fiftieth of", {"lot": 1000}),
        ("lot: expected a whole number from 10 to 40", {"lot": 1}),
        ("quality: expected a name or a function, got 3; write", {"quality": 3}),
        (
            "got ['0 1', '2 3']; write doctor(quality, diversity, texts)",
            {"quality": ["0 1", "2 3"], "diversity": "CR-2", "texts": "NRR-2"},
        ),
        ("or a function; got CND-2", {"quality": "CND-2"}),
        ("CR, which needs an order, such as 2", {"quality": "CR"}),
        ("expected one of CR-2, BLEU-2, ROUGE-L, or a", {"quality": "LL"}),
        ("ROUGE-L-2", {"quality": "ROUGE-L-2"}),
        ("or a function; got Self-BLUE-2", {"diversity": "Self-BLUE-2"}),
        ("or a function; got BLEU-22", {"quality": "BLEU-22"}),
        ("or a function; got BLEU-2", {"diversity": "BLEU-2"}),
    ],
)
def test_settings_that_do_not_fit_are_told(as_a_user, said, settings):
    given = {"quality": judge, "diversity": simpson, "texts": words(2_000)} | settings
    with pytest.raises(ValueError, match="expected") as refusal:
        text.doctor(**given)
    assert said in str(refusal.value)


def test_too_few_lots_for_a_test_are_told(monkeypatch):
    # Chances that keep a text in ten leave half as many lots as a test needs.
    monkeypatch.setattr(module, "_search", lambda *given: np.full(4_000, 0.05))
    found = text.doctor(judge, simpson, words(4_000), lot=80, calls=100)
    assert found.verdict == "cannot say"
    assert found.reason.startswith("There are only 1 lots")
    assert np.isnan(found.p_value)
