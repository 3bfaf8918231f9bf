"""Random formulas for the verdict, and a referee that looks for witnesses by itself.

As a script, with a number of pairs: python tests/verdict_referee.py 2000
"""

import random
import sys
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import sympy

import qdtheory as qd

X = sympy.Symbol("x", positive=True)
NUMBERS = ["1", "2", "3", "0.5", "1.7", "0.1", "10", "(1/3)"]
BLOCKS = [
    "x", "x**2", "x**3", "sqrt(x)", "x**1.5", "x**0.3", "log(x)", "1/x", "x*log(x)",
    "exp(x)", "exp(-2*x)", "log(1 + x)", "log(1 + 5*x)", "(1 - x)**3", "1/(1 + x)",
    "(x - 0.4)**3", "log(2 - x)", "(1 - x)*log(1 - x)", "x/(0.2 + x)", "log(x)**2",
    "exp(-((x - 0.3)/0.01)**2)", "exp(-((x - 0.61803)/0.0001)**2)",
    "1/(1 + ((x - 0.42)/0.001)**2)", "exp(-1/x)", "sqrt(0.9 - x)", "log(x - 0.001)",
]  # fmt: skip


def formula(rng):
    """A sum of one to three blocks, or a function of one."""
    terms = []
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        block = rng.choice(BLOCKS)
        if rng.random() < 0.2:
            block = f"{rng.choice(['exp', 'log', 'sqrt'])}(2 + {block})"
        terms.append(f"{rng.choice('+-')} {rng.choice(NUMBERS)}*{block}")
    return " ".join(terms)


def pair_of_formulas(rng):
    """A third of the pairs match by construction, a third nearly do."""
    kind = rng.randrange(3)
    try:
        g = qd.Expression(formula(rng))
        if kind == 0:
            return qd.SeparablePair(qd.Expression(formula(rng)), g)
        f = qd.Expression(str(-g.symbolic(X).diff(X)))
        if kind == 2:
            small = rng.choice(["1e-2", "1e-4", "1e-6", "1e-9"])
            g = qd.Expression(f"{g.text} + {small}*({rng.choice(BLOCKS)})")
        return qd.SeparablePair(f, g)
    except ValueError:  # too long, or no finite number
        return None


def gains_in_50_digits(f, g, p, q):
    """Of the floats' exact values, the last of each as 1 minus the others."""
    with mpmath.workdps(60):
        p, q = ([Fraction(float(v)) for v in side] for side in (p, q))
        p[-1], q[-1] = 1 - sum(p[:-1]), 1 - sum(q[:-1])
        p, q = ([mpmath.mpf(v.numerator) / v.denominator for v in s] for s in (p, q))
        score, bonus = (
            sympy.lambdify(X, h.formula.symbolic(X), "mpmath") for h in (f, g)
        )
        quality = sum((b - a) * score(a) for a, b in zip(p, q, strict=True))
        diversity = sum(bonus(b) - bonus(a) for a, b in zip(p, q, strict=True))
    return quality, diversity


def beaten(f, g, num_texts, rng, num_points=12):
    """A witness by random models near and far and by steps, or None."""
    for _ in range(num_points):
        p = rng.dirichlet(np.full(num_texts, rng.choice([0.4, 1.0, 4.0]))) + 1e-9
        p = p / p.sum()
        score, slope = f.jet(p).value, g.jet(p).slope
        if not np.isfinite([score, slope]).all():
            continue
        u, v = score - score.mean(), slope - slope.mean()
        sizes = [np.linalg.norm(side) + 1e-300 for side in (u, v)]
        steps = [u, v, u / sizes[0] + v / sizes[1]]
        steps += list(rng.dirichlet(np.ones(num_texts), 40) - p)
        steps += list(np.eye(num_texts) - p)
        steps += [d - u * (u @ d) / (u @ u + 1e-300) for d in steps[3:]]
        steps = np.stack(steps)
        steps = steps / (np.abs(steps).max(axis=1, keepdims=True) + 1e-300)
        q = p + np.outer(np.geomspace(1, 1e-7, 15), steps).reshape(-1, num_texts)
        q = np.concatenate([q, 2 * p - q])
        q = q[q.min(axis=1) > 0]
        gains = np.stack(
            [(q - p) @ score, g.jet(q).value.sum(1) - g.jet(p).value.sum()]
        )
        for i in np.argsort(-np.nan_to_num(gains, nan=-1).min(axis=0))[:2]:
            if min(gains[:, i]) > 0 and min(gains_in_50_digits(f, g, p, q[i])) > 0:
                return p, q[i]
    return None


def referee(seed):
    """The verdict on one random pair; raises where a verdict is wrong."""
    rng = random.Random(seed)
    pair = pair_of_formulas(rng)
    if pair is None:
        return "no pair"
    num_texts = rng.choice([3, 4, 5])
    try:
        verdict = qd.check_compatibility(pair, num_texts=num_texts)
    except ValueError:
        return "error"
    if (found := verdict.witness) is not None:
        assert verdict.compatible is False
        assert min(gains_in_50_digits(pair.f, pair.g, found.p, found.q)) > 0, pair
        return "incompatible"
    assert verdict.compatible is not False, pair
    other = beaten(pair.f, pair.g, num_texts, np.random.default_rng(seed))
    if verdict.compatible:
        assert other is None, (pair, other)
        return "compatible"
    return "undecided" if other is None else "undecided, the referee has a witness"


if __name__ == "__main__":
    print(dict(Counter(referee(seed) for seed in range(int(sys.argv[1])))))
