"""Do functions that a stranger writes get right answers? Counts, no timing.

    python benchmarks/functions_by_hand.py [SECTION ...] [--number N] [--seed 0] [--all]

A call is right if what it seals is the truth; withheld if it claims no more than
bounds that hold; refused with one line of the library's own; wrong if a seal or a
bound is false, or a number NaN; stopped by an error from inside, or after a minute.

Rewritings are held to the plain way to write the same function; all else to referees
that share nothing with the library: a bisection whose model and multipliers are
checked in 50 digits by weak duality, or all models of a grid.
"""

import argparse
import re
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
from jax import lax
from jax.scipy import special
from measure import at_most
from scipy.optimize import brentq

import qdtheory as qd

TOLERANCE = 1e-7  # of the scale of a number
SECONDS = 60
Code = Callable[[Any], Any]


# --- Ways to write x and log x ------------------------------------------------------
X_TEXTS = [
    "x**3/x**2", "exp(log(x))", "1/(1/x)", "(x**2)**0.5", "x*(1-x)+x**2",
    "sqrt(x)*sqrt(x)", "(x+x**2)/(1+x)", "2*x-x", "1-(1-x)", "x**0.3*x**0.7",
    "(x+0.001)-0.001", "log(exp(x))", "(1+x)**2-1-x**2-x",
]  # fmt: skip
LOG_TEXTS = [
    "-log(1/x)", "log(x**2)/2", "2*log(sqrt(x))", "log(3*x)-log(3)", "log(x**3)/3",
    "log(x/7)+log(7)", "log(x+x**2)-log(1+x)", "log(1-(1-x))", "log(exp(log(x)))",
    "(log(x)-log(1/x))/2", "log(x*sqrt(x))/1.5", "-2*log(x**-0.5)",
    "log(x*(1-x)+x**2)",
]  # fmt: skip


@jax.custom_jvp
def own_rule(x):
    return x


own_rule.defjvp(lambda x, t: (x[0], t[0]))


@jax.custom_jvp
def own_log(x):
    return jnp.log(x)


own_log.defjvp(lambda x, t: (jnp.log(x[0]), t[0] / x[0]))
IDENTITY = jnp.array([1.0, 0.0])

X_CODES: dict[str, Code] = {
    "jit": jax.jit(lambda x: 1 * x),
    "clip": lambda x: jnp.clip(x, 0, 1),
    "maximum": lambda x: jnp.maximum(x, 0),
    "relu": jax.nn.relu,
    "abs": jnp.abs,
    "double where": lambda x: jnp.where(x > 0, jnp.where(x > 0, x, 1), 0.0),
    "cond": lambda x: lax.cond(x > 0.5, lambda x: x, lambda x: 2 * x - x, x),
    "polyval": lambda x: jnp.polyval(IDENTITY, x),
    "exp of log": lambda x: jnp.exp(jnp.log(x)),
    "tanh": lambda x: jnp.tanh(jnp.arctanh(x)),
    "logistic": lambda x: jax.nn.sigmoid(special.logit(x)),
    "root of square": lambda x: jnp.sqrt(jnp.square(x)),
    "expm1": lambda x: jnp.expm1(jnp.log1p(x)),
    "float power": lambda x: x**2.5 / x**1.5,
    "int power": lambda x: x**3 / x**2,
    "custom_jvp": own_rule,
    "stop_gradient": lambda x: x * lax.stop_gradient(jnp.array(1.0)),
    "lgamma": lambda x: jnp.exp(special.gammaln(x + 1) - special.gammaln(x)),
    "erf": lambda x: special.erfinv(special.erf(x)),
    "interp": lambda x: jnp.interp(x, jnp.array([0.0, 1]), jnp.array([0.0, 1])),
    "stack": lambda x: jnp.stack([x, 0 * x]).sum(),
    "loop": lambda x: lax.fori_loop(0, 4, lambda i, y: y + x / 4, 0.0),
    "sine": lambda x: jnp.sin(jnp.arcsin(x)),
    "nan_to_num": lambda x: jnp.nan_to_num(x),
    "1 - (1 - x)": lambda x: 1 - (1 - x),
}
LOG_CODES: dict[str, Code] = {
    "log1p(x - 1)": lambda x: jnp.log1p(x - 1),
    "log of 1/x": lambda x: -jnp.log(1 / x),
    "log of square": lambda x: jnp.log(jnp.square(x)) / 2,
    "log2": lambda x: jnp.log2(x) * np.log(2),
    "log10": lambda x: jnp.log10(x) / jnp.log10(jnp.e),
    "double where": lambda x: jnp.where(
        x > 0, jnp.log(jnp.where(x > 0, x, 1.0)), -jnp.inf
    ),
    "cond": lambda x: lax.cond(x > 0, jnp.log, lambda x: -jnp.inf, x),
    "xlogy": lambda x: special.xlogy(1.0, x),
    "rel_entr": lambda x: -special.rel_entr(1.0, x),
    "logit": lambda x: special.logit(x) + jnp.log1p(-x),
    "log_sigmoid": lambda x: jax.nn.log_sigmoid(special.logit(x)),
    "arctanh": lambda x: 2 * jnp.arctanh((x - 1) / (x + 1)),
    "arcsinh": lambda x: jnp.arcsinh((x - 1 / x) / 2),
    "maximum": lambda x: jnp.log(jnp.maximum(x, 0)),
    "jit": jax.jit(jnp.log),
    "custom_jvp": own_log,
    "expm1": lambda x: jnp.log(jnp.expm1(jnp.log1p(x))),
    "lgamma": lambda x: special.gammaln(x + 1) - special.gammaln(x),
    "power": lambda x: jnp.log(x**1.5) / 1.5,
    "minus softplus": lambda x: -jnp.log1p(1 / x - 1),
}
# Whole idioms of x log x and x^2.
IDIOMS: dict[str, dict[str, Code]] = {
    "SE": {
        "entr": special.entr,
        "xlogy": lambda x: -special.xlogy(x, x),
        "rel_entr": lambda x: -special.rel_entr(x, 1.0),
        "kl_div": lambda x: -special.kl_div(x, 1.0) - x + 1,
        "log1p": lambda x: x * jnp.log1p(1 / x - 1),
        "where": lambda x: jnp.where(x > 0, -x * jnp.log(x), 0.0),
        "double where": lambda x: jnp.where(
            x > 0, -x * jnp.log(jnp.where(x > 0, x, 1.0)), 0.0
        ),
        "cond": lambda x: lax.cond(
            x > 0, lambda x: -x * jnp.log(x), lambda x: 0.0 * x, x
        ),
        "nan_to_num": lambda x: jnp.nan_to_num(-x * jnp.log(x)),
        "sum of entr": lambda x: special.entr(jnp.stack([x, 1.0 + 0 * x])).sum(),
    },
    "NRR": {
        "square": lambda x: -jnp.square(x),
        "power": lambda x: -jnp.power(x, 2.0),
        "float power": lambda x: -jnp.float_power(x, 2),
        "dot": lambda x: -jnp.dot(jnp.stack([x]), jnp.stack([x])),
        "exp": lambda x: -jnp.exp(2 * jnp.log(x)),
        "integer_pow": lambda x: -lax.integer_pow(x, 2),
        "where": lambda x: jnp.where(x > 0.5, -x * x, -(x**2)),
        "polyval": lambda x: jnp.polyval(jnp.array([-1.0, 0, 0]), x),
        "cosh": lambda x: (1 - jnp.cosh(jnp.arccosh(1 + 2 * x**2))) / 2,
        "abs": lambda x: -(jnp.abs(x) ** 2),
    },
}


