"""The verdict on a quality and a diversity by their names.

What Theorem 3 decides comes first, then divergences that P alone is best in, then what
the catalogue says of partners, then the rules of rules.toml, by what either metric
sees; else the compatibility matrix speaks, whose rows stand in names.csv. All say over
which texts they hold.
"""

import csv
import re
import tomllib
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
from qdtheory.pairs import SeparablePair, given_pair
from qdtheory.support.layout import MOST, Summary
from qdtheory.support.numbers import PerText
from qdtheory.support.records import Record

# References where none are named: those of BLEU, and of exact match beside distinct_10.
REFERENCES = {"BLEU-n": "2", "Self-BLEU-n": "2", "exact match": "9"}
NUMBERED = r"(?s)(.*?)(?: of ([1-9]\d*) references?)?\Z"
# Names that say nothing without the order of their n-grams or number of draws.
ORDERED = ".*(BLEU-n|Distinct-n|distinct_k|n-gram LL|n-gram entropy|Markov-k LL)"
ORDER = 4  # where none is named
# What no model but P itself is best in.
STRICT = "NLL", "KL", "JS", "total variation", "Hellinger"
LONGEST = 99  # of n, of texts that are shown
# What a formula of x has, and the name of a metric has not.
FORMULA = r"(?i)[()*/]|(?<![a-z])[xpq](?![a-z])|^[-\d.]*$|^-(LL|CR|SE|NRR|SDI)$"
# Sums of f(P_i) and of g(Q_i), for Theorem 3: of n references, and of k draws.
SUMS = {"LL": "log(x)", "CR": "x", "exact match": "1 - (1 - x)**{}"}
SUMS |= {"SE": "-x*log(x)", "NRR": "-x**2", "distinct_k": "1 - (1 - x)**{}"}


class NamedVerdict(Verdict):
    """The verdict on two metrics by their names; its reason names claims.

    Gains of a witness are NaN where it holds for every score of a kind: it is no worse
    in one metric and better in the other.

    Attributes:
        pair: what the names were taken for.
        notes: how names are meant, where that may differ from what is expected, and
            what they leave open.
        instead: what to report.
        texts: the texts that the witness is over.
        either: whether 2 P - Q is a rival too, as diverse: any quality that is linear
            in the model is no lower than at P for one of the two.
    """

    pair: str = ""
    notes: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    either: bool = False

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        names = re.sub(" of [0-9]+ references?", "", self.pair)
        return rules()[0][self.status].format(names)

    __repr__ = Verdict.__str__

    def summary(self) -> Summary:
        """The answer, and of a rival the texts whose shares differ most."""
        facts, sentences = super().summary()[2], [self.reason, *self.notes]
        if (beats := self.witness) is not None and self.texts:
            gains = f"{beats.quality_gain:.3g}, diversity {beats.diversity_gain:.3g}"
            gained = f" gains in quality {gains}" * (beats.quality_gain > 0)
            sentences += [f"A rival Q of this P{gained}:"]
            moved = np.argsort(-np.abs(beats.q - beats.p), kind="stable")[:MOST]
            shares = "P {0:.6g}, Q {1:.6g}" + " or {2:.6g}" * self.either
            columns = np.stack([beats.p, beats.q, 2 * beats.p - beats.q]).T
            facts = [(self.texts[i], shares.format(*columns[i])) for i in moved]
        return self.sentence, sentences, [*facts, ("report", " ".join(self.instead))]


class NamedMetric(Record):
    """A metric by its name, with its order and references; "" if it has none."""

    metric: Metric
    order: int | None
    name: str
    references: str
    title: str
    missing: bool

    @property
    def sees(self) -> str:
        """What it sees of P or of the model, in the words of rules.toml."""
        seen = (self.metric.sees * 3 or ("",) * 3)[min(self.order or 0, 2)]
        many = self.metric.name == "Self-BLEU-n" and int(self.references) > 3
        return "many" if many and seen == "words" else seen

    @property
    def key(self) -> tuple[str, str]:
        """Name and references in the matrix: F1 is BLEU-1 of one reference there."""
        as_bleu = self.sees == "words" and self.metric.status == "none"
        return ("BLEU-1", "1") if as_bleu else (self.name, self.references)


def parsed(name: str) -> tuple[str, str]:
    """A name without its number of references, and the number, "" if it has none."""
    return re.findall(NUMBERED, name)[0]


