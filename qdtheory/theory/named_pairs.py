"""The verdict on a quality and a diversity by their names.

What is proved for every space comes first; else the compatibility matrix speaks, whose
rows stand in named_pairs.csv with a witness each. Both say over which texts they hold.
"""

import csv
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from qdtheory.formulas.scalar_functions import (
    CR,
    LL,
    NRR,
    SE,
    SingleTokenBleu,
    Tsallis,
)
from qdtheory.metrics.catalogue import Metric, find_order, titled
from qdtheory.pairs.base import SeparablePair
from qdtheory.pairs.named import given_pair
from qdtheory.theory.compatibility import Verdict, check_compatibility
from qdtheory.theory.dominance import Witness
from qdtheory.world.numbers import PerText
from qdtheory.world.records import Record
from qdtheory.world.spaces import TextSpace

# References where none are given: BLEU, Self-BLEU, and exact match beside distinct_10.
REFERENCES = {"BLEU-n": 2, "Self-BLEU-n": 2, "exact match": 9}
OPEN = (
    "Nothing is proved of this pair by its names, and the matrix does not have it: it "
    "has n-grams of orders 1 to 3, BLEU with 1, 2, 10 or 100 references, Self-BLEU with "
    "1 or 2. Give functions or the scores of texts, or try real text with `qdtheory "
    "doctor`."
)


class NamedVerdict(Verdict):
    """The verdict on two metrics by their names.

    Attributes:
        pair: what the names were taken for.
        claims: the ids of the claims that it rests on.
        notes: how the names are meant, where that may differ from what is expected.
        instead: what to report, of either metric.
        texts: the texts that the witness is over, if they have names.
    """

    pair: str = ""
    claims: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


class Named(Record):
    """A metric with the number in its name and its references, None if it has none."""

    metric: Metric
    order: int | None
    references: int | None

    @property
    def key(self) -> tuple[str, str]:
        """Its columns in the table."""
        return titled(self.metric, self.order), str(self.references or "")

    @property
    def title(self) -> str:
        """Its name with all that distinguishes it."""
        name, references = self.key
        return f"{name} of {references} references" if references else name

    @property
    def summand(self) -> Any:
        """The f of U = sum Q_i f(P_i), or g of V = sum g(Q_i), if there is one."""
        match self.metric.name, self.order:
            case ("LL" | "SE" | "CR" | "NRR") as name, None:
                return {"LL": LL, "SE": SE, "CR": CR, "NRR": NRR}[name]
            case "Tsallis", int(order):
                return Tsallis(float(order))
            case "exact match", None:
                return SingleTokenBleu(self.references)
            case "distinct_k", int(k):
                return SingleTokenBleu(k)
        return None


def named(kind: str, name: str, references: int | None = None) -> Named:
    """Read the name of a quality or a diversity; a divergence may stand in its place.

    Raises:
        ValueError: the name is unknown, of the other kind, or lacks an order.
    """
    try:
        metric, order = find_order(name)
    except ValueError as error:
        raise ValueError(
            f"{kind}: {error}; a metric of your own goes in as a function"
        ) from None
    if {metric.kind, kind} == {"quality", "diversity"}:
        raise ValueError(f"{kind}: {name} is a {metric.kind}; name a {kind}")
    slot = re.search(r"(-n|_k)$|^(n-gram [LeE]|Markov-k)", metric.name)
    if slot and order is None:
        raise ValueError(
            f"{kind}: {name} needs an order, such as {titled(metric, 2)!r}"
        )
    default = REFERENCES.get(metric.name)
    if default is None and references is not None:
        raise ValueError(f"{name} has no number of references; leave it out")
    return Named(metric, order, references or default)
