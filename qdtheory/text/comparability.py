"""Whether metrics of texts mean something: what is refused, warned of or uncertain.

A jackknife variance of 0 means that no group of sentences held the event that a metric
counts, not that the metric has no error. Where fewer than five groups, of a text's
sentences or of the references', hold such events, the variance of their number is
known too badly for an interval.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float

from qdtheory.text.corpus import Corpus, Sample, common_ids, slices
from qdtheory.text.defaults import NUM_GROUPS
from qdtheory.text.intervals import random_groups
from qdtheory.text.leave_out import ROUNDING, groups_seen, num_ngrams
from qdtheory.text.looks import odd_looks, seen, unlike
from qdtheory.text.ngrams import Estimator, require_order
from qdtheory.text.partial_sums import CorpusSums
from qdtheory.text.postings import hashed, token_sentences

# Share of sentences that stand in the references too, from which a report warns.
MOSTLY = 0.5
# Standard errors that chance exceeds once in a thousand times.
CHANCE = 3.09
# Sentences that stand so many times or more are not compared in number; of those that
# stand more than once a share from which a report warns.
TIMES, DOUBLED = 20, 0.01
# N-grams that stand more and fewer times, so many at most, of such a share of all.
OFTEN, SELDOM, KINDS, SHARE = 7, 100, 20, 0.1
# Groups of sentences that have to hold what a metric counts, for an interval.
NEEDED = 5
# Events that may go unseen: none of so many has a chance of 2 %.
UNSEEN = 4


def require_comparable(
    corpus: Sample, real: Sample | None, max_order: int, estimator: Estimator
) -> None:
    """Raise for texts whose metrics mean nothing against these references."""
    if len(corpus) < 3:
        raise ValueError(
            "Self-BLEU compares sentences with each other: expected at least 3 for its "
            f"interval, got {len(corpus)}"
        )
    require_ngrams(corpus, max_order, estimator)
    if real is None:
        return
    ours, theirs = corpus.tokenizer, real.tokenizer
    if ours and theirs and ours != theirs:
        both = f"split by {ours}, and the references by {theirs}"
        raise ValueError(f"{both}: split both alike")
    if not {*corpus.vocabulary} & {*real.vocabulary}:
        firsts = (side.vocabulary[0] for side in (corpus, real))
        here, there = (f"{x!r:.30} ({type(x).__name__})" for x in firsts)
        alike = f"expected both decoded and split alike, got {here} and {there}"
        said = unlike(corpus.vocabulary, real.vocabulary, "this text")
        raise ValueError(f"no token is in the references too: {(*said, alike)[0]}")


def require_ngrams(corpus: Sample, max_order: int, estimator: Estimator) -> None:
    """Raise for texts that are too short or too few for the highest order."""
    require_order(max_order, "max_order")
    # A sentence that is not there has no token.
    lengths = np.append(corpus.lengths, 0)
    second, longest = np.partition(lengths, -2)[-2:].tolist()
    highest = longest if estimator == "plug-in" else second
    if highest >= max_order:
        return
    hint = f"max_order={highest} is the most here" if highest else "give more text"
    if corpus.tokenizer and (said := odd_looks("it", seen(corpus))):
        hint = f"{hint}; {said[0]}"
    told = f"no sentence has {max_order} tokens: the longest has {longest}; {hint}"
    if longest >= max_order:
        told = (
            f"pairs need at least two sentences with {max_order} tokens, got one; "
            f'{hint}, or, in Python, take estimator="plug-in"'
        )
    raise ValueError(told)


def require_draws(corpus: Sample, max_order: int, draws: int) -> None:
    """Raise for texts without as many n-grams as distinct_k is of."""
    ngrams = np.maximum(corpus.lengths - max_order + 1, 0)
    groups = np.bincount(random_groups(len(corpus), NUM_GROUPS), ngrams)
    least = int(groups.sum() - groups.max())
    if least < draws:
        raise ValueError(
            f"distinct_k of {draws:,} n-grams: there are {least:,} of order "
            f"{max_order} without a group of sentences; draws={least} is the most here"
        )


def warnings_of_texts(
    corpora: dict[str, Sample], real: Sample | None, estimator: Estimator
) -> tuple[str, ...]:
    """Warnings of texts of different sizes, and of some that seem to be otherwise."""
    said = []
    if len({*map(len, corpora.values())}) > 1:
        rates = "NRR, CND, " * (estimator == "plug-in")
        numbers = ", ".join(f"{name} {len(texts):,}" for name, texts in corpora.items())
        said.append(
            f"Self-BLEU, {rates}distinct and MS-Jaccard depend on the number of "
            f"sentences, which differs ({numbers}): compare samples of one size"
        )
    every = corpora if real is None else {"the references": real} | corpora
    said += warnings_of_looks(corpora, real)
    return (*said, *(x for name in every for x in _doubled(name, every[name])))


def warnings_of_looks(corpora: dict[str, Sample], real: Sample | None) -> list[str]:
    """Warnings of texts that seem not to be what was meant, or not as the others."""
    every = corpora if real is None else {"the references": real} | corpora
    looks, said = {name: seen(corpus) for name, corpus in every.items()}, []
    for name, corpus in every.items():
        others = every.keys() - corpora.keys() if name in corpora else corpora
        said += odd_looks(name, looks[name], *(looks[other] for other in others))
        if corpus.num_empty:
            said.append(f"{corpus.num_empty:,} of the sentences of {name} are blank")
    if real is not None:
        for name, corpus in corpora.items():
            said += unlike(corpus.vocabulary, real.vocabulary, name)
    return said


def _doubled(name: str, corpus: Sample) -> list[str]:
    r"""Warn of sentences that stand k times too often for independent draws of any law.

    With $f_k$ the number of those that stand k times, $k! f_k$ has by Poisson's law the
    mean $\sum_x \lambda_x^k e^{-\lambda_x}$, of which by Cauchy and Schwarz the square
    is at most the product of its two neighbours.
    """
    _, times, _ = _equal(corpus, np.arange(len(corpus.vocabulary)))
    factorials = np.cumprod(np.arange(1.0, TIMES))
    sizes = np.bincount(times, minlength=TIMES)[1:TIMES] * factorials
    both = sizes, sizes * factorials
    (a, b, c), (u, v, w) = ((x[:-2], x[1:-1], x[2:]) for x in both)
    error = np.sqrt((c**2) * u + 4 * b**2 * v + a**2 * w)
    share = times[times > 1].sum() / len(corpus)
    if share < DOUBLED or not (b**2 - a * c > CHANCE * error).any():
        return []
    return [
        f"{share:.0%} of the sentences of {name} stand there more than once, more than "
        "independent ones would: intervals are too narrow; keep one of each"
    ]


def copies_of(
    corpora: dict[str, Sample], real: Sample | None
) -> tuple[dict[str, float], tuple[str, ...]]:
    r"""Find what stands in the references too, and whether it is too much for chance.

    With $c_x$ and $r_x$ the times that a sentence x is in two samples, let T count the
    pairs of equal sentences across them less those within either. If the samples are
    independent, T has a mean of at most 0, and where this is 0 the variance of T is the
    expected number of all these pairs. So a T far above its root is no chance, whatever
    the two laws are.

    Example:
        >>> from qdtheory.text import as_corpus
        >>> real = as_corpus([f"a {i}" for i in range(100)])
        >>> ours = [*(f"a {i}" for i in range(20)), *(f"b {i}" for i in range(80))]
        >>> copies_of({"ours": as_corpus(ours)}, real)
        ({'ours': 0.2}, ('ours',))
    """
    if real is None:
        return {}, ()
    ids, *others = common_ids([real, *corpora.values()])
    known, times, within = _equal(real, ids)
    shares, dependent = {}, []
    for (name, corpus), ids in zip(corpora.items(), others):
        ours, counts, pairs = _equal(corpus, ids)
        _, here, there = np.intersect1d(ours, known, return_indices=True)
        shares[name] = float(counts[here].sum() / len(corpus))
        across, pairs = float(counts[here] @ times[there]), pairs + within
        if across - pairs > CHANCE * np.sqrt(across + pairs):
            dependent.append(name)
    return shares, tuple(dependent)


def warn_of_copies(
    shares: dict[str, float], dependent: dict[str, list[int]], level: float
) -> tuple[str, ...]:
    """Warnings of candidates that are not independent of the references."""
    said = []
    for name, share in shares.items():
        told = f"{share:.1%} of its sentences stand in them"
        if orders := dependent.get(name):
            below = ", ".join(f"CND-{n}" for n in orders)
            told += f", and {below} is below 0 beyond its {level:.1%} interval"
        if name in dependent:
            said.append(
                f"{name} depends on the references: {told}, more than chance. Copies, "
                "or answers to the same inputs, are measured, not the generator"
            )
        elif share > MOSTLY:
            said.append(
                f"{share:.0%} of the sentences of {name} stand in the references: what "
                "is measured is copying, if these are not held out"
            )
    return tuple(said)


def _equal(corpus: Sample, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Hashes of the sentences, how many each has, and pairs of equal ones."""
    # That two are alike by chance does not move a share.
    if isinstance(corpus, Corpus):
        every = sentence_hashes(corpus, ids)
    else:
        every = np.concatenate([*cast(Any, corpus).by_slice(sentence_hashes, ids)])
    hashes, times = np.unique(every, return_counts=True)
    # A sample has no pair of a sentence with itself: the pairs that its square has.
    size = len(corpus)
    pairs = (times * (times - 1) / 2).sum() * size / max(size - 1, 1)
    return hashes, times, float(pairs)


