"""What each sampler loses of the frontier at equal diversity; samplers.csv.

    python notebooks/data/make_samplers.py

A hundred LSTM oracles of 8 words and 3 tokens, 512 texts, each decoded by 18 samplers,
with 39 values of the dial where there is one. In the world "itself" a sampler decodes
the oracle; in "blurred" it decodes a model whose laws of the next token are nine tenths
those of the oracle and one tenth uniform. Quality and diversity are always measured
against the oracle.

Of the points that keep between .25 and .95 of the oracle's entropy (for NRR, of its
collision entropy) each oracle gives the median of what is lost to the frontier at equal
diversity: in nats of LL, as a share of the gain in LL and of that in CR over the
oracle, and as a share of the best CR. A row holds quantiles of these medians over the
oracles that have points, and at how many of them the sampler loses least; a row for a
share of entropy, or of collision entropy, takes the points within .05 of it. Half a
minute of CPU time.
"""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import tables
from lab import generators as gen
from scipy.special import entr

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=8, lengths=3)
ORACLES, DIALS, BLUR = 100, 39, 0.1
WORLDS = {"itself": 0.0, "blurred": BLUR}
MEASURES = "nats", "of LL", "of CR", "of best CR"
KEPT = np.arange(3, 10) / 10
QUANTILES = 0.05, 0.25, 0.5, 0.75, 0.95


class Edt:
    """Entropy-based dynamic temperature: t = t0 .8^(theta / H) after each prefix."""

    def __init__(self, t0: float, theta: float = 1.0) -> None:
        self.t0, self.theta = t0, theta

    def __call__(self, laws: np.ndarray) -> np.ndarray:
        h = np.maximum(entropy(laws), 1e-3)[..., None]
        power = 0.8 ** (-self.theta / h) / self.t0
        changed = (laws / laws.max(axis=-1, keepdims=True)) ** power
        return changed / changed.sum(axis=-1, keepdims=True)


def samplers() -> dict[str, list[tuple]]:
    """By name, the decoders for each value of the dial, in their order."""
    grid = np.linspace(0.025, 0.975, DIALS)
    cold = np.geomspace(0.05, 0.95, DIALS)
    warm = np.geomspace(0.2, 5, DIALS)
    hot = gen.Temperature(1.5)
    found = {
        "temperature": [(gen.Temperature(t),) for t in cold],
        "EDT": [(Edt(t),) for t in np.geomspace(0.1, 3, DIALS)],
        "top-k": [(gen.TopK(k),) for k in range(1, 8)],
        "top-p": [(gen.TopP(mass),) for mass in grid],
        "min-p": [(gen.MinP(share),) for share in grid],
        "typical": [(gen.Typical(mass),) for mass in grid],
        "epsilon": [(gen.Epsilon(least),) for least in grid / 2],
        "eta": [(gen.Eta(least),) for least in np.geomspace(1e-3, 0.9, DIALS)],
        "top-H": [(gen.TopH(share),) for share in grid],
        "top-H (transformers)": [
            (gen.TopH(share, normalised=False),) for share in grid
        ],
        "min-k": [(gen.MinK(tau),) for tau in np.geomspace(1, 100, DIALS)],
        "p-less": [(gen.PLess(),)],
        "p-less-norm": [(gen.PLess(norm=True),)],
        "min-k then t": [(gen.MinK(), gen.Temperature(t)) for t in warm],
        "t then p-less": [(gen.Temperature(t), gen.PLess()) for t in warm],
        "t then p-less-norm": [
            (gen.Temperature(t), gen.PLess(norm=True)) for t in warm
        ],
        "t = 1.5 then min-p": [(hot, gen.MinP(share)) for share in grid],
        "t = 1.5 then top-p": [(hot, gen.TopP(mass)) for mass in grid],
    }
    return {name: [*group] for name, group in found.items()}


def decoded(laws: list[np.ndarray], decoders: tuple) -> np.ndarray:
    for decoder in decoders:
        laws = [decoder(law) for law in laws]
    return gen.text_distribution(laws, SPACE)


def bisected(above: Callable, low: float, high: float, size: int) -> np.ndarray:
    """For each row the number, on a log scale, above which `above` is False."""
    low, high = np.full(size, np.log(low)), np.full(size, np.log(high))
    for _ in range(45):
        middle = (low + high) / 2
        higher = above(np.exp(middle)[:, None])
        low, high = np.where(higher, middle, low), np.where(higher, high, middle)
    return np.exp(low)[:, None]


def entropy(q: np.ndarray) -> np.ndarray:
    return entr(q).sum(axis=-1)


