"""Several answers a prompt: time and memory of `evaluate_prompts`, level and power.

    python benchmarks/text_prompts.py [speed | level | power]

* `speed`: 10,000 prompts of 8 outputs and a reference of 30 words, three kernels; and
  300 of them by loops over pairs of dictionaries, equal to 1e-12.
* `level`: how often two candidates of one law are told apart at .05, in 1,000 runs.
* `power`: how often the law P and P^1.6 are, with the number of prompts that is planned
  for .8 from their true difference and a pilot's variances, in 400 runs.

The world of `level` and `power` has 64 answers, each prompt a law of Dirichlet(.1), and
one reference.
"""

from collections import Counter
from dataclasses import replace
from itertools import permutations, product
from time import process_time

import numpy as np
from measure import peak, run, seconds

from qdtheory import text
from qdtheory.support.records import Estimate

NUM_PROMPTS, NUM_OUTPUTS, LENGTH, VOCAB_SIZE = 10_000, 8, 30, 5_000
FEW = 300
WORLD, POWER_OF_P = 64, 1.6


def counts(sentence: str, n: int) -> Counter:
    """The n-grams of a sentence; the sentence itself for n = 0."""
    words = sentence.split()
    return Counter(zip(*(words[k:] for k in range(n)))) if n else Counter([sentence])


def likeness(one: Counter, other: Counter) -> float:
    """Probability that an n-gram of each are equal."""
    return sum(x * other[g] for g, x in one.items()) / one.total() / other.total()


def by_loops(outputs: list, references: list) -> list[float]:
    """Mean scores by exact match and n-grams, each pair of texts by itself."""
    found = []
    for n in (0, 1, 2):
        scores = []
        for ours, real in zip(outputs, references):
            x, z = ([counts(text, n) for text in side] for side in (ours, real))
            near = np.mean([likeness(*pair) for pair in product(x, z)])
            own = np.mean([likeness(*pair) for pair in permutations(x, 2)])
            scores.append(2 * near - own)
        found.append(float(np.mean(scores)))
    return found


def speed() -> None:
    rng = np.random.default_rng(0)
    p = 1 / np.arange(1, VOCAB_SIZE + 1)

    def drawn(number: int) -> list[list[str]]:
        rows = rng.choice(VOCAB_SIZE, (NUM_PROMPTS, number, LENGTH), p=p / p.sum())
        return [[" ".join(map(str, row)) for row in block] for block in rows.tolist()]

    ours, real = drawn(NUM_OUTPUTS), drawn(1)
    kernels = "exact match", "1-grams", "2-grams"
    time, _ = seconds(text.evaluate_prompts, ours, real, kernels, clock=process_time)
    some = text.evaluate_prompts(ours[:FEW], real[:FEW], kernels)["outputs"]
    slow, expected = seconds(by_loops, ours[:FEW], real[:FEW], clock=process_time)
    found = [x.value for name, x in some.items() if name.endswith("score")]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    ratio = slow / FEW * NUM_PROMPTS / time
    print(f"speed: {time:.1f} s of CPU time, {peak():.0f} MB; loops {ratio:.1f} times")


def sharper(laws: np.ndarray, power: float) -> np.ndarray:
    laws = laws**power
    return laws / laws.sum(axis=1, keepdims=True)


def trial(num_prompts: int, number: int, seed: list[int], power: float):
    """The test of P against P^power, with new prompts."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(WORLD, 0.1), num_prompts)

    def drawn(laws: np.ndarray, k: int) -> list[list[str]]:
        points = rng.random((num_prompts, k, 1))
        answers = (points > laws.cumsum(axis=1)[:, None, :-1]).sum(axis=2)
        return [[*map(str, row)] for row in answers.tolist()]

    sides = {"P": drawn(laws, number), "other": drawn(sharper(laws, power), number)}
    report = text.evaluate_prompts(sides, drawn(laws, 1), ["exact match"])
    return report.compare("P", "other")


def level() -> None:
    for size, k in ((50, 2), (100, 2), (300, 4), (100, 8)):
        tests = (trial(size, k, [1, size, k, seed], 1) for seed in range(1000))
        share = np.mean([test.p_value < 0.05 for test in tests])
        print(f"level: {size} prompts of {k}: {share:.3f}")


def power() -> None:
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.full(WORLD, 0.1), 200_000)
    apart = ((sharper(laws, POWER_OF_P) - laws) ** 2).sum(axis=1).mean()
    pilot = trial(1000, 8, [2], POWER_OF_P)
    plan = replace(pilot, difference=Estimate(apart, 0, apart, 0)).plan()
    for k in (2, 4, 8, 16):
        size = int(plan[k])
        tests = (trial(size, k, [3, k, seed], POWER_OF_P) for seed in range(400))
        share = np.mean([test.closer == "P" for test in tests])
        print(f"power: {size} prompts of {k}: {share:.2f}")


if __name__ == "__main__":
    run({"speed": speed, "level": level, "power": power})
