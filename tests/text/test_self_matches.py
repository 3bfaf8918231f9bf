"""Matches of Self-BLEU against all others, one sentence and one group at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qdtheory.text.self_matches import self_matches

# Counts of one n-gram after another, each in some of nine sentences of three groups.
counts = st.lists(
    st.dictionaries(st.integers(0, 8), st.integers(1, 4), min_size=1), min_size=1
)
GROUPS = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])


@given(counts)
def test_matches_and_losses_are_those_of_the_rest(counts):
    runs = [(g, s, c[s]) for g, c in enumerate(counts) for s in sorted(c)]
    ngram, sentence, times = np.array(runs).T
    found, (lost, without, losses) = self_matches(
        ngram, sentence, times, GROUPS[sentence].astype(np.uint8)
    )

    def clipped(g, s, missing=None):
        others = [c for t, c in counts[g].items() if t != s and GROUPS[t] != missing]
        return min(counts[g][s], max(others, default=0))

    assert found.tolist() == [clipped(g, s) for g, s, _ in runs]
    told = np.zeros((9, 3), int)
    np.add.at(told, (lost, without), losses)
    for s in range(9):
        for h in {0, 1, 2} - {int(GROUPS[s])}:
            mine = [g for g, c in enumerate(counts) if s in c]
            gone = sum(clipped(g, s) - clipped(g, s, h) for g in mine)
            assert told[s, h] == gone
