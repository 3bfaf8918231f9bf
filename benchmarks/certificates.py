"""Certify QDisc on random oracles: how wide the intervals are, and how long they take.

    python benchmarks/certificates.py tails
    python benchmarks/certificates.py quadratic

All 64 texts of three tokens over four words, LSTM oracles of hidden size 8. `tails`:
BLEU-1 with two references on both sides, ten oracles at each sigma. `quadratic`: BLEU-2
with one reference on both sides, ten oracles at each of sigma .5 and 1, and how far
below the upper end the search ends on its own.
"""

import sys
import time

import jax
import numpy as np

import qdtheory as qd

jax.config.update("jax_enable_x64", True)
SPACE = qd.TextSpace(vocab_size=4, lengths=3)
SEEDS = 10


def oracle(seed: int, sigma: float) -> np.ndarray:
    model = qd.LSTMLanguageModel.random(
        jax.random.key(seed), vocab_size=4, embedding_size=8, hidden_size=8, sigma=sigma
    )
    return np.asarray(model.probabilities(SPACE))


def seconds(function, *args):
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def search(pair: qd.BleuPair, p: np.ndarray) -> float:
    return float(qd.search(pair, p).gain)


def report(sigma: float, seed: int, took: float, found: qd.Interval) -> None:
    print(
        f"sigma {sigma:g}, seed {seed}: QDisc in [{found.lower:.7f}, "
        f"{found.upper:.7f}], width {found.upper - found.lower:.1e}, {took:.2f} s",
        flush=True,
    )


def tails() -> None:
    pair = qd.BleuPair(SPACE, 1, 2, 2)
    qd.bleu_1_interval(pair, oracle(SEEDS, 1.0))  # compiles
    times, widths = [], []
    for sigma in (0.5, 1.0, 2.0):
        for seed in range(SEEDS):
            p = oracle(seed, sigma)
            took, found = seconds(qd.bleu_1_interval, pair, p)
            report(sigma, seed, took, found)
            times.append(took)
            widths.append(found.upper - found.lower)
    print(
        f"BLEU-1, two references: {len(times)} oracles, widest interval "
        f"{max(widths):.1e} (bar 1e-5), slowest {max(times):.2f} s (bar 5 s), "
        f"median {np.median(times):.2f} s"
    )


def quadratic() -> None:
    pair = qd.BleuPair(SPACE, 2, 1, 1)
    search(pair, oracle(SEEDS, 1.0))  # compiles
    searches, shortfalls, times = [], [], []
    for sigma in (0.5, 1.0):
        for seed in range(SEEDS):
            p = oracle(seed, sigma)
            search_time, gain = seconds(search, pair, p)
            took, found = seconds(qd.quadratic_interval, pair, p)
            report(sigma, seed, took, found)
            shortfall = 1 - gain / found.upper
            print(
                f"    search {gain:.7f} in {search_time:.2f} s, {shortfall:.1e} below"
            )
            searches.append(search_time)
            times.append(took)
            shortfalls.append(shortfall)
    closed = np.array(shortfalls) <= 1e-4
    print(
        "BLEU-2, one reference: the search is within 1e-4, relatively, of the upper "
        f"bound for {closed.sum()} of {closed.size} oracles, at most "
        f"{max(shortfalls):.1e} below; slowest search {max(searches):.2f} s (bar "
        f"10 s), slowest interval {max(times):.1f} s"
    )


if __name__ == "__main__":
    {"tails": tails, "quadratic": quadratic}[sys.argv[1]]()