# --- Plain functions: formula in x and L = log x, slope, and both limits at 0 --------
class Plain(NamedTuple):
    """One function, by which all its rewritings are judged."""

    form: str
    slope: str
    at_zero: tuple[float, float]

    def text(self, x: str = "x", log: str = "log(x)") -> str:
        """The formula with x and log x written so."""
        return re.sub(
            r"\b[xL]\b", lambda m: f"({x})" if m[0] == "x" else f"({log})", self.form
        )

    def code(self, x: Code = lambda x: x, log: Code = jnp.log) -> Code:
        """The function in JAX with x and log x computed so."""
        value = formula(self.form)
        return lambda t: value(x(t), log(t) if "L" in self.form else None)


@cache
def formula(form: str) -> Callable[[Any, Any], Any]:
    """A function of x and L, for NumPy, JAX and mpmath alike."""
    return eval(f"lambda x, L: {form}")


INF = np.inf
QUALITIES = {
    "log": Plain("L", "1/x", (-INF, INF)),
    "x": Plain("x", "1 + 0*x", (0.0, 1.0)),
}
DIVERSITIES = {
    "SE": Plain("-x*L", "-L - 1", (0.0, INF)),
    "NRR": Plain("-x**2", "-2*x", (0.0, 0.0)),
    "Tsallis": Plain("2*x - 2*x**1.5", "2 - 3*x**0.5", (0.0, 2.0)),
    "root": Plain("x**0.5", "0.5*x**-0.5", (0.0, INF)),
    "cubic": Plain("x - x**3", "1 - 3*x**2", (0.0, 1.0)),
    "log": Plain("L", "1/x", (-INF, INF)),
    "mixed": Plain("-x*L - x**2", "-L - 1 - 2*x", (0.0, INF)),
    "pole": Plain("-1/(x + 0.1)", "(x + 0.1)**-2", (-10.0, 100.0)),
    "quartic": Plain("x - x**4", "1 - 4*x**3", (0.0, 1.0)),
    "bent": Plain("x**3 - 2*x**2", "3*x**2 - 4*x", (0.0, 0.0)),
}
# Without an inflection.
CONCAVE = [name for name in DIVERSITIES if name != "bent"]
REALS = [
    [0.7, 0.3], [0.5, 0.3, 0.2], [0.6, 0.4, 0.0], [0.4, 0.4, 0.2],
    [0.5, 0.2, 0.15, 0.1, 0.05],
]  # fmt: skip


# --- What is asked, and what the answers say ----------------------------------------
class Answer(NamedTuple):
    """Numbers with their scales, whether they are claimed, and bounds on the first."""

    values: list[tuple[Any, float]]
    sealed: bool = True
    bounds: tuple[float, float] | None = None


def seal_of(found: Any) -> bool:
    """Records of the library without a status claim to be exact."""
    return getattr(found, "status", "exact") in {"exact", "certified"}


def spread(pair: Any, p: np.ndarray) -> float:
    scores = np.asarray(pair.text_quality(p))
    return float(np.ptp(scores[np.isfinite(scores)])) or 1.0


def optimum(pair: Any, p: np.ndarray, w: float = -2.0) -> Answer:
    found = qd.pareto_optimum(pair, p, w)
    size = max(abs(float(found.diversity)), 1e-3)
    values = (found.q, 1.0), (found.quality, spread(pair, p)), (found.diversity, size)
    return Answer(list(values), seal_of(found))


def frontier(pair: Any, p: np.ndarray) -> Answer:
    found = qd.pareto_frontier(pair, p, 5)
    inner = np.isfinite(found.quality) & np.isfinite(found.diversity)
    size = max(float(np.ptp(np.asarray(found.diversity)[inner])), 1e-3)
    values = (found.quality, spread(pair, p)), (found.diversity, size)
    return Answer(list(values), seal_of(found))


def saturation(pair: Any, p: np.ndarray) -> Answer:
    weight = qd.theory.saturation_weight(pair, p)
    return Answer([(weight, max(1.0, abs(np.nan_to_num(float(weight)))))])


def slopes(pair: Any, p: np.ndarray) -> Answer:
    found = qd.theory.frontier_slopes(pair, p, -0.5)
    values = [found.quality, found.diversity, found.b]
    size = max(1e-3, *(abs(float(value)) for value in values))
    return Answer([(value, size) for value in values], seal_of(found))


def gain(found: Any, unit: float) -> Answer:
    bounds = float(found.qdisc), float(found.upper_bound)
    met = bounds[1] - bounds[0] <= 1e-5 * unit
    sealed = seal_of(found) if hasattr(found, "status") else met
    return Answer([(found.qdisc, unit)], sealed, bounds)


def discrepancy(pair: Any, p: np.ndarray, **options: bool) -> Answer:
    return gain(qd.quality_discrepancy(pair, p, **options), spread(pair, p))


def interval(pair: Any, p: np.ndarray) -> Answer:
    found = qd.certify(pair, p)
    return gain(found, spread(pair, p))._replace(sealed=False)


def conditional(method: Callable) -> Callable[[Any, np.ndarray], Answer]:
    def ask(pair: Any, p: np.ndarray) -> Answer:
        rows = np.stack([p, (p + np.roll(p, 1)) / 2])
        found = method(pair, rows, np.array([0.75, 0.25]))
        return gain(found, max(spread(pair, row) for row in rows))

    return ask


def residual(pair: Any, p: np.ndarray) -> Answer:
    """Zero at the optimum of a softmax or a projection, whatever the pair says."""
    found = qd.pareto_optimum(pair, p, -0.5)
    scale = 1 + abs(float(found.b))
    return Answer([(qd.theory.kkt_residual(pair, p, found), scale)], seal_of(found))


def verdict(pair: Any, p: np.ndarray) -> Answer:
    compatible = qd.check_compatibility(pair).compatible
    return Answer([(compatible is True, 1.0)], compatible is not None)


def rationality(pair: Any, p: np.ndarray) -> Answer:
    found = qd.check_rationality(pair, 64).rational
    return Answer([(found is True, 1.0)], found is not None)


