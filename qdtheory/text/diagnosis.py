"""What `doctor` finds of a pair of metrics, in words."""

from typing import Any

import numpy as np
from jaxtyping import Float

from qdtheory.support.layout import Summary
from qdtheory.support.records import Display, Estimate, Record

# Lots that a test needs.
LEAST_BLOCKS = 6


class Diagnosis(Record, Display):
    """Whether real text beats real text in a pair of metrics; made by `doctor`.

    Attributes:
        quality: the quality's name.
        diversity: the diversity's name.
        correlation: of quality and diversity, over lots of real text of one size.
        deviation: 1 + the correlation of large lots, from two sizes of lots.
        visible: the least such deviation that would have been seen with power .8.
        quality_gain: of a lot of the witness over a lot of fresh real text, against
            fresh references, with an interval of level 1 - 2 alpha.
        diversity_gain: the same of the diversity.
        p_value: of "the witness is not better in both".
        num_blocks: number of lots of either kind in the test.
        concavity: diversity of a lot of which one half is the witness and the other
            fresh, less the mean of both; below 0 if it is not concave.
        witness: the sentences of the witness's lots.
        lots: quality and diversity of each lot of real text.
        lot: number of texts of a lot, and of references of the test.
        alpha: level of the test.
        num_texts: number of sentences given.
        needed: number from which on a gain like that of the witness, or of one standard
            error if it is less, is seen with power .8.
        known: what `check` says of the two metrics by their names; "" of functions.
    """

    quality: str
    diversity: str
    correlation: Estimate
    deviation: Estimate
    visible: float
    quality_gain: Estimate
    diversity_gain: Estimate
    p_value: float
    num_blocks: int
    concavity: Estimate
    witness: tuple[str, ...]
    lots: Float[np.ndarray, "lots 2"]
    lot: int
    alpha: float
    num_texts: int
    needed: int
    known: str = ""

    @property
    def beaten(self) -> bool | None:
        """Whether real sentences, drawn by weights, beat fresh ones in both.

        False if the errors of both cancel as far as can be seen; None if neither can be
        said.
        """
        if self.p_value < self.alpha:
            return True
        unsaid = self.num_blocks < LEAST_BLOCKS
        unsaid |= self.deviation.low > 0 or self.concavity.high < 0
        return None if unsaid else False

    @property
    def verdict(self) -> str:
        """The verdict in a few words."""
        if self.beaten is None:
            return "cannot say"
        return "beaten by real text" if self.beaten else "no deviation found"

    @property
    def reason(self) -> str:
        """The verdict in whole sentences."""
        both, deviation = f"{self.quality} and {self.diversity}", self.deviation
        needed = f"about {float(f'{self.needed:.1e}'):,.0f}"
        if self.num_blocks < LEAST_BLOCKS:
            return (
                f"There are only {self.num_blocks} lots of either kind for the test, "
                f"of at least {LEAST_BLOCKS}: give {needed} texts, or a smaller lot."
            )
        if self.beaten:
            return (
                f"{len(self.witness):,} sentences of real text, drawn by weights from "
                f"text that the search has not seen, are better in both {both} than "
                f"fresh real text, p = {self.p_value:.1g}. So better in both does not "
                "mean closer to real text."
            )
        cancel = (
            f"1 + their correlation is {deviation.value:.2g} in large lots "
            f"({deviation.low:.2g} to {deviation.high:.2g})"
        )
        gains = self.quality_gain, self.diversity_gain
        seen = all(gain.value > gain.standard_error for gain in gains)
        like = "like theirs" if seen else "of one standard error of this test"
        power = f"To see a gain {like}, with power .8, takes {needed} sentences."
        if deviation.low > 0:
            return (
                f"On real text the errors of {both} are not seen to cancel: {cancel}. "
                "Some text may gain in both, or few texts that repeat much may blur "
                "the errors; no weights that were tried gain beyond chance, p = "
                f"{self.p_value:.2g}. {power}"
            )
        if self.concavity.high < 0:
            return (
                f"{self.diversity} is not concave: a mixture of two samples has less "
                "than their mean. Errors that cancel do not show a sound pair then."
            )
        return (
            f"On real text the errors of {both} cancel as far as can be seen: "
            f"{cancel}; {self.visible:.2g} or more would have been seen. No sample "
            f"shows that nothing beats real text. {power}"
        )

    def summary(self) -> Summary:
        """What the names tell, then what the sample adds: reason and numbers."""
        title = f"{self.quality} with {self.diversity}: {self.verdict}."
        added = f"What {self.num_texts:,} real sentences add: {self.verdict}."
        sentences = [added, self.reason] if self.known else [self.reason]

        def between(found: Estimate) -> str:
            return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"

        def gain(found: Estimate) -> str:
            return f"{found.value:+.3g} ± {found.standard_error:.1g}"

        rows = [
            (f"correlation, lots of {self.lot} texts", between(self.correlation)),
            ("1 + correlation of large lots", between(self.deviation)),
            ("seen with power .8 from", f"{self.visible:.2g}"),
            ("gain of the witness in quality", gain(self.quality_gain)),
            ("gain of the witness in diversity", gain(self.diversity_gain)),
            (f"p-value, {self.num_blocks} lots of each", f"{self.p_value:.2g}"),
            ("diversity of a mixture, less the mean", gain(self.concavity)),
        ]
        return self.known or title, sentences, rows

    def _plain(self) -> dict[str, Any]:
        told = {"verdict": self.verdict, "beaten": self.beaten, "reason": self.reason}
        return told | super()._plain()
