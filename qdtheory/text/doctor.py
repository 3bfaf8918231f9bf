r"""Is a pair of metrics beaten by real text itself? A verdict from samples alone.

Lots of real text differ by chance in quality and in diversity. If no model beats the
real distribution P to first order, the two errors cancel: their correlation is -1. In
general the texts with the most $u / \sigma_u + v / \sigma_v$, of what a text adds to
quality and to diversity, gain $\sqrt{(1 + \rho)/2}$ standard deviations in both for
each of their weight's.

A black box shows neither u nor v. But lots that are tilted towards long texts,
towards common words and so on show how both change with such features. From them
`doctor` finds weights by which real sentences seem to gain in both, and then draws
sentences that it has not seen by these weights. Only they decide.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from qdtheory.support.records import Estimate
from qdtheory.text import containers
from qdtheory.text.checks import require_positive, require_whole
from qdtheory.text.corpus import Corpus, Texts, as_corpus
from qdtheory.text.defaults import NUM_CALLS
from qdtheory.text.diagnosis import LEAST_BLOCKS, Diagnosis
from qdtheory.text.intervals import interval_of, jackknife_variance, mean_interval
from qdtheory.text.metric_names import Side, named_metric

Rows: TypeAlias = Int[np.ndarray, " rows"]
# Quality and diversity of the texts in some rows, against those in others.
Score: TypeAlias = Callable[[Rows, Rows], Float[np.ndarray, "2"]]
Table: TypeAlias = Float[np.ndarray, "texts features"]

# Shares of all texts: for the features, and for the search. The rest is for the test.
FOR_FEATURES, FOR_SEARCH = 1 / 8, 3 / 8
# Lots for the correlation, rounds of the search, lots at the centre of each.
LOTS, ROUNDS, CENTRE, MAX_BLOCKS = 60, 7, 8, 40
MAX_LOT, LEAST_TEXTS, LEAST_CALLS = 500, 2000, 100
# References of the lots for the correlation, in lots.
REFERENCES = 4
# The tilt of a round's lots, the first step, and how both shrink.
TILT, STEP, SHRINK = 0.2, 0.5, 0.85
# Tilted texts are kept by chances of which the mean is at least this.
LEAST_CHANCE = 0.2
MAX_ORDER, NUM_TOPICS, ITERATIONS, CLIP = 4, 4, 5, 3.0
POWER = 0.8
# Lots for the correlation at a smaller size are so many times smaller.
SMALLER = 4
# Real texts for each text's own quality.
NUM_REAL = 1000
# Differences below them are rounding.
EQUAL, TINY = 1e-9, 1e-12


def doctor(
    quality: str | Callable[[list[str], list[str]], float],
    diversity: str | Callable[[list[str]], float],
    texts: Texts,
    *,
    lot: int | None = None,
    calls: int = NUM_CALLS,
    alpha: float = 0.05,
    seed: int = 0,
    step: Callable[[str], None] = lambda text: None,
) -> Diagnosis:
    r"""Look for real text that beats real text in quality and in diversity.

    An eighth of the texts gives the features, three eighths are searched, and the other
    half is the test: blocks of fresh references, a lot of fresh texts and a lot drawn
    by the weights found, all different. The pair is beaten if both one-sided t-tests
    over blocks reject at level alpha (an intersection-union test: no correction). Of a
    pair that no model beats at this size it says so with probability alpha at most.

    Args:
        quality: BLEU-n, CR-n or ROUGE-L; or a function of lots of text and of real
            text, two lists of strings. More is better. It need not be differentiable.
            A dear one may keep its answers itself: the same call asks the same again.
        diversity: Self-BLEU-n, NRR-n, distinct-n or pairwise ROUGE-L; or a function of
            a list of strings, more is better.
        texts: real texts, different and independent ones, at least 2,000.
        lot: number of texts of a lot; None: a hundredth of all, and 500 at most.
        calls: of either function, at most and about, at least 100.
        alpha: level of the test, in (0, 1/2).
        seed: of all draws.
        step: called with a description before each call.

    Returns:
        The verdict, with what led to it.

    Raises:
        TypeError: see `as_corpus`.
        ValueError: a metric is unknown, fails or gives no finite number; too few texts,
            or a setting out of range.

    References:
        Berger 1982 (intersection-union tests).

    Example:
        >>> from lab.corpora import imdb
        >>> texts = imdb()[:4000]
        >>> doctor("CR-1", "NRR-1", texts, calls=100).verdict
        'no deviation found'
    """
    require_positive("alpha", alpha, below=0.5)
    require_whole("calls", calls, LEAST_CALLS)
    sides: dict[Side, Any] = {"quality": quality, "diversity": diversity}
    for side, metric in sides.items():
        if not (isinstance(metric, str) or callable(metric)):
            raise ValueError(
                f"{side}: expected a name or a function, got {metric!r:.40}; write "
                "doctor(quality, diversity, texts)"
            )
    given = texts if isinstance(texts, Corpus) else list(containers.rows(texts))
    corpus = as_corpus(given)
    strings = [x if isinstance(x, str) else " ".join(map(str, x)) for x in given]
    if (size := len(corpus)) < LEAST_TEXTS:
        raise ValueError(
            f"texts: expected at least {LEAST_TEXTS:,} real ones, got {size:,}; "
            "give more, from one source"
        )
    lot = min(MAX_LOT, size // 100) if lot is None else lot
    require_whole("lot", lot, 10, size // 50, f", a fiftieth of the {size:,} texts")
    names, score, of_each = _metrics(sides, corpus, strings, step)
    rng = np.random.default_rng(seed)
    # Disjoint: what the search has seen would look better than it is in the test, and
    # n-grams are rare or common by themselves in the lots that they are counted in.
    ends = [int(share * size) for share in (FOR_FEATURES, FOR_FEATURES + FOR_SEARCH)]
    counted, pool, fresh = np.split(rng.permutation(size), ends)

    def share_of(number: int, least: int) -> int:
        return max(number * calls // NUM_CALLS, least)

    def lots_of(size: int) -> Float[np.ndarray, "lots 2"]:
        drawn = (rng.permutation(pool)[:size] for _ in range(share_of(LOTS, 12)))
        return np.array([score(rows, counted[: REFERENCES * size]) for rows in drawn])

    small, lots = lots_of(lot // SMALLER), lots_of(lot)
    spread = lots.std(axis=0, ddof=1)
    for name, deviation, values in zip(names.values(), spread, lots.T):
        if deviation <= EQUAL * np.abs(values).max():
            raise ValueError(
                f"{name}: gives {values[0]:.6g} for each of {len(lots)} lots of real "
                "text; a constant tells no texts apart"
            )
    features = _features(corpus, counted, of_each)
    chances = _search(score, features, pool, lot, spread, share_of, fresh, rng)
    scores, rows = _tested(score, fresh, chances, lot, share_of(MAX_BLOCKS, 8), rng)
    known = names | {"lot": lot, "known": _known(quality, diversity)}
    known["witness"] = tuple(strings[i] for i in rows)
    return _diagnosis(small, lots, scores, alpha, size, **known)


def _diagnosis(small, lots, scores, alpha: float, size: int, **known: Any) -> Diagnosis:
    """Estimate and test, from lots of real text of two sizes and the test's blocks."""
    from scipy.special import ndtri, stdtr  # late: slow to import

    of_small, correlation = map(_correlation, (small, lots))
    # Of lots of n texts 1 + it is a + c / n, to the first order. Two sizes leave a.
    limit = 1 + (SMALLER * correlation.value - of_small.value) / (SMALLER - 1)
    errors = SMALLER * correlation.standard_error, of_small.standard_error
    error = math.hypot(*errors) / (SMALLER - 1)
    drawn, plain, mixed = scores.transpose(1, 0, 2)
    # Ends of intervals of this level are those of one-sided tests at level alpha.
    gains = _means(drawn - plain, 1 - 2 * alpha)
    (_, concavity) = _means(mixed - (drawn + plain) / 2, 1 - 2 * alpha)
    # Both have to be positive: the p-value is that of the worse.
    with np.errstate(all="ignore"):
        least = min(float(gain.value / gain.standard_error) for gain in gains)
    power = float(ndtri(1 - alpha) + ndtri(POWER))
    # The statistic grows as the root of the number of texts.
    more = (power / max(least, 1)) ** 2
    if len(scores) < LEAST_BLOCKS:
        more = LEAST_BLOCKS / max(len(scores), 1)
    return Diagnosis(
        **known,
        correlation=correlation,
        deviation=interval_of(max(limit, 0.0), error**2, len(lots) - 1, bounds=(0, 2)),
        # A normal estimate of this mean is above its critical value so often.
        visible=power * error,
        quality_gain=gains[0],
        diversity_gain=gains[1],
        p_value=float(stdtr(len(scores) - 1, -least)),
        num_blocks=len(scores),
        concavity=concavity,
        lots=lots,
        alpha=alpha,
        num_texts=size,
        needed=math.ceil(more * size),
    )


