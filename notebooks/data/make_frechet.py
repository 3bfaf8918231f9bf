"""Measure the Frechet distance of the six models' captions; write frechet.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_frechet.py

The samples, their sizes and both sets of references are those of make_model_samples.py;
the features are MiniLM's. Beside each distance stands that of the same sample without
a tenth of its texts, the mean over tenths: the distance falls with the sample's size,
and the difference shows how much of it is size. Some ten minutes on one core.
"""

import sys
from collections.abc import Iterator

import numpy as np
from lab.corpora import embed, frechet_distance
from make_model_samples import read_systems
from tables import corpora, versions, write

NUM_GROUPS = 10


def rows(candidates: np.ndarray, references: np.ndarray) -> Iterator[float]:
    """Distance, its mean over samples without a tenth, and jackknife error."""
    group = np.arange(len(candidates)) % NUM_GROUPS  # the texts are shuffled
    less = [
        frechet_distance(candidates[group != g], references) for g in range(NUM_GROUPS)
    ]
    yield frechet_distance(candidates, references)
    yield float(np.mean(less))
    yield float(np.sqrt(NUM_GROUPS - 1) * np.std(less))


def main() -> None:
    """Measure, then write the table in one go."""
    systems, sets = read_systems(corpora())
    features = {}
    for name, corpus in {**systems, **sets}.items():
        features[name] = embed(corpus)
        print(f"{name}: {corpus}", file=sys.stderr)
    table = [
        [name, system, *rows(features[system], features[name])]
        for name in sets
        for system in systems
    ]
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_frechet.py",
        f"{versions('numpy')}; {len(systems['Real'])} sentences in each set; seed 1; "
        f"jackknife of {NUM_GROUPS} groups",
    )
    columns = "references,system,distance,without_a_tenth,standard_error"
    write("frechet.csv", comments, columns.split(","), table)


if __name__ == "__main__":
    main()
