"""Whatever people hold their texts in gives the same corpus, or one clear error."""

import io
import re
from collections import UserDict, deque

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar

from qdtheory.text import as_corpus, bleu, evaluate
from qdtheory.text.containers import characters, described, mteval_13a, splitter

TEXTS = ["a b a", "", "c a"]
TOKENS = [text.split() for text in TEXTS]


class Column:
    """What Polars' Series has: no `tolist`, and iteration over Python objects."""

    def to_list(self):
        return TEXTS

    def __iter__(self):
        return iter(TEXTS)


class Stream:
    """A column of which only Arrow knows how to read it."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.chunked_array([TEXTS]).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "make",
    [
        tuple,
        iter,
        deque,
        lambda texts: (text for text in texts),
        lambda texts: dict.fromkeys(texts, 0).items() and map(str, texts),
        np.array,
        lambda texts: np.array(texts, object),
        lambda texts: np.array(texts, np.dtypes.StringDType()),
        pd.Series,
        lambda texts: pd.DataFrame({"text": texts})["text"],
        lambda texts: pd.Series(texts, dtype="category"),
        lambda texts: pd.Series(texts, dtype="string").array,
        pd.Index,
        pa.array,
        lambda texts: pa.chunked_array([texts[:1], texts[1:]]),
        lambda texts: Column(),
        lambda texts: Stream(),
    ],
)
def test_every_container_gives_the_corpus_of_the_list(make):
    corpus = as_corpus(make(TEXTS))
    assert list(corpus) == list(map(tuple, TOKENS))
    assert corpus.tokenizer == "white space"


@pytest.mark.parametrize(
    "make",
    [
        iter,
        lambda tokens: pd.Series(tokens),
        lambda tokens: pa.array(tokens, pa.list_(pa.string())),
        lambda tokens: [np.array(row, object) for row in tokens],
        lambda tokens: map(tuple, tokens),
    ],
)
def test_token_lists_come_in_them_too(make):
    corpus = as_corpus(make(TOKENS))
    assert list(corpus) == list(map(tuple, TOKENS))
    assert corpus.tokenizer is None


def test_metrics_and_reports_take_them():
    texts = ["a b c", "b c a", "a c"] * 10
    assert bleu(iter(texts), pd.Series(texts)).tolist() == bleu(texts, texts).tolist()
    models = {"list": texts, "series": pd.Series(texts)}
    found = evaluate(models, np.array(texts), 2)
    given = evaluate(dict.fromkeys(models, texts), texts, 2)
    assert found == given


MISSING = ", a missing value: drop it, or give '' if the model wrote nothing"


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a b", None], f"text 1: expected a string, got NoneType{MISSING}"),
        (pd.Series(["a", np.nan]), f"text 1: expected a string, got float{MISSING}"),
        (pd.Series(["a", None], dtype="string"), f", got NAType{MISSING}"),
        (np.array(["a", 3], object), "text 1: expected a string, got int 3"),
        (pa.array(["a", None]), f"text 1: expected a string, got NoneType{MISSING}"),
        (np.array([b"a b"]), "text 0: expected a string or a list of tokens, got byte"),
        ([1, 2], "text 0: expected a string or a list of tokens, got int 1"),
        ([None, "a"], "text 0: expected a string or a list of tokens, got None"),
        ({"m": ["a b"]}, "got a dict: give one of its values, of 'm'"),
        (UserDict(m=["a b"]), "got a UserDict: give one of its values, of 'm'"),
        ({"a b"}, "got a set, which holds no sentence twice: give all"),
        ({"a b": 0}.keys(), "got a dict_keys, which holds no sentence twice"),
        ("a b", "got one str: put the sentence in a list"),
        (b"a b", "got one bytes: put"),
        (bytearray(b"a b"), "got one bytearray: put"),
        (io.StringIO("a b"), "got the file StringIO: read_corpus reads files"),
        (pd.DataFrame({"text": ["a"]}), r'one column, as in table\["text"\].*: .text'),
        (pa.table({"id": [1], "text": ["a"]}), r"as in table.*there are: 'id', 'text'"),
        (np.array([["a", "b"]]), r"a ndarray of shape \(1, 2\): give one column, or"),
        (3, "expected a Corpus, a list of strings or a list of token lists, got int"),
    ],
)
def test_what_holds_no_texts_is_refused_by_its_place(texts, message):
    with pytest.raises(TypeError, match=message):
        as_corpus(texts)


@pytest.mark.usefixtures("as_a_user")
def test_what_is_split_already_is_not_split_again():
    split = as_corpus(TEXTS, tokenizer="characters", lowercase=True)
    assert as_corpus(split, "keep", "characters", True) is split
    assert as_corpus(split) is split
    message = "tokenizer and lowercase are for strings: these texts came split, by "
    for texts, by in ((split, "characters, lower-cased"), (TOKENS, "the caller")):
        with pytest.raises(ValueError, match=re.escape(message + by)):
            as_corpus(texts, tokenizer="13a")


def test_parts_of_a_corpus_remember_what_split_them():
    corpus = as_corpus(TEXTS, tokenizer="13a")
    parts = corpus[:2], corpus[::2], corpus[np.array([0])]
    assert {part.tokenizer for part in parts} == {"13a"}


# -- tokenizers: those of sacrebleu, and the names that choose them ------------------

SENTENCE = st.lists(
    st.sampled_from([*"ab59 .,-'\"&;()[]{}~`!@#$%^*_+=|\\/:<>?é٣。\u3000\t"])
    | st.sampled_from(["&quot;", "&amp;", "&lt;", "&gt;", "<skipped>", "-", "3.5"])
).map("".join)


@given(SENTENCE)
def test_tokens_are_those_of_sacrebleu(sentence):
    assert mteval_13a(sentence) == Tokenizer13a()(sentence).split()
    assert characters(sentence) == TokenizerChar()(sentence).split()


def test_names_and_functions():
    assert splitter("whitespace") is str.split
    assert splitter("13a", lowercase=True)("It's A-1.") == ["it's", "a-1", "."]
    assert splitter(list)("a b") == ["a", " ", "b"]
    assert described("whitespace") == "white space"
    assert described(mteval_13a, lowercase=True) == "mteval_13a, lower-cased"


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("tokenizer", ["intl", "", None, 3])
def test_other_names_are_refused_with_those_there_are(tokenizer):
    with pytest.raises(ValueError, match="'whitespace', '13a', 'characters' or a fu"):
        splitter(tokenizer)
