"""How often a test over prompts names a winner; prompt_test.csv.

    python notebooks/data/make_prompt_test.py

Each prompt has one human answer and up to eight generations of each model; fewer
prompts or generations are the first ones of the same run, so that rows of one world
are correlated. A one-sided t-test over the prompts has level .05.

`exact match`: 64 answers, of which each prompt has a distribution P drawn from
Dirichlet(.1), new in each run. The fair score is 2 mean K(x, z) - mean K(x, x') with
K = 1 for equal answers. `same` compares P with P, `tie` P^1.6 with the flatter power
FLAT of P that is as far from P on average, `sharper` P with P^1.6: how often is the
first named closer?

`ROUGE-L`: the answers are the 24 orders of four items, human and model are the same for
every prompt (see `orders`). `both` says how often the model is named better than a
second person in ROUGE-L to the answer and in the mean pairwise ROUGE-L, `fair` how
often the fair score of exact matches names the person closer.

2,000 runs each; 40 seconds of CPU time.
"""

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import tables
from scipy.stats import t

PROMPTS, ANSWERS, CONCENTRATION, SHARP, FLAT = 2000, 64, 0.1, 1.6, 0.506
SIZES, GENERATIONS, RUNS, LEVEL = (3, 10, 30, 100, 500, 2000), (2, 4, 8), 2000, 0.05
POPULAR, ODD = ("acbd", "bdac"), ("cbda", "dacb", "abdc", "bacd")
ORDERS = ["".join(x) for x in permutations("abcd")]


def power(p: np.ndarray, beta: float) -> np.ndarray:
    """Each row to a power, summing to 1 again."""
    with np.errstate(divide="ignore"):
        logs = beta * np.log(p)
    q = np.exp(logs - logs.max(axis=1, keepdims=True))
    return q / q.sum(axis=1, keepdims=True)


def orders() -> tuple[np.ndarray, np.ndarray]:
    """The person: 70 % two popular orders, 30 % any. The model: four other orders."""
    person = np.full(24, 0.3 / 24)
    person[[ORDERS.index(x) for x in POPULAR]] += 0.35
    model = np.zeros(24)
    model[[ORDERS.index(x) for x in ODD]] = 0.25
    return person, model


def common_subsequence(a: str, b: str) -> int:
    """Length of the longest."""
    best = np.zeros((len(a) + 1, len(b) + 1), int)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            same = best[i, j] + 1
            best[i + 1, j + 1] = same if x == y else max(best[i, j + 1], best[i + 1, j])
    return int(best[-1, -1])


def drawn(rng: np.random.Generator, q: np.ndarray, k: int) -> np.ndarray:
    """k texts of each row's distribution."""
    ends = q.cumsum(axis=1)
    u = rng.random((len(q), k)) * ends[:, -1:]
    return np.stack([(u[:, i : i + 1] > ends).sum(axis=1) for i in range(k)], axis=1)


def halves(kernel: np.ndarray, x: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
    """Mean similarity to the answer and of two generations, for each k and prompt."""
    found = []
    to_z, each = kernel[x, z], kernel[x[:, :, None], x[:, None]]
    for k in GENERATIONS:
        within = each[:, :k, :k].sum(axis=(1, 2)) - each[:, :k, :k].trace(
            axis1=1, axis2=2
        )
        found.append([to_z[:, :k].mean(axis=1), within / (k * (k - 1))])
    return found


def rejects(difference: np.ndarray, size: int) -> bool:
    """Is the mean of the first prompts above 0 by the one-sided t-test?"""
    d = difference[:size]
    spread = d.std(ddof=1) / np.sqrt(size)
    return bool(d.mean() > t.isf(LEVEL, size - 1) * spread)


def rows() -> Iterator[list]:
    """A row for each world, question, number of prompts and of generations."""
    named: dict[tuple, int] = {}

    def count(key: tuple, *differences: np.ndarray) -> None:
        for size in SIZES:
            if size <= len(differences[0]):
                here = (*key[:2], size, key[2])
                all_named = all(rejects(d, size) for d in differences)
                named[here] = named.get(here, 0) + all_named

    rng, same = np.random.default_rng([18, 30]), np.eye(ANSWERS)
    for _ in range(RUNS):
        p = rng.dirichlet(np.full(ANSWERS, CONCENTRATION), PROMPTS)
        sharp, flat = power(p, SHARP), power(p, FLAT)
        z = drawn(rng, p, 1)
        laws = p, p, sharp, flat
        by_law = [halves(same, drawn(rng, q, 8), z) for q in laws]
        for i, k in enumerate(GENERATIONS):
            a, b, s, f = (2 * h[i][0] - h[i][1] for h in by_law)
            count(("exact match", "same", k), a - b)
            count(("exact match", "tie", k), s - f)
            count(("exact match", "sharper", k), a - s)
    kernel = np.array([[common_subsequence(a, b) for b in ORDERS] for a in ORDERS]) / 4
    rng, few = np.random.default_rng([18, 35]), 500
    person, model = (np.tile(q, (few, 1)) for q in orders())
    for _ in range(RUNS):
        z, x, y = (drawn(rng, q, n) for q, n in ((person, 1), (person, 8), (model, 8)))
        second, other = halves(kernel, x, z), halves(kernel, y, z)
        exact = [halves(np.eye(24), g, z) for g in (x, y)]
        for i, k in enumerate(GENERATIONS):
            gains = other[i][0] - second[i][0], second[i][1] - other[i][1]
            count(("ROUGE-L", "both", k), *gains)
            a, b = (2 * h[i][0] - h[i][1] for h in exact)
            count(("ROUGE-L", "fair", k), a - b)
    for key, number in named.items():
        yield [*key, RUNS, number]


def main() -> None:
    """Write the table."""
    settings = (
        f"{ANSWERS} answers, Dirichlet({CONCENTRATION}), powers {SHARP} and {FLAT}; "
        f"24 orders; one answer a prompt, one-sided level {LEVEL}; seeds 18, 30 and 35"
    )
    comments = [
        "python notebooks/data/make_prompt_test.py",
        f"{tables.versions('numpy', 'scipy')}; {settings}",
    ]
    columns = ["world", "question", "prompts", "generations", "runs", "named"]
    tables.write("prompt_test.csv", comments, columns, rows())


if __name__ == "__main__":
    main()
