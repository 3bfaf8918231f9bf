"""Verdicts from samples, of laws whose verdict is known, and metrics by their names."""

import sys
from collections import Counter
from functools import partial

import numpy as np
import pytest
from refusals import refused
from scipy.stats import kendalltau, norm, sem, ttest_1samp
from scipy.stats import t as student_t

import qdtheory as qd
from qdtheory import text
from qdtheory.text.metric_names import named_metric

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


def test_the_errors_of_sound_pairs_cancel():
    found = text.doctor(log_likelihood, entropy, words(20_000), calls=200)
    assert found.beaten is False, found
    assert found.verdict == "no deviation found"
    assert found.correlation.value < -0.9
    assert found.deviation.low <= 0 < found.visible < 0.2


def test_a_pair_of_log_p_and_simpson_has_the_correlation_of_its_influences():
    expected = correlation_at_p(np.log(P), -2 * P)
    found = text.doctor(log_likelihood, simpson, words(40_000), calls=300)
    assert found.correlation.low < expected < found.correlation.high
    assert found.deviation.low < 1 + expected < found.deviation.high


def test_a_judge_beside_repetition_is_beaten_and_the_diagnosis_shown():
    texts, marks = words(20_000), np.array([*MARKS.values()], float)
    found = text.doctor(judge, simpson, texts)
    expected = correlation_at_p(marks, -2 * P)
    assert found.correlation.low < expected < found.correlation.high
    assert found.beaten, found
    gains = found.quality_gain, found.diversity_gain
    least = min(gain.value / gain.standard_error for gain in gains)
    assert found.p_value == pytest.approx(student_t.sf(least, found.num_blocks - 1))
    assert found.p_value < found.alpha == 0.05
    assert found.num_blocks * found.lot == len(found.witness)
    assert not Counter(found.witness) - Counter(texts)
    # The law of its sentences has more of both, and P is known here.
    q = np.array([found.witness.count(x) for x in WORDS]) / len(found.witness)
    assert q @ marks > P @ marks + 0.1
    assert q @ q < P @ P - 0.01
    assert found.reason in " ".join(found.to_text(66).split())


def test_the_correlation_is_that_of_normal_errors():
    """By scipy's tau, and by simulation of the interval."""
    x, held = np.random.default_rng(5).normal(size=(200, 60, 2)), 0
    x[..., 1] -= 3 * x[..., 0]
    for lots in x:
        found, tau = module._correlation(lots), kendalltau(*lots.T)[0]
        assert found.value == pytest.approx(np.sin(np.pi / 2 * tau), abs=1e-12)
        held += found.low < -3 / np.sqrt(10) < found.high
    assert 180 <= held <= 198
    assert module._correlation(np.ones((9, 2))).value == 0  # all are equal


# --- Functions of all kinds ---------------------------------------------------------


@pytest.mark.parametrize("calls", [100, 450])
def test_the_budget_of_calls_is_kept(calls):
    steps = []
    text.doctor(judge, simpson, words(20_000), calls=calls, step=steps.append)
    assert calls / 2 < len(steps) <= 1.25 * calls


def test_a_function_that_is_no_metric_has_one_line():
    asked = partial(text.doctor, judge, texts=words(4_000), calls=200)
    finite = "diversity: expected a finite number from the function, got"
    raised = "diversity: the function raised"
    refused(
        (f"{finite} nan", asked, lambda lot: float("nan")),
        (f"{finite} 'high'; it was given 10 texts", asked, lambda lot: "high"),
        (f"{raised} IndexError", asked, lambda lot: lot[10**6]),
        (f"{raised} TypeError", asked, lambda: 0.5),
        ("gives 0.5 for each of 26 lots of real text", asked, lambda lot: 0.5),
    )


def test_settings_that_do_not_fit_are_told(as_a_user):
    few = words(2_000)

    def asked(quality=judge, diversity=simpson, texts=few, **how):
        return partial(text.doctor, quality, diversity, texts, **how)

    lot = "lot: expected a whole number from 10 to 40, a fiftieth of"
    refused(
        ("texts: expected at least 2,000 real ones, got 99", asked(texts=few[:99])),
        ("alpha: expected a number between 0 and 0.5, got 1", asked(alpha=1)),
        *((lot, asked(lot=x)) for x in (1000, 1)),
        ("quality: expected a name or a function, got 3; write", asked(3)),
        ("or a function; got CND-2", asked("CND-2")),
        ("CR, which needs an order, such as 2", asked("CR")),
        ("expected one of CR-2, BLEU-2, ROUGE-L, or a", asked("LL")),
        *(("ROUGE-L-2", asked("ROUGE-L-2")), ("got BLEU-2", asked(diversity="BLEU-2"))),
    )


