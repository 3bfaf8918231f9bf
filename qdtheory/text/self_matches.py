"""Matches of Self-BLEU, and those that are lost without a group of sentences.

A sentence is matched with all others of its text: each of its counts is clipped at the
largest of theirs. Without group h sentence s, of another group, matches an n-gram less
often only if all other sentences that have it as often as s are in h. That is true of
at most one group, which the largest counts of the n-gram tell.
"""

import numpy as np
from jaxtyping import Int

from qdtheory.text.postings import changes


def self_matches(
    ngram: np.ndarray, sentence: np.ndarray, times: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Match each n-gram of a sentence with the other sentences.

    Takes postings: the n-gram, ascending, its sentence and its times there, and the
    group of the sentence. Returns the matches of each; and those that a sentence loses
    without a group of others: the sentence, the group, and how many.

    Example:
        >>> postings = np.array([[0, 0, 1], [0, 1, 1], [3, 2, 1], [0, 1, 1]])
        >>> matches, lost = self_matches(*postings)
        >>> matches.tolist(), [column.tolist() for column in lost]
        ([2, 2, 0], [[0, 1], [1, 0], [2, 2]])
    """
    new = changes(ngram)
    first, which = np.flatnonzero(new), np.cumsum(new, dtype=np.int32) - np.int32(1)
    alike = clipped_at_others(times, first, which)
    # A sentence with fewer than three groups have finds others in one of them.
    third = _third(times, np.flatnonzero(new | changes(groups)), new)
    several = np.diff(first, append=len(times)) > 1
    kept = np.flatnonzero((times > third[which]) & several[which])
    which = which[kept]
    lost = _lost(which, sentence[kept], groups[kept], times[kept], third[which])
    return alike, lost


def clipped_at_others(
    times: np.ndarray, first: np.ndarray, ngram: np.ndarray
) -> Int[np.ndarray, " postings"]:
    """Clip the times of an n-gram in each sentence at the most in another sentence.

    That is the largest number or, if the sentence alone attains it, the second largest.
    """
    top = times == np.maximum.reduceat(times, first)[ngram]
    second = np.maximum.reduceat(np.where(top, 0, times), first)
    alone = top & (np.add.reduceat(top, first, dtype=int) == 1)[ngram]
    return np.where(alone, second[ngram], times)


def _third(times: np.ndarray, starts: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The third largest of the groups' largest counts of each n-gram, 0 without one."""
    most = np.maximum.reduceat(times, starts).astype(np.int64)
    new = new[starts]
    first, ngram = np.flatnonzero(new), np.cumsum(new) - 1
    # Counts that are all different, of which two are struck out.
    codes = (most << 32) + np.arange(1, len(most) + 1)
    for _ in range(2):
        codes[codes == np.maximum.reduceat(codes, first)[ngram]] = 0
    return (np.maximum.reduceat(codes, first) >> 32).astype(times.dtype)


def _lost(
    which: np.ndarray,
    owner: np.ndarray,
    groups: np.ndarray,
    times: np.ndarray,
    third: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sentences that match an n-gram less without a group, the group, how much less.

    Let f be the first of the sentences by their counts. Any other sentence can only
    miss the group of f. Then it is clipped at the largest count outside this group,
    itself left out. f misses the group of the first of the others. The postings are
    those above the third largest count of a group, which remains in any case.
    """
    new = changes(which)
    first, which = np.flatnonzero(new), np.cumsum(new) - 1
    position = np.arange(len(which))
    # Counts that are all different; 0 is nobody's.
    codes = (times.astype(np.int64) << 32) + position + 1

    def best(codes: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(codes, first)

    leader = best(codes)
    group = groups[(leader & (2**32 - 1)) - 1]
    leads = codes == leader[which]
    outside = np.where(groups == group[which], 0, codes)
    one = best(outside)
    other = best(np.where(outside == one[which], 0, outside))
    clip = np.where(codes == one[which], other[which], one[which]) >> 32
    clip = np.maximum(clip, third)
    losses = np.where(outside > 0, times - np.minimum(times, clip), 0)
    missed = group[which]

    rest = np.where(leads, 0, codes)
    follower = best(rest)
    following = groups[(follower & (2**32 - 1)) - 1]
    away = best(np.where(groups == following[which], 0, rest)) >> 32
    away = np.maximum(away, third[first])
    fewer = np.where(following == group, 0, (follower >> 32) - away)
    losses[leads], missed[leads] = np.maximum(fewer, 0), following
    kept = np.flatnonzero(losses)
    return owner[kept].astype(np.int64), missed[kept], losses[kept]
