"""Write certificates.csv: QDisc of BLEU-NSBLEU on LSTM oracles, bounded on both sides.

The setting of table1.csv, with oracles of hidden size 32 and two references on both
sides: BLEU-1 by branch and bound, BLEU-2 by the cubic relaxation. Bounds are
rounded outwards. Rows already in the table are kept: to compute one anew, remove it.

    python notebooks/data/make_certificates.py [--seeds 10]
"""

import argparse
import itertools
import sys
import time
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np
from make_table1 import NUM_REFERENCES, SIGMAS, SPACE, oracle
from tables import read, versions, write

import qdtheory as qd

SIZE = 32
# Half of what the bounds are asked for; oracles differ by far more.
RELATIVE_WIDTH = 5e-4
MAX_STEPS = 2000
KEY = ("sigma", "seed", "fingerprint", "order")
VALUES = ("lower", "upper", "quality_range", "drate_lower", "drate_upper", "steps")


def interval(pair: qd.BleuPair, p, found: qd.Discrepancy) -> qd.Interval:
    """What is known of QDisc, from what a search found."""
    if pair.max_order == 1:
        return qd.bleu_1_interval(pair, p, found.q)
    # As a share of the range of the scores, which the interval takes.
    tolerance = RELATIVE_WIDTH * found.qdisc / float(np.ptp(pair.text_quality(p)))
    bounds = qd.cubic_interval(pair, p, found.q, tolerance, MAX_STEPS)
    shown = qd.cubic_bound(pair, p, bounds.certificate)
    if shown != bounds.upper_bound:
        raise RuntimeError(f"the certificate shows {shown}, not {bounds.upper_bound}")
    return bounds


def values(p, order: int) -> list[str]:
    """What the table says of one oracle."""
    pair = qd.BleuPair(SPACE, order, NUM_REFERENCES, NUM_REFERENCES)
    found = qd.quality_discrepancy(pair, p)
    bounds, size = interval(pair, p, found), found.quality_range
    gains = outwards(bounds.qdisc, bounds.upper_bound)
    rates = outwards(bounds.qdisc / size, bounds.upper_bound / size)
    return [*gains, f"{size:.9g}", *rates, str(bounds.steps)]


def outwards(lower: float, upper: float) -> tuple[str, str]:
    """An interval in nine digits that holds this one."""
    down, up = (Context(9, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
    return f"{down.create_decimal(lower)}", f"{up.create_decimal(upper)}"


def main() -> None:
    """Add what the table lacks, row by row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    rows = {
        tuple(map(row.get, KEY)): [row[column] for column in VALUES]
        for row in read("certificates.csv")
    }
    seeds = range(parser.parse_args().seeds)
    for order, seed, sigma in itertools.product((1, 2), seeds, SIGMAS):
        p = oracle(seed, SIZE, sigma)
        key = (f"{sigma:g}", str(seed), qd.fingerprint(p), str(order))
        if key in rows:
            continue
        start = time.process_time()
        rows[key] = values(p, order)
        print(
            f"{time.process_time() - start:6.1f} s", *key, *rows[key], file=sys.stderr
        )
        write(
            "certificates.csv",
            [
                "python notebooks/data/make_certificates.py; "
                + versions("jax", "numpy", "scipy"),
                "QDisc in [lower, upper]; steps are splits of boxes for order 1 and "
                "steps of the solver for order 2",
            ],
            KEY + VALUES,
            (key + tuple(row) for key, row in sorted(rows.items())),
        )


if __name__ == "__main__":
    main()
