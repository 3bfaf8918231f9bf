r"""Language-model scores: cross-entropy of one side under a model fitted to the other.

Samples have no probabilities, so a fitted model represents the law of one side. The
scores estimate $H(Q, \hat P)$ and $H(P, \hat Q)$ instead of $H(Q, P)$ and $H(P, Q)$ and
include the error of the fitted model. Compare candidates with the same references,
settings and sample sizes, with real text as a baseline candidate, and over several
seeds: training noise can change a reverse score by more than its interval.
"""

from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from qdtheory.lstm import LSTMLanguageModel
from qdtheory.support.records import Estimate, Record
from qdtheory.text.checks import require_whole, tell
from qdtheory.text.corpus import Corpus, Texts, Token, as_corpus
from qdtheory.text.intervals import interval_of
from qdtheory.text.looks import unlike

UNKNOWN = "<unk>"
ROWS = 256


class FittedModel(Record):
    """A language model of a corpus, made by `fit_language_model`.

    Attributes:
        model: the LSTM; its words are the entries of the vocabulary.
        vocabulary: the token of each id. All other tokens are mapped to "<unk>".
        max_length: number of tokens of the longest sentence of the corpus.
        epochs: number of passes over the corpus.
        held_out: cross-entropy on the held-out tenth of the corpus, in nats per token.
    """

    model: LSTMLanguageModel
    vocabulary: tuple[Token, ...]
    max_length: int
    epochs: int
    held_out: float


class LanguageModelScore(Record):
    """Cross-entropy of texts under a fitted model, in nats; lower is better.

    The 95 % intervals are over the texts, for the given fitted model.

    Attributes:
        per_text: mean of -log Q(x).
        per_token: total of -log Q(x) divided by the number of predicted tokens, ends
            included; exp(per_token) is the perplexity.
        unknown: share of the tokens that are not in the model's vocabulary.
    """

    per_text: Estimate
    per_token: Estimate
    unknown: float


def lm_score(
    candidates: Texts, references: Texts, **settings: Any
) -> LanguageModelScore:
    r"""Cross-entropy of model samples under a model of real text: a quality.

    Estimates $H(Q, P) = -\mathrm{LL}$. Repeating one likely sentence is rewarded: the
    score can be below that of real text. For many candidates, fit the references once:
    `cross_entropy_of(candidates, fit_language_model(references))`.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists, at least 2.
        references: real text in the same form.
        **settings: passed to `fit_language_model`.

    Returns:
        Nats per text and per token, with intervals.

    Raises:
        ImportError, TypeError, ValueError, RuntimeError: see `fit_language_model` and
            `cross_entropy_of`.

    References:
        Semeniuta et al. 2018, section 4.1 (LM score); Cifka et al. 2018, equation 2
        (*reverse* cross-entropy).

    Example:
        >>> real = ["a b", "a b c", "a"] * 40
        >>> found = lm_score(["a b", "a d"], real, max_epochs=2)
        >>> found.unknown, bool(found.per_text.value > np.log(3))
        (0.25, True)
    """
    scored = _two_at_least(candidates, "score")
    return cross_entropy_of(scored, fit_language_model(references, **settings))


def reverse_lm_score(
    candidates: Texts, references: Texts, min_count: int = 2, **settings: Any
) -> LanguageModelScore:
    r"""Cross-entropy of real text under a model fitted to model samples.

    Estimates $H(P, Q)$, which is raised by a lack of quality, of diversity or of
    samples. The vocabulary is taken from the references, as in `lm_score`, so it is the
    same for all candidates. A known word that the candidates never use has a finite
    cost, from the softmax of the fitted model, although $H(P, Q)$ would be infinite.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists.
        references: real text in the same form, at least 2 sentences.
        min_count: minimum number of occurrences in the references of a known word.
        **settings: passed to `fit_language_model`.

    Returns:
        Nats per text and per token, with intervals.

    Raises:
        ImportError, TypeError, ValueError, RuntimeError: see `fit_language_model` and
            `cross_entropy_of`.

    References:
        Semeniuta et al. 2018, section 4.1 (reverse LM score); Cifka et al. 2018,
        equation 1 (*forward* cross-entropy).

    Example:
        >>> real = ["a b", "a b c", "a"] * 40
        >>> found = reverse_lm_score(["a b", "a"] * 60, real, max_epochs=2)
        >>> bool(found.per_text.value > np.log(3))
        True
    """
    scored = _two_at_least(references, "score")
    known = known_words(scored, min_count)
    model = fit_language_model(candidates, vocabulary=known, **settings)
    return cross_entropy_of(scored, model)


