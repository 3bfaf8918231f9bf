"""Language-model scores of six models of COCO captions; write lm_scores.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_lm_scores.py

Files, sizes and rows are those of make_model_samples.py with the training captions as
references. A model of the references scores every system, "fitted to references"; a
model of each system scores the references, "fitted to candidates". All are trained
anew for each seed, in about a quarter of an hour on one core.
"""

import sys
from collections.abc import Iterator

import jax
from make_model_samples import read_systems
from tables import corpora, versions, write

jax.config.update("jax_enable_x64", True)
from lab.corpora import (
    FittedModel,
    cross_entropy_of,
    fit_language_model,
    known_words,
)

from qdtheory import text
from qdtheory.text import Corpus

SEEDS = (0, 1)
COLUMNS = (
    "seed,fitted_to,system,per_text,per_text_low,per_text_high,"
    "per_token,per_token_low,per_token_high,unknown,epochs,held_out"
)


def row(texts: Corpus, model: FittedModel) -> list:
    """What the model says of the texts, and how it was fitted."""
    found = cross_entropy_of(texts, model)
    ends = [(x.value, x.low, x.high) for x in (found.per_text, found.per_token)]
    return [*ends[0], *ends[1], found.unknown, model.epochs, model.held_out]


def rows(systems: dict[str, Corpus], references: Corpus, seed: int) -> Iterator[list]:
    """Both scores of all systems."""
    known = known_words(references)
    real = fit_language_model(references, vocabulary=known, seed=seed)
    for name, candidates in systems.items():
        yield [seed, "references", name, *row(candidates, real)]
        model = fit_language_model(candidates, vocabulary=known, seed=seed)
        yield [seed, "candidates", name, *row(references, model)]


def main() -> None:
    """Measure, then write the table in one go."""
    systems, references = read_systems(corpora())
    table = []
    for seed in SEEDS:
        for found in rows(systems, references["train"], seed):
            print(*found, file=sys.stderr)
            table.append(found)
    size = len(references["train"])
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_lm_scores.py",
        f"{versions('jax', 'optax', 'numpy')}; {size} sentences in each set, of which "
        f"a tenth is held out of training; level {text.lm_scores.LEVEL}",
    )
    write("lm_scores.csv", comments, COLUMNS.split(","), table)


if __name__ == "__main__":
    main()
