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
from qdtheory.pairs.bleu import BleuPair
from qdtheory.pairs.named import given_pair
from qdtheory.theory.compatibility import Verdict, check_compatibility
from qdtheory.theory.dominance import Witness
from qdtheory.world.numbers import PerText
from qdtheory.world.records import Record
from qdtheory.world.spaces import TextSpace

# References where none are given: BLEU, Self-BLEU, and exact match beside distinct_10.
REFERENCES = {"BLEU-n": 2, "Self-BLEU-n": 2, "exact match": 9}
# What a formula of x has, and no name.
FORMULA = r"(?i)[()*/]|(?<![a-z])[xpq](?![a-z])|^[-\d.]+$|^-(LL|CR|SE|NRR|SDI)$"
OPEN = (
    "Nothing is proved of this pair by its names, and it is not in the matrix, which "
    "has BLEU-1 to 3 of 1, 2, 10 or 100 references, Self-BLEU-1 and 2 of 1 or 2, "
    "Distinct, CR and NRR of orders 1 and 2. Give functions or the scores of texts, or "
    "try real text with `qdtheory doctor`."
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
    if slot and order is None and metric.kind == kind:
        raise ValueError(
            f"{kind}: {name} needs an order, such as {titled(metric, 2)!r}"
        )
    default = REFERENCES.get(metric.name)
    if default is None and references is not None:
        raise ValueError(f"{name} has no number of references; leave it out")
    return Named(metric, order, references or default)


def check_names(
    quality: str,
    diversity: str,
    p: PerText | None = None,
    *,
    num_texts: int | None = None,
    references: int | None = None,
    self_references: int | None = None,
) -> NamedVerdict:
    """Decide a pair by the names of its metrics, as the catalogue has them.

    A pair of sums of f(P_i) and g(Q_i) is decided by Theorem 3; BLEU and Self-BLEU of
    one order by the classification of their settings; a metric and its partner, or one
    that has none, by what the catalogue says; any other by the compatibility matrix.

    Args:
        quality: any name of a quality, such as "ROUGE-L" or "perplexity".
        diversity: any name of a diversity, such as "distinct-2" or "Self-BLEU".
        p: the real distribution, for a pair that Theorem 3 decides.
        num_texts: N, for such a pair.
        references: n, of BLEU (by default 2) or of exact match (9).
        self_references: k, of Self-BLEU (2).

    Returns:
        The verdict, over which texts it holds, and a witness where there is one.

    Raises:
        ValueError: a name is unknown, of the other kind or without its order, or a
            number is given that does nothing.

    References:
        Li et al. 2020, Theorem 3 and section 5.1.

    Claims: T3.2, N14.1, N14.15, N25.20.

    Example:
        >>> verdict = check_names("perplexity", "TTR")
        >>> verdict.pair, verdict.status, verdict.texts[:2]
        ('LL and Distinct-1', 'incompatible', ('a a a', 'a a b'))
    """
    u = named("quality", quality, references)
    v = named("diversity", diversity, self_references)
    row = matrix().get((*u.key, *v.key))
    separable = u.summand is not None and v.summand is not None
    if not separable and not (p is None is num_texts):
        raise ValueError(
            "p and num_texts are for pairs of sums such as LL and SE; names of other "
            "metrics stand for all spaces, so leave them out"
        )
    beaten, texts = _witness(u, v, row)
    if separable:
        pair = SeparablePair(u.summand, v.summand)
        verdict = check_compatibility(pair, p, num_texts=num_texts)
        if p is not None or num_texts is not None or beaten is None:
            beaten, texts = verdict.witness, ()
        found, claims = vars(verdict), ("T3.2", "T3.9")
    else:
        compatible, reason, claims = _stated(u, v) or _tabulated(row)
        found = {"compatible": compatible, "reason": reason}
    return NamedVerdict(
        **found | {"witness": beaten if found["compatible"] is False else None},
        pair=f"{u.title} and {v.title}",
        claims=claims,
        notes=tuple(filter(None, (u.metric.note, v.metric.note))),
        instead=tuple(dict.fromkeys((u.metric.beside, v.metric.beside))),
        texts=texts,
    )


Found = tuple[bool | None, str, tuple[str, ...]]


def _stated(u: Named, v: Named) -> Found | None:
    """What holds of a pair in every space, or in those that the reason names."""
    for x in (u, v):
        if x.metric.kind in ("divergence", "both in one"):
            why = f"{x.title} is no metric of a pair. {x.metric.verdict}"
            return None, why, x.metric.claims
    if _one_bleu(u, v):
        return _bleu(u.order, u.references, v.references)
    if u.order == v.order and u.metric.partner == v.metric.name:
        return True, u.metric.verdict, u.metric.claims[:3]
    for x in (v, u):
        if x.metric.status == "incompatible":
            return False, f"{x.title}: {x.metric.verdict}", x.metric.claims[:3]
    return None


def _bleu(n: int, r: int, k: int) -> Found:
    """The classification of BLEU with Self-BLEU, proved at `bleu_1_setting`."""
    compatible = n == r == k == 1
    match n, r, k:
        case 1, 1, 1:
            where = "no model beats any P"
        case 1, (1 | 2), (1 | 2):
            where = "some P are beaten over 3 words or more, none over 2"
        case 1, _, _:
            where = "some P are beaten: over 3 words or more, and 2 from 2 tokens on"
        case _, 1, 1:
            where = f"some P are beaten from {n + 1} tokens on, none at {n} tokens"
        case _:
            where = f"some P are beaten from {n} tokens on"
    why = f"Over all texts of one length, without smoothing, {where}."
    return compatible, why, ("N25.20", "N25.21", "N25.22")


def _tabulated(row: dict[str, str] | None) -> Found:
    if row is None:
        return None, OPEN, ()
    space = "Over all texts of 4 words and 3 tokens"
    if row["setting"]:
        space += f" ({row['setting']})"
    if row["verdict"] == "compatible":
        return True, f"{space} no model beats any P: {row['basis']}.", (row["claim"],)
    how = f"each of the {row['beaten']} random language models tried as P"
    return False, f"{space} a model beats {how} ({row['basis']}).", (row["claim"],)


@lru_cache(maxsize=1)
def matrix() -> dict[tuple[str, ...], dict[str, str]]:
    """The compatibility matrix, by the names and references of both metrics."""
    text = Path(__file__).with_suffix(".csv").read_text("utf-8")
    rows = csv.DictReader(x for x in text.splitlines() if not x.startswith("#"))
    keys = "quality", "references", "diversity", "self_references"
    return {tuple(row[key] for key in keys): row for row in rows}


def _witness(
    u: Named, v: Named, row: dict[str, str] | None
) -> tuple[Witness | None, tuple[str, ...]]:
    """A model that beats a P, from the table or of BLEU, and the texts of both."""
    if row is not None and row["words"]:
        p, q = (np.array(row[x].split(), float) for x in ("real", "model"))
        gains = float(row["quality_gain"]), float(row["diversity_gain"])
        found = Witness(p / p.sum(), q / q.sum(), *gains)
        space = TextSpace(int(row["words"]), 3)
    elif row is None and _one_bleu(u, v) and u.order <= 6:
        r, k = u.references, v.references
        space = TextSpace(2 + (u.order == 1), u.order + (r == k == 1))
        found = check_compatibility(BleuPair(space, u.order, r, k)).witness
    else:
        return None, ()
    return found, tuple(" ".join("abc"[i] for i in text) for text in space.tokens)


def _one_bleu(u: Named, v: Named) -> bool:
    names = u.metric.name, v.metric.name
    return names == ("BLEU-n", "Self-BLEU-n") and u.order == v.order


def check(
    quality: Any,
    diversity: Any = None,
    p: PerText | None = None,
    *,
    num_texts: int | None = None,
    stated: str | None = None,
    references: int | None = None,
    self_references: int | None = None,
) -> Verdict:
    """Decide whether the real distribution can be beaten in both metrics at once.

    The pair is given as to the command `qdtheory check`; see `check_compatibility` for
    what the verdict means, and `check_names` for metrics by their names.

    Args:
        quality: a pair; the name of one ("LL-SE"); the name of a metric ("ROUGE-L"); f,
            as a formula in x ("log(x)") or a function of one argument; U(q, p), a
            function of two; or the score of each text as numbers.
        diversity: to a pair or its name nothing; to a metric's name another
            ("distinct-2"); to f or scores g, as a formula or function; to U(q, p)
            V(q), a function of the whole distribution.
        p: the real distribution to test at, shape (N,), without zeros.
        num_texts: N, if no `p` is given.
        stated: as in `check_compatibility`.
        references: of BLEU or exact match by name.
        self_references: of Self-BLEU by name.

    Returns:
        The verdict with its reason; of two names a `NamedVerdict`.

    Raises:
        TypeError: one of both is missing or of another kind, or JAX cannot trace it.
        ValueError: a text is no name and no formula, scores are not numbers, or as in
            `check_compatibility` and `check_names`.

    References:
        Li et al. 2020, Theorem 3.

    Example:
        >>> check("log(x)", "-x*log(x)").compatible
        True
        >>> check("log(x)", "-x**2").compatible, check("CR-NRR").compatible
        (False, True)
        >>> check("BLEU-4", "Self-BLEU-4").reason[-50:]
        'out smoothing, some P are beaten from 4 tokens on.'
    """
    pair = quality, diversity
    if all(isinstance(x, str) and not re.search(FORMULA, x) for x in pair):
        numbers = {"references": references, "self_references": self_references}
        return check_names(quality, diversity, p, num_texts=num_texts, **numbers)
    if not (references is None is self_references):
        raise ValueError("references and self_references are for BLEU by its name")
    return check_compatibility(given_pair(*pair), p, num_texts=num_texts, stated=stated)