def metrics(pair: Any, p: np.ndarray) -> Answer:
    q = np.roll(p, 1)
    quality, diversity = float(pair.quality(q, p)), float(pair.diversity(q))
    return Answer([(quality, spread(pair, p)), (diversity, max(1, abs(diversity)))])


def divergence(pair: Any, p: np.ndarray) -> Answer:
    q = (p + 1 / p.size) / 2
    value = qd.theory.bregman_divergence(pair.diversity, q, p)
    return Answer([(value, max(1.0, abs(float(value))))])


def dual(pair: Any, p: np.ndarray) -> Answer:
    scores = np.linspace(0, 1, p.size)
    least = float(pair.diversity(np.full(p.size, 1 / p.size))) - 0.1
    bound = qd.qdisc.dual_bound(pair.g, scores, least, 1.0, 0.3)
    return Answer([(bound, 1.0)])


QUESTIONS: dict[str, Callable[[Any, np.ndarray], Answer]] = {
    "pareto_optimum": optimum,
    "pareto_frontier": frontier,
    "saturation_weight": saturation,
    "frontier_slopes": slopes,
    "kkt_residual": residual,
    "quality_discrepancy": discrepancy,
    "certify": partial(discrepancy, certify=True),
    "certify a model": interval,
    "dual_bound": dual,
    "average_discrepancy": conditional(qd.qdisc.average_discrepancy),
    "pooled_discrepancy": conditional(qd.qdisc.pooled_discrepancy),
    "check_compatibility": verdict,
    "check_rationality": rationality,
    "quality and diversity": metrics,
    "bregman_divergence": divergence,
}


class Refusal(NamedTuple):
    """The error of a call."""

    line: str
    from_inside: str  # why it is not one clear line of the library's own; "" if it is


# What a line may name as the fault.
FAULT = r"\b[fgxpw]\b|\bP\b|score|quality|diversity|0\.\d|numbers are at most"


def told(error: Exception) -> Refusal:
    """Whether an error is one line, raised by the library, that names what failed."""
    line, own = str(error), str(Path(qd.__file__).parent)
    raised = traceback.extract_tb(error.__traceback__)[-1].filename
    why = ""
    if not isinstance(error, ValueError | TypeError):
        why = type(error).__name__
    elif not raised.startswith(own):
        why = f"raised in {Path(raised).name}"
    elif "\n" in line or len(line) > 600:
        why = "more than one line"
    elif not re.search(FAULT, line):
        why = "does not say what is at fault"
    return Refusal(f"{type(error).__name__}: {line[:160]}", why)


def ask(question: str, f: Any, g: Any, p: Any) -> Answer | Refusal:
    """The answer to one question on a pair, or its refusal; warnings are errors."""
    try:
        with at_most(SECONDS, signal.ITIMER_REAL), warnings.catch_warnings():
            warnings.simplefilter("error")
            return QUESTIONS[question](qd.SeparablePair(f, g), np.asarray(p, float))
    except Exception as error:
        return told(error)


def is_nan(value: tuple[Any, float]) -> np.ndarray:
    return np.isnan(np.asarray(value[0], float))


def judge(truth: Answer | Refusal, found: Answer | Refusal) -> tuple[str, str]:
    """One of the five words of this file's head, and what is wrong."""
    if isinstance(found, Refusal):
        if found.from_inside:
            return "stopped", f"{found.from_inside}: {found.line}"
        return ("right" if isinstance(truth, Refusal) else "refused"), found.line
    if any(is_nan(value).any() for value in found.values):
        if isinstance(truth, Refusal) or all(
            map(np.array_equal, map(is_nan, truth.values), map(is_nan, found.values))
        ):
            return "right", ""
        return "wrong", "NaN"
    if isinstance(truth, Refusal):
        said = "sealed, where the plain function is refused: " + truth.line
        return ("wrong", said) if found.sealed else ("withheld", "")
    if found.bounds and truth.bounds:
        slack = TOLERANCE * found.values[0][1]
        if found.bounds[0] > truth.bounds[1] + slack:
            return "wrong", f"gain {found.bounds[0]:.9g} above {truth.bounds[1]:.9g}"
        if found.bounds[1] < truth.bounds[0] - slack:
            return "wrong", f"bound {found.bounds[1]:.9g} below {truth.bounds[0]:.9g}"
    if not found.sealed:
        return ("withheld" if truth.sealed else "right"), ""
    if not truth.sealed:
        return "right", ""
    for (a, scale), (b, _) in zip(truth.values, found.values, strict=True):
        a, b = np.asarray(a, float), np.asarray(b, float)
        finite = np.isfinite(a) & np.isfinite(b)
        rest = np.where(finite, a, 0) - np.where(finite, b, 0)
        same = np.where(finite, np.abs(rest) <= TOLERANCE * scale, a == b)
        if not same.all():
            return "wrong", f"{b.ravel()[:3]} instead of {a.ravel()[:3]}"
    return "right", ""


# --- Rewritings ---------------------------------------------------------------------
def ways(name: str, plain: Plain, kind: str) -> dict[str, str | Code]:
    """All ways to write a function, as "text" or as "code"."""
    found: dict[str, str | Code] = {}
    if kind == "text":
        for x in X_TEXTS if "x" in plain.form else []:
            found[f"x = {x}"] = plain.text(x=x)
        for log in LOG_TEXTS if "L" in plain.form else []:
            found[f"log x = {log}"] = plain.text(log=log)
        return found
    found["plain code"] = plain.code()
    for label, x in X_CODES.items() if "x" in plain.form else []:
        found[f"x by {label}"] = plain.code(x=x)
    for label, log in LOG_CODES.items() if "L" in plain.form else []:
        found[f"log x by {label}"] = plain.code(log=log)
    return found | IDIOMS.get(name, {})


class Call(NamedTuple):
    """One question on a pair of which f, g or both are rewritten."""

    question: str
    names: tuple[str, str]
    label: str
    f: Any
    g: Any
    p: list[float]

    def judged(self) -> tuple[str, str]:
        """Hold the answer to that of the plain pair."""
        plain = plainly(self.question, *self.names, tuple(self.p))
        return judge(plain, ask(self.question, self.f, self.g, self.p))


@cache
def plainly(question: str, f: str, g: str, p: tuple[float, ...]) -> Answer | Refusal:
    """The answer for the formulas that everybody would write."""
    return ask(question, QUALITIES[f].text(), DIVERSITIES[g].text(), p)


def pairs(kind: str) -> Iterator[tuple[tuple[str, str], str, Any, Any]]:
    """Names, label, f and g of every pair with one function rewritten."""
    for f, g in product(QUALITIES, DIVERSITIES):
        plain = QUALITIES[f], DIVERSITIES[g]
        for label, way in ways(f"f {f}", plain[0], kind).items():
            yield (f, g), f"f, {label}", way, plain[1].text()
        for label, way in ways(g, plain[1], kind).items():
            yield (f, g), f"g, {label}", plain[0].text(), way


