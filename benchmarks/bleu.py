"""Time expected BLEU by the sum of powers against the sum over all tuples.

    python benchmarks/bleu.py

Three cases. The paper's setting: 64 texts and two references, value and gradient in
the candidates' and the references' distribution, against the compiled sum of the 64^3
terms, whose BLEU values are computed before and passed as an argument: term by term,
and contracted in the cheapest order. And n = 1000 against n = 2. Then the tables of
1,024 and 4,096 texts. Peak memory is that of a process of its own with all imports,
after table and evaluation.
"""

import jax
import jax.numpy as jnp
import numpy as np
from measure import peak, run, seconds

import qdtheory as qd
from qdtheory.bleu import bleu_table, text_bleu

RUNS = 200


def expected(table, q, p, n):
    return q @ text_bleu(table, p, n)


def all_tuples(tensor, q, p):
    """One term a tuple."""
    return (tensor * q[:, None, None] * p[:, None] * p).sum()


def contraction(tensor, q, p):
    """The same with the cheapest order of the sums."""
    return q @ ((tensor @ p) @ p)


def bleu_values(space: qd.TextSpace) -> jax.Array:
    """BLEU-2 of each (candidate, reference, reference), from its n-gram counts."""
    product = np.ones((space.num_texts,) * 3)
    for n in (1, 2):
        grams = space.ngrams(n)
        counts = (grams[:, :, None] == np.arange(space.vocab_size**n)).sum(1)
        most = np.maximum(counts[:, None], counts)
        matches = np.minimum(counts[:, None, None], most).sum(-1)
        product *= matches / grams.shape[1]
    return jnp.sqrt(product)


def paper() -> None:
    space = qd.TextSpace(4, 3)
    q, p = map(jnp.asarray, np.random.default_rng(0).dirichlet(np.ones(64), 2))
    table = jax.device_put(bleu_table(space, 2))
    tensor = bleu_values(space)
    ours, tuples, contracted = (
        jax.jit(jax.value_and_grad(f, argnums=(1, 2)))
        for f in (expected, all_tuples, contraction)
    )
    runs = {
        "n = 2": lambda: ours(table, q, p, 2.0),
        "n = 1000": lambda: ours(table, q, p, 1000.0),
        "tuples": lambda: tuples(tensor, q, p),
        "contraction": lambda: contracted(tensor, q, p),
    }
    exact = jax.tree.leaves(runs["n = 2"]())
    for name in ("tuples", "contraction"):
        for a, b in zip(exact, jax.tree.leaves(runs[name]()), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    runs["n = 1000"]()

    # Interleaved, so that other load meets all of them, and in random order: what ran
    # before decides what the caches hold.
    times = {name: [] for name in runs}
    rng = np.random.default_rng(1)
    for name in rng.permutation(np.repeat(list(runs), RUNS)):
        times[str(name)].append(seconds(runs[str(name)])[0])
    median = {name: 1e6 * np.median(taken) for name, taken in times.items()}
    least = {name: 1e6 * min(taken) for name, taken in times.items()}
    print(f"64 texts, two references, value and gradient: {median['n = 2']:.0f} us")
    for name, what in (("tuples", "term by term"), ("contraction", "contracted")):
        print(
            f"  64^3 terms, {what}: {median[name]:.0f} us, ratio "
            f"{median[name] / median['n = 2']:.1f} (of the least "
            f"{least[name] / least['n = 2']:.1f}; bar 3)"
        )
    print(
        f"  n = 1000: {median['n = 1000'] / median['n = 2']:.2f} times n = 2 (of the "
        f"least {least['n = 1000'] / least['n = 2']:.2f}; bar 1.5)",
        flush=True,
    )


def large(vocab_size: int, length: int) -> None:
    space = qd.TextSpace(vocab_size, length)
    before = peak()
    building, _ = seconds(bleu_table, space, 2)
    table = jax.device_put(bleu_table(space, 2))
    q, p = np.random.default_rng(0).dirichlet(np.ones(space.num_texts), 2)
    value = jax.jit(expected)
    slope = jax.jit(jax.value_and_grad(expected, argnums=(1, 2)))
    evaluating, deriving = (
        np.median([seconds(f, table, q, p, 2.0)[0] for _ in range(21)][1:])
        for f in (value, slope)
    )
    print(
        f"{space.num_texts:,} texts, order 2, K = {table.num_sets:,}: table "
        f"{building:.2f} s, value {1e3 * evaluating:.1f} ms, with gradient "
        f"{1e3 * deriving:.1f} ms; peak memory {peak():.0f} MB, {before:.0f} before",
        flush=True,
    )


CASES = {
    "paper": paper,
    "long": lambda: large(4, 5),
    "wide": lambda: large(8, 4),
}

if __name__ == "__main__":
    run(CASES)
