"""The verdict on a quality and a diversity by their names.

What is proved for every space comes first; else the compatibility matrix speaks, whose
rows stand in named_pairs.csv with a witness each. Both say over which texts they hold.
"""

import csv
import re
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from qdtheory.beaten import Witness
from qdtheory.catalogue.metrics import Metric, find_order, titled
from qdtheory.compatibility import Verdict, check_compatibility
from qdtheory.distributions import require_x64
from qdtheory.pairs import distinct_k_pair, given_pair, named_pairs
from qdtheory.support.layout import MOST, Summary, number
from qdtheory.support.numbers import PerText
from qdtheory.support.records import Record

# References where none are named: those of BLEU, and of exact match beside distinct_10.
REFERENCES = {"BLEU-n": "2", "Self-BLEU-n": "2", "exact match": "9"}
NUMBERED = r"(?s)(.*?)(?: of ([1-9]\d*) references?)?\Z"
# Names that say nothing without the order of their n-grams or number of draws.
ORDERED = ".*(BLEU-n|Distinct-n|distinct_k|n-gram LL|n-gram entropy|Markov-k LL)"
# What a formula of x has, and the name of a metric has not.
FORMULA = r"(?i)[()*/]|(?<![a-z])[xpq](?![a-z])|^[-\d.]*$|^-(LL|CR|SE|NRR|SDI)$"
# Over some texts a pair is compatible, over others incompatible.
CONDITIONAL: dict[str, Any] = {"compatible": None, "status": "conditional"}
OPEN = (
    "Nothing is proved of this pair by its names, and the matrix has other orders and "
    "numbers of references. Give functions or scores, or try `qdtheory doctor`."
)


class NamedVerdict(Verdict):
    """The verdict on two metrics by their names; its reason names claims.

    Where a theorem decides that a pair is incompatible, it may have no witness.

    Attributes:
        pair: what the names were taken for.
        notes: how names are meant, where that may differ from what is expected, and
            what they leave open.
        instead: what to report, of either metric.
        texts: the texts that the witness is over, if they have names.
    """

    pair: str = ""
    notes: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def summary(self) -> Summary:
        """What the verdict says, and of a rival the texts whose shares differ most."""
        title, sentences, facts = super().summary()
        title = f"{title}: {self.pair}"
        sentences = [*sentences, *self.notes, *self.instead]
        if not (beats := self.witness):
            return title, sentences, facts
        gains = f"{beats.quality_gain:.3g}, diversity {beats.diversity_gain:.3g}"
        sentences += [f"A rival Q of this P gains in quality {gains}:"]
        names = self.texts or [*map(str, range(len(beats.q)))]
        moved = np.argsort(-np.abs(beats.q - beats.p), kind="stable")[:MOST].tolist()
        shares = (
            (names[i], f"P {number(beats.p[i])}, Q {number(beats.q[i])}") for i in moved
        )
        return title, sentences, [*shares]


class NamedMetric(Record):
    """A metric by its name, with its order and references; "" if it has none."""

    metric: Metric
    order: int | None
    name: str
    references: str
    title: str


def parsed(name: str) -> tuple[str, str]:
    """A name without its number of references, and the number, "" if it has none."""
    return re.findall(NUMBERED, name)[0]


def read_metric(kind: str, given: str) -> NamedMetric:
    """Read the name of a quality or a diversity, or of what cannot be in a pair.

    Raises:
        ValueError: the name is unknown, of the other kind, or lacks its order.

    Example:
        >>> read_metric("quality", "bleu 2").title
        'BLEU-2 of 2 references'
        >>> read_metric("quality", "BLEU-2 of 10 references").title
        'BLEU-2 of 10 references'
    """
    stem, number = parsed(given)
    metric, order = find_order(stem)
    name, default = titled(metric, order), REFERENCES.get(metric.name, "")
    if {metric.kind, kind} == {"quality", "diversity"}:
        raise ValueError(f"{kind}: {given} is a {metric.kind}; name a {kind}")
    if not order and re.fullmatch(ORDERED, metric.name) and name != "Markov-0 LL":
        raise ValueError(f"{kind}: {given} needs an order: {titled(metric, 2)}, ...")
    if number and not default:
        raise ValueError(f"{kind}: {stem} has no number of references; leave it out")
    title, number = stem if metric.status == "none" else name, number or default
    title += f" of {number} reference{'s' * (number != '1')}" * bool(number)
    return NamedMetric(metric, order, name, number, title)


def check_names(quality: str, diversity: str) -> NamedVerdict:
    """Decide a pair by the names of its metrics, as the catalogue has them.

    LL-SE and the like, and exact match with distinct_k, are decided by Theorem 3; BLEU
    and Self-BLEU of one order by the classification of their settings; a metric and its
    partner, or one that has none, by what the catalogue says; any other by the matrix.

    Example:
        >>> verdict = check_names("perplexity", "TTR")
        >>> verdict.pair, verdict.status, verdict.texts[:2]
        ('LL and Distinct-1', 'incompatible', ('a a a', 'a a b'))
    """
    u, v = read_metric("quality", quality), read_metric("diversity", diversity)
    row = matrix().get((u.name, u.references, v.name, v.references), {})
    known = _proved(u, v) or _stated(u, v) or _found(None, OPEN)
    if row and known["reason"] == OPEN:
        says = f"Over all texts of 4 words and 3 tokens {row['says']}."
        known = _found(False, says, row["claim"])
        if row["verdict"] == "compatible":  # BLEU of whole texts, over no other length
            known |= CONDITIONAL
    if row.get("words") and known["compatible"] is not True:
        known |= _witness(row)
    here = row.get("setting") and f"Here {row['setting']}."
    return NamedVerdict(
        **known,
        pair=f"{u.title} and {v.title}",
        notes=tuple(filter(None, (u.metric.note, v.metric.note, here))),
        instead=tuple(f"{x.title}: {x.metric.beside}" for x in (u, v)),
    )


