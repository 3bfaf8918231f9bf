"""Write table1.csv: QDisc and DRate of BLEU-NSBLEU on 100 LSTM oracles of each kind.

The setting of Li et al. 2020, table 1: 4 tokens, texts of length 3, two references.
They state neither the oracle's size (here embedding = hidden = 8 and 32) nor how many
references Self-BLEU has (here 2, and for comparison 1).

    python notebooks/data/make_table1.py [--seeds 100] [--scheduler ADDRESS]

Rows already in the table are kept: to compute all anew, remove it.
"""

import itertools

import jax
from tables import arguments, complete, versions

jax.config.update("jax_enable_x64", True)

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=4, lengths=3)
NUM_REFERENCES = 2
SIGMAS, SIZES, ORDERS, SELF_REFERENCES = (0.5, 1.0, 2.0), (8, 32), (1, 2, 3), (2, 1)
KEY = ("num_self_references", "size", "sigma", "order", "seed")
VALUES = ("qdisc", "drate", "quality_range", "status", "agreeing")


def oracle(seed: int, size: int, sigma: float) -> jax.Array:
    """The distribution over texts of the oracle of one seed."""
    return qd.oracle(SPACE, seed, sigma, size)


def values(problem: tuple[int, int, float, int, int]) -> list:
    """What the table says of one oracle, behind the key."""
    num_self_references, size, sigma, order, seed = problem
    pair = qd.BleuPair(SPACE, order, NUM_REFERENCES, num_self_references)
    found = qd.quality_discrepancy(pair, oracle(seed, size, sigma))
    numbers = (found.qdisc, found.drate, found.quality_range)
    return [*(f"{x:.9g}" for x in numbers), found.status, found.num_agreeing]


def problems(num_seeds: int) -> dict[tuple[str, ...], tuple]:
    """What stands in the key of each row, by that key."""
    kinds = itertools.product(SELF_REFERENCES, SIZES, SIGMAS, ORDERS)
    found = [(*kind, seed) for kind in kinds for seed in range(num_seeds)]
    return {tuple(map(str, problem)): problem for problem in found}


def main() -> None:
    """Add what the table lacks, a row at a time."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    options = parser.parse_args()
    comments = [f"python notebooks/data/make_table1.py; {versions('jax')}"]
    found, columns = problems(options.seeds), KEY + VALUES
    complete("table1.csv", comments, columns, found, values, options.scheduler)


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_table1

    make_table1.main()
