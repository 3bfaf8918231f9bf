"""Figures of reports show their numbers and intervals."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.text.plots import LOOK


def test_the_style_of_pages_is_that_of_lectures():
    with plt.style.context(LOOK):
        named = {**plt.rcParams}
    with plt.style.context(qd.plotting.STYLE):
        assert {**plt.rcParams} == named


def test_a_report_is_drawn_with_its_intervals():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice([*"abcde"], 6)) for _ in range(90)]
    samples = {"one": texts[:30], "other": texts[30:60]}
    report = qd.text.evaluate(samples, texts[60:], max_order=3)
    for figure, n in ((report.plot(), 3), (report.plot(2), 2)):
        names = (("CR", "NRR"), ("BLEU", "Self-BLEU"))
        for ax, (quality, diversity) in zip(figure.axes, names, strict=True):
            assert ax.get_xlabel() == f"quality, {quality}-{n}"
            for name, drawn in zip(report, ax.containers, strict=True):
                assert drawn.get_label() == name
                x, y = report[name][f"{quality}-{n}"], report[name][f"{diversity}-{n}"]
                data, _, bars = drawn
                assert data.get_xdata() == [x.value]
                assert data.get_ydata() == [y.value]
                across, up = (bar.get_segments()[0] for bar in bars)
                np.testing.assert_allclose(across[:, 0], [x.low, x.high], rtol=1e-12)
                np.testing.assert_allclose(up[:, 1], [y.low, y.high], rtol=1e-12)
        bottom, top = figure.axes[1].get_ylim()
        assert bottom > top  # less Self-BLEU is up
        plt.close(figure)
    with pytest.raises(ValueError, match=r"an order of the report, \[1, 2, 3\], got 4"):
        report.plot(4)