def known_words(references: Texts, min_count: int = 2) -> tuple[Token, ...]:
    """Select the words with a minimum number of occurrences in real text.

    Args:
        references: a `Corpus`, list of strings or list of token lists.
        min_count: the minimum number of occurrences, at least 1.

    Returns:
        The words, in the order of the corpus's vocabulary.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; `min_count` is below 1, or no word occurs so often.

    Example:
        >>> known_words(["a b", "c b a"])
        ('a', 'b')
    """
    corpus = as_corpus(references)
    require_whole("min_count", min_count)
    counts = np.bincount(corpus.tokens, minlength=corpus.vocab_size)
    found = tuple(compress(corpus.vocabulary, (counts >= min_count).tolist()))
    if not found:
        raise ValueError(
            f"no word occurs {min_count} times in the references: take a lower "
            "min_count, or more references"
        )
    return found


def fit_language_model(
    corpus: Texts,
    *,
    vocabulary: Sequence[Token] | None = None,
    min_count: int = 2,
    max_epochs: int = 30,
    seed: int = 0,
    embedding_size: int = 64,
    hidden_size: int = 64,
    learning_rate: float = 0.01,
    batch_size: int = 32,
) -> FittedModel:
    r"""Fit an LSTM to a corpus with early stopping on held-out sentences.

    `lab.corpora.training.train` runs on nine tenths of the sentences; training stops
    at the first epoch that does not lower the cross-entropy of the held-out tenth, and
    the previous model is returned.

    All words outside the vocabulary are mapped to "<unk>", here and in the texts that
    are scored: they are not distinguished, and cost as much as this corpus's rare words
    together. With `min_count` 1 there are no rare words, and the cost is arbitrary.

    Args:
        corpus: a `Corpus`, list of strings or list of token lists. Empty sentences are
            skipped here and in scores, as the model generates none.
        vocabulary: the known words; None: those of `known_words(corpus, min_count)`.
        min_count: used if `vocabulary` is None.
        max_epochs: maximum number of passes over the corpus.
        seed: seed of the held-out split and of the training.
        embedding_size: width of the embeddings; this and the following as in `train`.
        hidden_size: width of h and c.
        learning_rate: learning rate of Adam.
        batch_size: sentences per step; at most nine tenths of the corpus.

    Raises:
        ImportError: Optax, which the extra `train` installs, is missing.
        TypeError: see `as_corpus`.
        ValueError: too few sentences, no known word, or a number out of range.
        RuntimeError: JAX's 64-bit mode is off.

    Example:
        >>> fitted = fit_language_model(["a b", "a b c", "a"] * 40, max_epochs=2)
        >>> fitted.vocabulary, fitted.max_length, fitted.epochs
        (('a', 'b', 'c', '<unk>'), 3, 2)
    """
    from lab.corpora.training import train

    require_whole("max_epochs", max_epochs)
    corpus = _two_at_least(corpus, "fit a model to")
    words = known_words(corpus, min_count) if vocabulary is None else vocabulary
    corpus = _over(corpus, tuple(dict.fromkeys((*words, UNKNOWN))))
    rest, held_out = _split(corpus, seed)
    max_length = int(corpus.lengths.max())
    best = None
    with TemporaryDirectory() as folder:
        for epochs in range(1, max_epochs + 1):
            model = train(  # continues from the previous epoch's checkpoint
                rest,
                epochs=epochs,
                embedding_size=embedding_size,
                hidden_size=hidden_size,
                learning_rate=learning_rate,
                batch_size=batch_size,
                seed=seed,
                checkpoint=Path(folder, "checkpoint"),
            )
            nats, predictions = _nats(model, held_out, max_length)
            nll = float(nats.sum() / predictions.sum())
            if best is not None and nll >= best.held_out:
                break
            best = FittedModel(model, corpus.vocabulary, max_length, epochs, nll)
    assert best is not None  # there was an epoch
    return best