def read_metric(given: str, references: Any = None) -> NamedMetric:
    """Read the name of a metric, of order 4 and these references if it has none.

    Raises:
        ValueError: the name is unknown, or references are given twice, or in vain.

    Example:
        >>> read_metric("bleu").title, read_metric("BLEU-2", 1).title
        ('BLEU-4 of 2 references', 'BLEU-2 of 1 reference')
        >>> read_metric("BLEU-2 of 10 references").title
        'BLEU-2 of 10 references'
    """
    stem, number = parsed(given)
    if number and references:
        raise ValueError(f"{given}: references are given twice; give them once")
    number = number or str(references or "")
    metric, own = find_order(stem)
    if missing := own is None and re.fullmatch(ORDERED, metric.name) is not None:
        own = 10 if metric.name == "distinct_k" else ORDER
    if own == 0 and metric.name.endswith("-n"):
        raise ValueError(f"{given}: an order of n-grams is 1 or more, as in BLEU-2")
    name, default = titled(metric, own), REFERENCES.get(metric.name, "")
    if number and not default:
        raise ValueError(f"{stem} has no number of references; leave it out")
    title, number = stem if metric.status == "none" else name, number or default
    title += f" of {number} reference{'s' * (number != '1')}" * bool(number)
    return NamedMetric(metric, own, name, number, title, missing)


def check_names(
    quality: str, diversity: str, references: tuple[Any, Any] = (None, None)
) -> NamedVerdict:
    """Decide a pair by the names of its metrics, as the catalogue has them.

    LL-SE and the like, and exact match with distinct_k, are decided by Theorem 3; a
    divergence that P alone is best in is compatible with anything; BLEU and Self-BLEU
    of one order are decided by the classification of their settings; a metric and its
    partner, or one that has none, by what the catalogue says; others by rules.toml, or
    the matrix. An order that is missing is 4; a quality and a diversity that are
    exchanged are put right.

    Example:
        >>> verdict = check_names("TTR", "perplexity")
        >>> verdict.pair, verdict.status, verdict.texts
        ('perplexity and Distinct-1', 'incompatible', ('a a a a a', 'b b b b b'))
        >>> verdict.notes[0]
        'perplexity is the quality and Distinct-1 the diversity, put in this order.'
    """
    named = [quality, diversity]
    kinds = [find_order(parsed(x)[0])[0].kind for x in named]
    if kinds[0] == kinds[1] in ("quality", "diversity"):
        both = f"{quality} and {diversity} are each a {kinds[0]}"
        raise ValueError(f"{both}; name both kinds, such as BLEU and Self-BLEU")
    if swapped := kinds[1] == "quality" or kinds[0] == "diversity":
        named.reverse()
    u, v = map(read_metric, named, references)
    row = matrix().get((*u.key, *v.key), {})
    known = _decided(u, v, row)
    if row.get("words") and known["compatible"] is not True:
        require_x64()
        p, q = (jnp.array([*map(float, row[x].split())]) for x in ("real", "model"))
        gains = float(row["quality_gain"]), float(row["diversity_gain"])
        words = product("abc"[: int(row["words"])], repeat=int(row["length"]))
        witness = Witness(p / p.sum(), q / q.sum(), *gains)
        texts = tuple(map(" ".join, words))
        known |= {"witness": witness, "texts": texts, "either": False}
    order = f"{u.title} is the quality and {v.title} the diversity, put in this order."
    missing = " and ".join(x.name for x in (u, v) if x.missing)
    here = known.pop("setting", "") or row.get("setting")
    notes = (
        *(order * swapped, missing and f"No order is given: {missing} taken."),
        *(u.metric.note, v.metric.note, here and f"Here {here}."),
    )
    beside = tuple(f"{x.title}: {x.metric.beside}" for x in (u, v))
    return NamedVerdict(
        **known,
        pair=f"{u.title} and {v.title}",
        notes=tuple(filter(None, notes)),
        instead=beside if known["compatible"] else (rules()[0]["report"],),
    )


def _found(known: bool | str | None, reason: str, *claims: str) -> dict[str, Any]:
    """Fields of a verdict that is known, or conditional: so over some texts."""
    reason += f" ({', '.join(claims[:3])})" * bool(claims)
    if known == "conditional":
        return {"compatible": None, "status": known, "reason": reason}
    return {"compatible": known, "reason": reason}


