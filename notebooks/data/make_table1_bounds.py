"""Write table1_bounds.csv: QDisc of BLEU-1 in table1.csv, bounded on both sides.

The 1,200 oracles of BLEU-1 there: 100 of each of two sizes and three sigmas, with two
and with one Self-BLEU reference. Branch and bound on the tails of the word counts, from
the real distribution itself: no search is trusted. Bounds are rounded outwards. The
range of quality is exact, since the most diverse model is known (N8.13).

    python notebooks/data/make_table1_bounds.py [--seeds 100] [--scheduler ADDRESS]

Rows already in the table are kept: to compute one anew, remove it.
"""

import itertools

import numpy as np
from make_certificates import outwards
from make_table1 import NUM_REFERENCES, SELF_REFERENCES, SIGMAS, SIZES, SPACE, oracle
from tables import arguments, complete, versions

import qdtheory as qd

KEY = ("num_self_references", "size", "sigma", "seed", "fingerprint")
VALUES = ("lower", "upper", "quality_range")
# The most diverse model draws one of the texts that repeat a word.
REPEATS = np.ptp(SPACE.tokens, axis=1) == 0


def values(problem: tuple[int, int, float, int]) -> list[str]:
    """What the table says of one oracle, behind the key."""
    num_self_references, size, sigma, seed = problem
    p = oracle(seed, size, sigma)
    pair = qd.BleuPair(SPACE, 1, NUM_REFERENCES, num_self_references)
    bounds, scores = qd.certify(pair, p), np.asarray(pair.text_quality(p))
    quality_range = scores.max() - scores[REPEATS].mean()
    return [*outwards(bounds.qdisc, bounds.upper_bound), f"{quality_range:.9g}"]


def problems(num_seeds: int) -> dict[tuple[str, ...], tuple[int, int, float, int]]:
    """Self-BLEU references, size, sigma and seed by the key of each row."""
    draws = [*itertools.product(SIZES, SIGMAS, range(num_seeds))]
    prints = {
        (size, sigma, seed): qd.fingerprint(oracle(seed, size, sigma))
        for size, sigma, seed in draws
    }
    found = [(k, *draw) for k in SELF_REFERENCES for draw in draws]
    return {(*map(str, one), prints[one[1:]]): one for one in found}


def main() -> None:
    """Add what the table lacks, row by row."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    options = parser.parse_args()
    comments = [
        "python notebooks/data/make_table1_bounds.py; "
        + versions("jax", "numpy", "scipy"),
        "BLEU-1 against minus Self-BLEU-1, two references: QDisc in [lower, upper]",
    ]
    found, columns = problems(options.seeds), KEY + VALUES
    complete("table1_bounds.csv", comments, columns, found, values, options.scheduler)


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_table1_bounds

    make_table1_bounds.main()
