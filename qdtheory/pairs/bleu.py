"""Expected BLEU and negative Self-BLEU as a pair."""

from dataclasses import dataclass, field
from typing import Any

import jax

from qdtheory.metrics.bleu import bleu_table, check_references, text_bleu
from qdtheory.metrics.bleu_formula import Smoothing
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import STATIC, Number, PerText, Scalar, TextArray
from qdtheory.world.spaces import TextSpace, require_space


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BleuPair:
    """Expected BLEU as quality, negative expected Self-BLEU as diversity.

    Args:
        space: the texts, of one or several lengths.
        max_order: highest order of the n-grams; both metrics are of this order.
        num_references: n, references drawn from P for quality.
        num_self_references: k, references drawn from Q for diversity.
        smoothing: None, or "epsilon".
        table: filled in from the space; an array field, so that compiled code takes
            it as an argument.

    Raises:
        ValueError: as in `expected_bleu`.

    References:
        Li et al. 2020, section 5.1.

    Claims: N7.15, N8.13, N8.14, N8.15, N16.27.

    Example:
        >>> import numpy as np
        >>> from qdtheory import TextSpace
        >>> pair = BleuPair(TextSpace(vocab_size=2, lengths=1), max_order=1)
        >>> p = np.array([0.5, 0.5])
        >>> float(pair.quality(p, p)), float(pair.diversity(p))
        (0.75, -0.75)
    """

    space: TextSpace = field(metadata=STATIC)
    max_order: int = field(default=2, metadata=STATIC)
    num_references: Number = 2
    num_self_references: Number = 2
    smoothing: Smoothing = field(default=None, metadata=STATIC)
    table: Any = None

    def __post_init__(self) -> None:
        require_space(self.space)
        check_references("num_references", self.num_references)
        check_references("num_self_references", self.num_self_references)
        if self.table is None:
            table = bleu_table(self.space, self.max_order, self.smoothing)
            object.__setattr__(self, "table", table)

    @property
    def name(self) -> str:
        """Display name, with the order of both metrics."""
        return f"BLEU-NSBLEU of order {self.max_order}"

    def text_quality(self, p: PerText) -> TextArray:
        """Expected BLEU of each text given the real `p`, shape (num_texts,)."""
        p = check_distribution(p, "p", self.space.num_texts)
        return text_bleu(self.table, p, self.num_references)

    def quality(self, q: PerText, p: PerText) -> Scalar:
        """Expected BLEU of the model `q` given the real `p`."""
        return check_distribution(q, "q", self.space.num_texts) @ self.text_quality(p)

    def diversity(self, q: PerText) -> Scalar:
        """Minus the expected Self-BLEU of the model `q`."""
        q = check_distribution(q, "q", self.space.num_texts)
        return -q @ text_bleu(self.table, q, self.num_self_references)
