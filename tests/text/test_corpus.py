"""Corpora: any container of texts gives the same one, or one clear error."""

import io
from collections import deque
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar

from qdtheory.text import as_corpus
from qdtheory.text.containers import characters, described, mteval_13a, splitter

token_lists = st.lists(
    st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=12
).filter(any)


@given(token_lists)
def test_a_corpus_gives_back_its_sentences(texts):
    whole, corpus = as_corpus(texts), as_corpus(texts, empty="skip")
    kept = [tuple(text) for text in texts if text]
    assert list(whole) == list(map(tuple, texts))
    assert whole.num_empty == corpus.empty_lines == len(texts) - len(kept)
    assert whole.empty_lines == corpus.num_empty == 0
    # A corpus drops them as a list does, and says so.
    again = as_corpus(whole, empty="skip")
    assert list(again) == list(corpus) == kept
    assert again.empty_lines == corpus.empty_lines
    assert as_corpus(corpus) is corpus
    assert corpus.lengths.tolist() == [len(text) for text in kept]
    assert corpus.num_tokens == sum(map(len, kept))
    words = tuple(dict.fromkeys(t for text in kept for t in text))
    assert whole.vocabulary == corpus.vocabulary == words


@given(token_lists, st.slices(12), st.lists(st.integers(-4, 3), max_size=5))
def test_indexing_agrees_with_a_list(texts, part, positions):
    corpus, kept = as_corpus(texts), list(map(tuple, texts))
    assert list(corpus[part]) == kept[part]
    assert np.shares_memory(corpus[:9].tokens, corpus.tokens)
    assert corpus[part].vocabulary is corpus.vocabulary
    with pytest.raises(IndexError, match="out of range"):
        corpus[len(kept)]
    positions = [i for i in positions if -len(kept) <= i < len(kept)]
    assert list(corpus[np.array(positions, int)]) == [kept[i] for i in positions]
    assert [corpus[i] for i in positions] == [kept[i] for i in positions]
    mask = corpus.lengths > 2
    assert list(corpus[mask]) == [text for text in kept if len(text) > 2]


# -- containers ----------------------------------------------------------------------

TEXTS = ["a b a", "", "c a"]
TOKENS = [text.split() for text in TEXTS]


class Column:
    """What Polars' Series has: no `tolist`, and iteration over Python objects."""

    def __init__(self, texts):
        self.texts = texts

    def to_list(self):
        return self.texts

    def __iter__(self):
        return iter(self.texts)


class Stream:
    """A column of which only Arrow knows how to read it."""

    def __init__(self, texts):
        self.texts = pa.chunked_array([texts])

    def __arrow_c_stream__(self, requested_schema=None):
        return self.texts.__arrow_c_stream__(requested_schema)


BOTH = [tuple, iter, deque, pd.Series, pa.array, Column, Stream]
CONTAINERS = [
    *((make, TEXTS) for make in BOTH),
    *((make, TOKENS) for make in BOTH),
    (np.array, TEXTS),
    (partial(np.array, dtype=object), TEXTS),
    (lambda texts: np.array(texts, np.dtypes.StringDType()), TEXTS),
    (lambda texts: pd.DataFrame({"text": texts})["text"], TEXTS),
    (partial(pd.Series, dtype="category"), TEXTS),
    (lambda texts: pd.Series(texts, dtype="string").array, TEXTS),
    (pd.Index, TEXTS),
    (lambda texts: pa.chunked_array([texts[:1], texts[1:]]), TEXTS),
    (lambda tokens: [np.array(row, object) for row in tokens], TOKENS),
    (lambda tokens: map(tuple, tokens), TOKENS),
]


@pytest.mark.parametrize(("make", "texts"), CONTAINERS)
def test_every_container_gives_the_corpus_of_the_list(make, texts):
    corpus = as_corpus(make(texts))
    assert list(corpus) == list(map(tuple, TOKENS))
    assert corpus.tokenizer == ("white space" if texts is TEXTS else None)


def test_a_token_is_a_word_of_any_kind_or_an_integer():
    assert list(as_corpus(["a b\ta", "  ", "c"])) == [("a", "b", "a"), (), ("c",)]
    for row in ([3, 1], list(np.array([3, 1])), np.array([3, 1])):
        assert list(as_corpus([row])) == [(3, 1)]
    assert as_corpus([["New York", "is", "big"]]).vocab_size == 3


