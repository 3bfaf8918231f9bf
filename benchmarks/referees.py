"""Hold QDisc of random pairs to a solver that shares nothing with the library.

    python benchmarks/referees.py [NUMBER]

Quality f and diversity g are drawn as formulas with random constants, products, powers
and logarithms, g concave; P has 2 to 8 texts. The referee is SLSQP on the formulas'
own values in NumPy, from four starts. A line is printed for each pair that differs by
more than 1e-7 of the range of quality, is not called exact, or stops with an error;
in a compiled function of the reader's the optimum has to be the same to 1e-12.
"""

import sys

import jax
import numpy as np
from discrepancy import by_slsqp

import qdtheory as qd

QUALITIES = [
    "{a}*log(x)",
    "log(x)/{a}",
    "{a}*x",
    "x**{e}",
    "{a}*x**{e}",
    "{a}*x+{b}*log(x)",
    "{a}*x**2+{b}*x",
    "log(x+{a})",
    "exp({b}*x)/{a}",
    "-{a}/(x+{b})",
    "{a}*sqrt(x)+{b}*x**3",
    "{a}*log({b}*x)*{c}",
]
DIVERSITIES = [
    "-{a}*x**2",
    "-{a}*x**3-{b}*x**2",
    "-{a}*x*log(x)",
    "{a}*sqrt(x)",
    "-{a}*x*log(x)-{b}*x**2",
    "x**0.7*{a}",
    "log(x+{a})*{b}",
    "-exp({b}*x)*{a}",
    "{a}*x-{b}*x**2-{c}*x**4",
    "{a}*x*(1-x)",
    "-x*log(x)*{a}+{b}*sqrt(x)",
    "(1-exp(-{b}*x))*{a}",
]


def draw(forms: list[str], rng: np.random.Generator) -> qd.Expression:
    constants = {name: f"{10 ** rng.uniform(-2, 1):.3g}" for name in "abc"}
    form = str(rng.choice(forms))
    return qd.Expression(
        form.format(e=rng.choice(["0.7", "1.5", "2", "3"]), **constants)
    )


def most_gained(scores: np.ndarray, g: qd.Expression, p: np.ndarray) -> float:
    """The best gain of a model as diverse as P up to 1e-11."""
    n, slopes = p.size, jax.jit(jax.vmap(jax.grad(g)))

    def value(q: np.ndarray) -> np.ndarray:
        return g.value(np.maximum(q, 1e-300))

    def slope(q: np.ndarray) -> np.ndarray:
        return np.asarray(slopes(np.maximum(q, 1e-12)))

    uniform, top = np.full(n, 1 / n), np.eye(n)[scores.argmax()]
    starts = (p + uniform) / 2, uniform, p, 0.9 * top + 0.1 * uniform
    slack = 1e-11 * max(1, abs(value(p).sum()))
    return by_slsqp(scores, value, slope, p, starts, slack, maxiter=500, ftol=1e-15)


def main(number: int) -> None:
    wrong = 0
    for seed in range(number):
        rng = np.random.default_rng([16, seed])
        f, g = draw(QUALITIES, rng), draw(DIVERSITIES, rng)
        n = int(rng.integers(2, 9))
        p = rng.dirichlet(np.full(n, rng.choice([0.5, 1, 3]))) * 0.999 + 0.001 / n
        pair = qd.SeparablePair(f, g)
        found = qd.quality_discrepancy(pair, p)
        scores = f.value(p)
        unit = np.ptp(scores)
        difference = found.qdisc / unit - most_gained(scores / unit, g, p)
        w = -(10 ** rng.uniform(-2, 2))
        plain = qd.pareto_optimum(pair, p, w).q
        compiled = jax.jit(lambda p, pair=pair, w=w: qd.pareto_optimum(pair, p, w).q)(p)
        apart = float(abs(plain - compiled).max())
        if abs(difference) > 1e-7 or found.status != "exact" or not apart <= 1e-12:
            wrong += 1
            print(
                f"{seed}: f = {f.text}, g = {g.text}, N = {n}: QDisc "
                f"{found.qdisc:.9g}, {difference:.1e} of the range from the referee, "
                f"{found.status}; compiled {apart:.1e}",
                flush=True,
            )
        jax.clear_caches()
    print(f"{number} pairs, {wrong} to look at")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