@cache
def all_pairs(kind: str) -> list[tuple]:
    return list(pairs(kind))


def sample(kind: str, seed: int, each: int) -> list[Call]:
    """So many calls of each question, drawn from the whole product."""
    rng = np.random.default_rng([seed, len(kind), ord(kind[0])])
    calls = []
    for question in QUESTIONS:
        for _ in range(each):
            side = "f" if rng.random() < 0.25 else "g"
            drawn = [pair for pair in all_pairs(kind) if pair[1][0] == side]
            pair, p = drawn[rng.integers(len(drawn))], REALS[rng.integers(len(REALS))]
            calls.append(Call(question, *pair, p))
    return calls


# --- Referees ------------------------------------------------------------------------
class Truth(NamedTuple):
    """Bounds on QDisc in 50 digits, the model, and its offset b and multiplier eta."""

    lower: float
    upper: float
    q: np.ndarray


def at(form: str, x: np.ndarray, at_zero: float) -> np.ndarray:
    inside = np.where(x > 0, x, 0.5)
    return np.where(x > 0, formula(form)(inside, np.log(inside)), at_zero)


def inverse(g: Plain, slopes: np.ndarray) -> np.ndarray:
    """Where g' has these values, by bisection in log x; 0 or 1 beyond its ends."""
    low, high = np.full(slopes.shape, -700.0), np.zeros(slopes.shape)
    for _ in range(62):
        middle = (low + high) / 2
        right = formula(g.slope)(np.exp(middle), middle) > slopes
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return np.where(slopes >= g.at_zero[1], 0.0, np.exp(high))


def model_of(g: Plain, gaps: np.ndarray, eta: float) -> tuple[np.ndarray, float]:
    """The maximiser of U + eta V, and the price of the sum, less the best score."""

    def excess(nu: float) -> float:
        return float(inverse(g, (nu + gaps) / eta).sum()) - 1

    even = np.array([1, 1 / gaps.size])
    ends = eta * at(g.slope, even, 0) * np.ones(2)
    nu = ends[0] if excess(ends[0]) <= 0 else ends[1]
    if excess(ends[0]) > 0 > excess(ends[1]):
        nu = brentq(excess, *ends, xtol=1e-300, rtol=1e-15)
    q = inverse(g, (nu + gaps) / eta)
    return q / q.sum(), nu


def true_discrepancy(f: Plain, g: Plain, p: np.ndarray) -> Truth | None:
    """QDisc of strictly concave g; None where it is not defined."""
    u = at(f.form, p, f.at_zero[0])
    least = float(at(g.form, p, g.at_zero[0]).sum())
    if not np.isfinite([u[p > 0].sum(), least]).all():
        return None
    able = np.flatnonzero(np.isfinite(u))
    gaps = u[able].max() - u[able]
    unit = float(gaps.max())
    if unit == 0:
        return Truth(0.0, 0.0, p)

    def rise(log_eta: float) -> float:
        q = np.zeros(p.size)
        q[able], _ = model_of(g, gaps, unit * np.exp(log_eta))
        return float(at(g.form, q, g.at_zero[0]).sum()) - least

    ends = (-30.0, 30.0)
    low, high = map(rise, ends)
    log_eta = ends[0] if low >= 0 else ends[1]
    if low < 0 < high:
        log_eta = brentq(rise, *ends, xtol=1e-14)
    eta = unit * np.exp(log_eta)
    part, nu = model_of(g, gaps, eta)
    q = np.zeros(p.size)
    q[able] = p[able] if high <= 0 else part
    return checked(f, g, p, able, q, eta, nu)


def checked(f, g, p, able, q, eta, nu) -> Truth:
    """Bounds on the gain by weak duality at these multipliers, in 50 digits."""
    with mpmath.workdps(50):
        exact, total = [mpmath.mpf(x) for x in q], mpmath.fsum(q)
        p, q = [mpmath.mpf(x) for x in p], [x / total for x in exact]
        real = mpmath.fsum(p)
        p, eta, nu = [x / real for x in p], mpmath.mpf(eta), mpmath.mpf(nu)

        def value(h, x, part=0):
            form = (h.form, h.slope)[part]
            return formula(form)(x, mpmath.log(x)) if x > 0 else h.at_zero[part]

        u = {i: value(f, p[i]) for i in able}
        nu += max(u.values())

        def gain(q):
            return mpmath.fsum(u[i] * (q[i] - p[i]) for i in able)

        def diversity(q):
            return mpmath.fsum(value(g, x) for x in q)

        best, least = mpmath.mpf(0), diversity(p)
        for power in range(-20, 0):
            share = mpmath.mpf(10) ** power
            mixed = [
                (1 - share) * x + (share / len(able) if i in u else 0)
                for i, x in enumerate(q)
            ]
            if diversity(mixed) >= least:
                best = max(best, gain(mixed))
                break
        upper = nu - eta * least - mpmath.fsum(u[i] * p[i] for i in able if p[i])
        for i, x in enumerate(q):
            x = x or mpmath.mpf(0 if np.isfinite(g.at_zero[1]) else 1e-300)
            slope = eta * value(g, x, 1) + (u[i] - nu if i in u else 0)
            upper += eta * (value(g, x) - value(g, x, 1) * x)
            upper += max(slope, 0) if i in u else 0
        return Truth(float(best), float(max(upper, best)), np.array(q, float))


def zoomed(f: Code, g: Code, p: np.ndarray, rng: np.random.Generator) -> float:
    """The best gain found among a million models, ever nearer to the best so far.

    f and g are for NumPy, of any shape.
    """
    u, least = f(p), g(p).sum()
    models, best = rng.dirichlet(np.full(p.size, 0.7), 200_000), 0.0
    centres = np.vstack([p, np.eye(p.size)])
    for width in 10.0 ** -np.arange(0, 9, 0.5):
        gains = (models - p) @ u
        gains[~(g(models).sum(axis=1) >= least)] = -np.inf
        gains[~np.isfinite(gains)] = -np.inf
        top = np.argsort(gains)[-20:]
        top = top[gains[top] > -np.inf]
        best = max(best, float(gains[top].max(initial=0)))
        centres = np.vstack([centres[:1], models[top]])
        near = rng.choice(len(centres), 40_000)
        models = centres[near] + width * rng.normal(size=(near.size, p.size)) / 3
        models = np.maximum(models, 0)
        models = models[models.sum(axis=1) > 0.1]
        models /= models.sum(axis=1, keepdims=True)
        models = np.vstack([models, centres])
    return best


# --- Sections of random calls ---------------------------------------------------------
class Case(NamedTuple):
    """A call, and what judges its answer: a word of the head, and the fault."""

    about: str
    judged: Callable[[], tuple[str, str]]


