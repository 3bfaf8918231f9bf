"""All metrics of a corpus at once, without intervals, as a function."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from qdtheory.bleu_formula import Smoothing
from qdtheory.text.corpus import Corpus, Texts, as_corpus
from qdtheory.text.defaults import ESTIMATOR, MAX_ORDER, SMOOTHING, Estimator
from qdtheory.text.leave_out import group_scores, metrics_of_sums
from qdtheory.text.partial_sums import partial_sums


def every_metric(
    references: Texts,
    max_order: int = MAX_ORDER,
    smoothing: Smoothing = SMOOTHING,
    estimator: Estimator = ESTIMATOR,
) -> Callable[[Corpus], Float[np.ndarray, "kinds orders"]]:
    """Build a function from candidates to all metrics: rows `KINDS`, columns orders."""
    real, averaged = as_corpus(references), estimator == "sentence-pairs"

    def metrics(corpus: Corpus) -> Float[np.ndarray, "kinds orders"]:
        settings: Any = {"averaged": averaged, "num_groups": 1}
        sums = partial_sums({"": corpus}, real, max_order, **settings)
        totals = sums.totals
        of = totals.lengths[""], totals.reference_lengths, smoothing
        scores = group_scores(enumerate(sums.blocks[""]), *of)
        return metrics_of_sums(totals, "", scores, estimator)[..., 0]

    return metrics
