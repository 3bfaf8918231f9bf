"""Every metric that the project knows: the facts of metrics.toml, and their names."""

import importlib
import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeAlias

from qdtheory.support.layout import Summary, plain_name
from qdtheory.support.records import Display

Kind: TypeAlias = Literal["quality", "diversity", "divergence", "both in one"]
Status: TypeAlias = Literal[
    "compatible", "conditional", "incompatible", "a divergence", "none"
]

TITLES = "you report", "beaten", "sound"
LISTS = "functions", "in_lab", "other_names", "shown_by", "sees"
FACTS = "formula", "form", "partner", "estimator"

# Names of a metric of one order.
SAME = {"ttr": "distinct1", "typetokenratio": "distinct1"}


@dataclass(frozen=True)
class Metric(Display):
    """What is known of one metric: a model Q, the real P, in words and plain formulas.

    The status is "compatible" if no model beats any P in it and its partner;
    "conditional" if that holds in the settings that the verdict names, and in no other;
    "incompatible" if any partner leaves some P beaten, but in the small spaces that the
    verdict leaves out; "a divergence" if it is least (negated: greatest) at Q = P by
    itself; "none" where the question does not arise. The verdict begins with it and
    says when and why. `papers` is what papers print it beside, by which real text is
    beaten, `sound` what it is sound beside, and who computes that; rules.toml says
    what `sees` means. The functions are named as they are typed, the exact one first;
    those of `in_lab` stand beside the notebooks. `shown_by` has claims that docstrings
    of the former do not name. The note says how its names are meant.
    """

    name: str
    kind: Kind
    formula: str
    form: str
    status: Status
    verdict: str
    partner: str
    estimator: str
    beside: str
    sound: str
    papers: str = ""
    sees: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    in_lab: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()
    shown_by: tuple[str, ...] = ()
    note: str = ""

    @property
    def claims(self) -> tuple[str, ...]:
        """Its own claims, then those that the docstrings of its functions name."""
        claims: dict[str, None] = dict.fromkeys(self.shown_by)
        for typed in self.functions:
            module, _, name = typed.replace("qd", "qdtheory", 1).rpartition(".")
            function = getattr(importlib.import_module(module), name)
            text = re.search(r"Claims: ([^\n]*(?:\n    +\S[^\n]*)*)", function.__doc__)
            if text:
                claims |= dict.fromkeys(re.findall(r"[A-Z]+\d+\.\d+", text[1]))
        return tuple(claims)

    @property
    def row(self) -> tuple[str, str, str]:
        """Its name, and what is said of it in one line."""
        return self.name, self.papers or "not shown", self.sound

    def summary(self) -> Summary:
        """Beside what it is beaten and sound, the verdict, and the other facts."""
        tried = " where tried" * ("beaten where tried" in self.verdict)
        beaten = f"As papers use it, {self.papers}: real text is beaten{tried}. "
        title = f"{beaten * bool(self.papers)}Sound {self.sound}."
        typed = *self.functions, *self.in_lab
        facts = [(x, getattr(self, x)) for x in FACTS]
        lists = [("functions", typed), ("other names", self.other_names)]
        lists += [("claims", self.claims)]
        facts += [(name, ", ".join(words)) for name, words in lists if words]
        said = f"{self.name} ({self.kind}). {self.verdict}"
        return title, [said, self.beside], facts


def find_metric(name: str) -> Metric:
    """Find a metric by any of its names; else name the closest.

    Example:
        >>> find_metric("-oracle nll").name
        'LL'
    """
    return find_order(name)[0]


def find_order(name: str) -> tuple[Metric, int | None]:
    """Find a metric and the number in its name, n of n-grams or k of draws.

    Capitals, spaces, hyphens and underscores do not matter: a number up to 9 after
    "distinct" is the order of n-grams, a greater one of draws.

    Raises:
        ValueError: no metric has the name; the closest are named.

    Example:
        >>> metric, order = find_order("self bleu 2")
        >>> metric.name, order, titled(metric, order)
        ('Self-BLEU-n', 2, 'Self-BLEU-2')
        >>> titled(*find_order("distinct_2")), titled(*find_order("distinct-10"))
        ('Distinct-2', 'distinct_10')
    """
    wanted = SAME.get(plain_name(name), plain_name(name))
    names = {plain_name(x): (x, m) for m in METRICS for x in (m.name, *m.other_names)}
    if wanted in names:
        return names[wanted][1], None
    number = re.search("[0-9]+", wanted)
    if number and len(re.findall("[0-9]+", name)) < 2:  # BLEU-2-2 is no BLEU-22
        order = int(number[0])
        for letter in "nk" if order < 10 else "kn":
            general = wanted[: number.start()] + letter + wanted[number.end() :]
            if general in names:
                return names[general][1], order
    close = [names[x][0] for x in get_close_matches(wanted, names, 3, 0.4)]
    hint = f"; do you mean {', '.join(close)}?" if close else ""
    own = "give your own as MODULE:FUNCTION, or to `qdtheory doctor`"
    raise ValueError(f"no metric is called {name!r}{hint}; {own}")


def titled(metric: Metric, order: int | None) -> str:
    """The name of a metric, with its number in the place of n or k."""
    if order is None:
        return metric.name
    named = re.sub("(?<![A-Za-z])[nk](?![A-Za-z])", str(order), metric.name)
    return named if named != metric.name else f"{metric.name}-{order}"


KINDS: Any = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
METRICS = tuple(
    Metric(name, kind, **facts | {x: (*facts.get(x, ()),) for x in LISTS})
    for kind, entries in KINDS.items()
    for name, facts in entries.items()
)
