"""Metrics of lots of text by their names in the catalogue."""

import re
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from qdtheory import text
from qdtheory.support.layout import plain_name

Side: TypeAlias = Literal["quality", "diversity"]
# A score of each text beside real text, of which the quality is the mean. The order n
# is that in the name, and 0 if there is none.
EACH: dict[str, Callable[..., Any]] = {
    "BLEU-n": lambda ours, real, n: text.bleu_scores(ours, real, n)[:, n - 1],
    "ROUGE-L": lambda ours, real, n: text.rouge_l_scores(ours, real),
}

UNORDERED = {"ROUGE-L", "pairwise ROUGE-L"}


def _mean(each: Callable[..., Any]) -> Callable[..., float]:
    return lambda ours, real, n: float(each(ours, real, n).mean())


WHOLE: dict[Side, dict[str, Callable[..., float]]] = {
    "quality": {
        "CR": text.coverage_rate,
        **{name: _mean(each) for name, each in EACH.items()},
    },
    "diversity": {
        "NRR": text.negative_repetition_rate,
        "Self-BLEU-n": lambda ours, n: -float(text.self_bleu(ours, n)[n - 1]),
        "Distinct-n": text.distinct,
        "pairwise ROUGE-L": lambda ours, n: -text.pairwise_rouge_l(ours),
    },
}


# Other names of these; n stands for the order.
OTHER_NAMES = {
    "CR": ("CR-n", "coverage rate"),
    "BLEU-n": ("BLEU",),
    "ROUGE-L": ("LCS",),
    "NRR": ("NRR-n", "negative repetition rate", "Simpson", "SDI"),
    "Self-BLEU-n": ("Self-BLEU", "NSBLEU", "NSBLEU-n"),
    "Distinct-n": ("dist-n", "distinct"),
    "pairwise ROUGE-L": ("homogenization", "Self-ROUGE-L", "NROUGE-L"),
}


def named_metric(side: Side, name: str) -> tuple[Callable[..., float], Any]:
    """Find a quality of (texts, real), or a diversity of (texts), by a name.

    More is better of what is returned, so that it is minus Self-BLEU. The second is a
    function to the scores of each text, if the metric is their mean. Capitals, spaces,
    hyphens and underscores do not matter; the digit in a name is the order.

    Raises:
        ValueError: no metric has the name, or it lacks its order.

    Example:
        >>> find, _ = named_metric("diversity", "Self-BLEU-1")
        >>> find(["a b", "a c"])
        -0.5
    """
    known, plain = WHOLE[side], plain_name(name)
    names = {plain_name(x): m for m in known for x in (m, *OTHER_NAMES.get(m, ()))}
    orders = re.findall("[0-9]+", name) if plain not in names else []
    metric = names.get(re.sub("[1-9]", "n", plain, count=1) if orders else plain)
    unordered = metric in known and metric not in UNORDERED and not orders
    if metric is None or unordered:
        lack = ", which needs an order, such as 2" if unordered else ""
        there = (x if x in UNORDERED else f"{x.removesuffix('-n')}-2" for x in known)
        wanted = f"expected one of {', '.join(there)}, or a function"
        raise ValueError(f"{side}: {wanted}; got {name}{lack}")
    n = int(orders[0]) if orders else 0
    whole, each = known[metric], EACH.get(metric)
    return (lambda *sides: whole(*sides, n), each and (lambda *sides: each(*sides, n)))