def _found(compatible: bool | None, reason: str, *claims: str) -> dict[str, Any]:
    shown = f" ({', '.join(claims[:3])})" if claims else ""
    return {"compatible": compatible, "reason": f"{reason}{shown}"}


def _proved(u: NamedMetric, v: NamedMetric) -> dict[str, Any] | None:
    """What Theorem 3 proves of a pair of sums of f(P_i) and g(Q_i)."""
    pair = named_pairs().get(f"{u.name}-{v.name}")
    if (u.metric.name, v.metric.name) == ("exact match", "distinct_k"):
        pair = distinct_k_pair(int(v.order or 0), int(u.references))
    if pair is None:
        return None
    verdict = check_compatibility(pair)
    claim = "T3.1" if verdict.compatible else "T3.9"
    return vars(verdict) | {"reason": f"{verdict.reason} ({claim})"}


def _stated(u: NamedMetric, v: NamedMetric) -> dict[str, Any] | None:
    """What holds of a pair in every space, or in those that the reason names."""
    for x in (u, v):
        if x.metric.status in ("none", "a divergence"):
            return _found(None, f"{x.title}: {x.metric.verdict}", *_claims(x))
    if u.order == v.order and f"Self-{u.metric.name}" == v.metric.name:
        over = u.metric.verdict.removeprefix("Conditional: over")
        here = f"Here n = {u.order}, with {u.references} and {v.references} references:"
        known, so = _bleu(int(u.order or 0), int(u.references), int(v.references))
        found = _found(known, f"Over{over} {here} {so}.", "N25.20", "N25.21", "N25.22")
        return found | CONDITIONAL if known is None else found
    if u.order == v.order and u.metric.partner == v.metric.name:
        return _found(True, u.metric.verdict, *_claims(u))
    for x in (v, u):
        if x.metric.status == "incompatible":
            lack = x.metric.verdict.replace("Incompatible", f"{x.title} has no partner")
            return _found(False, lack, *_claims(x))
    return None


def _bleu(n: int, r: int, k: int) -> tuple[bool | None, str]:
    """Where BLEU and Self-BLEU are compatible, by `compatibility.bleu_1_setting`."""
    if r == k == 1 < n:
        return None, f"compatible at L = {n}, incompatible from L = {n + 1} on"
    if r == k == 1:
        return True, "compatible at every L"
    if n == 1 and k <= 3:
        where = "of two words" if max(r, k) < 3 else "of one token, over two words"
        return None, f"compatible over texts {where}, incompatible over any others"
    return False, "incompatible at every L"


def _claims(x: NamedMetric) -> tuple[str, ...]:
    """Claims of the verdict itself, where they are told apart."""
    return x.metric.shown_by or x.metric.claims


@lru_cache(maxsize=1)
def matrix() -> dict[tuple[str, ...], dict[str, str]]:
    """The compatibility matrix, by the names and references of both metrics."""
    text = Path(__file__).with_suffix(".csv").read_text("utf-8")
    rows = csv.DictReader(x for x in text.splitlines() if not x.startswith("#"))
    return {tuple(row.values())[:4]: row for row in rows}


def _witness(row: dict[str, str]) -> dict[str, Any]:
    """A model that beats a P, and the texts of both."""
    require_x64()
    p, q = (jnp.array([*map(float, row[x].split())]) for x in ("real", "model"))
    gains = float(row["quality_gain"]), float(row["diversity_gain"])
    words = product("abc"[: int(row["words"])], repeat=int(row["length"]))
    texts = tuple(map(" ".join, words))
    return {"witness": Witness(p / p.sum(), q / q.sum(), *gains), "texts": texts}


def check(
    quality: Any,
    diversity: Any = None,
    p: PerText | None = None,
    *,
    num_texts: int | None = None,
) -> Verdict:
    """Decide whether the real distribution can be beaten in both metrics at once.

    The pair is given as to the command `qdtheory check`; see `check_compatibility` for
    what the verdict means. Of two metrics by their names it is a `NamedVerdict`, which
    says over which texts it holds and what to report instead.

    Args:
        quality: a pair; the name of one ("LL-SE"); the name of a metric ("ROUGE-L",
            "BLEU-2 of 10 references"); f, as a formula in x ("log(x)") or a function of
            one argument; U(q, p), a function of two; or the score of each text as
            numbers.
        diversity: to a pair or its name nothing; to the name of a metric another
            ("distinct-2"); to f or scores g, as a formula or function; to U(q, p)
            V(q), a function of the whole distribution.
        p: the real distribution to test at, shape (N,), without zeros.
        num_texts: N, if no `p` is given.

    Returns:
        The verdict with its reason.

    Raises:
        TypeError: one of both is missing or of another kind, or JAX cannot trace it.
        ValueError: a text is no name and no formula, scores are not numbers, or as in
            `check_compatibility`.

    References:
        Li et al. 2020, Theorem 3.

    Example:
        >>> check("log(x)", "-x*log(x)").compatible
        True
        >>> check("log(x)", "-x**2").compatible, check("CR-NRR").compatible
        (False, True)
        >>> check("ROUGE-L", "distinct-2").compatible
        False
    """
    pair = quality, diversity
    named = [isinstance(x, str) and not re.search(FORMULA, x) for x in pair]
    if all(named) and p is num_texts is None:
        return check_names(quality, diversity)
    return check_compatibility(given_pair(*pair), p, num_texts=num_texts)
