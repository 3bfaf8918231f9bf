"""Write qdtheory/catalogue/names.csv: what is known of a pair by its names.

Verdicts and bases are those of compatibility_matrix.csv, over all texts of 4 words and
3 tokens. Each pair that is beaten there gets a witness that can be read: a real
distribution P over the texts of 2 words and 3 tokens, or of 3 words where no model is
found, and a model that beats it, both in whole shares of a total. The model is built
from the gradients at P as in the matrix. Names are those of the catalogue of metrics. P
is one draw for each number of words; 25 s of CPU. BLEU-4, which texts of 3 tokens do
not have, is added with the witness of `check_compatibility`.

    python notebooks/data/make_named_pairs.py
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import make_compatibility_matrix as matrix
import numpy as np
import tables

import qdtheory as qd
from qdtheory.catalogue.metrics import find_order, titled

PATH = "../../qdtheory/catalogue/names.csv"
LENGTH, WORDS, TOTALS = 3, (2, 3), (10**3, 10**4, 10**5, 10**6)
LEAST = 1e-9  # a gain: sums of 27 terms round at 1e-14
PLAIN = 1e-3  # a gain in units of the spread of scores and slopes under P
KEYS = "quality", "references", "diversity", "self_references"
COLUMNS = (
    *(*KEYS, "verdict", "says", "setting", "claim"),
    *("words", "length", "real", "model", "quality_gain", "diversity_gain"),
)
COUNTED = {"Match", *(f"{x}BLEU-{n}" for x in ("", "NS") for n in (1, 2, 3))}
# What a name leaves open, as the matrix has it.
SETTINGS = {
    "Class LL": "texts with the same words are a class",
    "Class SE": "texts with the same words are a class",
    "Vendi LL": "similarity is the cosine of word counts",
    "log Vendi": "similarity is the cosine of word counts",
    "Cosine^2": "similarity is the cosine of word counts",
    "NCosine^2": "similarity is the cosine of word counts",
    "N-gram diversity": "a sample is 10 texts, of orders 1 to 3",
    "Distinct-1": "a sample is 10 texts",
    "Distinct-2": "a sample is 10 texts",
    "NSelf-repetition": "a sample is 2 texts, their pairs of words compared",
    "NLZ78": "a sample is 2 texts, compressed by LZ78",
}


def canonical(name: str) -> str:
    """The catalogue's name of a metric of the matrix."""
    return titled(*find_order(name))


