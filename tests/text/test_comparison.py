"""Two candidates compared: the intervals by a second route, and what may be said."""

import numpy as np
import pytest
from scipy import stats

from qdtheory.text import as_corpus, evaluate
from qdtheory.text.comparison import compare
from qdtheory.text.evaluation import every_metric
from qdtheory.text.intervals import jackknife_interval, random_groups


def texts(rng, size, weights):
    words = np.array([*"abcdef"])[: len(weights)]
    p = np.array(weights) / sum(weights)
    return [" ".join(rng.choice(words, rng.integers(3, 7), p=p)) for _ in range(size)]


FLAT, STEEP = (1, 1, 1, 1, 1, 1), (9, 3, 1, 1, 1, 1)


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    candidates = {
        "flat": texts(rng, 80, FLAT),
        "steep": texts(rng, 60, STEEP),
        "again": texts(rng, 80, FLAT),
    }
    return evaluate(candidates, texts(rng, 90, FLAT), max_order=2), candidates


def test_independent_samples_by_leaving_out_groups_of_each(report):
    """By the jackknife of two corpora, and Welch's degrees by SciPy."""
    found, candidates = report
    rng = np.random.default_rng(0)
    texts(rng, 80, FLAT), texts(rng, 60, STEEP), texts(rng, 80, FLAT)
    metrics = every_metric(texts(rng, 90, FLAT), 2)
    one, other = candidates["flat"], candidates["steep"]
    direct = jackknife_interval(lambda a, b: metrics(a) - metrics(b), one, other)
    ours = compare(found, "flat", "steep")
    np.testing.assert_allclose(ours.difference.value, direct.value.ravel(), atol=1e-12)
    # The second corpus is dealt out anew there: alike, not equal.
    ratio = ours.difference.standard_error / direct.standard_error.ravel()
    assert ((ratio > 0.5) & (ratio < 2)).all()
    # Welch's interval for the means of twenty pseudo-values.
    for i, name in enumerate(found.metrics):
        full = [found.scores[x].value[i] for x in ("flat", "steep")]
        pseudo = [
            20 * value - 19 * found.left_out[x][:, i]
            for x, value in zip(("flat", "steep"), full, strict=True)
        ]
        welch = stats.ttest_ind(*pseudo, equal_var=False).confidence_interval(0.95)
        width = ours.difference.high[i] - ours.difference.low[i]
        assert width == pytest.approx(welch.high - welch.low, rel=1e-9), name


def test_pairs_by_leaving_out_the_same_rows_of_both(report):
    found, candidates = report
    rng = np.random.default_rng(0)
    texts(rng, 80, FLAT), texts(rng, 60, STEEP), texts(rng, 80, FLAT)
    metrics = every_metric(texts(rng, 90, FLAT), 2)
    group = random_groups(80, 20)

    def without(name, g):
        rows = zip(candidates[name], group, strict=True)
        return metrics(as_corpus([text for text, of_row in rows if of_row != g]))

    differences = [without("flat", g) - without("again", g) for g in range(20)]
    differences = np.reshape(differences, (20, -1))
    error = np.sqrt(19) * differences.std(axis=0)
    ours = compare(found, "flat", "again", paired=True)
    np.testing.assert_allclose(ours.difference.standard_error, error, atol=1e-12)
    margin = stats.t.ppf(0.975, 19) * error
    np.testing.assert_allclose(
        ours.difference.high - ours.difference.value, margin, atol=1e-12
    )


def test_a_text_is_not_better_than_itself():
    rng = np.random.default_rng(1)
    own = texts(rng, 40, STEEP)
    found = evaluate({"one": own, "copy": own}, texts(rng, 40, FLAT), max_order=2)
    for paired in (True, False):
        ours = compare(found, "one", "copy", paired=paired)
        np.testing.assert_array_equal(ours.difference.value, 0)
        assert {ours.better(name) for name in ours.metrics} == {None}
    assert (compare(found, "one", "copy", paired=True).difference.high == 0).all()


def test_samples_of_one_law_differ_as_often_as_the_level_says():
    """200 pairs at level .8; binomial(200, .2) is at most 64 but for 1e-5."""
    rng = np.random.default_rng(2)
    real = texts(rng, 200, STEEP)
    missed = np.zeros(14, int)
    for _ in range(200):
        pair = {name: texts(rng, 60, STEEP) for name in "ab"}
        found = compare(evaluate(pair, real, max_order=2), "a", "b", level=0.8)
        missed += [found.better(name) is not None for name in found.metrics]
    assert missed.max() <= 64
    # They are not so wide that nothing is ever said.
    assert np.median(missed) >= 10


def test_the_closer_one_is_named_and_where_it_leads(report):
    found, _ = report
    ours = found.compare("steep", "flat")
    first, second = ours.sentences(2)
    assert first.startswith("flat is closer to the references in 2-grams: the 95%")
    assert "steep has more quality (CR-2)" in first
    assert "flat has more diversity (NRR-2)" in first
    assert ours.better("CND-2") == "flat"
    assert second == found.compare("flat", "steep").sentences(2)[1]
    assert str(ours).splitlines()[2:] == [first, second]
    same = found.compare("flat", "again")
    assert same.better("CND-2") is None
    assert same.sentences(2)[0].startswith("Neither is shown to be closer")


@pytest.mark.parametrize(
    ("names", "settings", "error", "message"),
    [
        (("flat", "x"), {}, KeyError, "no candidate is called 'x'; there are flat,"),
        (("flat", "flat"), {}, ValueError, "expected two candidates, got 'flat' twic"),
        (("flat", "steep"), {"paired": True}, ValueError, "got 80 and 60 sentences"),
        (("flat", "steep"), {"level": 1}, ValueError, "level: expected a number bet"),
    ],
)
def test_bad_input(report, as_a_user, names, settings, error, message):
    with pytest.raises(error, match=message):
        compare(report[0], *names, **settings)


def test_metrics_and_orders_that_are_not_there(report):
    found = report[0].compare("flat", "steep")
    with pytest.raises(KeyError, match="no metric is called 'BLEU'"):
        found.better("BLEU")
    with pytest.raises(KeyError, match="no metric is called 'CND-3'"):
        found.sentences(3)
