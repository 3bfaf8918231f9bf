"""Write compatibility_matrix.csv: which quality is compatible with which diversity.

24 qualities against 20 diversities on LSTM oracles: 4 tokens, texts of length 3,
embedding = hidden = 32 as in SeqGAN, 20 oracles of each sigma. Where the diversity is
concave, and for Self-BLEU-3, QDisc has a certificate; else it is searched for on 5
oracles of each sigma. Of the metrics since 2020 it is taken of fewer, some of none, as
the table says. Verdicts do not depend on either: "incompatible" needs a model that
beats some oracle in both metrics, built from gradients at P; "compatible" needs the
theorem that is named, whose condition is checked on every oracle. Cells that the table
has are kept, unless --all is given.

    python notebooks/data/make_compatibility_matrix.py [--jobs 2] [--all]
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

import jax
from lab import metrics

jax.config.update("jax_enable_x64", True)
# Millions of small calls: a thread for each costs more than the call.
jax.config.update("jax_cpu_enable_async_dispatch", False)

import jax.numpy as jnp
import numpy as np
import tables
from lab.metrics.markov import markov_projection
from lab.metrics.since_2020 import compression_table
from make_table1 import SPACE, oracle

import qdtheory as qd
from qdtheory.bleu import bleu_table, text_bleu
from qdtheory.functions import DIVERSITIES, QUALITIES
from qdtheory.pairs import named_pairs

SIGMAS, SIZE, NUM_ORACLES, NUM_SEARCHED = (0.5, 1.0, 2.0), 32, 20, 5
NUM_TEXTS = 10  # of Distinct-n, distinct_k and n-gram diversity
NUM_STARTS = 8
# Metrics since 2020: their QDisc is taken of fewer oracles.
RECENT = {
    *("Match", "Class LL", "Vendi LL", "Cosine^2", "ROUGE-L", "Edit"),
    *(f"distinct_{NUM_TEXTS}", "Class SE", "log Vendi", "N-gram diversity"),
    *("NCosine^2", "NROUGE-L", "NEdit", "NSelf-repetition", "NLZ78"),
}
# A gain below this is rounding: the metrics are sums of 64 terms of size 1 to 30.
ROUNDING = 1e-13
# Gradients that are proportional agree in direction to the square of this.
PARALLEL = 1e-10
COLUMNS = (
    *("quality", "references", "diversity", "self_references", "sigma"),
    *("verdict", "basis", "oracles", "beaten", "misfit"),
    *("qdisc", "qdisc_min", "qdisc_max", "drate", "drate_min", "drate_max"),
    *("method", "gap", "qdisc_0", "drate_0", "quality_gain", "diversity_gain"),
)
SLOW = {
    "N-gram diversity",
    "NCosine^2",
    "NROUGE-L",
    "NEdit",
    "NSelf-repetition",
    "NLZ78",
}


@cache
def real(seed: int, sigma: float) -> np.ndarray:
    """P of one seed, the same as in the table of BLEU and Self-BLEU."""
    return np.asarray(oracle(seed, SIZE, sigma))


# --- The metrics ------------------------------------------------------------------


def ngram_shares(space: qd.TextSpace, n: int) -> np.ndarray:
    return np.asarray(qd.ngrams.ngram_matrix(space, n)) / (3 - n + 1)


def qualities(
    space: qd.TextSpace = SPACE,
) -> dict[tuple[str, int | None], Callable]:
    """Name and references to the function from P to the scores of the texts."""
    named = {(name, None): jax.vmap(f) for name, f in QUALITIES.items()}
    found: dict[tuple[str, int | None], Callable] = {("LL", None): named["LL", None]}
    for k in (1, 0):
        projection = partial(markov_projection, space, order=k)
        found[f"Markov-{k} LL", None] = lambda p, m=projection: jnp.log(m(p))
    found |= named
    for n in (1, 2):
        found[f"CR-{n}", None] = qd.pairs.ngram_pair(space, n).text_quality
    for n in (1, 2, 3):
        for references in (1, 2, 10, 100):
            score = partial(text_bleu, bleu_table(space, n))
            found[f"BLEU-{n}", references] = partial(score, num_references=references)
    found["Match", NUM_TEXTS - 1] = qd.pairs.distinct_k_pair(NUM_TEXTS).text_quality
    found["Class LL", None] = class_pair(space).text_quality
    found["Vendi LL", None] = qd.VendiPair(cosines(space)).text_quality
    for name, kernel in kernels(space).items():
        if name not in ("LZ78", "Self-repetition"):
            found[name, 1] = qd.KernelPair(kernel).text_quality
    return found


@cache
def class_pair(space: qd.TextSpace) -> qd.PooledPair:
    """LL-SE of the 20 bags of words: a text means the same in any order."""
    bags = np.sort(space.tokens, axis=1)
    classes = np.unique(bags, axis=0, return_inverse=True)[1].ravel()
    return qd.PooledPair(qd.LL_SE, classes)


@cache
def cosines(space: qd.TextSpace) -> np.ndarray:
    """Cosine of the counts of words of each two texts."""
    counts = np.asarray(qd.ngrams.ngram_matrix(space, 1), float)
    unit = counts / np.linalg.norm(counts, axis=0)
    return unit.T @ unit


@cache
def kernels(space: qd.TextSpace) -> dict[str, np.ndarray]:
    """Similarities of two texts in use since 2020."""
    has = np.asarray(qd.ngrams.ngram_matrix(space, 2)) > 0
    ratios = compression_table(space, 2)
    return {
        "Cosine^2": cosines(space) ** 2,
        "ROUGE-L": metrics.lcs_kernel(space),
        "Edit": metrics.edit_kernel(space),
        "Self-repetition": np.log1p((has.T.astype(int) @ has).astype(float)),
        "LZ78": (ratios + ratios.T) / 2,
    }


@dataclass(frozen=True)
class Diversity:
    """A diversity, and how QDisc is found for it."""

    name: str
    self_references: int | None
    method: str  # "convex", "separable" or "search"
    value: Callable


def diversities(space: qd.TextSpace = SPACE) -> list[Diversity]:
    # SDI is NRR but for a linear term, which no verdict depends on.
    found = [
        Diversity(name, None, "convex", g.total)
        for name, g in DIVERSITIES.items()
        if name != "SDI"
    ]
    for n in (1, 2):
        shares = ngram_shares(space, n)
        nrr = lambda q, a=shares: -jnp.square(a @ q).sum()  # noqa: E731
        found.append(Diversity(f"NRR-{n}", None, "convex", nrr))
    for n in (1, 2):
        distinct = partial(qd.ngrams.expected_distinct, space, n=n, num_texts=NUM_TEXTS)
        found.append(Diversity(f"Distinct-{n}", None, "convex", distinct))
    # With one reference Self-BLEU-1 is a positive semidefinite kernel, and Self-BLEU-3
    # the chance of a repeated text, NRR.
    methods = {(1, 1): "convex", (2, 1): "search", (1, 2): "search", (2, 2): "search"}
    methods[3, 2] = "separable"
    for (n, k), method in methods.items():
        value = qd.BleuPair(space, n, 1, k).diversity
        found.append(Diversity(f"NSBLEU-{n}", k, method, value))
    # The log of Vendi of order 1; minus the inverse of that of order 2 is NCosine^2.
    for name, value in {
        f"distinct_{NUM_TEXTS}": qd.pairs.distinct_k_pair(NUM_TEXTS).diversity,
        "Class SE": class_pair(space).diversity,
        "log Vendi": qd.VendiPair(cosines(space)).diversity,
        "N-gram diversity": lambda q: sum(
            qd.ngrams.expected_distinct(space, q, n, NUM_TEXTS) for n in (1, 2, 3)
        ),
    }.items():
        found.append(Diversity(name, None, "convex", value))
    for name, kernel in kernels(space).items():
        method = "convex" if name == "Cosine^2" else "search"
        value = qd.KernelPair(kernel).diversity
        found.append(Diversity(f"N{name}", 1, method, value))
    return found


def theorems() -> dict[tuple, str]:
    """Pairs whose scores are minus the gradient of a concave V, but for a scale."""
    found = {
        ("BLEU-3", 1, "NRR", None): "Theorem 3: the pair is CR-NRR",
        ("CR-1", None, "NRR-1", None): "Theorem 3 on 1-grams",
        ("CR-2", None, "NRR-2", None): "Theorem 3 on 2-grams",
        ("BLEU-1", 1, "NSBLEU-1", 1): "positive semidefinite kernel",
        ("Cosine^2", 1, "NCosine^2", 1): "positive semidefinite kernel",
        ("Match", NUM_TEXTS - 1, f"distinct_{NUM_TEXTS}", None): "Theorem 3",
        ("Class LL", None, "Class SE", None): "Theorem 3 on classes",
        ("Vendi LL", None, "log Vendi", None): "Klein's inequality",
    }
    for f, g in product(QUALITIES, DIVERSITIES):
        if qd.check_compatibility(named_pairs()[f"{f}-{g}"]).compatible:
            found[f, None, g, None] = "Theorem 3"
    return found


# --- Verdicts ---------------------------------------------------------------------


def normal(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A function of the texts with mean 0 and variance 1 under P."""
    x = x - p @ x
    return x / np.sqrt(p @ x**2)