def _known(quality: Any, diversity: Any) -> str:
    """What is known of two metrics by their names."""
    if isinstance(quality, str) and isinstance(diversity, str):
        from qdtheory.catalogue.names import check_names  # late: it needs JAX

        with suppress(ValueError):  # a name that only this module has
            return check_names(quality, diversity).summary()[0]
    return ""


# --- Metrics ------------------------------------------------------------------------


def _metrics(
    sides: dict[Side, Any], corpus: Corpus, strings: list[str], step
) -> tuple[dict[Side, str], Score, Any]:
    """Names, a function to the values of both, and one to each text's own quality."""
    named: Any = {x: named_metric(x, y) for x, y in sides.items() if isinstance(y, str)}
    names: dict[Side, str] = {x: getattr(y, "__name__", x) for x, y in sides.items()}
    names |= {x: sides[x] for x in named}

    def value(side: Side, *rows: Rows) -> float:
        if side in named:
            return named[side][0](*(corpus[x] for x in rows))
        return _answer(side, sides[side], *([strings[i] for i in x] for x in rows))

    def score(lot: Rows, real: Rows) -> Float[np.ndarray, "2"]:
        step(f"{names['quality']} and {names['diversity']} of {len(lot)} texts")
        return np.array([value("quality", lot, real), value("diversity", lot)])

    each = next((of_each for _, of_each in named.values() if of_each), None)
    return names, score, each and (lambda real: each(corpus, corpus[real]))


