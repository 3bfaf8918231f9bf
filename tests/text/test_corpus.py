"""Corpora: lists and slices, the lines of files, and the same in memory and on disk."""

import gzip
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import MODEL
from refusals import refused

from qdtheory.text import as_corpus, read_corpus

TEXTS = [["a", "b", "a"], ["c"], ["b", "d", "a", "a"], ["d"]]

token_lists = st.lists(
    st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=12
).filter(any)


# -- the container -------------------------------------------------------------------


@given(token_lists)
def test_corpus_gives_back_its_sentences(texts):
    whole, corpus = as_corpus(texts), as_corpus(texts, empty="skip")
    kept = [tuple(text) for text in texts if text]
    assert list(whole) == list(map(tuple, texts))
    assert whole.num_empty == corpus.empty_lines == len(texts) - len(kept)
    assert whole.empty_lines == corpus.num_empty == 0
    # A corpus drops them as a list does, and says so.
    assert list(as_corpus(whole, empty="skip")) == list(corpus) == kept
    assert as_corpus(whole, empty="skip").empty_lines == corpus.empty_lines
    assert as_corpus(corpus) is corpus
    assert whole.vocabulary == corpus.vocabulary
    assert corpus.lengths.tolist() == [len(text) for text in kept]
    assert corpus.num_tokens == sum(map(len, kept))
    assert corpus.vocabulary == tuple(dict.fromkeys(t for text in kept for t in text))


@given(
    token_lists,
    st.slices(12),
    st.lists(st.integers(-4, 3), max_size=5),
)
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


def test_strings_and_integers_as_tokens():
    assert list(as_corpus(["a b\ta", "  ", "c"])) == [("a", "b", "a"), (), ("c",)]
    assert list(as_corpus([[3, 1], [1]])) == [(3, 1), (1,)]
    assert list(as_corpus([list(np.array([3, 1]))])) == [(3, 1)]


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (None, TypeError, "a list of token lists, got NoneType"),
        (["a b", ["c"]], TypeError, "text 1 is a list and the first a string"),
        ([["a"], "b c"], TypeError, "text 1 is a string and the first a list"),
        ([["a"], 3], TypeError, "text 1: expected a list of tokens, got int"),
        ([["a"], [1.5]], TypeError, "text 1: a token is a float"),
        ([[["a"]]], TypeError, "text 0: a token is a list"),
        ([], ValueError, "at least one sentence with a token, got none"),
        ([["the cat", "a cat sat"]], TypeError, "share one list of references"),
        (
            [("the cat sat", "a cat"), ("a dog ran", "the dog")],
            *(TypeError, "share one list of references"),
        ),
        (["", " "], ValueError, "at least one sentence with a token"),
        (as_corpus(TEXTS)[2:2], ValueError, "at least one sentence with a token"),
    ],
)
def test_bad_texts(as_a_user, texts, error, message):
    with pytest.raises(error, match=message):
        as_corpus(texts)


def test_a_token_of_two_words_is_a_token():
    assert as_corpus([["New York", "is", "big"]]).vocab_size == 3


# -- lines ---------------------------------------------------------------------------

LINES = [" ".join(map(str, text)) for text in [*MODEL[:30], [], *MODEL[30:]]]
TEXT = "\r\n".join(LINES).encode()
# Without a time stamp: the bytes name the test, and every process must agree on them.
compress = partial(gzip.compress, mtime=0)


def write(tmp_path, content: bytes):
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "sentences", "num_empty"),
    [
        (b"a b\nc\n", ["a b", "c"], 0),
        (b"a b\nc", ["a b", "c"], 0),
        (b"a b\r\nc\r\n", ["a b", "c"], 0),
        (b"\n a b \n\t\n\nc\n", ["", "a b", "", "", "c"], 3),
        (b"a b\n\n", ["a b", ""], 1),
        (b"a b\r\n\r\n", ["a b", ""], 1),
        (b"a b\n ", ["a b", ""], 1),
        ("a b\nc\u2028d\x0ce\n".encode(), ["a b", "c d e"], 0),
        ("h\u00e9 \U0001f600".encode(), ["h\u00e9 \U0001f600"], 0),
        (compress(b"a\nb") + compress(b" c\n"), ["a", "b c"], 0),
    ],
)
def test_read(tmp_path, content, sentences, num_empty):
    path = write(tmp_path, content)
    corpus = read_corpus(path)
    assert [" ".join(text) for text in corpus] == sentences
    assert (corpus.num_empty, corpus.empty_lines) == (num_empty, 0)
    rest = read_corpus(path, empty="skip")
    assert [" ".join(text) for text in rest] == [*filter(None, sentences)]
    assert (rest.num_empty, rest.empty_lines) == (0, num_empty)


def test_read_with_a_tokenizer(tmp_path):
    path = write(tmp_path, b"ab\r\n\nc\n")
    assert list(read_corpus(path, tokenizer=list)) == [("a", "b"), (), ("c",)]
    assert read_corpus(str(path), tokenizer=list, empty="skip").empty_lines == 1


def test_bad_tokenizers(tmp_path, as_a_user):
    path = write(tmp_path, b"a b\nc\n")
    read = partial(read_corpus, path)
    refused(("'whitespace', '13a', 'characters' or a function", read, "words"))
    refused(
        ("line 1: expected a list of tokens, got str", read, str.lower),
        ("line 1: a token is a bytes", read, lambda line: line.encode().split()),
        error=TypeError,
    )
