"""Compare the default search for QDisc with the paper's method on 90 problems.

    python benchmarks/search.py [NUM_SEEDS]

All texts of 3 tokens over 4 words, BLEU and Self-BLEU of orders 1, 2 and 3 with two
references each, LSTM oracles of hidden and embedding size 8 and 32 in turn, sigma 0.5,
1 and 2, ten seeds. Each method runs a batch of problems in one compiled call, in turns.
The paper's method is timed by itself too: one problem at a time on a jitted sum over
all 64^3 triples, term by term and contracted, 200 of its 15,000 steps for Q.
"""

import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from bleu import all_tuples, contraction
from measure import seconds

import qdtheory as qd

SPACE, SIGMAS = qd.TextSpace(vocab_size=4, lengths=3), (0.5, 1.0, 2.0)


def oracles(num_seeds: int) -> jax.Array:
    rows = [
        qd.oracle(SPACE, seed, sigma, size=(8, 32)[seed % 2])
        for sigma in SIGMAS
        for seed in range(num_seeds)
    ]
    return jnp.stack(rows)


def seconds_by_enumeration(total: Callable, pair: qd.BleuPair, p: jax.Array) -> float:
    """The time of 15,000 SGD steps for one problem, from 200."""
    matrix = qd.BleuPair(SPACE, pair.max_order, 1, 1)
    one = jnp.stack([matrix.text_quality(e) for e in np.eye(SPACE.num_texts)], axis=1)
    # What the sum holds does not change its time: the better of two references.
    tensor = jnp.maximum(one[:, :, None], one[:, None, :])

    def loss(logits, tensor):
        q = jax.nn.softmax(logits)
        return total(tensor, q, q) - total(tensor, q, p)

    @jax.jit
    def descend(logits, tensor):
        def step(_, x):
            return x - 0.1 * jax.grad(loss)(x, tensor)

        return jax.lax.fori_loop(0, 200, step, logits)

    seconds(descend, jnp.log(p), tensor)  # compiles
    return seconds(descend, jnp.log(p), tensor)[0] * 15_000 / 200


def main() -> None:
    num_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    p = oracles(num_seeds)
    ratios, times = [], {"ascent": 0.0, "sgd": 0.0}
    enumeration = {"term by term": 0.0, "contracted": 0.0}
    for order in (1, 2, 3):
        pair = qd.BleuPair(SPACE, order, 2, 2)
        found = {}
        for method in times:
            qd.search.search(pair, p, method=method)  # compiles
        for method in times:
            spent, found[method] = seconds(qd.search.search, pair, p, method=method)
            times[method] += spent
        ours, theirs = (np.asarray(found[m].gain) for m in ("ascent", "sgd"))
        converged = int(found["ascent"].converged.sum())
        rise = ours / theirs - 1
        ratios.append(rise)
        for how, total in zip(enumeration, (all_tuples, contraction), strict=True):
            enumeration[how] += len(p) * seconds_by_enumeration(total, pair, p[0])
        print(
            f"order {order}: {len(p)} problems, gain over the penalty method least "
            f"{rise.min():+.2%}, median {np.median(rise):+.1%}; below it in "
            f"{(rise < 0).sum()}; {converged} converged",
            flush=True,
        )
    rise = np.concatenate(ratios)
    print(
        f"all: below in {(rise < 0).sum()} of {rise.size}; at least 5 % above in "
        f"{(rise >= 0.05).sum()} (bar {rise.size // 2}); "
        f"{times['ascent']:.0f} s against {times['penalty']:.0f} s in batches, ratio "
        f"{times['ascent'] / times['penalty']:.1f} (bar 4)"
    )
    for how, spent in enumeration.items():
        print(
            f"against {spent:.0f} s one problem at a time over 64^3 terms, {how}: "
            f"{spent / times['ascent']:.0f} times faster (bar 50)"
        )


if __name__ == "__main__":
    main()