def lost_ll(q: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Nats of LL, by the identity KL(Q || P^beta) / beta at equal entropy."""
    log_p, h = np.log(p / p.max(axis=1, keepdims=True)), entropy(q)

    def power(beta: np.ndarray) -> np.ndarray:
        x = np.exp(beta * log_p)
        return x / x.sum(axis=1, keepdims=True)

    beta = bisected(lambda b: entropy(power(b)) > h, 1e-3, 1e3, len(q))
    log_z = np.log(np.exp(beta * log_p).sum(axis=1))
    return (log_z - h) / beta[:, 0] - (q * log_p).sum(axis=1)


def best_cr(q: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The CR of the optimum (lambda P - tau)+ of equal repetition."""
    ranked = -np.sort(-p, axis=1)
    sums, m, repeats = ranked.cumsum(1), np.arange(1, p.shape[1] + 1), (q**2).sum(1)

    def optimum(slope: np.ndarray) -> np.ndarray:
        least = (slope * sums - 1) / m
        size = (slope * ranked > least).sum(axis=1)[:, None]
        tau = np.take_along_axis(least, size - 1, axis=1)
        return np.maximum(slope * ranked - tau, 0)

    slope = bisected(lambda x: (optimum(x) ** 2).sum(1) < repeats, 1e-3, 1e6, len(q))
    return (optimum(slope) * ranked).sum(axis=1)


def losses(q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each point and oracle: the measures, NaN outside; both entropies kept.

    Shapes (measures, points, oracles) and (2, points, oracles).
    """
    places = np.broadcast_to(p, q.shape)
    collisions = np.log((q**2).sum(-1)) / np.log((p**2).sum(-1))
    parts = np.stack([entropy(q) / entropy(p), collisions])
    found = np.full((len(MEASURES), *collisions.shape), np.nan)
    ll, cr = ((np.where(x > 0, x * y, 0).sum(-1)) for x, y in ((q, np.log(p)), (q, p)))
    inside = (parts[0] > 0.25) & (parts[0] < 0.95)
    lost = lost_ll(q[inside], places[inside])
    gain = lost + (ll - (p * np.log(p)).sum(-1))[inside]
    found[0, inside], found[1, inside] = lost, lost / gain
    inside = (parts[1] > 0.25) & (parts[1] < 0.95)
    best = best_cr(q[inside], places[inside])
    lost = best - cr[inside]
    gain = best - np.broadcast_to((p**2).sum(-1), inside.shape)[inside]
    found[2, inside], found[3, inside] = lost / gain, lost / best
    return found, parts


def medians(x: np.ndarray) -> np.ndarray:
    """Over the points of each oracle, NaN if there are none."""
    found = np.ma.median(np.ma.masked_invalid(x), axis=0)
    return np.ma.filled(np.ma.array(found, dtype=float), np.nan)


def rows() -> Iterator[list]:
    """A row for each world, sampler, measure and share of entropy."""
    p = np.array([qd.oracle(SPACE, seed) for seed in range(ORACLES)])
    exact = gen.next_token_distributions(p, SPACE)
    for world, blur in WORLDS.items():
        laws = [(1 - blur) * law + blur / SPACE.vocab_size for law in exact]
        table: dict[tuple, np.ndarray] = {}
        for name, group in samplers().items():
            q = np.stack([decoded(laws, decoders) for decoders in group])
            found, parts = losses(q, p)
            for measure, x in zip(MEASURES, found):
                table[name, measure, ""] = medians(x)
            for share, (measure, x, kept) in product(
                KEPT, zip(("nats", "of best CR"), found[::3], parts)
            ):
                near = np.where(abs(kept - share) <= 0.05, x, np.nan)
                table[name, measure, f"{share:.1f}"] = medians(near)
        for (name, measure, share), x in table.items():
            rivals = [table[other, measure, share] for other in samplers()]
            least = np.fmin.reduce(rivals)
            seen = x[~np.isnan(x)]
            at = np.quantile(seen, QUANTILES).tolist() if len(seen) else [""] * 5
            yield [world, name, measure, share, len(seen), int((x <= least).sum()), *at]


def main() -> None:
    """Write the table."""
    comments = [
        "python notebooks/data/make_samplers.py",
        f"{tables.versions('numpy', 'jax')}; {ORACLES} oracles of 512 texts, seeds 0 "
        f"to {ORACLES - 1}, {DIALS} values of a dial, blur {BLUR:g}",
    ]
    columns = ["world", "sampler", "measure", "kept", "oracles", "best"]
    columns += [f"q{100 * x:.0f}" for x in QUANTILES]
    tables.write("samplers.csv", comments, columns, rows())


if __name__ == "__main__":
    main()
