"""One set of defaults: functions, `evaluate` and the command give the same numbers."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from lab import corpora
from referees.corpus_metrics import one_by_one
from typer.testing import CliRunner

from qdtheory import text
from qdtheory.commands import cli
from qdtheory.commands.evaluate import evaluate as command

FUNCTIONS = {
    name: inspect.signature(found).parameters
    for name in dir(text)
    if inspect.isfunction(found := getattr(text, name))
} | {
    "every_metric": inspect.signature(corpora.every_metric).parameters,
    "bootstrap_interval": inspect.signature(corpora.bootstrap_interval).parameters,
    "command": inspect.signature(command).parameters,
}


@pytest.mark.parametrize(
    ("setting", "least"),
    [("smoothing", 7), ("estimator", 6), ("max_order", 10), ("level", 4), ("empty", 4)],
)
def test_a_setting_has_one_default_wherever_it_occurs(setting, least):
    defaults = {
        name: parameters[setting].default
        for name, parameters in FUNCTIONS.items()
        if setting in parameters
    }
    assert len(defaults) >= least
    assert defaults == dict.fromkeys(defaults, defaults["evaluate"])


RNG = np.random.default_rng(0)
REAL, MODEL = (
    [" ".join(RNG.choice([*"abcdef"], size)) for size in RNG.integers(2, 9, 60)]
    for _ in range(2)
)


def test_functions_evaluate_and_command_give_the_same_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("model.txt").write_text("\n".join(MODEL) + "\n")
    Path("real.txt").write_text("\n".join(REAL) + "\n")
    arguments = "evaluate", "model.txt", "--references", "real.txt", "--json"
    printed = json.loads(CliRunner().invoke(cli.app, arguments).stdout)
    (of_command,) = printed["candidates"]
    found = text.evaluate({"model": MODEL}, REAL)
    own = one_by_one(MODEL, REAL)
    expected = dict(zip(found.metrics, np.ravel(own), strict=True))
    # BLEU-1 has no interval: too few groups change it.
    error = np.sqrt(19) * found.left_out["model"].std(axis=0)
    value, error = (
        dict(zip(found.metrics, np.asarray(x), strict=True))
        for x in (found.scores["model"].value, error)
    )
    assert {k: v["value"] for k, v in of_command["metrics"].items()} == value
    # `evaluate` adds up integers where functions of one metric add up frequencies.
    assert value == pytest.approx(expected, rel=1e-12)
    # Means over the sentences, and the same groups of the jackknife.
    assert text.bleu_scores(MODEL, REAL).mean(axis=0).tolist() == own[0].tolist()
    interval = text.jackknife_interval(lambda c: text.bleu(c, REAL), MODEL)
    of_report = [error[f"BLEU-{n}"] for n in range(1, 5)]
    assert interval.standard_error == pytest.approx(of_report, rel=1e-12)


def test_smoothing_and_the_estimator_matter_to_these_texts():
    assert text.bleu(MODEL, REAL)[3] > text.bleu(MODEL, REAL, smoothing=None)[3] > 0
    assert text.cnd(MODEL, REAL, 2) < text.cnd(MODEL, REAL, 2, "plug-in")
