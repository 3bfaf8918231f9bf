"""Tables of logits, against their definitions text by text."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from refusals import refused

import qdtheory as qd
from qdtheory.generators import LogitTable, Model, PrefixTable

SPACE = qd.TextSpace(vocab_size=3, lengths=3)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_table_of_texts_is_a_softmax(rng):
    logits = rng.normal(size=27)
    expected = np.exp(logits) / np.exp(logits).sum()
    found = LogitTable(logits).probabilities(SPACE)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_table_of_prefixes_multiplies_token_by_token(rng):
    logits = rng.normal(size=(1 + 3 + 9, 3))
    prefixes = [s for length in range(3) for s in product(range(3), repeat=length)]
    weights = {s: np.exp(row) for s, row in zip(prefixes, logits)}
    found = PrefixTable(logits).probabilities(SPACE)
    for text, q in zip(product(range(3), repeat=3), found):
        rows = [weights[text[:t]] for t in range(3)]
        expected = [row[token] / row.sum() for row, token in zip(rows, text)]
        assert float(q) == pytest.approx(np.prod(expected), rel=1e-14)


def test_both_hold_any_positive_distribution(rng):
    for q in rng.dirichlet(np.ones(27), 10):
        for table in (LogitTable.of(q), PrefixTable.of(q, SPACE)):
            assert isinstance(table, Model)
            np.testing.assert_allclose(table.probabilities(SPACE), q, rtol=1e-13)
    assert isinstance(qd.LSTMLanguageModel.random(jax.random.key(0), 3), Model)


@pytest.mark.parametrize("table", [LogitTable, PrefixTable])
def test_tables_are_pytrees(rng, table):
    shape = (27,) if table is LogitTable else (13, 3)
    batch = jax.vmap(table)(jnp.asarray(rng.normal(size=(4, *shape))))
    found = jax.jit(jax.vmap(lambda model: model.probabilities(SPACE)))(batch)
    for logits, q in zip(batch.logits, found):
        np.testing.assert_allclose(table(logits).probabilities(SPACE), q, rtol=1e-14)
    slope = jax.grad(lambda model: model.probabilities(SPACE)[0])(
        table(batch.logits[0])
    )
    # A constant added to the logits of one softmax changes nothing.
    assert np.abs(np.asarray(slope.logits).sum(axis=-1)).max() <= 1e-15


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    several, words = (
        qd.TextSpace(3, (1, 2)),
        "of one length, got lengths (1, 2); take a",
    )
    logits, short = LogitTable(np.zeros(5)), PrefixTable(np.zeros((4, 3)))
    refused(
        ("has 5 logits, the space 27 texts", logits.probabilities, SPACE),
        ("shape (4, 3), the space needs (13, 3)", short.probabilities, SPACE),
        (words, short.probabilities, several),
        (words, PrefixTable.of, np.full(12, 1 / 12), several),
        ("q must be positive everywhere", LogitTable.of, [1.0, 0.0]),
        ("q must sum to 1", LogitTable.of, [1.0, 1.0]),
    )
    text = LogitTable("ab").probabilities, SPACE
    refused(("logits must be an array or list", *text), error=TypeError)
