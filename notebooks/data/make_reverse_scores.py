"""Reverse LM score of damaged sentences; write reverse_scores.csv.

    python notebooks/data/make_reverse_scores.py

The sentences, the damages and their strengths are those of make_sensitivity.py, with
3,000 candidates and 3,000 references in each of two repeats. A model is fitted to the
candidates and scores the references. Some half an hour on one core.
"""

import sys

import jax
import numpy as np
from make_sensitivity import NUM_TOPICS, STRENGTHS, drop_words, swap_words, topics
from tables import versions, write

jax.config.update("jax_enable_x64", True)
from qdtheory import text

SIZE = 3000
REPEATS = 2


def main() -> None:
    """Measure, then write the table in one go."""
    corpus = text.prepare(text.imdb(), min_length=5, max_length=20, seed=0)
    labels, table = topics(corpus), []
    for repeat in range(REPEATS):
        rng = np.random.default_rng(repeat)
        references, pool = np.split(rng.permutation(len(corpus)), [SIZE])
        dropped = rng.permutation(NUM_TOPICS)
        known = text.known_words(corpus[references])
        clean = corpus[pool[:SIZE]]

        def collapsed(strength: float, pool=pool, dropped=dropped) -> text.Corpus:
            gone = dropped[: round(strength * NUM_TOPICS)]
            return corpus[pool[~np.isin(labels[pool], gone)][:SIZE]]

        damages = {
            "mode collapse": collapsed,
            "word dropout": lambda p, x=clean, r=repeat: drop_words(x, p, r),
            "word swap": lambda p, x=clean, r=repeat: swap_words(x, p, r),
        }
        scores = {}
        for damage, apply in damages.items():
            for strength in STRENGTHS:
                # The first candidates, undamaged, are the same for all three.
                key = (damage, strength) if strength else None
                if key not in scores:
                    model = text.fit_language_model(
                        apply(strength), vocabulary=known, seed=repeat
                    )
                    scores[key] = text.cross_entropy_of(corpus[references], model)
                found = scores[key].per_token
                ends = found.value, found.low, found.high
                table.append([damage, strength, repeat, *map(float, ends)])
                print(*table[-1], file=sys.stderr)
    comments = (
        "python notebooks/data/make_reverse_scores.py",
        f"{versions('jax', 'optax', 'numpy', 'scipy')}; {SIZE} candidates and {SIZE} "
        f"references of {len(corpus)} sentences; level {text.lm_scores.LEVEL}",
    )
    columns = "damage,strength,repeat,per_token,low,high"
    write("reverse_scores.csv", comments, columns.split(","), table)


if __name__ == "__main__":
    main()