def cross_entropy_of(texts: Texts, fitted: FittedModel) -> LanguageModelScore:
    r"""Cross-entropy of texts under a fitted model, the mean of $-\log \hat Q(x)$.

    The end of a text is predicted too, except at the greatest length among the texts
    and the corpus that the model was fitted to.

    Args:
        texts: a `Corpus`, list of strings or list of token lists, at least 2.
        fitted: the model $\hat Q$.

    Returns:
        Nats per text and per token, with intervals.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; or fewer than 2 texts, too few for an interval.

    Example:
        >>> fitted = fit_language_model(["a b", "a b c", "a"] * 40)
        >>> found = cross_entropy_of(["a b", "a b c", "a"], fitted)
        >>> bool(abs(found.per_text.value - np.log(3)) < 0.1)
        True
    """
    corpus = _over(_two_at_least(texts, "score"), fitted.vocabulary)
    max_length = max(fitted.max_length, int(corpus.lengths.max()))
    nats, predictions = _nats(fitted.model, corpus, max_length)
    unknown = fitted.vocabulary.index(UNKNOWN)
    return LanguageModelScore(
        per_text=_ratio(nats, np.ones(len(nats))),
        per_token=_ratio(nats, predictions),
        unknown=float((corpus.tokens == unknown).mean()),
    )


def _two_at_least(texts: Texts, use: str) -> Corpus:
    # The model assigns probability 0 to the empty text.
    corpus = as_corpus(texts, empty="skip")
    if len(corpus) < 2:
        raise ValueError(f"expected at least 2 sentences to {use}, got 1")
    return corpus


def _over(corpus: Corpus, vocabulary: tuple[Token, ...]) -> Corpus:
    """Map the corpus to another vocabulary, which contains the unknown word."""
    tell(unlike(corpus.vocabulary, [word for word in vocabulary if word != UNKNOWN]))
    ids = {word: i for i, word in enumerate(vocabulary)}
    renamed = np.array([ids.get(w, ids[UNKNOWN]) for w in corpus.vocabulary], np.int32)
    return Corpus(renamed[corpus.tokens], corpus.offsets, vocabulary)


def _split(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus]:
    """Split into nine tenths, with the longest sentence, and a tenth."""
    longest = int(corpus.lengths.argmax())
    others = np.delete(np.arange(len(corpus)), longest)
    order = np.append(np.random.default_rng(seed).permutation(others), longest)
    num = max(1, len(corpus) // 10)
    return corpus[order[num:]], corpus[order[:num]]


def _nats(
    model: LSTMLanguageModel, corpus: Corpus, max_length: int
) -> tuple[Float[np.ndarray, " texts"], Int[np.ndarray, " texts"]]:
    """-log Q and number of predicted tokens of each text, batched by length."""
    from lab.corpora.training import num_predicted, padded, padded_width

    nats, widths = np.empty(len(corpus)), padded_width(corpus.lengths)
    for width in np.unique(widths):
        rows = np.flatnonzero(widths == width)
        for start in range(0, len(rows), ROWS):
            # Pad to the compiled size by repetition.
            part = np.resize(rows[start : start + ROWS], ROWS)
            table = padded(corpus[part], max_length)
            nats[part] = -np.asarray(model.log_probability(table))
    return nats, num_predicted(corpus, max_length)


def _ratio(nats: np.ndarray, units: np.ndarray) -> Estimate:
    """Ratio of two totals over texts, with an interval by the delta method."""
    value = float(nats.sum() / units.sum())
    error = float((nats - value * units).std(ddof=1) / units.mean() / len(nats) ** 0.5)
    return interval_of(value, error**2, degrees=np.inf)
