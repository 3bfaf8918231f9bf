"""Write table1.csv: QDisc and DRate of BLEU-NSBLEU on 100 LSTM oracles of each kind.

The setting of Li et al. 2020, table 1: 4 tokens, texts of length 3, two references.
They state neither the oracle's size (here embedding = hidden = 8 and 32) nor how many
references Self-BLEU has (here 2, and for comparison 1).

    python notebooks/data/make_table1.py [--seeds 100] [--jobs 2]
"""

import argparse
import csv
import itertools
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=4, lengths=3)
NUM_REFERENCES = 2
SIGMAS, SIZES, ORDERS, SELF_REFERENCES = (0.5, 1.0, 2.0), (8, 32), (1, 2, 3), (2, 1)
KIND = ("num_self_references", "size", "sigma", "order")
VALUES = ("seed", "qdisc", "drate", "quality_range", "status", "agreeing")


def oracle(seed: int, size: int, sigma: float) -> jax.Array:
    """The distribution over texts of the oracle of one seed."""
    return qd.oracle(SPACE, seed, sigma, size)


def rows(
    num_self_references: int, size: int, sigma: float, order: int, seeds: range
) -> list[dict]:
    """The rows of some seeds."""
    pair = qd.BleuPair(SPACE, order, NUM_REFERENCES, num_self_references)
    kind = dict(zip(KIND, (num_self_references, size, sigma, order)))
    result = []
    for seed in seeds:
        found = qd.quality_discrepancy(pair, oracle(seed, size, sigma))
        numbers = (found.qdisc, found.drate, found.quality_range)
        values = (f"{x:.9g}" for x in numbers)
        agreeing = "" if found.num_agreeing is None else found.num_agreeing
        row = dict(zip(VALUES, (seed, *values, found.status, agreeing)))
        result.append(kind | row)
    return result


def main() -> None:
    """Solve all problems in parallel processes and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    kinds = list(itertools.product(SELF_REFERENCES, SIZES, SIGMAS, ORDERS))
    start = time.perf_counter()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=spawn) as pool:
        tasks = [pool.submit(rows, *kind, range(options.seeds)) for kind in kinds]
        tables = []
        for kind, task in zip(kinds, tasks):
            tables += task.result()
            taken = time.perf_counter() - start
            print(f"{taken:6.0f} s  {kind}", file=sys.stderr)
    path = Path(__file__).with_name("table1.csv")
    with path.open("w", encoding="utf-8", newline="") as file:
        versions = f"qdtheory {qd.__version__}, jax {version('jax')}"
        print(f"# python notebooks/data/make_table1.py; {versions}", file=file)
        writer = csv.DictWriter(file, KIND + VALUES, lineterminator="\n")
        writer.writeheader()
        writer.writerows(tables)


if __name__ == "__main__":
    main()
