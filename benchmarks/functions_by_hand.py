"""Do functions that a stranger writes get right answers? Counts, no timing.

    python benchmarks/functions_by_hand.py [SECTION ...] [--every 1] [--seed 0]

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
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
from jax import lax
from jax.scipy import special
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
        return re.sub(
            r"\b[xL]\b", lambda m: f"({x})" if m[0] == "x" else f"({log})", self.form
        )

    def code(self, x: Code = lambda x: x, log: Code = jnp.log) -> Code:
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
    weight = qd.saturation_weight(pair, p)
    return Answer([(weight, max(1.0, abs(np.nan_to_num(float(weight)))))])


def slopes(pair: Any, p: np.ndarray) -> Answer:
    found = qd.frontier_slopes(pair, p, -0.5)
    values = [found.quality, found.diversity, found.b]
    size = max(1e-3, *(abs(float(value)) for value in values))
    return Answer([(value, size) for value in values], seal_of(found))


def gain(found: Any, unit: float) -> Answer:
    bounds = float(found.qdisc), float(found.upper_bound)
    met = bounds[1] - bounds[0] <= 1e-5 * unit
    sealed = seal_of(found) if hasattr(found, "status") else met
    return Answer([(found.qdisc, unit)], sealed, bounds)


def discrepancy(pair: Any, p: np.ndarray) -> Answer:
    return gain(qd.quality_discrepancy(pair, p), spread(pair, p))


def certified(pair: Any, p: np.ndarray) -> Answer:
    found = qd.quality_discrepancy(pair, p, certify=True)
    return gain(found, spread(pair, p))


def interval(pair: Any, p: np.ndarray) -> Answer:
    found = qd.separable_interval(pair, p)
    bounds = float(found.qdisc), float(found.upper_bound)
    return Answer([(found.qdisc, spread(pair, p))], False, bounds)


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
    return Answer([(qd.kkt_residual(pair, p, found), scale)], seal_of(found))


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
    value = qd.bregman_divergence(pair.diversity, q, p)
    return Answer([(value, max(1.0, abs(float(value))))])


def dual(pair: Any, p: np.ndarray) -> Answer:
    scores = np.linspace(0, 1, p.size)
    least = float(pair.diversity(np.full(p.size, 1 / p.size))) - 0.1
    bound = qd.dual_bound(pair.g, scores, least, 1.0, 0.3)
    return Answer([(bound, 1.0)])


QUESTIONS: dict[str, Callable[[Any, np.ndarray], Answer]] = {
    "pareto_optimum": optimum,
    "pareto_frontier": frontier,
    "saturation_weight": saturation,
    "frontier_slopes": slopes,
    "kkt_residual": residual,
    "quality_discrepancy": discrepancy,
    "certify": certified,
    "separable_interval": interval,
    "dual_bound": dual,
    "average_discrepancy": conditional(qd.average_discrepancy),
    "pooled_discrepancy": conditional(qd.pooled_discrepancy),
    "check_compatibility": verdict,
    "check_rationality": rationality,
    "quality and diversity": metrics,
    "bregman_divergence": divergence,
}


class Refusal(NamedTuple):
    """The error of a call."""

    line: str
    from_inside: str  # why it is not one clear line of the library's own; "" if it is


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def hang(*_: object) -> None:
        raise TimeoutError(f"no answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
    elif not re.search(r"\b[fgxpw]\b|\bP\b|score|quality|diversity|0\.\d", line):
        why = "does not say what is at fault"
    return Refusal(f"{type(error).__name__}: {line[:160]}", why)


def ask(question: str, f: Any, g: Any, p: Any) -> Answer | Refusal:
    """The answer to one question on a pair, or its refusal; warnings are errors."""
    try:
        with at_most(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            return QUESTIONS[question](qd.SeparablePair(f, g), np.asarray(p, float))
    except Exception as error:
        return told(error)


def judge(truth: Answer | Refusal, found: Answer | Refusal) -> tuple[str, str]:
    """One of the five words of this file's head, and what is wrong."""
    if isinstance(found, Refusal):
        if found.from_inside:
            return "stopped", f"{found.from_inside}: {found.line}"
        return ("right" if isinstance(truth, Refusal) else "refused"), found.line
    if any(np.isnan(np.asarray(value, float)).any() for value, _ in found.values):
        if isinstance(truth, Refusal) or all(
            np.array_equal(
                np.isnan(np.asarray(a, float)), np.isnan(np.asarray(b, float))
            )
            for (a, _), (b, _) in zip(truth.values, found.values, strict=True)
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
        p = tuple(self.p)
        return judge(plainly(self.question, *self.names, p), ask(*self.asked()))

    def asked(self) -> tuple[str, Any, Any, list[float]]:
        return self.question, self.f, self.g, self.p


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
        for index in rng.choice(len(all_pairs(kind)), each, replace=False):
            p = REALS[rng.integers(len(REALS))]
            calls.append(Call(question, *all_pairs(kind)[index], p))
    return calls
