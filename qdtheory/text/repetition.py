"""Subsequences that the sentences of a sample, or of two, have in common."""

import numpy as np
from jaxtyping import Float

from qdtheory.text.corpus import Corpus, Texts, as_corpus, common_ids

WORD = 64  # bits of a machine word
BLOCK = 16  # sentences that are compared with all others at once


def pairwise_rouge_l(candidates: Texts) -> float:
    r"""Mean ROUGE-L of two different sentences, also called homogenization.

    $2\,LCS / (a + b)$ for sentences of a and b tokens, averaged over all pairs:
    unbiased for the expectation over two draws, so it does not depend on sample size.
    Lengths of common subsequences come 64 tokens at a time from the carries of one
    addition.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists.

    Returns:
        A number in [0, 1]; an empty sentence has 0 with any other.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: see `as_corpus`; or fewer than two sentences.

    References:
        Lin 2004; Crochemore et al. 2001 for the addition.

    Example:
        >>> round(pairwise_rouge_l(["a b c", "a c", "d"]), 6)
        0.266667
    """
    corpus = as_corpus(candidates)
    if len(corpus) < 2:
        raise ValueError("expected at least two sentences, got one")
    corpus = _longest_first(corpus)
    total = 0.0
    for start in range(0, len(corpus), BLOCK):
        rest = corpus[start:]
        total += np.triu(_rouge_l(rest[:BLOCK], rest), 1).sum()
    return float(2 * total / (len(corpus) * (len(corpus) - 1)))


def rouge_l_scores(candidates: Texts, references: Texts) -> Float[np.ndarray, " texts"]:
    r"""Mean ROUGE-L of each candidate with all references, $2\,LCS / (a + b)$.

    Their mean is unbiased for the expectation over a draw of each side, linear in
    either. Not the highest over references, which grows with their number.

    Args:
        candidates: a `Corpus`, list of strings or list of token lists.
        references: the same; their number does not matter but for chance.

    Returns:
        Numbers in [0, 1]; an empty sentence has 0.

    Raises:
        TypeError, ValueError: see `as_corpus`.

    References:
        Lin 2004.

    Example:
        >>> rouge_l_scores(["a b c", "d"], ["a c", "b d"]).round(3).tolist()
        [0.6, 0.333]
    """
    ours, theirs = as_corpus(candidates), _longest_first(as_corpus(references))
    ids, real_ids = common_ids((ours, theirs))
    kept, own = np.unique(ids[ours.tokens], return_inverse=True)
    real = real_ids[theirs.tokens]
    place = np.searchsorted(kept, real).clip(max=len(kept) - 1)
    real = np.where(kept[place] == real, place, len(kept))  # a word of theirs alone
    words = tuple(range(len(kept) + 1))
    ours = Corpus(own, ours.offsets, words)
    theirs = Corpus(real, theirs.offsets, words)
    blocks = (ours[k : k + BLOCK] for k in range(0, len(ours), BLOCK))
    return np.concatenate([_rouge_l(block, theirs).mean(axis=1) for block in blocks])


def _longest_first(corpus: Corpus) -> Corpus:
    return corpus[np.argsort(-corpus.lengths, kind="stable")]


def _rouge_l(ours: Corpus, theirs: Corpus) -> Float[np.ndarray, "ours theirs"]:
    """ROUGE-L of all pairs; theirs are longest first, and have the same vocabulary."""
    row = np.repeat(np.arange(len(ours)), ours.lengths)
    place = np.arange(ours.num_tokens) - ours.offsets[row]
    words = -(-max(ours.lengths.max(), 1) // WORD)
    bits = np.uint64(1) << (place % WORD).astype(np.uint64)
    masks = np.zeros((words, len(ours), ours.vocab_size), np.uint64)
    np.bitwise_or.at(masks, (place // WORD, row, ours.tokens), bits)
    full = np.zeros((words, len(ours)), np.uint64)
    np.bitwise_or.at(full, (place // WORD, row), bits)
    state = np.full((words, len(ours), len(theirs)), np.uint64(2**64 - 1))
    for t in range(theirs.lengths[0]):
        # Token t of every sentence that has one, which are the first ones.
        size = int((theirs.lengths > t).sum())
        column = theirs.tokens[theirs.offsets[:size] + t]
        _advance(state[..., :size], masks[..., column])
    common = np.bitwise_count(~state & full[..., None]).sum(axis=0, dtype=float)
    return 2 * common / np.maximum(ours.lengths[:, None] + theirs.lengths, 1)


def _advance(state: np.ndarray, match: np.ndarray) -> None:
    """Take in one token of each sentence: V becomes (V + (V & M)) | (V & ~M)."""
    carry = np.zeros(state.shape[1:], np.uint64)
    for v, m in zip(state, match):
        u = v & m
        total = v + u
        overflow = total < v
        total += carry
        carry = (overflow | (total < carry)).astype(np.uint64)
        np.bitwise_or(total, v & ~m, out=v)