def by_truth(
    plain: tuple[Plain, Plain], scale: float, f: Any, g: Any, p: np.ndarray
) -> tuple[str, str]:
    """Judge `quality_discrepancy` by bounds on its truth, in the least of the units.

    f and g are the plain functions in other words, f times a scale.
    """
    found, truth = ask("quality_discrepancy", f, g, p), true_discrepancy(*plain, p)
    if truth is None or isinstance(found, Refusal):
        return judge(Refusal("no finite quality or diversity of P", ""), found)
    lower, upper = scale * truth.lower, scale * truth.upper
    pair = qd.SeparablePair(f, g)
    scores = np.asarray(pair.text_quality(p))
    scores = scores[np.isfinite(scores)]
    even = np.full(p.size, 1 / p.size)
    one = 1e-9 * even + (1 - 1e-9) * (np.arange(p.size) == 0)
    height = abs(float(pair.diversity(even) - pair.diversity(one)))
    # Rounding of U, and of V at its price in quality: its offset has no effect else.
    price = float(np.ptp(scores)) / max(height, 1e-300)
    noise = 1e-14 * p.size * float(np.abs(scores).max())
    noise += 1e-14 * price * abs(float(pair.diversity(p)))
    unit = min(found.values[0][1], upper) + (noise + upper - lower) / TOLERANCE
    return judge(
        Answer([(lower, unit)], True, (lower, upper)),
        found._replace(values=[(found.values[0][0], unit)]),
    )


