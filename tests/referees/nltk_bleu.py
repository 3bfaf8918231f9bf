"""BLEU by NLTK, of several orders at once."""

import warnings

import numpy as np
from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu


def nltk_bleu(references_of, candidates, max_order, smoothing) -> np.ndarray:
    """BLEU of orders 1 to max_order, counts pooled over the candidates."""
    weights = [(1 / n,) * n for n in range(1, max_order + 1)]
    method = SmoothingFunction().method1 if smoothing else None
    with warnings.catch_warnings():  # NLTK warns where an order has no match
        warnings.simplefilter("ignore")
        return np.array(corpus_bleu(references_of, candidates, weights, method))


def nltk_scores(references_of, candidates, max_order, smoothing) -> np.ndarray:
    """Sentence scores, which NLTK gives as its `corpus_bleu` of one sentence."""
    return np.array(
        [
            nltk_bleu([references], [candidate], max_order, smoothing)
            for references, candidate in zip(references_of, candidates, strict=True)
        ]
    )


def others(texts) -> list[list]:
    """All other texts, for each text, as Self-BLEU has them."""
    return [[*texts[:i], *texts[i + 1 :]] for i in range(len(texts))]