def test_what_is_split_already_is_not_split_again(as_a_user):
    split = as_corpus(TEXTS, tokenizer="characters", lowercase=True)
    assert as_corpus(split, "keep", "characters", True) is split
    assert as_corpus(split) is split
    parts = split[:2], split[::2], split[np.array([0])]
    assert {part.tokenizer for part in parts} == {"characters, lower-cased"}
    said = "tokenizer and lowercase are for strings: these texts came split, by "
    again = partial(as_corpus, tokenizer="13a")
    refused((f"{said}characters, lower-cased", again, split))
    refused((f"{said}the caller", again, TOKENS))


def test_what_holds_no_texts_is_refused_by_its_place(as_a_user):
    missing = ", a missing value: drop it, or give '' if the model wrote nothing"
    several = ["the cat sat", "a cat"]
    table = pd.DataFrame({"text": ["a"]})
    arrow = pa.table({"id": [1], "text": ["a"]})
    rows = [
        (f"text 1: expected a string, got NoneType{missing}", ["a b", None]),
        (f"text 1: expected a string, got float{missing}", pd.Series(["a", np.nan])),
        (f", got NAType{missing}", pd.Series(["a", None], dtype="string")),
        ("text 1: expected a string, got int 3", np.array(["a", 3], object)),
        (f"text 1: expected a string, got NoneType{missing}", pa.array(["a", None])),
        ("text 0: expected a string or a list of tokens, got byte", np.array([b"a"])),
        ("text 0: expected a string or a list of tokens, got int 1", [1, 2]),
        ("text 0: expected a string or a list of tokens, got None", [None, "a"]),
        ("text 1: expected a list of tokens, got int", [["a"], 3]),
        ("text 1 is a list and the first a string", ["a b", ["c"]]),
        ("text 1 is a string and the first a list", [["a"], "b c"]),
        ("text 1: a token is a float", [["a"], [1.5]]),
        ("text 0: a token is a list", [[["a"]]]),
        ("share one list of references", [several]),
        ("got a dict: give one of its values, of 'm'", {"m": ["a b"]}),
        ("got a set, which holds no sentence twice: give all", {"a b"}),
        ("got a dict_keys, which holds no sentence twice", {"a b": 0}.keys()),
        ("got one str: put the sentence in a list", "a b"),
        ("got one bytes: put", b"a b"),
        ("got the file StringIO: read_corpus reads files", io.StringIO("a b")),
        ('one column, as in table["text"], or name it (column=NAME); the', table),
        ("there are: 'id', 'text'", arrow),
        ("a ndarray of shape (1, 2): give one column, or", np.array([["a", "b"]])),
        ("expected a Corpus, a list of strings or a list of token lists, got int", 3),
    ]
    refused(*((words, as_corpus, x) for words, x in rows), error=TypeError)
    none = "at least one sentence with a token, got none"
    refused(*((none, as_corpus, x) for x in ([], ["", " "], as_corpus(["a"])[1:])))


# -- tokenizers: those of sacrebleu, and the names that choose them ------------------

SENTENCE = st.lists(
    st.sampled_from([*"ab59 .,-'\"&;()[]{}~`!@#$%^*_+=|\\/:<>?é٣。\u3000\t"])
    | st.sampled_from(["&quot;", "&amp;", "&lt;", "&gt;", "<skipped>", "-", "3.5"])
).map("".join)


@given(SENTENCE)
def test_tokens_are_those_of_sacrebleu(sentence):
    assert mteval_13a(sentence) == Tokenizer13a()(sentence).split()
    assert characters(sentence) == TokenizerChar()(sentence).split()


def test_names_and_functions_choose_a_tokenizer(as_a_user):
    assert splitter("whitespace") is str.split
    assert splitter("13a", lowercase=True)("It's A-1.") == ["it's", "a-1", "."]
    assert splitter(list)("a b") == ["a", " ", "b"]
    assert described("whitespace") == "white space"
    assert described(mteval_13a, lowercase=True) == "mteval_13a, lower-cased"
    said = "'whitespace', '13a', 'characters' or a function"
    refused(*((said, splitter, x) for x in ("intl", "", None, 3)))
