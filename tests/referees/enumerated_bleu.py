"""BLEU of every text of a small space against every two references, by counting."""

import numpy as np

import qdtheory as qd


def bleu_of_triples(space, max_order):
    """Order -> BLEU of candidate, first and second reference, all of one length."""
    (length,) = space.lengths
    found, product = {}, np.ones((space.num_texts,) * 3)
    for n in range(1, max_order + 1):
        counts = np.asarray(qd.metrics.ngram_matrix(space, n)).T
        most = np.maximum(counts[:, None], counts)
        clipped = [np.minimum(count, most).sum(-1) for count in counts]
        product = product * np.array(clipped) / (length - n + 1)
        found[n] = product ** (1 / n)
    return found


def quality(table, q, p):
    """The mean over a candidate from q and two references from p."""
    return np.einsum("ijk,i,j,k", table, q, p, p, optimize=True)


def diversity(table, q):
    """Minus the quality of a model beside itself."""
    return -quality(table, q, q)
