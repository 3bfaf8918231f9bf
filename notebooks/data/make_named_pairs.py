"""Write qdtheory/theory/named_pairs.csv: what is known of a pair by its names.

Verdicts and bases are those of compatibility_matrix.csv, over all texts of 4 words and
3 tokens. Each pair that is beaten there gets a witness that can be read: a real
distribution P over the texts of 2 words and 3 tokens, or of 3 words where no model is
found, and a model that beats it, both in whole shares of a total. The model is built
from the gradients at P as in the matrix. Names are those of the catalogue of metrics. P
is one draw for each number of words; 15 s of CPU.

    python notebooks/data/make_named_pairs.py
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import jax
import jax.numpy as jnp
import make_compatibility_matrix as matrix
import numpy as np
import tables

import qdtheory as qd
from qdtheory.metrics.catalogue import find_order, titled

PATH = "../../qdtheory/theory/named_pairs.csv"
LENGTH, WORDS, TOTALS = 3, (2, 3), (10**3, 10**4, 10**5, 10**6)
LEAST = 1e-9  # a gain: sums of 27 terms round at 1e-14
KEYS = "quality", "references", "diversity", "self_references"
COLUMNS = (
    *(*KEYS, "verdict", "basis", "beaten", "oracles", "setting", "claim"),
    *("words", "real", "model", "quality_gain", "diversity_gain"),
)
COUNTED = {"Match", *(f"{x}BLEU-{n}" for x in ("", "NS") for n in (1, 2, 3))}
# What a name leaves open, as the matrix has it.
SETTINGS = {
    "Class LL": "texts with the same words as a class",
    "Class SE": "texts with the same words as a class",
    "Vendi LL": "cosines of word counts as similarity",
    "log Vendi": "cosines of word counts as similarity",
    "Cosine^2": "cosines of word counts as similarity",
    "NCosine^2": "cosines of word counts as similarity",
    "N-gram diversity": "10 texts and orders 1 to 3",
    "Distinct-1": "10 texts",
    "Distinct-2": "10 texts",
    "NSelf-repetition": "pairs of words of 2 texts",
    "NLZ78": "2 texts and LZ78",
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
    matrix.SPACE = qd.TextSpace(words, LENGTH)
    for cached in (matrix.class_pair, matrix.cosines, matrix.kernels):
        cached.cache_clear()
    size = words**LENGTH
    p = whole(np.random.default_rng(words).dirichlet(np.full(size, 4.0)), TOTALS[0])
    real = jnp.asarray(p / p.sum())
    scores = {
        (name, str(n or "")): np.asarray(f(real))
        for (name, n), f in matrix.qualities().items()
    }
    values = {
        (v.name, str(v.self_references or "")): jax.jit(v.value)
        for v in matrix.diversities()
    }
    return p, scores, values


def witness(
    whole_p: np.ndarray, scores: np.ndarray, value: Callable, slope: np.ndarray
) -> list | None:
    """P, a model that beats it and its gains, in the coarsest shares that have some."""
    p = whole_p / whole_p.sum()
    test = matrix.witness(p, scores, slope, value)
    for total in TOTALS if test else ():
        shares = whole(test[1], total)
        q = jnp.asarray(shares / total)
        gains = float(scores @ (q - p)), float(value(q) - value(jnp.asarray(p)))
        if min(gains) > LEAST:
            return [*(" ".join(map(str, x)) for x in (whole_p, shares)), *gains]
    return None


def witnesses(kinds: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], list]:
    """Words and witness of each pair, with as few words as have one."""
    found: dict[tuple[str, ...], list] = {}
    for words in WORDS:
        p, scores, values = world(words)
        real = jnp.asarray(p / p.sum())
        slopes = {name: np.asarray(jax.grad(v)(real)) for name, v in values.items()}
        for kind in kinds:
            u, v = kind[:2], kind[2:]
            if kind in found:
                continue
            if beats := witness(p, scores[u], values[v], slopes[v]):
                found[kind] = [words, *beats]
    return found


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
        row += [cells[0]["verdict"], cells[0]["basis"]]
        row += [sum(int(cell["beaten"]) for cell in cells)]
        row += [matrix.NUM_ORACLES * len(cells), " and ".join(dict.fromkeys(settings))]
        row += ["N14.15" if later else "N14.1"]
        rows.append([*row, *found.get(kind, [""] * 5)])
    command = "python notebooks/data/make_named_pairs.py"
    tables.write(PATH, [f"{command}; {tables.versions('jax')}"], COLUMNS, rows)
    print(Path(tables.__file__).parent.joinpath(PATH).stat().st_size, "bytes")


if __name__ == "__main__":
    main()
