"""Write growth.csv: how QDisc depends on vocabulary, length, references, candidates.

LSTM oracles with embedding = hidden = 32 as in SeqGAN. One number at a time departs
from the base case: 4 tokens, texts of length 3, two references, three candidates,
sigma 1. A row says how its value was found:

    exact       the pair is linear in quality and separable in diversity
    bounds      BLEU-1, branch and bound; upper_bound is certified
    search      the best model that a search found: a lower bound

Rows that the table holds already are kept, so that the command goes on where it ended.

    python notebooks/data/make_growth.py [--scheduler ADDRESS]
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import comb

import jax

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


BASE = Setting()
SIZES = [
    *({"vocab_size": v} for v in (2, 8, 16)),
    *({"length": length} for length in (1, 2, 4, 5, 6)),
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
COLUMNS = (
    *("pair", "vocab_size", "length", "references", "candidates", "sigma", "seed"),
    *("method", "oracle", "qdisc", "upper_bound", "drate"),
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


# --- The table ----------------------------------------------------------------------

METHODS = {"exact": solved, "bounds": bounded, "search": searched}


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