def _answer(side: str, function: Callable[..., Any], *lots: list[str]) -> float:
    """What a user's function says, which can be anything."""
    given = f"it was given {' and '.join(f'{len(lot)} texts' for lot in lots)}"
    try:
        answer = function(*lots)
    except Exception as error:
        said = f"the function raised {type(error).__name__}: {error}"
        raise ValueError(f"{side}: {said}; {given}") from error
    if isinstance(answer, np.ndarray) and answer.ndim == 0:
        answer = answer.item()
    if not isinstance(answer, Real) or not math.isfinite(answer):
        said = f"expected a finite number from the function, got {answer!r}"
        raise ValueError(f"{side}: {said}; {given}")
    return float(answer)


# --- Features -----------------------------------------------------------------------


def _features(corpus: Corpus, counted: Rows, of_each: Any) -> Table:
    """How long each text is, how common its words are, what repeats, and its topics.

    Counts are those of the rows `counted`, of which no lot is made: in its own lot an
    n-gram is common by itself. Standardised, and clipped.
    """
    size, lengths, words = len(corpus), corpus.lengths, corpus.vocab_size
    rows = np.repeat(np.arange(size), lengths)
    is_counted, columns = np.isin(rows, counted), [np.log1p(lengths), lengths]
    ids = np.zeros(len(rows) + 1, np.int64)
    for n in range(1, MAX_ORDER + 1):
        # An id of each n-gram, from that of its first n - 1 tokens.
        ids = ids[:-1] * words + corpus.tokens[n - 1 :]
        ids = np.unique(ids, return_inverse=True)[1]
        whole = np.flatnonzero(rows[: len(ids)] == rows[n - 1 :])
        row, gram = rows[whole], ids[whole]
        times = np.bincount(gram[is_counted[whole]], minlength=len(ids))
        # A mean over the n-grams of a text; 1/2 keeps it finite where none is counted.
        common = np.bincount(row, np.log(times + 0.5)[gram], size)
        columns.append(common / np.bincount(row, minlength=size).clip(1))
    distinct = np.unique(rows * words + corpus.tokens) // words
    columns.append(np.bincount(distinct, minlength=size) / lengths.clip(1))
    columns += [*_topics(corpus, rows, counted).T]
    if of_each is not None:
        columns.append(of_each(counted[:NUM_REAL]))
    table = np.column_stack(columns)
    spread = table[counted].std(axis=0)
    table = table[:, spread > EQUAL * np.abs(table).max(axis=0)]
    table = (table - table[counted].mean(axis=0)) / table[counted].std(axis=0)
    # So that no single text, very long or strange, decides where a tilt leads.
    return table.clip(-CLIP, CLIP)


