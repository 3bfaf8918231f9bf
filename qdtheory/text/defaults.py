"""The settings of these metrics, names and defaults: one set for all that takes them.

Functions, `evaluate` and the command have the same, which docs/what_to_report.md
advises. Nothing heavy is imported here, as the command shows them in its help.
"""

from typing import Final, Literal, TypeAlias

Empty: TypeAlias = Literal["keep", "skip"]
Estimator: TypeAlias = Literal["plug-in", "pairs", "sentence-pairs"]
TokenizerName: TypeAlias = Literal["whitespace", "13a", "characters"]

MAX_ORDER: Final = 4
SMOOTHING: Final = "epsilon"
ESTIMATOR: Final = "pairs"
LEVEL: Final = 0.95
NUM_GROUPS: Final = 20
# The rows that are shown, with their orders, or the highest if this is lower.
ROWS: Final = (
    *(("BLEU", 4), ("Self-BLEU", 4), ("distinct", 2), ("CR", 2), ("NRR", 2)),
    *(("CND", 2), ("CND", 3), ("MS-Jaccard", 2)),
)
# k of distinct_k, where a sample has as many n-grams.
DRAWS: Final = 1000
# Calls of either metric by `doctor`, about.
NUM_CALLS: Final = 450
