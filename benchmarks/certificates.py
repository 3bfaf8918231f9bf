"""Certify QDisc on random oracles: how wide the intervals are, and how long they take.

    python benchmarks/certificates.py tails
    python benchmarks/certificates.py quadratic
    python benchmarks/certificates.py separable

All 64 texts of three tokens over four words, LSTM oracles of hidden size 8. `tails`:
BLEU-1 with two references on both sides, ten oracles at each sigma. `quadratic`: BLEU-2
with one reference on both sides, ten oracles at each of sigma .5 and 1, and how often
the search reaches the optimum where the interval closes. `separable`: BLEU-1 of single
words, 64 texts, 1,001 candidates, ten oracles, beside the exact value.
"""

import numpy as np
from measure import run, seconds

import qdtheory as qd
from qdtheory.support.numbers import CERTIFIED

SPACE = qd.TextSpace(vocab_size=4, lengths=3)
SEEDS = 10


def oracle(seed: int, sigma: float) -> np.ndarray:
    return np.asarray(qd.oracle(SPACE, seed, sigma, size=8))


def search(pair: qd.BleuPair, p: np.ndarray) -> qd.search.Search:
    # At sigma .5 local optima abound: 64 starts reach the best of them by luck.
    return qd.search.search(pair, p, num_starts=256)


def report(sigma: float, seed: int, took: float, found: qd.Bounds) -> None:
    print(
        f"sigma {sigma:g}, seed {seed}: QDisc in [{found.qdisc:.7f}, "
        f"{found.upper_bound:.7f}], width {found.gap:.1e}, "
        f"{took:.2f} s",
        flush=True,
    )


def tails() -> None:
    pair = qd.BleuPair(SPACE, 1, 2, 2)
    qd.certify(pair, oracle(SEEDS, 1.0))  # compiles
    times, widths = [], []
    for sigma in (0.5, 1.0, 2.0):
        for seed in range(SEEDS):
            p = oracle(seed, sigma)
            took, found = seconds(qd.certify, pair, p)
            report(sigma, seed, took, found)
            times.append(took)
            widths.append(found.gap)
    print(
        f"BLEU-1, two references: {len(times)} oracles, widest interval "
        f"{max(widths):.1e} (bar 1e-5), slowest {max(times):.2f} s (bar 5 s), "
        f"median {np.median(times):.2f} s"
    )


def quadratic() -> None:
    pair = qd.BleuPair(SPACE, 2, 1, 1)
    search(pair, oracle(SEEDS, 1.0))  # compiles
    searches, intervals, shortfalls = [], [], []
    for sigma in (0.5, 1.0):
        for seed in range(SEEDS):
            p = oracle(seed, sigma)
            search_time, searched = seconds(search, pair, p)
            took, found = seconds(qd.certify, pair, p, searched.q)
            report(sigma, seed, took, found)
            print(f"    search {searched.gain:.7f} in {search_time:.2f} s")
            searches.append(search_time)
            intervals.append(took)
            scores = np.asarray(pair.text_quality(p))
            if found.gap <= CERTIFIED * np.ptp(scores):
                shortfalls.append(1 - float(searched.gain) / found.upper_bound)
    reached = sum(shortfall <= 1e-4 for shortfall in shortfalls)
    print(
        f"BLEU-2, one reference: {len(shortfalls)} of {len(intervals)} intervals "
        f"close; of these the search reaches {reached} within 1e-4, relatively, and "
        f"is {max(shortfalls):.1e} below at worst; slowest search "
        f"{max(searches):.2f} s (bar 10 s), slowest interval {max(intervals):.1f} s"
    )


def separable() -> None:
    pair = qd.pairs.single_token_bleu_pair(1000, 1000)
    qd.certify(pair, oracle(SEEDS, 1.0))  # compiles
    times, widths = [], []
    for seed in range(SEEDS):
        p = oracle(seed, 1.0)
        took, found = seconds(qd.certify, pair, p)
        exact = qd.quality_discrepancy(pair, p).qdisc
        assert found.qdisc - 1e-9 <= exact <= found.upper_bound
        report(1.0, seed, took, found)
        times.append(took)
        widths.append(found.gap)
    print(
        f"separable, 1,001 candidates: {len(times)} oracles, median width "
        f"{np.median(widths):.1e}, widest {max(widths):.1e} (bar 1e-6), median "
        f"{np.median(times):.1f} s, slowest {max(times):.1f} s"
    )


if __name__ == "__main__":
    run({"tails": tails, "quadratic": quadratic, "separable": separable})