def test_names_open_with_what_is_proved_and_few_sentences_say_how_many_it_takes():
    found = qd.doctor("CR-1", "NRR-1", words(4_000), calls=100)
    first, second, *_ = found.to_text(200).splitlines()
    assert first == qd.check("CR-1", "NRR-1").summary()[0]
    assert second == "What 4,000 real sentences add: no deviation found."
    gains = found.quality_gain, found.diversity_gain
    gain = max(1, min(x.value / x.standard_error for x in gains))
    power = norm.sf(norm.ppf(1 - found.alpha) - gain * np.sqrt(found.needed / 4_000))
    assert power == pytest.approx(0.8, abs=1e-3)
    assert f"takes about {float(f'{found.needed:.1e}'):,.0f} sentences." in found.reason


def test_too_few_lots_for_a_test_are_told(monkeypatch):
    # Chances that keep a text in ten leave half as many lots as a test needs.
    monkeypatch.setattr(module, "_search", lambda *given: np.full(4_000, 0.05))
    found = text.doctor(judge, simpson, words(4_000), lot=80, calls=100)
    assert found.verdict == "cannot say"
    assert found.reason.startswith("There are only 1 lots")
    assert "give about 24,000 texts, or a smaller lot" in found.reason
    assert np.isnan(found.p_value)


def test_estimates_are_those_of_scipy():
    """Gains are means over blocks; the correlation's limit is of two sizes of lots."""
    rng = np.random.default_rng(0)
    small, lots = (rng.normal(size=(size, 2)) for size in (30, 40))
    scores = rng.normal(size=(12, 3, 2)) + np.eye(3)[:, :1]
    sides = {"quality": "u", "diversity": "v"}
    found = module._diagnosis(
        small, lots, scores, 0.05, 9000, **sides, witness=(), lot=100
    )
    drawn, plain, mixed = scores.transpose(1, 2, 0)
    gains = found.quality_gain, found.diversity_gain
    pairs = [
        *zip(gains, drawn - plain),
        (found.concavity, (mixed - (drawn + plain) / 2)[1]),
    ]
    for gain, x in pairs:
        ends = student_t.interval(0.9, 11, x.mean(), sem(x))
        assert (gain.low, gain.high) == pytest.approx(ends)
    p_values = [ttest_1samp(x, 0, alternative="greater").pvalue for x in drawn - plain]
    assert found.p_value == pytest.approx(max(p_values))
    a, b = (module._correlation(x) for x in (small, lots))
    error = np.hypot(4 * b.standard_error, a.standard_error) / 3
    assert found.deviation.standard_error == pytest.approx(error)
    assert found.deviation.value == pytest.approx(
        max(1 + (4 * b.value - a.value) / 3, 0)
    )
    high = found.deviation.value + student_t.ppf(0.975, 39) * error
    assert found.deviation.high == pytest.approx(min(high, 2))


def test_features_count_lengths_and_the_n_grams_of_other_texts():
    texts = [" ".join(words(3 + i % 7, i)) for i in range(60)]
    counted = np.arange(0, 60, 3)
    found = module._features(text.as_corpus(texts), counted, None)[:, :7]
    split = [x.split() for x in texts]
    columns = [[np.log1p(len(x)) for x in split], [*map(len, split)]]
    for n in range(1, 5):
        grams = [[*zip(*(x[i:] for i in range(n)))] for x in split]
        times = Counter(gram for i in counted for gram in grams[i])
        logs = [[np.log(times[gram] + 0.5) for gram in x] for x in grams]
        columns.append([np.mean(x) if x else 0 for x in logs])
    columns.append([len({*x}) / len(x) for x in split])
    table = np.array(columns).T
    table = (table - table[counted].mean(axis=0)) / table[counted].std(axis=0)
    np.testing.assert_allclose(found, table.clip(-3, 3), atol=1e-9)


# --- metrics by their names ----------------------------------------------------------

OURS, REAL = ["a b c a", "a c", "b c a b"], ["a b", "c a b"]
NAMED = {
    ("quality", "BLEU-2"): text.bleu(OURS, REAL, 2)[1],
    ("quality", "cr-2"): text.coverage_rate(OURS, REAL, 2),
    ("quality", "ROUGE-L"): text.rouge_l_scores(OURS, REAL).mean(),
    ("diversity", "Self-BLEU-2"): -text.self_bleu(OURS, 2)[1],
    ("diversity", "NRR-1"): text.negative_repetition_rate(OURS, 1),
    ("diversity", "dist-2"): text.distinct(OURS, 2),
    ("diversity", "homogenization"): -text.pairwise_rouge_l(OURS),
}


@pytest.mark.parametrize(("side", "name"), NAMED)
def test_a_name_stands_for_a_metric_of_a_text_or_of_each_sentence(side, name):
    (whole, each), value = named_metric(side, name), NAMED[side, name]
    given = (OURS, REAL) if side == "quality" else (OURS,)
    assert whole(*given) == pytest.approx(value, abs=1e-15)
    assert each is None or each(*given).mean() == pytest.approx(value, abs=1e-15)
