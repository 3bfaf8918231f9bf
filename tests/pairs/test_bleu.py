"""Expected BLEU and Self-BLEU as a pair."""

import jax
import numpy as np
import pytest

import qdtheory as qd


def test_many_references():
    # With ever more references only texts that lack some n-gram of the real ones stay
    # below 1; of uniform references none lacks any.
    space = qd.TextSpace(2, 3)
    uniform = np.full(8, 1 / 8)
    values = [
        float(qd.expected_bleu(space, uniform, uniform, 2, n)) for n in (1, 10, 100)
    ]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(1, abs=1e-5)
    # Two texts: the candidate is among n draws with chance 1 - (1 - p)^n.
    p = np.array([0.3, 0.7])
    pair = qd.single_token_bleu_pair(7, 4)
    space = qd.TextSpace(2, 1)
    exact = qd.BleuPair(space, 1, 7, 4)
    q = np.array([0.2, 0.8])
    assert float(exact.quality(q, p)) == pytest.approx(float(pair.quality(q, p)))
    assert float(exact.diversity(q)) == pytest.approx(float(pair.diversity(q)))


def test_pair_compiles_with_its_table_as_an_argument():
    pair = qd.BleuPair(qd.TextSpace(2, 3), 2, 2, 2)
    leaves = jax.tree.leaves(pair)
    assert any(getattr(leaf, "ndim", 0) == 3 for leaf in leaves)
    p = np.random.default_rng(4).dirichlet(np.ones(8))
    value = jax.jit(lambda pair, p: pair.quality(p, p))(pair, p)
    assert float(value) == pytest.approx(float(pair.quality(p, p)), rel=1e-14)
    # The verdict takes it unchanged: with two references the gradients decide.
    verdict = qd.check_compatibility(pair, p)
    assert verdict.compatible is False
    witness = verdict.witness
    assert witness is not None
    assert pair.quality(witness.q, p) > pair.quality(p, p)
    assert pair.diversity(witness.q) > pair.diversity(p)
