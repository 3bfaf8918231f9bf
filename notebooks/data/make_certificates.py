"""Write certificates.csv: QDisc of BLEU-NSBLEU on LSTM oracles, bounded on both sides.

The setting of table1.csv, with oracles of hidden size 32 and two references on both
sides: BLEU-1 by branch and bound, BLEU-2 by the cubic relaxation. Bounds are
rounded outwards. Rows already in the table are kept: to compute one anew, remove it.

    python notebooks/data/make_certificates.py [--seeds 10] [--scheduler ADDRESS]
"""

import itertools
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np
from make_table1 import NUM_REFERENCES, SIGMAS, SPACE, oracle
from tables import arguments, complete, versions

import qdtheory as qd

SIZE = 32
# Half of what the bounds are asked for; oracles differ by far more.
RELATIVE_WIDTH = 5e-4
MAX_STEPS = 2000
KEY = ("sigma", "seed", "fingerprint", "order")
VALUES = ("lower", "upper", "quality_range", "drate_lower", "drate_upper", "steps")


def interval(pair: qd.BleuPair, p, found: qd.discrepancy.Discrepancy) -> qd.Bounds:
    """What is known of QDisc, from what a search found."""
    if pair.max_order == 1:
        return qd.certify(pair, p, found.q)
    # As a share of the range of the scores, which the interval takes.
    tolerance = RELATIVE_WIDTH * found.qdisc / float(np.ptp(pair.text_quality(p)))
    bounds = qd.certify(pair, p, found.q, tolerance=tolerance, max_steps=MAX_STEPS)
    shown = qd.discrepancy.cubic_bound(pair, p, bounds.evidence)
    if shown != bounds.upper_bound:
        raise RuntimeError(f"the certificate shows {shown}, not {bounds.upper_bound}")
    return bounds


def values(problem: tuple[float, int, int]) -> list[str]:
    """What the table says of one oracle, behind the key."""
    sigma, seed, order = problem
    p = oracle(seed, SIZE, sigma)
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


def problems(num_seeds: int) -> dict[tuple[str, ...], tuple[float, int, int]]:
    """Sigma, seed and order by the key of each row."""
    found = {}
    for sigma, seed in itertools.product(SIGMAS, range(num_seeds)):
        fingerprint = qd.fingerprint(oracle(seed, SIZE, sigma))
        for order in (1, 2):
            key = f"{sigma:g}", str(seed), fingerprint, str(order)
            found[key] = sigma, seed, order
    return found


def main() -> None:
    """Add what the table lacks, row by row."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    comments = [
        "python notebooks/data/make_certificates.py; "
        + versions("jax", "numpy", "scipy"),
        "QDisc in [lower, upper]; steps are splits of boxes for order 1 and "
        "steps of the solver for order 2",
    ]
    found, columns = problems(options.seeds), KEY + VALUES
    complete("certificates.csv", comments, columns, found, values, options.scheduler)


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_certificates

    make_certificates.main()