def sentence_hashes(corpus: Corpus, ids: np.ndarray) -> np.ndarray:
    """A hash of each sentence."""
    found = []
    for _, chunk in slices(corpus):
        sentence = token_sentences(chunk)
        place = np.arange(chunk.num_tokens) - chunk.offsets[sentence]
        sums = np.append(np.uint64(0), hashed(ids[chunk.tokens], place)).cumsum()
        found.append(np.diff(sums[chunk.offsets]))
    return np.concatenate(found)


# --- Which metrics have an interval -------------------------------------------------


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
    for i, metric in enumerate(metrics):
        kind, _, n = metric.rpartition("-")
        if kind == "distinct":
            same[i] |= few["alone"][int(n) - 1]
        elif kind.startswith("distinct_"):  # near its ceiling what is left out is too
            same[i] |= 2 * int(kind[9:]) > num_ngrams(ours, int(n))[0]
    return lacking, same & ~lacking


def decided_by_few(totals: CorpusSums, name: str) -> tuple[str, ...]:
    """Warn of orders of which few n-grams, as of a template, are most repeats."""
    (num_orders, subsets), orders = totals.sums[name].distinct.shape, []
    for n in range(num_orders):
        counts, times = totals.spectra[name].of(n, subsets)[0]
        top = (2 * counts >= counts.max()) & (counts < SELDOM)
        few = times[top].sum() <= KINDS and counts.max() > OFTEN
        few &= counts @ (times * top) < SHARE * counts @ times
        squares = counts**2 * times * (counts > 1)
        if few and squares[top].sum() > squares.sum() / 2:
            orders.append(str(n + 1))
    return (
        f"few n-grams decide the repeats of order {', '.join(orders)} in {name}, as in "
        "a template: intervals of NRR and CND cover less than they say",
    )[: len(orders)]


def warnings_of(name: str, few: list[str], same: list[str]) -> tuple[str, ...]:
    """Say which metrics have no interval: repeats are few, or the same is the value."""
    orders = sorted({int(metric.rpartition("-")[2]) for metric in few})
    said = []
    if few:
        most = f"orders up to {orders[0] - 1}" if orders[0] > 1 else "no order"
        said.append(
            f"too few repeats of order {', '.join(map(str, orders))} in {name}: no "
            f"interval of {', '.join(few)}; the data support {most}"
        )
    if same:
        half = ", or half of the n-grams are fewer than k" * ("_" in "".join(same))
        said.append(
            f"no interval of {', '.join(same)} of {name}: fewer than {NEEDED} groups "
            f"of sentences change the value{half}"
        )
    return tuple(said)