def whole(q: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers of that total, nearest to the shares."""
    low = np.floor(q * total).astype(int)
    low[np.argsort(low - q * total)[: total - low.sum()]] += 1
    return low


def world(words: int) -> tuple[np.ndarray, dict, dict]:
    """P in thousandths, scores and diversities over the texts of so many words."""
    space = qd.TextSpace(words, LENGTH)
    rng = np.random.default_rng(words)
    p = whole(rng.dirichlet(np.full(space.num_texts, 4.0)), TOTALS[0])
    real = jnp.asarray(p / p.sum())
    scores = {
        (name, str(n or "")): np.asarray(f(real))
        for (name, n), f in matrix.qualities(space).items()
    }
    values = {
        (v.name, str(v.self_references or "")): jax.jit(v.value)
        for v in matrix.diversities(space)
    }
    return p, scores, values


def witness(
    whole_p: np.ndarray, scores: np.ndarray, value: Callable, slope: np.ndarray
) -> list | None:
    """The least gain in units of the scores; P, a model that beats it; its gains."""
    p = whole_p / whole_p.sum()
    test = matrix.witness(p, scores, slope, value)
    if test is None:
        return None
    units = [np.sqrt(p @ (x - p @ x) ** 2) for x in (scores, slope)]

    def gains(q: np.ndarray) -> np.ndarray:
        gain = value(jnp.asarray(q)) - value(jnp.asarray(p))
        return np.array([scores @ (q - p), float(gain)])

    # On the line through the model that the matrix takes, as far as gains are even.
    line = (p + step * (test[1] - p) for step in np.geomspace(0.03, 30, 61))
    best = max(
        (q for q in line if q.min() >= 0),
        key=lambda q: (gains(q) / units).min(),
    )
    for total in TOTALS:
        shares = whole(best, total)
        found = gains(shares / total)
        if found.min() > LEAST and (found / gains(best)).min() > 0.5:
            shown = (" ".join(map(str, x)) for x in (whole_p, shares))
            return [float((found / units).min()), *shown, *map(float, found)]
    return None


def witnesses(kinds: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], list]:
    """Words and witness of each pair, with 2 words where these show it plainly."""
    found: dict[tuple[str, ...], list] = {}
    for words in WORDS:
        p, scores, values = world(words)
        real = jnp.asarray(p / p.sum())
        slopes = {name: np.asarray(jax.grad(v)(real)) for name, v in values.items()}
        for kind in kinds:
            u, v = kind[:2], kind[2:]
            if kind in found and found[kind][0] > PLAIN:
                continue
            beats = witness(p, scores[u], values[v], slopes[v])
            if beats and (kind not in found or beats[0] > found[kind][0]):
                found[kind] = [beats[0], words, LENGTH, *beats[1:]]
    return {kind: beats[1:] for kind, beats in found.items()}


def bleu_4(r: int, k: int) -> list:
    """The row of the order that most report, which no text of the matrix has."""
    space = qd.TextSpace(2, 4 + (r == k == 1))
    pair = qd.BleuPair(space, 4, r, k)
    beats = qd.check_compatibility(pair).witness
    p, q = (whole(np.asarray(x), TOTALS[-1]) for x in (beats.p, beats.q))
    model, real = q / q.sum(), p / p.sum()
    gains = (
        pair.quality(model, real) - pair.quality(real, real),
        pair.diversity(model) - pair.diversity(real),
    )
    assert min(map(float, gains)) > LEAST
    names = ["BLEU-4", r, "Self-BLEU-4", k, "incompatible", "", ""]
    shown = [" ".join(map(str, x)) for x in (p, q)]
    return [*names, "N25.20", 2, space.max_length, *shown, *map(float, gains)]


def main() -> None:
    """Read the matrix, find the models and write the table."""
    kinds = defaultdict(list)
    for row in tables.read("compatibility_matrix.csv"):
        kinds[tuple(row[key] for key in KEYS)].append(row)
    beaten = [k for k, cells in kinds.items() if cells[0]["verdict"] == "incompatible"]
    found, rows = witnesses(beaten), []
    print("no witness:", *(kind for kind in beaten if kind not in found))
    for kind, cells in kinds.items():
        later = {kind[0], kind[2]} & matrix.RECENT
        settings = filter(None, (SETTINGS.get(kind[0]), SETTINGS.get(kind[2])))
        # Of kernels the number is 1, which no name leaves open.
        counts = (n if x in COUNTED else "" for x, n in (kind[:2], kind[2:]))
        names = map(canonical, kind[::2])
        row = [x for side in zip(names, counts, strict=True) for x in side]
        verdict, number = (
            cells[0]["verdict"],
            sum(int(cell["beaten"]) for cell in cells),
        )
        says = f"a model beats each of {number} random language models as P"
        says = says if verdict == "incompatible" else "no model beats any P"
        row += [verdict, f"{says} ({cells[0]['basis']})"]
        row += [" and ".join(dict.fromkeys(settings))]
        row += ["N14.15" if later else "N14.1"]
        rows.append([*row, *found.get(kind, [""] * 6)])
    rows += [bleu_4(r, k) for r, k in product((1, 2), repeat=2)]
    command = "python notebooks/data/make_named_pairs.py"
    tables.write(PATH, [f"{command}; {tables.versions('jax')}"], COLUMNS, rows)
    print(Path(tables.__file__).parent.joinpath(PATH).stat().st_size, "bytes")


if __name__ == "__main__":
    main()
