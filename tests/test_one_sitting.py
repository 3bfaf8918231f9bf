"""The lecture that imports nothing of ours gives the library's exact values."""

import ast

import build
import jax.numpy as jnp
import matplotlib.pyplot as plt
import notebook_cells
import numpy as np
import pytest

import qdtheory as qd

NAME = "00b_one_sitting"
CODE = "\n".join(
    notebook_cells.source_of(cell)
    for cell in notebook_cells.cells_of(build.FOLDER / f"{NAME}.ipynb")
    if cell["cell_type"] == "code"
)
SPACE = qd.TextSpace(vocab_size=3, lengths=3)


@pytest.fixture(scope="module")
def sitting():
    """The names that the lecture's cells leave behind."""
    names = {}
    with plt.rc_context({"backend": "agg"}):
        exec(CODE, names)
    plt.close("all")
    return names


def test_it_imports_numpy_and_nothing_of_ours():
    imported = {
        (getattr(node, "module", None) or node.names[0].name).partition(".")[0]
        for node in ast.walk(ast.parse(CODE))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported == {"itertools", "matplotlib", "numpy"}
    assert "print(" not in CODE


def test_its_world_is_a_chain_over_three_words(sitting):
    assert sitting["texts"] == ["".join("abc"[w] for w in t) for t in SPACE.tokens]
    first, ways = jnp.array([0.5, 0.3, 0.2]), jnp.array([0.2, 0.5, 0.3])
    a, b, c = SPACE.tokens.T
    chain = first[a] * ways[(b - a) % 3] * ways[(c - b) % 3]
    np.testing.assert_allclose(sitting["p"], chain, rtol=1e-12)


@pytest.mark.parametrize("name", ["p", "winner", "uniform"])
def test_its_bleu_and_self_bleu_are_those_of_the_library(sitting, name):
    q = np.full(27, 1 / 27) if name == "uniform" else sitting[name]
    pair, p = qd.BleuPair(SPACE, 2, 2, 2), sitting["p"]
    assert sitting["quality"](q) == pytest.approx(float(pair.quality(q, p)), abs=1e-12)
    assert sitting["self_bleu"](q) == pytest.approx(
        -float(pair.diversity(q)), abs=1e-12
    )


def test_its_winner_beats_the_world_in_both_and_is_far_from_it(sitting):
    pair, p, q = qd.BleuPair(SPACE, 2, 2, 2), sitting["p"], sitting["winner"]
    more = float(pair.quality(q, p) - pair.quality(p, p))
    less = float(pair.diversity(q) - pair.diversity(p))
    assert min(more, less) == pytest.approx(sitting["gain"], abs=1e-12)
    assert min(more, less) > 0.013
    assert float(qd.divergences.total_variation(q, p)) > 0.4


def test_with_one_reference_and_single_words_nothing_beats_its_world(sitting):
    pair, p = qd.BleuPair(SPACE, 1, 1, 1), sitting["p"]
    models = np.vstack([sitting["moves"], np.random.default_rng(0).dirichlet(p, 200)])
    u = np.array([float(pair.quality(q, p)) for q in models])
    v = np.array([float(pair.diversity(q)) for q in models])
    here = sitting["here"]
    np.testing.assert_allclose(
        u[: len(sitting["theirs"])], sitting["theirs"], atol=1e-12
    )
    np.testing.assert_allclose(-v[: len(sitting["own"])], sitting["own"], atol=1e-12)
    assert np.minimum(u - here, v + here).max() <= 1e-12