def misfit(p: np.ndarray, scores: np.ndarray, slope: np.ndarray) -> float:
    """How far the scores are from minus the gradient, up to shift and scale."""
    u, v = normal(p, scores), normal(p, slope)
    return float(np.sqrt(p @ (u + v) ** 2))


def witness(
    p: np.ndarray, scores: np.ndarray, slope: np.ndarray, value: Callable
) -> tuple[str, np.ndarray] | None:
    """A test's name and a model that beats P, if it gives one.

    The models are p (1 + t a + t^2 b), on the simplex for small t.
    """
    u, v = normal(p, scores), normal(p, slope)
    if misfit(p, scores, slope) > PARALLEL:
        name, curves = "first-order test", [(u + v, 0 * p)]
    else:
        name = "second-order test"
        curvature = p[:, None] * np.asarray(jax.hessian(value)(jnp.asarray(p))) * p
        basis = np.linalg.svd(np.stack([p, p * u]))[2][2:]
        sizes, vectors = np.linalg.eigh(basis @ curvature @ basis.T)
        a = vectors[:, -1] @ basis
        # Half of what a step gains in diversity is given for quality.
        b = sizes[-1] / 4 / np.sqrt(p @ (slope - p @ slope) ** 2) * u
        curves = [(a, b), (-a, b)]
    best, least = None, ROUNDING * (1 + np.abs(scores).max())
    real = float(value(jnp.asarray(p)))
    for a, b in curves:
        for t in np.geomspace(1, 1e-4, 25) / np.abs(a).max():
            q = p * (1 + t * a + t**2 * b)
            if q.min() < 0:
                continue
            q = q / q.sum()
            gain = min(scores @ (q - p), float(value(jnp.asarray(q))) - real)
            if gain > least:
                best, least = q, gain
    return None if best is None else (name, best)