def real(rng: np.random.Generator, sizes: tuple[int, ...]) -> tuple[str, np.ndarray]:
    """P of one of six kinds."""
    n = int(rng.choice(sizes))
    kind = str(rng.choice(["any", "spiky", "ties", "zeros", "ratios", "near uniform"]))
    p = rng.dirichlet(np.full(n, 0.2 if kind == "spiky" else 1.0)) + 1e-15
    if kind == "ties":
        p = np.ceil(p * 4)
    if kind == "zeros" and n > 2:
        p[rng.choice(n, n // 3, replace=False)] = 0
    if kind == "ratios":
        p[rng.integers(n)] = 1e-12
    if kind == "near uniform":
        p = 1 + 1e-6 * rng.normal(size=n)
    return kind, p / p.sum()


def scaled(h: str | Code, scale: float, offset: float, line: float) -> str | Code:
    """In the language of h, scale * h(x) + offset + line * x."""
    if isinstance(h, str):
        return f"{scale:.1e}*({h})+{offset:.3g}+{line:.3g}*x"
    return lambda x: scale * h(x) + offset + line * x


def some(rng: np.random.Generator, name: str, plain: Plain) -> tuple[str, str | Code]:
    kind = str(rng.choice(["text", "code", "code"]))
    found = ways(name, plain, kind) or {"plain": plain.text()}
    label = str(rng.choice(list(found)))
    return f"{kind} {label}", found[label]


def idioms(rng: np.random.Generator, number: int) -> Iterator[Case]:
    """Any way to write f and g, in any unit, at any P."""
    for _ in range(number):
        f, g = str(rng.choice(list(QUALITIES))), str(rng.choice(CONCAVE))
        plain = QUALITIES[f], DIVERSITIES[g]
        (of_f, way_f), (of_g, way_g) = some(rng, "", plain[0]), some(rng, g, plain[1])
        kind, p = real(rng, (2, 2, 3, 3, 5, 8, 64, 500))
        c, d = 10.0 ** rng.integers(-8, 9, 2)
        if isinstance(way_f, str) or isinstance(way_g, str):
            c, d = min(c, 1e5), min(d, 1e5)
        a, b = rng.choice([0.0, 0.0, 1.0, -1000.0], 2)
        way_f = scaled(way_f, c, a * c, 0.0)
        way_g = scaled(way_g, d, b * d, rng.choice([0.0, 0.0, 1.0, -10.0]) * d)
        about = f"f = {f}, {of_f}; g = {g}, {of_g}; units {c:g}, {d:g}, offsets {a:g}, "
        about += f"{b:g}; N = {p.size}, {kind}"
        yield Case(about, partial(by_truth, plain, c, way_f, way_g, p))


# Formulas that are -x^2, x or log x to 1e-9, but lose their digits in 64 bits.
CANCELLING = {
    "NRR": [
        "-(exp(1e-6*x)+exp(-1e-6*x)-2)*1e6*1e6",
        "-(sqrt(1+1e-10*x**2)-1)*2*1e5*1e5",
        "-(1-(1-1e-9*x)*(1+1e-9*x))*1e6*1e6*1e6",
        "-((1000+x)**2-1000000-2000*x)",
        "-((x+1000000)-1000000)**2",
        lambda x: -2 * (jnp.cosh(1e-6 * x) - 1) * 1e12,
        lambda x: -2 * (1 - jnp.cos(1e-6 * x)) * 1e12,
        lambda x: -(jnp.exp(1e-6 * x) + jnp.exp(-1e-6 * x) - 2) * 1e12,
        lambda x: -((1e8 + x) ** 2 - 1e16 - 2e8 * x),
        lambda x: -(((x + 1e10) - 1e10) ** 2),
    ],
    "SE": [
        "-(x+1000000-1000000)*log(x)",
        "-x*(log(x*1000000)-log(1000000))",
        lambda x: -x * (jnp.log(x * 1e300) - jnp.log(1e300)),
        lambda x: -(x + 1e9 - 1e9) * jnp.log(x),
        lambda x: (x - x ** (1 + 1e-10)) / 1e-10,
    ],
    "x": [
        "(exp(1e-10*x)-1)*1e6*1e4", "(x+1000000)-1000000",
        "1/(1-1e-8*x)*1e6*100", "x+1000000", lambda x: jnp.sin(1e-9 * x) * 1e9,
        lambda x: (jnp.exp(1e-10 * x) - 1) * 1e10, lambda x: (x + 1e10) - 1e10,
    ],
    "log": [
        "log(x*1000000)-log(1000000)", lambda x: (x**1e-10 - 1) / 1e-10,
        lambda x: (jnp.log(x) + 1e10) - 1e10,
    ],
}  # fmt: skip


def cancellations(rng: np.random.Generator, number: int) -> Iterator[Case]:
    """Functions whose digits cancel, each beside a plain one."""
    written = [(name, way) for name, all_of in CANCELLING.items() for way in all_of]
    for index in range(number):
        name, way = written[index % len(written)]
        kind, p = real(rng, (3, 3, 5, 64))
        if index < len(written) or (name == "log" and p.min() == 0):
            kind, p = "fixed", np.array([0.5, 0.3, 0.2])
        g = name if name in CONCAVE and name != "log" else str(rng.choice(CONCAVE))
        f = name if name in QUALITIES else str(rng.choice(list(QUALITIES)))
        plain = QUALITIES[f], DIVERSITIES[g]
        ways_ = [way if h == name else h_.text() for h, h_ in zip((f, g), plain)]
        about = f"{way if isinstance(way, str) else 'code'} for {name}; f = {f}, "
        about += f"g = {g}; N = {p.size}, {kind}"
        yield Case(about, partial(by_truth, plain, 1.0, *ways_, p))


# --- Neither smooth nor concave everywhere --------------------------------------------
def both(h: Callable[[Any, Any], Any]) -> tuple[Code, Code]:
    """A function in JAX, and the same in NumPy."""
    return lambda x: h(jnp, x), lambda x: h(np, x)


KNOTS = np.linspace(0, 1, 3001)
FEW = KNOTS[::750]
ODD: dict[str, tuple[Any, Code]] = {
    "jump up": both(lambda m, x: -(x**2) + 0.3 * (x > 0.6)),
    "jump by where": both(lambda m, x: m.where(x > 0.5, 0.2 - x**2, -(x**2))),
    "jump down": both(lambda m, x: -(x**2) - 0.1 * (x > 0.35)),
    "a small jump": both(lambda m, x: -(x**2) + 1e-3 * (x >= 0.3)),
    "narrow spike": both(lambda m, x: -(x**2) + 0.2 * m.exp(-(((x - 0.6) * 1e4) ** 2))),
    "count of words": both(lambda m, x: 1.0 * (x > 0) - 0.1 * x**2),
    "steps": both(lambda m, x: -m.floor(8 * x) / 8 - x**2),
    "rounded": both(lambda m, x: -(m.round(x, 2) ** 2)),
    "kink": both(lambda m, x: -m.abs(x - 0.3)),
    "kink and square": both(lambda m, x: -m.abs(x - 0.3) - x**2),
    "capped": both(lambda m, x: m.minimum(x, 0.4)),
    "flat, then concave": both(lambda m, x: -(m.maximum(x - 0.2, 0) ** 2)),
    "clip": both(lambda m, x: -(m.clip(x, 0.1, 0.9) ** 2)),
    "clip of log": both(lambda m, x: -x * m.log(m.clip(x, 1e-3, 1))),
    "log of x + 1e-12": both(lambda m, x: -x * m.log(x + 1e-12)),
    "log of maximum": both(lambda m, x: m.log(m.maximum(x, 1e-6))),
    "interp, 3001 knots": both(lambda m, x: m.interp(x, KNOTS, -(KNOTS**2))),
    "interp, 5 knots": both(lambda m, x: m.interp(x, FEW, np.sqrt(FEW))),
    "float32": both(lambda m, x: -(m.asarray(x, m.float32) ** 2).astype(float)),
    "float32 entropy": (
        lambda x: special.entr(jnp.asarray(x, jnp.float32)),
        lambda x: -x * np.log(np.maximum(x, 1e-300)),
    ),
    "sine": both(lambda m, x: m.sin(6 * x)),
    "fast sine": both(lambda m, x: -(x**2) + 1e-3 * m.sin(1000 * x)),
    "faster sine": both(lambda m, x: -(x**2) + 0.01 * m.sin(2 * np.pi * 1024 * x)),
    "sine of 1/x": (
        lambda x: -(x**2) + 0.01 * x * jnp.sin(1 / x),
        lambda x: -(x**2) + 0.01 * x * np.sin(1 / np.maximum(x, 1e-300)),
    ),
    "convex": both(lambda m, x: x**2),
    "linear": both(lambda m, x: 2 * x),
    "constant": both(lambda m, x: 0 * x),
    "almost linear": ("x - 1e-9*x**2", lambda x: -1e-9 * x**2),
    "pole at 1": ("log(1.0000001-x)", lambda x: np.log(1.0000001 - x)),
    "end at 1": ("log(1-x)", lambda x: np.log(1 - x)),
    "infinite slope at 1": ("sqrt(1-x)", lambda x: np.sqrt(1 - x)),
    "pole beyond 1": ("-1/(1.001-x)", lambda x: -1 / (1.001 - x)),
    "pole at 1/2": ("-1/(x-0.5)**2", lambda x: -1 / (x - 0.5) ** 2),
    "pole at 0": ("-1/x", lambda x: -1 / x),
    "no end": (
        "x**20 - 4*x**2 - 0.1*(1-x)**20",
        lambda x: x**20 - 4 * x**2 - 0.1 * (1 - x) ** 20,
    ),
    "no end, 31": (
        "x**31 - 3*x**2 + 0.07*(1-x)**29",
        lambda x: x**31 - 3 * x**2 + 0.07 * (1 - x) ** 29,
    ),
    "nested": (
        "-exp(exp(x**0.37))+log(1+sqrt(x)*exp(x))",
        lambda x: -np.exp(np.exp(x**0.37)) + np.log(1 + np.sqrt(x) * np.exp(x)),
    ),
    "two inflections": ("-x**2+3*x**3-2*x**4", lambda x: -(x**2) + 3 * x**3 - 2 * x**4),
    "bent": ("x**3-2*x**2", lambda x: x**3 - 2 * x**2),
    "convex, then concave": ("3*x**2-2*x**3", lambda x: 3 * x**2 - 2 * x**3),
}
POSSIBLE = {
    "x": ("x", lambda x: x),
    "log": ("log(x)", np.log),
    "root, falling": ("-sqrt(x)", lambda x: -np.sqrt(x)),
    "jump": both(lambda m, x: 1.0 * (x > 0.25)),
    "clip": both(lambda m, x: m.clip(x, 0.1, 0.4)),
}


def odd(rng: np.random.Generator, number: int) -> Iterator[Case]:
    """Jumps, kinks, poles, waves: no model may beat what is called exact."""
    for index in range(number):
        g = list(ODD)[index % len(ODD)]
        f = str(rng.choice(list(POSSIBLE))) if index >= len(ODD) else "log"
        kind, p = real(rng, (2, 3, 3))
        if index < len(ODD):
            kind, p = "fixed", np.array([0.5, 0.3, 0.2])
        about = f"g = {g}, f = {f}; N = {p.size}, {kind} {p.tolist()}"
        yield Case(about, partial(by_all_models, f, g, p))


def by_all_models(f: str, g: str, p: np.ndarray) -> tuple[str, str]:
    """Judge by the model's own gain and diversity, and by a million others."""
    (way_f, own_f), (way_g, own_g) = POSSIBLE[f], ODD[g]
    real, found = p, ask("quality_discrepancy", way_f, way_g, p)
    with np.errstate(all="ignore"):
        scores = own_f(p)
        able = (scores > -np.inf) | (p > 0)  # a score of -inf leaves no mass to a text
        scores, p = scores[able], p[able]
        least = float(own_g(p).sum())
        known = np.isfinite([*scores, least]).all()
        rng = np.random.default_rng(0)
        gain = zoomed(own_f, own_g, p, rng) if known else 0.0
    if isinstance(found, Refusal) or not known:
        return judge(Refusal("not finite", ""), found)
    lower, upper = found.bounds
    rounding = 1e-15 * float(np.abs(scores).max())
    slack = 1e-9 * max(float(np.ptp(scores)), 1e-9) + rounding
    if np.isnan([lower, upper]).any():
        return "wrong", "NaN"
    if upper < gain - slack or (found.sealed and lower < gain - 10 * slack):
        seal = "sealed" if found.sealed else "bound"
        return "wrong", f"{seal} [{lower:.9g}, {upper:.9g}], a model gains {gain:.9g}"
    q = qd.quality_discrepancy(qd.SeparablePair(way_f, way_g), real).q
    q = np.asarray(q)[able]
    with np.errstate(all="ignore"):
        loss = least - float(own_g(q).sum())
    if loss > 1e-6 * abs(least):
        return "wrong", f"its model is less diverse than P by {loss:.3g}"
    if lower > slack and abs((q - p) @ scores - lower) > 1e-6 * float(np.ptp(scores)):
        return "wrong", f"its model gains {(q - p) @ scores:.9g}, not {lower:.9g}"
    return ("right" if found.sealed else "withheld"), ""


# --- Verdicts: compatible or not, from how the functions were made --------------------
def box_cox(power: float) -> Code:
    return lambda x: (x**power - 1) / power


def matched(power: float) -> Code:
    """The g of g' = -f for Box-Cox's f, exactly."""
    return lambda x: (x - x ** (1 + power) / (1 + power)) / power


def spike(x):
    return -(x**2) + 1e-4 * jnp.exp(-(((x - 0.6) * 1e5) ** 2))


def ripple(x):
    return -(x**2) + 1e-7 * jnp.sin(np.pi * 1024 * x) ** 2


# Whether a pair may be called compatible, and whether incompatible.
YES, NO, OPEN = (True, False), (False, True), (False, False)
VERDICTS: list[tuple[str, Any, Any, tuple[bool, bool]]] = [
    ("Box-Cox 1e-9", box_cox(1e-9), matched(1e-9), YES),
    ("Box-Cox 1e-10", box_cox(1e-10), matched(1e-10), YES),
    ("Box-Cox 1e-12", box_cox(1e-12), matched(1e-12), YES),
    ("Box-Cox 1e-4", box_cox(1e-4), matched(1e-4), YES),
    ("Box-Cox 1/2", box_cox(0.5), matched(0.5), YES),
    ("Box-Cox 1e-9, SE", box_cox(1e-9), "-x*log(x)", NO),
    ("Box-Cox 1e-10, SE", box_cox(1e-10), "-x*log(x)", NO),
    ("Box-Cox 1e-10, entr", box_cox(1e-10), special.entr, NO),
    ("Box-Cox 1e-3, SE", box_cox(1e-3), "-x*log(x)", NO),
    ("LL and a g of 1e-9", "log(x)", matched(1e-9), NO),
    ("LL and a g of 1e-12", "log(x)", matched(1e-12), NO),
    ("cosh 1e-6", "x", CANCELLING["NRR"][0], NO),
    ("cosh 1e-6, code", "x", CANCELLING["NRR"][7], NO),
    ("differences", "x", CANCELLING["NRR"][2], YES),
    ("squares", "x", CANCELLING["NRR"][3], YES),
    ("squares, code", "x", CANCELLING["NRR"][8], YES),
    ("NRR + 1e10", "x", lambda x: 1e10 - x**2, YES),
    ("x + 1e10", lambda x: x + 1e10, "-x**2", YES),
    ("float32 g", "x", ODD["float32"][0], OPEN),
    ("float32 f", lambda x: jnp.asarray(x, jnp.float32), "-x**2", OPEN),
    ("log1p(x - 1)", LOG_CODES["log1p(x - 1)"], "-x*log(x)", YES),
    ("jump", "x", ODD["jump up"][0], NO),
    ("LL-NRR in code", jnp.log, lambda x: -x * x, NO),
    ("LL-SE in code", jnp.log, special.entr, YES),
    ("one third, .333333", lambda x: x ** (1 / 3), "-x**1.333333", NO),
    ("slight", "x", "-x**2-1e-9*x**4", NO),
    ("slight code", "x", lambda x: -(x**2) - 1e-9 * x**4, NO),
    ("slight f", "log(x)+1e-9*x", "-x*log(x)", NO),
    ("0.3 and 1.3", "x**0.3", "-x**1.3", YES),
    ("0.1 + 0.2, code", lambda x: x ** (0.1 + 0.2), lambda x: -(x**1.3), OPEN),
    ("sine", "x", lambda x: -(x**2) + 1e-9 * jnp.sin(1000 * x), NO),
    ("spike", "x", spike, NO),
    ("ripple between 1/1024", "x", ripple, NO),
    ("where at .5", "x", lambda x: jnp.where(x < 0.5, -(x**2), -(x**2) - (x - 0.5)**2),
     NO),
    ("falling f", "-x", "x**2", NO),
    ("f constant", lambda x: 0 * x, "-x**2", NO),
]  # fmt: skip


def exact(h: str | Code) -> Code:
    """The function for mpmath; code of JAX fails there."""
    if callable(h):
        return h
    names = {"log": mpmath.log, "exp": mpmath.exp, "sqrt": mpmath.sqrt}
    return lambda x: eval(h, names | {"x": x})


def is_beaten(f: str | Code, g: str | Code, witness: qd.Witness) -> bool:
    """Whether the witness gains both, in 50 digits, where these can be computed."""
    with mpmath.workdps(50):
        p, q = ([mpmath.mpf(float(x)) for x in y] for y in (witness.p, witness.q))
        p, q = ([x / mpmath.fsum(y) for x in y] for y in (p, q))
        try:
            f, g = exact(f), exact(g)
            quality = mpmath.fsum((b - a) * f(a) for a, b in zip(p, q))
            diversity = mpmath.fsum(g(b) - g(a) for a, b in zip(p, q))
        except TypeError:
            return True
    return quality > 0 and diversity > 0


def verdicts(rng: np.random.Generator, number: int) -> Iterator[Case]:
    """Rounding errors are no witness, and a deviation below a grid no proof."""
    del rng
    for about, f, g, allowed in VERDICTS[:number]:
        yield Case(about, partial(ruled, f, g, allowed))


def ruled(f: Any, g: Any, allowed: tuple[bool, bool]) -> tuple[str, str]:
    found = ask("check_compatibility", f, g, REALS[1])
    if isinstance(found, Refusal):
        return judge(Refusal("", ""), found)
    verdict = qd.check_compatibility(qd.SeparablePair(f, g))
    if verdict.compatible is None:
        return "withheld", ""
    if not allowed[0 if verdict.compatible else 1]:
        return "wrong", f"compatible is {verdict.compatible}"
    if verdict.witness and not is_beaten(f, g, verdict.witness):
        return "wrong", "its witness gains nothing"
    return "right", ""


# --- What is no function of one real number -------------------------------------------
def branches(x):
    if x > 0.5:
        return -x
    return -(x**2)


MISTAKES: dict[str, Any] = {
    "np.log": lambda x: -x * np.log(x),
    "math.log": lambda x: -x * __import__("math").log(x),
    "Python if": branches,
    "shape (1,)": lambda x: jnp.array([-(x**2)]),
    "shape (2,)": lambda x: jnp.array([x, -(x**2)]),
    "None": lambda x: None,
    "int": lambda x: 3,
    "int of x": lambda x: jnp.int32(x),
    "bool": lambda x: x > 0.5,
    "str": lambda x: "x",
    "tuple": lambda x: (x, x),
    "dict": lambda x: {"g": x},
    "complex": lambda x: -(x**2) + 0j,
    "NaN": lambda x: x * jnp.nan,
    "NaN beyond 1/2": lambda x: jnp.where(x > 0.5, jnp.nan, -(x**2)),
    "infinite beyond 1/2": lambda x: jnp.where(x > 0.5, -jnp.inf, -(x**2)),
    "float(x)": lambda x: -(float(x) ** 2),
    "two arguments": lambda x, y: -(x**2),
    "no arguments": lambda: 1.0,
    "of a vector": lambda x: -(x**2) / x.sum(),
    "indexed": lambda x: -(x[0] ** 2),
    "Python max": lambda x: -(max(x, 0.3) ** 2),
    "while_loop": lambda x: lax.while_loop(lambda y: y < 1, lambda y: 2 * y, x),
    "pure_callback": lambda x: jax.pure_callback(np.sin, x, x),
    "random": lambda x: -(x**2) + 1e-3 * jax.random.normal(jax.random.key(0)),
    "a number": 3.0,
    "an array": np.array([1.0, 2]),
    "None itself": None,
    "empty": "",
    "2x": "2x",
    "sin": "sin(x)",
    "x^2": "-x^2",
    "sympy": __import__("sympy").Symbol("x") ** 2,
    "lambda as text": "lambda x: -x**2",
    "numpy polynomial": np.polynomial.Polynomial([0, 0, -1]),
    "poly1d": np.poly1d([-1, 0, 0]),
    "np.vectorize": np.vectorize(lambda x: -(x**2)),
    "scipy": __import__("scipy.special").special.entr,
    "partial": __import__("functools").partial(jnp.power, 2.0),
    "grad": jax.grad(lambda x: -(x**3) / 3),
    "vmap": jax.vmap(lambda x: -(x**2)),
    "eager": lambda x: -(np.asarray(x) ** 2),
}


def mistakes(rng: np.random.Generator, number: int) -> Iterator[Case]:
    """One line for what is no function, as f and as g; else a true answer."""
    del rng
    for about, h in list(MISTAKES.items())[:number]:
        for question, (f, g) in product(
            ("quality_discrepancy", "pareto_optimum", "check_compatibility"),
            ((h, "-x**2"), ("x", h)),
        ):
            side = "f" if f is h else "g"
            judged = partial(not_nan, question, f, g)
            yield Case(f"{about}, as {side}: {question}", judged)


def not_nan(question: str, f: Any, g: Any) -> tuple[str, str]:
    found = ask(question, f, g, REALS[1])
    if isinstance(found, Refusal):
        return judge(Refusal("", ""), found)
    nan = is_nan(found.values[0]).any()
    return ("wrong", "NaN") if nan and found.sealed else ("right", "")


# --- One rare text whose score sets the unit ------------------------------------------
RARE = {
    "1/x": Plain("1/x", "-1/x**2", (INF, -INF)),
    "-1/x": Plain("-1/x", "1/x**2", (-INF, INF)),
    "-1/x**0.9": Plain("-x**-0.9", "0.9*x**-1.9", (-INF, INF)),
}


def rare(rng: np.random.Generator, number: int) -> Iterator[Case]:
    """A text of probability 1e-6 to 1e-12, whose score sets the unit."""
    for index in range(number):
        tiny = 10.0 ** -rng.integers(6, 13)
        p = np.array([0.5, 0.3, 0.2 - tiny, tiny])
        f, g = list(RARE)[index % len(RARE)], str(rng.choice(CONCAVE))
        plain, unit = (RARE[f], DIVERSITIES[g]), 10.0 ** rng.integers(-6, 1)
        ways_ = scaled(plain[0].text(), unit, 0, 0), plain[1].text()
        about = f"f = {unit:g} * {f}, g = {g}, P has {tiny:g}"
        yield Case(about, partial(by_truth, plain, unit, *ways_, p))


# --- The rewritings as sections ------------------------------------------------------
def rewritings(rng: np.random.Generator, number: int) -> Iterator[Case]:
    """A sample of the product, as many calls of each question."""
    seed, each = int(rng.integers(1 << 30)), -(-number // len(QUESTIONS) // 2)
    for call in (*sample("text", seed, each), *sample("code", seed, each)):
        yield case_of(call)


def whole(rng: np.random.Generator, number: int) -> Iterator[Case]:
    """Every question on every rewriting at every P: 127,000 calls, for days."""
    del rng, number
    for kind, p in product(("text", "code"), REALS):
        for pair, question in product(pairs(kind), QUESTIONS):
            yield case_of(Call(question, *pair, p))


def case_of(call: Call) -> Case:
    about = f"{call.question}: {call.names}, {call.label}, P = {call.p}"
    return Case(about, call.judged)


SECTIONS: dict[str, tuple[Callable, int]] = {
    "rewritings": (rewritings, 600),
    "idioms": (idioms, 300),
    "cancellations": (cancellations, 60),
    "odd": (odd, 120),
    "verdicts": (verdicts, len(VERDICTS)),
    "mistakes": (mistakes, len(MISTAKES)),
    "rare": (rare, 60),
    "product": (whole, 0),
}


def main() -> int:
    """Run the sections; the exit status is 1 if an answer is wrong or stopped."""
    parser = argparse.ArgumentParser(description="Try functions that strangers write.")
    parser.add_argument("sections", nargs="*", default=list(SECTIONS)[:-1])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, help="cases of each section")
    parser.add_argument("--all", action="store_true", help="print withheld ones too")
    options = parser.parse_args()
    words = ["right", "withheld", "refused", "wrong", "stopped"]
    head = "".join(f"{word:>10}" for word in words)
    table = [f"seed {options.seed}".ljust(16) + head]
    bad = 0
    for name in options.sections:
        section, number = SECTIONS[name]
        rng = np.random.default_rng([options.seed, *name.encode()])
        answers: Counter[str] = Counter()
        for index, case in enumerate(section(rng, options.number or number)):
            word, fault = case.judged()
            answers[word] += 1
            if word in {"wrong", "stopped"} or (options.all and word != "right"):
                print(f"{name} {index}, {word}: {case.about}: {fault}", flush=True)
            if index % 10 == 9:
                jax.clear_caches()
        bad += answers["wrong"] + answers["stopped"]
        table.append(f"{name:16}" + "".join(f"{answers[word]:10}" for word in words))
    print(*table, sep="\n")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