def _topics(corpus: Corpus, row: Rows, counted: Rows) -> Table:
    """Latent semantic analysis: where texts lie in the space of the leading topics.

    The basis is that of a few power iterations, which close singular values, unlike a
    decomposition, do not make depend on rounding.
    """
    from scipy.sparse import csr_array

    shape = len(corpus), corpus.vocab_size
    # Of m words each weighs 1 / sqrt(m), so that the rows of all texts have lengths of
    # about 1, times its inverse document frequency.
    share = 1 / np.sqrt(corpus.lengths.clip(1))[row]
    weights = csr_array((share, (row, corpus.tokens)), shape=shape)
    some = weights[counted]
    rare = np.log(len(counted) / (1 + some.astype(bool).sum(axis=0)))
    weights, some = weights * rare, some * rare
    size = corpus.vocab_size, min(NUM_TOPICS, corpus.vocab_size)
    basis = np.random.default_rng(0).standard_normal(size)
    for _ in range(ITERATIONS):
        basis = np.linalg.qr(some.T @ (some @ basis))[0]
    return weights @ basis


# --- Search -------------------------------------------------------------------------


def _search(
    score: Score, features: Table, pool: Rows, lot: int, spread, share_of, fresh, rng
) -> Float[np.ndarray, " texts"]:
    """Chances to keep each text, by which lots seem to gain most in both.

    In each round, lots tilted to and fro around the weights so far show the slopes of
    both gains; the next step raises the smaller one most.
    """
    num_features = features.shape[1]

    def tilted(weights) -> Any:
        # Kept by these chances, texts have a law tilted by exp(features @ weights), up
        # to a limit that a hundredth of the pool exceeds.
        tilt = features @ weights
        return np.exp(np.minimum(tilt - np.quantile(tilt[pool], 0.99), 0))

    def mean_gain(chances, number: int) -> Any:
        return np.mean([gain(chances) for _ in range(number)], axis=0)

    def gain(chances) -> Any:
        rows = rng.permutation(pool)
        real, rest = rows[:lot], rows[lot:]
        drawn = rest[rng.random(len(rest)) < chances[rest]][:lot]
        return score(drawn, real) / spread

    # Tilts and steps shrink by `size`, so that the noise of gains dies away.
    weights, size = np.zeros(num_features), 1.0
    chances = tilted(weights)
    plain, best = mean_gain(chances, 2 * share_of(CENTRE, 4)), (-np.inf, chances)
    for _ in range(share_of(ROUNDS, 2)):
        # Of random signs, as many as features, and the opposite ones: what is curved in
        # the gains cancels in their slopes.
        half = rng.choice([-TILT, TILT], (num_features, num_features)) * size
        tilts = np.vstack([half, -half])
        gains = np.array([gain(tilted(weights + tilt)) for tilt in tilts])
        # Ridge regression: a further lot for each feature, that gained nothing.
        slopes = np.linalg.lstsq(
            np.vstack([tilts, np.eye(num_features) * TILT * size]),
            np.vstack([gains - gains.mean(axis=0), np.zeros((num_features, 2))]),
        )[0]
        centre = mean_gain(chances, share_of(CENTRE, 4)) - plain
        # A t-statistic of the test grows as the root of its blocks, each of two lots
        # and of as many texts as the witness's lot is drawn from.
        blocks = len(fresh) / (lot * (2 + 1 / chances.mean()))
        best = max(best, (centre.min() * np.sqrt(blocks), chances), key=lambda x: x[0])
        weights = weights + STEP * size * _upwards(slopes, centre)
        while (chances := tilted(weights))[pool].mean() < LEAST_CHANCE:
            weights = weights * SHRINK
        size *= SHRINK
    return best[1]


