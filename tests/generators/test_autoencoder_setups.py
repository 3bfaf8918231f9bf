"""The setups of the autoencoders: each trains, under its name in the paper's table."""

import jax
import numpy as np
import pytest
from data.tables import read

import qdtheory as qd
from qdtheory.generators import AUTOENCODERS, train

SPACE = qd.TextSpace(2, 2)
P = np.array([0.1, 0.2, 0.3, 0.4])


def test_names_are_those_of_the_papers_table():
    published = read("published.csv")
    named = {r["row"] for r in published if r["paper"] == "cifka2018"}
    assert set(AUTOENCODERS) - named == {"AAE-gauss"}
    assert named - set(AUTOENCODERS) == {"real data", "LM", "ARAE (default)"}


@pytest.mark.parametrize("name", AUTOENCODERS)
def test_each_trains(name):
    setup = AUTOENCODERS[name]
    model = setup.model(jax.random.key(0), SPACE)
    found = train(setup.objective, model, SPACE, P, 40, learning_rate=0.05, every=40)
    assert float(found.nll[-1]) < float(found.nll[0]) or "det" in name
    assert float(found.model.probabilities(SPACE).sum()) == pytest.approx(1, abs=1e-12)
