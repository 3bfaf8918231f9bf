"""Metrics of lots of text by their names in the catalogue."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from qdtheory import text
from qdtheory.metrics.catalogue import find_order
from qdtheory.text.defaults import REQUESTED, Requested

Side: TypeAlias = Literal["quality", "diversity"]
# A score of each text beside real text, of which the quality is the mean. The order n
# is that in the name, and 0 if there is none.
EACH: dict[str, Callable[..., Any]] = {
    "BLEU-n": lambda ours, real, n: text.bleu_scores(ours, real, n)[:, n - 1],
    "ROUGE-L": lambda ours, real, n: text.rouge_l_scores(ours, real),
}

# Names without an order.
UNORDERED = {"ROUGE-L", *REQUESTED}


def _mean(each: Callable[..., Any]) -> Callable[..., float]:
    return lambda ours, real, n: float(each(ours, real, n).mean())


def _signed(asked: Requested) -> Callable[..., float]:
    sign = -1 if asked.lower else 1
    return lambda ours, n: sign * getattr(text, asked.function)(ours)


WHOLE: dict[Side, dict[str, Callable[..., float]]] = {
    "quality": {
        "CR": text.coverage_rate,
        **{name: _mean(each) for name, each in EACH.items()},
    },
    "diversity": {
        "NRR": text.negative_repetition_rate,
        "Self-BLEU-n": lambda ours, n: -float(text.self_bleu(ours, n)[n - 1]),
        "Distinct-n": text.distinct,
        **{name: _signed(asked) for name, asked in REQUESTED.items()},
    },
}


def named_metric(side: Side, name: str) -> tuple[Callable[..., float], Any]:
    """Find a quality of (texts, real), or a diversity of (texts), by a name.

    More is better of what is returned, so that it is minus Self-BLEU. The second is a
    function to the scores of each text, if the metric is their mean.

    Raises:
        ValueError: the name is unknown, of another kind, or needs more than texts.

    Example:
        >>> find, _ = named_metric("diversity", "Self-BLEU-1")
        >>> find(["a b", "a c"])
        -0.5
    """
    metric, order = find_order(name)
    n = order or 0
    known, lack = WHOLE[side], ""
    if metric.kind != side:
        lack = f"which is a {metric.kind}"
    elif metric.name not in known:
        lack = "which texts alone do not give"
    elif (metric.name in UNORDERED) == bool(n):
        lack = "which takes no order" if n else "which needs an order, such as 2"
    if lack:
        there = ", ".join(
            x if x in UNORDERED else f"{x.removesuffix('-n')}-2" for x in known
        )
        raise ValueError(
            f"{side}: expected one of {there}, or a function; got {name}, {lack}"
        )
    whole, each = known[metric.name], EACH.get(metric.name)
    return (lambda *sides: whole(*sides, n), each and (lambda *sides: each(*sides, n)))