def _upwards(slopes: Any, gains: Any) -> Float[np.ndarray, " features"]:
    """The step of length 1 after which the smaller gain is largest."""
    shares = np.linspace(0, 1, 41)[:, None]
    steps = shares * slopes[:, 0] + (1 - shares) * slopes[:, 1]
    steps = steps / np.linalg.norm(steps, axis=1, keepdims=True).clip(TINY)
    return steps[(gains + steps @ slopes).min(axis=1).argmax()]


# --- Test ---------------------------------------------------------------------------


def _tested(
    score: Score, fresh: Rows, chances: Any, lot: int, most: int, rng
) -> tuple[Float[np.ndarray, "blocks 3 2"], list[int]]:
    """Scores of witness, fresh text and half of both, and the rows of the witness.

    In each block texts and references are new; the mixture is of texts of the block.
    """
    kept, scores, witness = rng.random(len(fresh)) < chances[fresh], [], []
    start = 0
    while len(scores) < most:
        # References and plain texts first, then all up to the last that the lot needs.
        after = start + 2 * lot
        places = after + np.flatnonzero(kept[after:])[:lot]
        if len(places) < lot:
            break
        real, plain = np.split(fresh[start:after], 2)
        drawn = fresh[places]
        mixed = np.concatenate([drawn[: lot // 2], plain[lot // 2 :]])
        scores.append([score(rows, real) for rows in (drawn, plain, mixed)])
        witness += drawn.tolist()
        start = places[-1] + 1
    return np.array(scores).reshape(-1, 3, 2), witness


# --- Estimates ----------------------------------------------------------------------


def _correlation(lots: Float[np.ndarray, "lots 2"]) -> Estimate:
    r"""What Kendall's $\tau$ says of normal errors, $\sin(\pi \tau / 2)$; jackknife.

    A few lots with a text that repeats much move it little, unlike the usual estimate.
    Pairs of lots that are equal in one of both say nothing.
    """
    signs = np.sign(lots[:, None] - lots).prod(axis=2)
    # Concordant pairs less discordant ones, and both together, of each lot. A lot is in
    # a row and a column of pairs, so that both go when it is left out.
    agreed, untied = signs.sum(axis=1), np.abs(signs).sum(axis=1)
    tau = (agreed.sum() - 2 * agreed) / (untied.sum() - 2 * untied).clip(1)
    value = math.sin(math.pi / 2 * agreed.sum() / max(untied.sum(), 1))
    variance, degrees = jackknife_variance(np.sin(np.pi / 2 * tau))
    return interval_of(value, variance, degrees, bounds=(-1, 1))


def _means(values: Float[np.ndarray, "blocks 2"], level: float) -> list[Estimate]:
    """The means over blocks of both, with Student's intervals."""
    if len(values) < LEAST_BLOCKS:
        return [Estimate(math.nan, math.nan, math.nan, math.nan)] * 2
    return [mean_interval(x, level) for x in values.T]
