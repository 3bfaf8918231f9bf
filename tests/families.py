"""Spaces, functions and pairs over which properties run, and what they are in NumPy."""

import itertools
import warnings
from functools import cache

import jax.numpy as jnp
import numpy as np
from models import counts_of_texts, sentence_bleu, sentences
from scipy.linalg import logm, sqrtm
from scipy.special import entr

import qdtheory as qd
from qdtheory import forms

# --- Spaces ---------------------------------------------------------------------------
# Of one and of several lengths, over one token and several: JAX compiles once a shape.
SIZES = [(4, 3), (2, 5), (3, 1), (1, 4), (3, (1, 2, 3)), (2, (2, 4)), (1, (1, 2, 4))]
SPACES = [qd.TextSpace(*sizes) for sizes in SIZES]
OF_ONE_LENGTH = SPACES[:3]
ORDERS = [(space, n) for space in SPACES for n in range(1, space.max_length + 1)]


def assert_frequencies(draws, p):
    """Within 4 standard errors; outcomes expected fewer than 10 times are pooled."""
    counts, expected = np.bincount(draws, minlength=p.size), draws.size * p
    common = expected >= 10  # elsewhere the normal law does not hold
    error = np.sqrt(expected * (1 - p))
    assert (np.abs(counts - expected)[common] <= 4 * error[common]).all()
    rare = expected[~common].sum()
    assert abs(counts[~common].sum() - rare) <= 4 * np.sqrt(rare) + 1
    assert counts[p == 0].sum() == 0


# --- Functions ------------------------------------------------------------------------
QUALITIES = {"LL": np.log, "CR": lambda x: x}
# g, its values and slopes in NumPy, and its slope at 0.
DIVERSITIES = {
    "SE": (qd.functions.SE, entr, lambda x: -np.log(x) - 1, np.inf),
    "NRR": (qd.functions.NRR, lambda x: -(x**2), lambda x: -2 * x, 0.0),
    "SDI": (qd.functions.SDI, lambda x: x - x**2, lambda x: 1 - 2 * x, 1.0),
    "Tsallis(0.5)": (
        qd.Tsallis(0.5), lambda x: 2 * (np.sqrt(x) - x), lambda x: x**-0.5 - 2, np.inf,
    ),
    "Tsallis(1.5)": (
        qd.Tsallis(1.5), lambda x: 2 * (x - x**1.5), lambda x: 2 - 3 * np.sqrt(x), 2.0,
    ),
    "Tsallis(3)": (
        qd.Tsallis(3.0), lambda x: (x - x**3) / 2, lambda x: (1 - 3 * x**2) / 2, 0.5,
    ),
    "mixed": (
        "-x**2 - x*log(x)", lambda x: entr(x) - x**2, lambda x: -2 * x - np.log(x) - 1,
        np.inf,
    ),
    "saturating": (
        "log(1 + 20*x)", lambda x: np.log1p(20 * x), lambda x: 20 / (1 + 20 * x), 20.0,
    ),
}  # fmt: skip

# --- Pairs over the same six texts ----------------------------------------------------
TEXTS = qd.TextSpace(2, (1, 2))
CLASSES = [0, 0, 1, 2, 2, 1]
POINTS = np.random.default_rng(0).normal(size=(6, 7))
POINTS /= np.linalg.norm(POINTS, axis=1, keepdims=True)
KERNEL = POINTS @ POINTS.T
ROOT = np.real(sqrtm(KERNEL))


@cache
def bleu_of_triples():
    """BLEU-2 of each of the six texts with each two of them."""
    with warnings.catch_warnings(action="ignore"):  # NLTK tells of orders without match
        values = [
            sentence_bleu(candidate, references, 2)
            for candidate, *references in itertools.product(sentences(TEXTS), repeat=3)
        ]
    return np.reshape(values, (6, 6, 6))


def expected_bleu(q, p):
    return np.einsum("cab,c,a,b", bleu_of_triples(), q, p, p)


def density(q):
    return ROOT * q @ ROOT


def of_tokens(q):
    counts = counts_of_texts(TEXTS, 1) @ q
    return counts / counts.sum()


def of_classes(q):
    return np.bincount(CLASSES, q)


def squares(q):
    return -jnp.square(jnp.asarray(q)).sum()


class OwnPair:
    """A pair of a reader's own, unknown to JAX."""

    text_quality = staticmethod(jnp.log)
    quality = staticmethod(lambda q, p: q @ jnp.log(p))
    diversity = staticmethod(squares)


# The pair, its form, and both metrics in NumPy.
PAIRS = {
    "LL-SE": (
        qd.LL_SE, forms.Separable,
        lambda q, p: q @ np.log(p), lambda q: entr(q).sum(),
    ),
    "one token": (
        qd.pairs.single_token_bleu_pair(3, 2), forms.Separable,
        lambda q, p: q @ (1 - (1 - p) ** 3), lambda q: -q @ (1 - (1 - q) ** 2),
    ),
    "scores": (
        qd.LinearPair([3, 1, 2, 2, 0.5, -1], "SE"), forms.Separable,
        lambda q, p: q @ [3, 1, 2, 2, 0.5, -1], lambda q: entr(q).sum(),
    ),
    "code of scores": (
        qd.LinearPair(lambda p: -((p - 0.3) ** 2), qd.functions.NRR), forms.Separable,
        lambda q, p: -q @ (p - 0.3) ** 2, lambda q: -q @ q,
    ),
    "concave": (
        qd.ConcavePair(jnp.log, squares, "LL-NRR"), forms.Concave,
        lambda q, p: q @ np.log(p), lambda q: -q @ q,
    ),
    "kernel": (
        qd.KernelPair(KERNEL), forms.Kernel,
        lambda q, p: q @ KERNEL @ p, lambda q: -q @ KERNEL @ q,
    ),
    "Vendi": (
        qd.VendiPair(KERNEL), forms.Vendi,
        lambda q, p: np.trace(density(q) @ logm(density(p))),
        lambda q: entr(np.linalg.eigvalsh(density(q))).sum(),
    ),
    "BLEU": (
        qd.BleuPair(TEXTS, 2, 2, 2), forms.Bleu,
        expected_bleu, lambda q: -expected_bleu(q, q),
    ),
    "tokens": (
        qd.pairs.ngram_pair(TEXTS, 1), forms.Pooled,
        lambda q, p: of_tokens(q) @ of_tokens(p), lambda q: -np.sum(of_tokens(q) ** 2),
    ),
    "classes": (
        qd.PooledPair(qd.LL_SE, CLASSES), forms.Pooled,
        lambda q, p: of_classes(q) @ np.log(of_classes(p)),
        lambda q: entr(of_classes(q)).sum(),
    ),
    "functions": (
        qd.FunctionPair(lambda q, p: q @ p, lambda q: 1 - q.max()), forms.Form,
        lambda q, p: q @ p, lambda q: 1 - q.max(),
    ),
    "one's own": (OwnPair(), forms.Form, lambda q, p: q @ np.log(p), lambda q: -q @ q),
}  # fmt: skip
# Arrays are arguments of compiled code, which would hold a copy of each otherwise.
WITH_ARRAYS = {"kernel", "BLEU", "tokens", "classes"}
