"""IMDB: its sentences and tokens, and which reviews are taken."""

import pytest

from qdtheory.text import datasets, imdb


def test_imdb_sentences_and_tokens():
    review = 'A "bad" film.<br /><br />(It isn\'t.) Really? Rated 8.5 by me!\n1 star'
    assert datasets._sentences(review) == [
        'A "bad" film.',
        "(It isn't.) Really?",
        "Rated 8.5 by me!",
        "1 star",
    ]
    assert datasets._TOKEN.findall("it isn't 'so' bad...") == (
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
    monkeypatch.setattr(datasets, "_path", lambda: path)
    said = ("he", "said", '"', "no", '"', ".")
    assert list(imdb(1)) == [("one", ",", "two", "."), said]
    assert [text[0] for text in imdb(2)] == ["one", "three", "he"]
    assert [text[0] for text in imdb(None)] == ["one", "three", "four", "he"]


def test_imdb_bad_input(monkeypatch):
    with pytest.raises(ValueError, match="expected a whole number from 1 on, got 0"):
        imdb(0)
    monkeypatch.setattr(datasets, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "qdtheory\[text\]"'):
        imdb()
