"""Write growth.csv: how QDisc depends on vocabulary, length, references, candidates.

LSTM oracles with embedding = hidden = 32 as in SeqGAN. One number at a time departs
from the base case: 4 tokens, texts of length 3, two references, three candidates,
sigma 1. A row says how its value was found:

    exact       the pair is linear in quality and separable in diversity
    bounds      BLEU-1, branch and bound; upper_bound is certified
    search      the best model that a search found: a lower bound
    family      the best model of a family, over all texts: a lower bound
    sampled     the same by Monte Carlo, where texts cannot be listed: the gain minus
                three standard errors, of a model whose diversity exceeds that of P by
                three standard errors at least; 0 where no such model was found

A model of a family is (1 - share) P^beta / Z + share M, with M uniform on all texts
("noise") or on one text, the likeliest known ("one text"). Where texts cannot be
listed beta divides the temperature of tokens, not of texts.

Rows that the table holds already are kept, so that the command goes on where it ended.

    python notebooks/data/make_growth.py [--scheduler ADDRESS]
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import comb

import jax
from lab import metrics

jax.config.update("jax_enable_x64", True)

import numpy as np
import tables

import qdtheory as qd


@dataclass(frozen=True)
class Setting:
    """The base case, or what departs from it."""

    vocab_size: int = 4
    length: int = 3
    references: int = 2
    candidates: int = 3
    sigma: float = 1.0


BASE, MANY = Setting(), Setting(references=10, candidates=11)
SIZES = [
    *({"vocab_size": v} for v in (2, 8, 16)),
    *({"length": length} for length in (1, 2, 4, 5, 6)),
]
LARGE = [
    *({"vocab_size": v} for v in (32, 128)),
    {"length": 8},
]
SIGMAS = [{"sigma": 2.0**k} for k in range(-6, 4)]
COUNTS = [
    *({"references": n} for n in (1, 5, 30, 1000)),
    *({"candidates": n} for n in (2, 6, 31, 101, 1001)),
]
FREE = "LL-NRR", "CR2-SE"  # without references
SEARCHED = 256  # texts at most
BOUNDED = 400  # word counts at most: the unknowns of a linear program
NUM_STARTS = 16
# Of BLEU-1: a thousandth of a typical QDisc, or a hundredth beyond so many texts.
FEW, TOLERANCE, COARSE = 1024, 1e-5, 1e-4
BETAS = 0.5, 0.7, 0.85, 1.0, 1.25, 1.6, 2.0, 3.0, 4.0
# Of the two metrics, sums of thousands of terms.
ROUNDING = 1e-12
SHARES = 0.0, *np.geomspace(0.005, 0.7, 24)
# Where the models of the families that did best over all texts are.
CHOICE = [
    *(("noise", 1.25, share) for share in (0.05, 0.1)),
    *(("noise", 1.6, share) for share in (0.15, 0.25)),
    *(("noise", 2.0, share) for share in (0.2, 0.3)),
    *(("noise", 3.0, share) for share in (0.35, 0.5)),
    *(("one text", beta, share) for beta in (0.5, 0.7, 1.0) for share in (0.3, 0.6)),
]
BATCH, BATCHES = 4000, 12
# Of diversity, in the choice of a model: about two standard errors of a batch.
MARGINS = {"CR2-SE": 0.05, "BS-1": 0.006}
ERRORS = 3.0  # standard errors
COLUMNS = (
    *("pair", "vocab_size", "length", "references", "candidates", "sigma", "seed"),
    *("method", "oracle", "qdisc", "upper_bound", "drate"),
    *("family", "beta", "share", "standard_error"),
)
KEY = COLUMNS[:8]


@cache
def space_of(setting: Setting) -> qd.TextSpace:
    return qd.TextSpace(setting.vocab_size, setting.length)


def num_texts(setting: Setting) -> int:
    return setting.vocab_size**setting.length


def num_seeds(setting: Setting, method: str) -> int:
    if num_texts(setting) > FEW:
        return 3
    return 10 if method == "exact" else 5


@cache
def oracle(setting: Setting, seed: int) -> qd.LSTMLanguageModel:
    return qd.LSTMLanguageModel.random(
        jax.random.key(seed), setting.vocab_size, sigma=setting.sigma
    )


@cache
def real(setting: Setting, seed: int) -> np.ndarray:
    return np.asarray(oracle(setting, seed).probabilities(space_of(setting)))


@cache
def whole_texts(references: int, candidates: int) -> qd.SeparablePair:
    return qd.pairs.single_token_bleu_pair(references, candidates - 1)


@cache
def bleu(space: qd.TextSpace, order: int, references: int, candidates: int):
    return qd.BleuPair(space, order, references, candidates - 1)


@cache
def bigram_coverage(space: qd.TextSpace) -> qd.LinearPair:
    shares = np.asarray(qd.ngrams.ngram_matrix(space, 2)) / (space.max_length - 1)
    return qd.LinearPair(lambda p: shares.T @ (shares @ p), qd.functions.SE)


def pair_of(name: str, setting: Setting):
    """The pair, in the form that is solved exactly where there is one."""
    if name == "LL-NRR":
        return qd.LL_NRR
    if name == "CR2-SE":
        return bigram_coverage(space_of(setting))
    order, numbers = int(name[-1]), (setting.references, setting.candidates)
    if order == setting.length:
        return whole_texts(*numbers)
    return bleu(space_of(setting), order, *numbers)


# --- All texts ----------------------------------------------------------------------


def solved(name: str, setting: Setting, seed: int) -> dict:
    pair, p = pair_of(name, setting), real(setting, seed)
    if isinstance(pair, qd.LinearPair):  # numbers have a seal, a function has none
        pair = qd.LinearPair(pair.text_quality(p), pair.g)
    found = qd.quality_discrepancy(pair, p)
    assert found.status == "exact"
    return {"qdisc": found.qdisc, "upper_bound": found.qdisc, "drate": found.drate}


def bounded(name: str, setting: Setting, seed: int) -> dict:
    """BLEU-1; its most diverse model is known up to |V| + 1 candidates."""
    pair, p = pair_of(name, setting), real(setting, seed)
    tolerance = TOLERANCE if p.size <= FEW else COARSE
    scores = np.asarray(pair.text_quality(p))
    found = qd.certify(pair, p, tolerance=tolerance / np.ptp(scores))
    row = {"qdisc": found.qdisc, "upper_bound": found.upper_bound}
    if setting.candidates <= setting.vocab_size + 1:
        tokens = space_of(setting).tokens
        repeats = (tokens == tokens[:, :1]).all(axis=1)
        row["drate"] = found.qdisc / float(scores.max() - scores[repeats].mean())
    return row


def searched(name: str, setting: Setting, seed: int) -> dict:
    found = qd.quality_discrepancy(
        pair_of(name, setting), real(setting, seed), num_starts=NUM_STARTS
    )
    return {"qdisc": found.qdisc, "drate": found.drate}


@cache
def diversities(name: str, setting: Setting) -> Callable:
    """V of many models, the rows of a matrix."""
    if name == "CR2-SE":
        return lambda q: -np.sum(q * np.log(np.where(q > 0, q, 1.0)), axis=1)
    return jax.jit(jax.vmap(pair_of(name, setting).diversity))


def in_family(name: str, setting: Setting, seed: int) -> dict:
    p = real(setting, seed)
    value = diversities(name, setting)
    scores = np.asarray(pair_of(name, setting).text_quality(p))
    ends = {
        "noise": np.full(p.size, 1 / p.size),
        "one text": np.eye(p.size)[p.argmax()],
    }
    best = {"qdisc": ROUNDING}
    shares = np.array(SHARES)[:, None]
    for beta in BETAS:
        tempered = np.asarray(qd.temper(p, beta))
        for family, end in ends.items():
            models = (1 - shares) * tempered + shares * end
            rises = np.asarray(value(np.vstack([p, models])))
            gains = np.where(rises[1:] >= rises[0], (models - p) @ scores, -np.inf)
            if gains.max() > best["qdisc"]:
                share = SHARES[gains.argmax()]
                best = {"qdisc": gains.max(), "beta": beta, "share": share}
                best["family"] = family
    return best if "family" in best else {"qdisc": 0.0}


# --- Samples ------------------------------------------------------------------------


class Sampler:
    """Texts of one oracle and of the models of its families, in batches."""

    def __init__(self, setting: Setting, seed: int):
        self.setting, self.model = setting, oracle(setting, seed)
        self.rng = np.random.default_rng(seed)
        self.key = jax.random.fold_in(jax.random.key(seed), 1)
        drawn = self.draw()
        self.text = drawn[np.asarray(self.model.log_probability(drawn)).argmax()]

    def draw(self, beta: float = 1.0) -> np.ndarray:
        """A batch from the oracle, at a temperature of tokens of 1 / beta."""
        self.key, key = jax.random.split(self.key)
        length = self.setting.length
        return np.asarray(self.model.sample(key, BATCH, length, 1 / beta))

    def mixed(self, family: str, beta: float, share: float) -> np.ndarray:
        texts = self.draw(beta).copy()
        other = self.rng.random(BATCH) < share
        if family == "one text":
            texts[other] = self.text
        else:
            size = int(other.sum()), self.setting.length
            texts[other] = self.rng.integers(self.setting.vocab_size, size=size)
        return texts

    def log_probability(self, texts, family: str, beta: float, share: float):
        """Of a model of a family, exactly."""
        base = np.asarray(self.model.log_probability(texts, 1 / beta))
        if family == "one text":
            end = np.where((texts == self.text).all(axis=1), 0.0, -np.inf)
        else:
            end = -self.setting.length * np.log(self.setting.vocab_size)
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log(1 - share) + base, np.log(share) + end)

    def compared(self, name: str, member: tuple[str, float, float]) -> np.ndarray:
        """Gain in quality and in diversity over the oracle, from one batch each."""
        p, other, q = self.draw(), self.draw(), self.mixed(*member)
        if name == "CR2-SE":
            marginals = [bigrams(x, self.setting.vocab_size) for x in (p, other, q)]
            gain = (marginals[2] - marginals[1]) @ marginals[0]
            rise = self.log_probability(p, "noise", 1.0, 0.0).mean()
            return np.array([gain, rise - self.log_probability(q, *member).mean()])
        order, k = int(name[-1]), self.setting.candidates - 1
        references = shifted(p, self.setting.references)
        gain = [
            metrics.estimate_bleu(x, references, order).value[-1] for x in (q, other)
        ]
        own = [
            metrics.estimate_bleu(x, shifted(x, k), order).value[-1] for x in (q, other)
        ]
        return np.array([gain[0] - gain[1], own[1] - own[0]])


def bigrams(texts: np.ndarray, vocab_size: int) -> np.ndarray:
    pairs = texts[:, :-1] * vocab_size + texts[:, 1:]
    return np.bincount(pairs.ravel(), minlength=vocab_size**2) / pairs.size


def shifted(texts: np.ndarray, number: int) -> np.ndarray:
    """For each text of a batch the next ones: independent of it and of each other."""
    return np.stack([np.roll(texts, -j, axis=0) for j in range(1, number + 1)], axis=1)


def sampled(name: str, setting: Setting, seed: int) -> dict:
    """A model chosen by one batch for each, judged by others."""
    sampler, chosen = Sampler(setting, seed), {}
    for member in CHOICE:
        gain, rise = sampler.compared(name, member)
        if gain > 0 and rise > MARGINS[name]:
            chosen[gain] = member
    if not chosen:
        return {"qdisc": 0.0}
    best = chosen[max(chosen)]
    draws = [sampler.compared(name, best) for _ in range(BATCHES)]
    (gain, rise), errors = np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1)
    errors /= BATCHES**0.5
    found = gain - ERRORS * errors[0] if rise >= ERRORS * errors[1] else 0.0
    family = dict(zip(("family", "beta", "share"), best))
    return family | {"qdisc": max(found, 0.0), "standard_error": errors[0]}


# --- The table ----------------------------------------------------------------------

METHODS = {
    "exact": solved,
    "bounds": bounded,
    "search": searched,
    "family": in_family,
    "sampled": sampled,
}


def method_of(name: str, setting: Setting) -> str | None:
    if name in FREE:
        return "exact"
    order = int(name[-1])
    if order == setting.length:
        return "exact"
    if order == 1:
        counts = comb(setting.length + setting.vocab_size - 1, setting.length)
        return "bounds" if counts <= BOUNDED else None
    small = num_texts(setting) <= SEARCHED
    return "search" if order < setting.length and small else None


def tasks() -> Iterator[tuple[str, Setting, str]]:
    """Pair, setting and method of each row of one seed."""
    changes = [*SIGMAS, *SIZES, *COUNTS]
    settings = [replace(BASE, **change) for change in changes]
    for setting in settings:
        for name in ("LL-NRR", "CR2-SE", "BS-1", "BS-2", "BS-3"):
            of_counts = setting.references, setting.candidates
            if name in FREE and of_counts != (BASE.references, BASE.candidates):
                continue
            if name == "CR2-SE" and setting.length == 1:
                continue
            if method := method_of(name, setting):
                yield name, setting, method
    for size in ({}, *SIZES):
        setting = replace(MANY, **size)
        if setting.length > 1 and num_texts(setting) <= FEW:
            yield "BS-1", setting, "bounds"
        yield from (("BS-1", s, "family") for s in (replace(BASE, **size), setting))
        if setting.length > 1:
            yield "CR2-SE", replace(BASE, **size), "family"
    for size in LARGE:
        yield "CR2-SE", replace(BASE, **size), "sampled"
        yield "BS-1", replace(MANY, **size), "sampled"


def problems() -> dict[tuple[str, ...], tuple]:
    """The tasks by the keys of their rows as text, small spaces first."""
    found = {}
    for name, setting, method in sorted(tasks(), key=lambda task: num_texts(task[1])):
        for seed in range(num_seeds(setting, method)):
            kind = {"pair": name, **asdict(setting), "seed": seed, "method": method}
            key = (
                f"{x:.6g}" if isinstance(x, float) else str(x)
                for x in map(kind.get, KEY)
            )
            found[tuple(key)] = name, setting, method, seed
    return found


def rest(problem: tuple[str, Setting, str, int]) -> list:
    """What the table says of one oracle, behind the key."""
    name, setting, method, seed = problem
    found = METHODS[method](name, setting, seed)
    found["oracle"] = oracle(setting, seed).fingerprint
    return [found.get(column) for column in COLUMNS[len(KEY) :]]


def main() -> None:
    """Add what the table lacks, a row at a time."""
    comments = [
        "python notebooks/data/make_growth.py",
        f"{tables.versions('jax')}; oracles of embedding = hidden = 32",
    ]
    scheduler = tables.arguments(__doc__).parse_args().scheduler
    tables.complete("growth.csv", comments, COLUMNS, problems(), rest, scheduler)


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_growth

    make_growth.main()
