"""Metrics by their names, against the functions that they stand for."""

import pytest

from qdtheory import text
from qdtheory.text.metric_names import named_metric

OURS, REAL = ["a b c a", "a c", "b c a b"], ["a b", "c a b"]
QUALITIES = {
    "BLEU-2": lambda ours, real: text.bleu(ours, real, 2)[1],
    "cr-2": lambda ours, real: text.coverage_rate(ours, real, 2),
    "ROUGE-L": lambda ours, real: text.rouge_l_scores(ours, real).mean(),
}
DIVERSITIES = {
    "Self-BLEU-2": lambda ours: -text.self_bleu(ours, 2)[1],
    "NRR-1": lambda ours: text.negative_repetition_rate(ours, 1),
    "dist-2": lambda ours: text.distinct(ours, 2),
    "homogenization": lambda ours: -text.pairwise_rouge_l(ours),
    "SRS": lambda ours: -text.self_repetition(ours),
    "n-gram diversity": text.ngram_diversity,
}


@pytest.mark.parametrize("name", [*QUALITIES, *DIVERSITIES])
def test_more_is_better_of_what_a_name_stands_for(name):
    if name in DIVERSITIES:
        whole, _ = named_metric("diversity", name)
        assert whole(OURS) == pytest.approx(DIVERSITIES[name](OURS))
        return
    whole, each = named_metric("quality", name)
    expected = QUALITIES[name](OURS, REAL)
    assert whole(OURS, REAL) == pytest.approx(expected, abs=1e-15)
    assert each is None or each(OURS, REAL).mean() == pytest.approx(expected, abs=1e-15)
