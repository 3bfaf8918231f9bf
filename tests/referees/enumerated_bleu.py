"""BLEU of every text of a small space against all references, by counting."""

import numpy as np

import qdtheory as qd


def listed_bleu(space, order, num_references=2):
    """BLEU of each text, the first axis, with each tuple of references; one length."""
    value = 1.0
    for n in range(1, order + 1):
        hits = 0
        for row in np.asarray(qd.ngrams.ngram_matrix(space, n)):
            most = row
            for _ in range(num_references - 1):
                most = np.maximum(most[..., None], row)
            hits = hits + np.minimum(row.reshape(-1, *[1] * num_references), most)
        value = value * (hits / (space.max_length - n + 1)) ** (1 / order)
    return value


def quality(table, q, p):
    """The mean over a candidate from q and two references from p."""
    return np.einsum("ijk,i,j,k", table, q, p, p, optimize=True)


def diversity(table, q):
    """Minus the quality of a model beside itself."""
    return -quality(table, q, q)
