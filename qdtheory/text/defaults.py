"""The settings of this wing, their names and defaults: one set for all that takes them.

Functions, `evaluate` and the command have the same, which docs/what_to_report.md
advises. Nothing heavy is imported here, as the command shows them in its help.
"""

from dataclasses import dataclass
from math import inf
from typing import Any, Final, Literal, TypeAlias

Empty: TypeAlias = Literal["keep", "skip"]
Estimator: TypeAlias = Literal["plug-in", "pairs", "sentence-pairs"]
TokenizerName: TypeAlias = Literal["whitespace", "13a", "characters"]

MAX_ORDER: Final = 4
SMOOTHING: Final = "epsilon"
ESTIMATOR: Final = "pairs"
LEVEL: Final = 0.95
NUM_GROUPS: Final = 20
# k of distinct_k, where a sample has as many n-grams.
DRAWS: Final = 1000
# Calls of either metric by `doctor`, about.
NUM_CALLS: Final = 450


@dataclass(frozen=True)
class Requested:
    """A metric of one sample that `evaluate` adds if asked.

    Attributes:
        function: its name in `qdtheory.text`.
        bounds: the ends of its range.
        lower: whether less is better.
    """

    function: str
    bounds: tuple[Any, Any]
    lower: bool = False


# By their names in the catalogue. The compression ratio is not among them: it changes
# with the order of the sentences, so that a jackknife over these is too wide.
REQUESTED = {
    "n-gram diversity": Requested("ngram_diversity", (0, MAX_ORDER)),
    "self-repetition": Requested("self_repetition", (0, inf), lower=True),
    "pairwise ROUGE-L": Requested("pairwise_rouge_l", (0, 1), lower=True),
}
