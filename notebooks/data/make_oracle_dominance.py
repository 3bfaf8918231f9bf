"""Count who dominates whom on SeqGAN's oracle; write oracle_dominance.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_oracle_dominance.py

FOLDER holds caccia_oracle/*.csv, the curves that Caccia et al. 2020 measured, folder
csv/oracle of the repository pclucas14/GansFallingShort: for each model and temperature
the NLL of its texts under the oracle (quality) and its own NLL of the oracle's texts
(diversity), both in nats per token and better if lower. A point dominates another if it
is better in one and no worse in the other. Of each model we keep the points that no
other of its own dominates, and count how many of them a point of maximum likelihood
(MLE) dominates, and how many of those of MLE a point of the model dominates.

Points with an NLL that is not a number in the files, as most of LeakGAN's have, are
left out: "points" of those "listed" remain. There are three curves of MLE. Their names
say what selected the hyperparameters: the NLL under the oracle (o), that of test texts
(t), or both. "any MLE" is all three.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from tables import corpora, write

MLE = ("mle_cvo", "mle_cvot", "mle_cvt")
COLUMNS = (
    "model,rival,listed,points,efficient,dominated,rival_efficient,rival_dominated"
)


def column(path: Path) -> dict[str, float]:
    """Values by inverse temperature."""
    with path.open(encoding="utf-8") as file:
        return {row["Step"]: float(row["Value"]) for row in csv.DictReader(file)}


def curve(folder: Path, name: str) -> np.ndarray:
    """NLL under the oracle and NLL of its texts, a row a temperature."""
    oracle, test = (
        column(folder / f"{name}_{kind}.csv") for kind in ("oracle", "test")
    )
    return np.array([(oracle[step], test[step]) for step in oracle if step in test])


def measured(points: np.ndarray) -> np.ndarray:
    return points[np.isfinite(points).all(axis=1)]


def dominated(points: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Which points a row of `by` dominates."""
    no_worse = (by[None] <= points[:, None]).all(axis=2)
    better = (by[None] < points[:, None]).any(axis=2)
    return (no_worse & better).any(axis=1)


def efficient(points: np.ndarray) -> np.ndarray:
    return points[~dominated(points, points)]


def main() -> None:
    """Read all curves, count, write."""
    folder = corpora() / "caccia_oracle"
    names = sorted(
        path.name[: -len("_oracle.csv")] for path in folder.glob("*_oracle*")
    )
    listed = {name: curve(folder, name) for name in names}
    curves = {name: measured(points) for name, points in listed.items()}
    rivals = {name: curves[name] for name in MLE}
    rivals["any MLE"] = np.vstack(list(rivals.values()))
    table = []
    for name in names:
        own = efficient(curves[name])
        for rival, points in rivals.items():
            if name in MLE and rival in (name, "any MLE"):
                continue
            other = efficient(points)
            counts = dominated(own, other).sum(), dominated(other, own).sum()
            sizes = len(listed[name]), len(curves[name]), len(own)
            table.append([name, rival, *sizes, counts[0], len(other), counts[1]])
            print(*table[-1], file=sys.stderr)
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_oracle_dominance.py",
        "counts on csv/oracle of pclucas14/GansFallingShort at e6be915",
    )
    write("oracle_dominance.csv", comments, COLUMNS.split(","), table)


if __name__ == "__main__":
    main()
