"""Which metrics of a text have an interval: those that enough groups tell of.

A jackknife variance of 0 means that no group of sentences held the event that a metric
counts, not that the metric has no error. Where fewer than five groups, of a text's
sentences or of the references', hold such events, the variance of their number is
known too badly for an interval.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from qdtheory.text.leave_out import ROUNDING, groups_seen, num_ngrams
from qdtheory.text.partial_sums import CorpusSums

NEEDED = 5
# Events that may go unseen: none of so many has a chance of 2 %.
UNSEEN = 4


def unsupported(
    totals: CorpusSums,
    name: str,
    metrics: Sequence[str],
    values: Float[np.ndarray, " metrics"],
    errors: Float[np.ndarray, " metrics"],
    *left_out: Float[np.ndarray, "_ metrics"],
) -> tuple[Bool[np.ndarray, " metrics"], Bool[np.ndarray, " metrics"]]:
    """Tell which metrics of a text have no interval, and why.

    First those of which too few groups repeat or share n-grams, then others that too
    few groups change. `left_out` are the metrics without each group of the text, and of
    the references; all orders of CR, NRR and CND are among them.

    CND counts three kinds of repeats. One that too few groups hold matters if what it
    adds to CND, with four events more, exceeds half the standard error.

    Example:
        >>> from qdtheory.text import as_corpus
        >>> from qdtheory.text.partial_sums import partial_sums
        >>> texts = as_corpus(["a b", "c d", "e"] * 2)
        >>> found = partial_sums({"x": texts}, texts, 2).totals
        >>> names = [f"{kind}-{n}" for kind in ("CR", "NRR", "CND") for n in (1, 2)]
        >>> few, same = unsupported(found, "x", names, *np.ones((2, 6)), np.eye(6))
        >>> few.tolist()
        [False, True, False, True, False, True]
    """
    known = dict(zip(metrics, values))
    ours, real = totals.lengths[name], totals.reference_lengths
    few = {what: x < NEEDED for what, x in groups_seen(totals, name).items()}
    shared = few["shared"] | few["real shared"]

    def few_of(metric: str, error: float) -> bool:
        kind, _, n = metric.rpartition("-")
        i = int(n) - 1
        if kind != "CND":
            seen = {"BLEU": few["shared"], "CR": shared, "MS-Jaccard": shared}
            again = few["again" if kind.startswith("distinct") else "repeated"]
            return seen.get(kind, again)[i]
        rate, diversity = known[f"CR-{n}"], known[f"NRR-{n}"]
        a, b = (float(num_ngrams(x, int(n))[0]) for x in (ours, real))
        parts = (
            (few["repeated"], -diversity, a * a),
            (few["real repeated"], known[metric] + 2 * rate + diversity, b * b),
            (shared, 2 * rate, a * b),
        )
        return any(
            missing[i] and not part + 2 * UNSEEN / pairs <= error / 2
            for missing, part, pairs in parts
        )

    lacking = np.array([few_of(*each) for each in zip(metrics, errors)])
    changed = np.zeros(len(metrics), int)
    for rest in left_out:
        usual = np.median(rest, axis=0)
        changed += np.sum(np.abs(rest - usual) > ROUNDING * np.abs(usual), axis=0)
    same = changed < NEEDED
    for n, none in enumerate(few["alone"], start=1):
        if none:
            same |= np.array([metric == f"distinct-{n}" for metric in metrics])
    return lacking, same & ~lacking


def warnings_of(name: str, few: list[str], same: list[str]) -> tuple[str, ...]:
    """Say which metrics have no interval: few are repeats, or the same is the value.

    Example:
        >>> print(*warnings_of("ours", ["NRR-3", "CND-3"], []))
        too few repeats of order 3 in ours: no interval of NRR-3, CND-3; the data ...
    """
    orders = sorted({int(metric.rpartition("-")[2]) for metric in few})
    said = []
    if few:
        most = f"orders up to {orders[0] - 1}" if orders[0] > 1 else "no order"
        said.append(
            f"too few repeats of order {', '.join(map(str, orders))} in {name}: no "
            f"interval of {', '.join(few)}; the data support {most}"
        )
    if same:
        said.append(
            f"no interval of {', '.join(same)} of {name}: fewer than {NEEDED} groups "
            "of sentences change the value"
        )
    return tuple(said)
