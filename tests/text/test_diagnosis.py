"""A diagnosis in words, numbers and a figure."""

from itertools import combinations

import numpy as np
import pytest

from qdtheory import text

LETTERS = np.array([*"abcdefgh"])


def words(size):
    """Texts of one word, the later in the alphabet the more."""
    p = np.arange(1, 9) / 36
    return np.random.default_rng(0).choice(LETTERS, size, p=p).tolist()


def judge(texts, references):
    return np.mean([x in "acf" for x in texts])


def simpson(texts):
    shares = np.array([texts.count(x) for x in LETTERS]) / len(texts)
    return -(shares**2).sum()


def test_a_diagnosis_is_a_table_json_and_html():
    found = text.doctor("CR-1", "NRR-1", words(2_000), calls=100)
    told = found.to_text(66)
    assert told.startswith("CR-1 with NRR-1: ")
    assert max(map(len, told.splitlines())) <= 66
    assert '"verdict": "no deviation found"' in found.to_json()
    assert found._repr_html_().count("<tr>") == len(found.rows())
    assert found.reason in " ".join(told.split())


def test_a_diagnosis_is_drawn():
    found = text.doctor(judge, simpson, words(4_000), calls=200)
    figure = found.plot()
    (ax,) = figure.axes
    assert ax.get_xlabel() == "quality by judge, in standard deviations"
    x, y = ax.lines[1].get_data()
    assert np.std(x, ddof=1) == pytest.approx(1)
    pairs = combinations(zip(x, y), 2)
    signs = [np.sign((a - c) * (b - d)) for (a, b), (c, d) in pairs]
    tau = np.sum(signs) / np.count_nonzero(signs)
    assert np.sin(np.pi / 2 * tau) == pytest.approx(found.correlation.value)
