"""Tokenizers: sacrebleu's "13a", characters, and the names that choose them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar

from qdtheory.text.tokenizers import characters, described, mteval_13a, splitter

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