# --- QDisc ------------------------------------------------------------------------


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Scored:
    """Given scores against the diversity of a pair, compiled once for all scores."""

    scores: Any
    pair: Any

    def text_quality(self, p):
        return jnp.asarray(self.scores)

    def quality(self, q, p):
        return jnp.asarray(q) @ self.scores

    def diversity(self, q):
        return self.pair.diversity(q)


def discrepancy(
    diversity: Diversity, p: np.ndarray, scores: np.ndarray
) -> qd.discrepancy.Discrepancy:
    if diversity.method == "search":
        if diversity.name[1:] in kernels(SPACE):
            of: Any = qd.KernelPair(kernels(SPACE)[diversity.name[1:]])
        else:
            order, k = int(diversity.name[-1]), diversity.self_references
            of = qd.BleuPair(SPACE, order, 1, k)
        pair: Any = Scored(scores, of)
        return qd.quality_discrepancy(pair, p, num_starts=NUM_STARTS)
    if diversity.method == "separable":
        g = qd.pairs.single_token_bleu_pair(1, diversity.self_references).g
        return qd.quality_discrepancy(qd.LinearPair(scores, g), p)
    return qd.quality_discrepancy(qd.ConcavePair(lambda p: scores, diversity.value), p)


def cells(index: int, sigma: float, wanted: set[tuple]) -> list[dict]:
    """The cells of one column at one sigma, for the qualities that are wanted."""
    given = diversities()[index]
    given = replace(given, value=jax.jit(given.value))
    slope_of, result = jax.jit(jax.grad(given.value)), []
    for (name, references), text_quality in qualities().items():
        if (name, references) not in wanted:
            continue
        few = given.method == "search" or {name, given.name} & RECENT
        number = NUM_SEARCHED if few else NUM_ORACLES
        if given.name in SLOW:
            number = 1 if sigma == 1 else 0
        score_of = jax.jit(text_quality)
        found, tests, misfits = [], [], []
        for seed in range(NUM_ORACLES):
            p = real(seed, sigma)
            scores, slope = (
                np.asarray(f(jnp.asarray(p))) for f in (score_of, slope_of)
            )
            misfits.append(misfit(p, scores, slope))
            if test := witness(p, scores, slope, given.value):
                rise = given.value(jnp.asarray(test[1])) - given.value(jnp.asarray(p))
                tests.append((test[0], scores @ (test[1] - p), float(rise)))
            if seed < number:
                found.append(discrepancy(given, p, scores))
        cell = {
            "quality": name,
            "references": references,
            "diversity": given.name,
            "self_references": given.self_references,
            "sigma": sigma,
            "beaten": len(tests),
            "misfit": max(misfits),
            "oracles": number,
        }
        if tests:
            cell["basis"] = tests[0][0]
            cell["quality_gain"], cell["diversity_gain"] = max(
                (test[1:] for test in tests), key=min
            )
        if found:
            ways = {"convex": "bounds", "separable": "root"}
            cell["method"] = ways.get(given.method, "search")
            cell["gap"] = float(max(d.upper_bound - d.qdisc for d in found))
        for label in ("qdisc", "drate") if found else ():
            # NaN without a range of quality: the most diverse model is as good as any.
            values = np.array([getattr(d, label) for d in found], float)
            cell[label], cell[f"{label}_0"] = float(np.median(values)), float(values[0])
            cell[f"{label}_min"] = float(values.min())
            cell[f"{label}_max"] = float(values.max())
        result.append(cell)
    return result


