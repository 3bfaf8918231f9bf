"""The form of a pair: separable or linear, with scores that are known to be sound."""

import numpy as np

from qdtheory.pairs.base import LinearPair, Pair, expected_score
from qdtheory.pairs.bleu import BleuPair
from qdtheory.pairs.concave import ConcavePair
from qdtheory.pairs.named import single_token_bleu_pair
from qdtheory.pairs.separable import SeparablePair


def separable_form(pair: Pair) -> SeparablePair | LinearPair | None:
    """Return the pair as scores and a sum of g(Q_i), if it has that form.

    Args:
        pair: any pair.

    Returns:
        The pair itself, an equal separable pair (BLEU on texts of one n-gram), or
        None.
    """
    if isinstance(pair, SeparablePair | LinearPair):
        return pair
    if (
        isinstance(pair, BleuPair)
        and pair.smoothing is None
        and pair.space.lengths == (pair.max_order,)
    ):
        # The n-gram of the whole text matches only where the text is a reference.
        return single_token_bleu_pair(
            int(pair.num_references), int(pair.num_self_references)
        )
    return None


def checked_scores(
    pair: SeparablePair | LinearPair | ConcavePair, p: np.ndarray
) -> np.ndarray:
    """Return the score of each text, after checking that U(P; P) is finite.

    Args:
        pair: a pair with quality linear in Q.
        p: the real distribution, shape (N,).

    Returns:
        Scores of shape (N,), finite or minus infinity.

    Raises:
        ValueError: the quality of P is not finite, or a score is NaN or +inf.
    """
    scores = np.asarray(pair.text_quality(p))
    if not np.isfinite(expected_score(p, scores)) or not (scores < np.inf).all():
        raise ValueError(
            "the quality of P itself must be finite, and no score NaN or +inf; the "
            "pair's scores are not so at this p"
        )
    return scores
