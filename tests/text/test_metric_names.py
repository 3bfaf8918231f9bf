"""Metrics by their names, against the functions that they stand for."""

import pytest

from qdtheory import text
from qdtheory.text.metric_names import named_metric


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("BLEU-2", lambda ours, real: text.bleu(ours, real, 2)[1]),
        ("cr-2", lambda ours, real: text.coverage_rate(ours, real, 2)),
        ("ROUGE-L", lambda ours, real: text.rouge_l_scores(ours, real).mean()),
    ],
)
def test_qualities_by_name(name, expected):
    ours, real = ["a b c", "a c"], ["a b", "c a b"]
    whole, each = named_metric("quality", name)
    assert whole(ours, real) == pytest.approx(expected(ours, real), abs=1e-15)
    if each:
        assert each(ours, real).mean() == pytest.approx(whole(ours, real), abs=1e-15)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Self-BLEU-2", lambda ours: -text.self_bleu(ours, 2)[1]),
        ("NRR-1", lambda ours: text.negative_repetition_rate(ours, 1)),
        ("dist-2", lambda ours: text.distinct(ours, 2)),
        ("homogenization", lambda ours: -text.pairwise_rouge_l(ours)),
        ("n-gram diversity", text.ngram_diversity),
    ],
)
def test_diversities_by_name_are_more_if_better(name, expected):
    ours = ["a b c a", "a c", "b c a b"]
    assert named_metric("diversity", name)[0](ours) == pytest.approx(expected(ours))
