"""The defaults of this wing: one set for its functions, `evaluate` and the command.

They are the settings that docs/what_to_report.md advises. Nothing is imported here, as
the command shows them in its help.
"""

from typing import Final

MAX_ORDER: Final = 4
SMOOTHING: Final = "epsilon"
ESTIMATOR: Final = "pairs"
LEVEL: Final = 0.95
NUM_GROUPS: Final = 20
# k of distinct_k, where a sample has as many n-grams.
DRAWS: Final = 1000