def _decided(u: NamedMetric, v: NamedMetric, row: dict[str, str]) -> dict[str, Any]:
    """What is first known of a pair, as the docstring of this module has it."""
    f, g = SUMS.get(u.name), SUMS.get(v.metric.name if v.sees == "texts" else "")
    if f and g:
        pair = SeparablePair(f.format(u.references), g.format(v.order))
        verdict = check_compatibility(pair)
        claim = "T3.1" if verdict.compatible else "T3.9"
        return vars(verdict) | {"reason": f"{verdict.reason} ({claim})"}
    for x in (u, v):
        if x.metric.name in STRICT:
            alone = f"{x.title} is best at P alone: nothing else is as good in it"
            return _found(True, f"{alone}, whatever stands beside it.", *_claims(x))
        if x.metric.kind in ("divergence", "both in one"):
            return _found(None, f"{x.title}: {x.metric.verdict}", *_claims(x))
    rule = _by_rule(u, v)
    if u.order == v.order and f"Self-{u.metric.name}" == v.metric.name:
        over = u.metric.verdict.removeprefix("Conditional: over")
        here = f"Here n = {u.order}, with {u.references} and {v.references} references:"
        known, so = _bleu(int(u.order or 0), int(u.references), int(v.references))
        found = _found(known, f"Over{over} {here} {so}.", "N25.20", "N25.21", "N25.22")
        return rule | found if known is False else found
    if u.order == v.order and u.metric.partner == v.metric.name:
        return _found(True, u.metric.verdict, *_claims(u))
    over = f"Over all texts of 4 words and 3 tokens {row.get('says')}."
    if row.get("verdict") == "compatible":  # of whole texts, over no other length
        return _found("conditional", over, row["claim"])
    if rule:
        return rule
    if row:
        return _found(False, over, row["claim"])
    for x in (v, u):
        if x.metric.status == "incompatible":
            lack = x.metric.verdict.replace("Incompatible", f"{x.title} has no partner")
            return _found(False, lack, *_claims(x))
        if not x.metric.sees and x.metric.status == "none":
            return _found(None, f"{x.title}: {x.metric.verdict}")
    return _found(None, rules()[0]["open"])


def _by_rule(u: NamedMetric, v: NamedMetric) -> dict[str, Any]:
    """What the first rule says on what both see, with its texts, P and rivals."""
    if (rule := rules()[1].get((u.sees, v.sees))) is None:
        return {}
    names = {"u": parsed(u.title)[0], "v": v.title, "partner": v.metric.partner}
    says, here = (rule.get(x, "").format(**names) for x in ("says", "setting"))
    found = _found(False, says, *rule["claims"]) | {"setting": here}
    # A text has n + 1 tokens; windows, of which order n_v needs more, are of a cycle.
    orders = [x.order or 0 for x in (u, v) if x.sees not in ("texts", "other")]
    orders += [2 * (v.order or 0) - 3] * (v.sees == "windows")
    n = rule.get("n") or max(ORDER, rule.get("least", 0), *orders)
    if n > LONGEST:
        return found
    half = n + 2 - (v.order or 0)
    cycle = "".join(chr(ord("a") + i) for i in range(2 * half)) * 2
    words = rule["texts"] or [cycle[i:] for i in (0, 1, half, half + 1)]
    words = [re.sub(r"(.)\*", lambda x: x[1] * n, word) * (n + 1) for word in words]
    texts = tuple(" ".join(word[: n + 1]) for word in words)
    p, q = (jnp.array(rule[x]) / sum(rule[x]) for x in ("real", "model"))
    witness, either = Witness(p, q, np.nan, np.nan), "either" in rule
    return found | {"witness": witness, "texts": texts, "either": either}


def _bleu(n: int, r: int, k: int) -> tuple[bool | str, str]:
    """Where BLEU and Self-BLEU are compatible, by `compatibility.bleu_1_setting`."""
    if r == k == 1 < n:
        return "conditional", f"compatible at L = {n}, incompatible from L = {n + 1} on"
    if r == k == 1:
        return True, "compatible at every L"
    if n == 1 and k <= 3:
        where = "of two words" if max(r, k) < 3 else "of one token, over two words"
        where = f"compatible over texts {where}, incompatible over any others"
        return "conditional", where
    return False, "incompatible at every L"


def _claims(x: NamedMetric) -> tuple[str, ...]:
    """Claims of the verdict itself, where they are told apart."""
    return x.metric.shown_by or x.metric.claims


@lru_cache(maxsize=1)
def rules() -> tuple[dict[str, str], dict[tuple[str, str], dict[str, Any]]]:
    """What is said first of each verdict; the rule for what both metrics see."""
    held = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))
    each = ((x, y) for x in held["rule"] for y in product(x["quality"], x["diversity"]))
    return held["answer"], {seen: rule for rule, seen in each}


@lru_cache(maxsize=1)
def matrix() -> dict[tuple[str, ...], dict[str, str]]:
    """The compatibility matrix, by the names and references of both metrics."""
    text = Path(__file__).with_suffix(".csv").read_text("utf-8")
    rows = csv.DictReader(x for x in text.splitlines() if not x.startswith("#"))
    return {tuple(row.values())[:4]: row for row in rows}


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