def judged(table: list[dict]) -> list[dict]:
    """The table with the verdict on each pair, the same at every sigma."""
    known = theorems()
    for cell in table:
        pair = (
            cell["quality"],
            cell["references"],
            cell["diversity"],
            cell["self_references"],
        )
        kind = [x for x in table if all(x[n] == cell[n] for n in COLUMNS[:4])]
        bases = {x["basis"] for x in kind if x["beaten"]}
        fits = max(x["misfit"] for x in kind) <= PARALLEL
        cell["verdict"] = "undecided"
        if bases:
            cell["verdict"], cell["basis"] = "incompatible", min(bases)
            assert pair not in known, pair
        elif pair in known:
            cell["verdict"], cell["basis"] = "compatible", known[pair]
            assert fits, pair
    return table


def kept() -> dict[tuple, dict]:
    """The cells that the table has, by column, sigma and quality."""
    found: dict[tuple, dict] = {}
    for row in tables.read("compatibility_matrix.csv"):
        cell: dict[str, Any] = {name: value or None for name, value in row.items()}
        for name in ("references", "self_references", "beaten", "oracles"):
            cell[name] = int(cell[name]) if cell[name] else None
        for name in ("sigma", "misfit"):
            cell[name] = float(cell[name])
        column = cell["diversity"], cell["self_references"], cell["sigma"]
        found[*column, cell["quality"], cell["references"]] = cell
    return found


def write(found: dict[tuple, dict]) -> None:
    """Write the cells that there are, in order."""
    order = [
        (v.name, v.self_references, sigma, *u)
        for v in diversities()
        for sigma in SIGMAS
        for u in qualities()
    ]
    table = judged([found[key] for key in order if key in found])
    command = "python notebooks/data/make_compatibility_matrix.py"
    tables.write(
        "compatibility_matrix.csv",
        [f"{command}; {tables.versions('jax')}"],
        COLUMNS,
        [[cell.get(column) for column in COLUMNS] for cell in table],
    )


def main() -> None:
    """Solve the columns in parallel processes and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="make every cell anew")
    options = parser.parse_args()
    start, found = time.perf_counter(), {} if options.all else kept()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=spawn) as pool:
        tasks = {}
        for (i, v), sigma in product(enumerate(diversities()), SIGMAS):
            column = v.name, v.self_references, sigma
            wanted = {u for u in qualities() if (*column, *u) not in found}
            if wanted:
                tasks[column] = pool.submit(cells, i, sigma, wanted)
        for column, task in tasks.items():
            for cell in task.result():
                found[*column, cell["quality"], cell["references"]] = cell
            write(found)
            taken = time.perf_counter() - start
            print(f"{taken:6.0f} s  {column}", file=sys.stderr)


if __name__ == "__main__":
    main()
