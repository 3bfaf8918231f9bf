"""Bad input, and the one line it gets: what was expected, what came, what to do."""

import re
from dataclasses import replace
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from models import kernel_pair, separable

import qdtheory as qd
from qdtheory.bleu import bleu_table
from qdtheory.catalogue.metrics import find_metric
from qdtheory.distributions import as_interior
from qdtheory.divergences import renyi_divergence
from qdtheory.frontier import frontier_slopes, kkt_residual, saturation_weight
from qdtheory.functions import named
from qdtheory.kernels import bleu_kernel
from qdtheory.ngrams import expected_distinct, ngram_matrix, ngram_rank
from qdtheory.pairs import ngram_pair, single_token_bleu_pair
from qdtheory.search import search, search_frontier

pytestmark = pytest.mark.usefixtures("as_a_user")

P, FALLING = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.2, 0.1])
HALVES, U3, U4, U6, U8 = (np.full(n, 1 / n) for n in (2, 3, 4, 6, 8))
POINT = np.eye(6)[0]
T = qd.TextSpace
SPACE, MIXED = T(2, 3), T(2, (1, 2))
BIGRAMS = ngram_pair(SPACE, 2)
KEY = jax.random.key(0)
FUNCTIONS = qd.FunctionPair(lambda q, p: q @ p, lambda q: q.max(), "any")
KERNEL = qd.KernelPair(np.eye(3))


def scored(scores):
    return qd.LinearPair(scores, qd.functions.SE)


# --- A vector that is no distribution, wherever one is asked for ----------------------
VECTORS = {
    "negative": ([1.5, -0.5, 0.0], ValueError, "nonnegative, got -0.5 at index 1"),
    "nan": ([0.5, np.nan, 0.5], ValueError, "finite, got nan at index 1"),
    "unnormalised": ([0.5, 0.5, 0.1], ValueError, r"sum to 1, got 1.1; .*normalize\("),
    "wrong length": ([0.25] * 4, ValueError, "must have 3 entries, got 4"),
    "empty": ([], ValueError, "is empty"),
    "matrix": (P[None], ValueError, r"one vector, got shape \(1, 3\).*vmap"),
    "booleans": (np.array([True, False]), TypeError, "numbers, got bool; .*as"),
    "32 bits": (np.float32([0.5, 0.3, 0.201]), ValueError, r"got 1.001.*; call norm"),
    "complex": (P + 0j, TypeError, r"got complex128; .*\.real"),
    "list of text": (["a", "b", "c"], TypeError, "real numbers, got <U1"),
    "list of lists": ([[0.5, 0.5], [1.0]], TypeError, "got a list of list"),
    "none": (None, TypeError, "list of real numbers, got NoneType; .*numpy.asarray"),
}
DIVERGENCES = "total_variation", "hellinger_distance", "bhattacharyya_distance"
# Each takes the vector beside a good distribution over 3 texts.
BESIDE = [
    *(qd.kl_divergence, qd.cross_entropy, qd.jensen_shannon_divergence),
    *(getattr(qd.divergences, name) for name in DIVERGENCES),
    *(qd.coverage_rate, qd.cnd, lambda a, b: qd.mix(a, b, 0.5)),
    lambda a, b: qd.LL_SE.quality(b, a),
    lambda a, b: scored(lambda p: p).quality(b, a),
]
# Each takes it alone, or first.
ALONE = [
    *(qd.entropy, qd.negative_repetition_rate),
    *(qd.CR_SE.diversity, qd.CR_SE.text_quality),
    *(KERNEL.diversity, KERNEL.text_quality),
    *(partial(f, qd.LL_SE) for f in (qd.pareto_frontier, saturation_weight)),
    lambda x: qd.temper(x, 2.0),
    lambda x: qd.sample(KEY, x, 3),
    lambda x: qd.pareto_optimum(qd.CR_NRR, x, -1.0),
    lambda x: frontier_slopes(qd.LL_SE, x, -1.0),
]
DOORS = [*(partial(f, P) for f in BESIDE), *ALONE]


# Every kind at one door; at every door what shows that the check is there: a vector
# that it alone refuses, a list that sums to more, and a vector of another size.
@pytest.mark.parametrize("vector", VECTORS)
def test_each_bad_vector_has_its_message(vector):
    value, error, message = VECTORS[vector]
    with pytest.raises(error, match=message):
        qd.kl_divergence(P, np.array(value) if vector == "negative" else value)


@pytest.mark.parametrize("call", DOORS)
def test_every_door_has_the_check(call):
    told_the_size = call not in ALONE
    for vector in ("negative", "unnormalised", *["wrong length"] * told_the_size):
        value, error, message = VECTORS[vector]
        with pytest.raises(error, match=message):
            call(value)


@pytest.mark.parametrize("call", DOORS)
def test_every_door_takes_lists_integers_and_32_bits(call):
    for given in ([0.25, 0.25, 0.5], [0, 1, 0]):
        expected = jax.tree.map(np.asarray, call(np.array(given, float)))
        for kind in (tuple, np.float32, jnp.array, pd.Series):
            found = jax.tree.map(np.asarray, call(kind(given)))
            jax.tree.map(np.testing.assert_array_equal, found, expected)


# --- Everything else, one row a mistake: words, a function, its arguments -------------
SPACES = [
    ("vocab_size must be at least 1, got 0", T, 0, 3),
    ("length must be at least 1, got 0", T, 2, 0),
    (r"lengths must increase, got \(\)", T, 2, ()),
    (r"\(2, 2\); sort them, each once", T, 2, (2, 2)),
    (r"n must lie in \[1, 3\], got 0", SPACE.ngrams, 0),
    ("q must have 8 entries, got 3", SPACE.ngram_counts, P, 1),
    ("shorter than n.*a smaller n", MIXED.ngram_distribution, POINT, 2),
    (r"3 tokens .*shape \(2,\)", SPACE.index, np.array([0, 1])),

    (r"^X is .* lengths \(1, 2\); take Y$", MIXED.only_length, "X", "take Y"),
    *(("read-only", x.__setitem__, 0, 0) for x in (SPACE.tokens, SPACE.ngrams(2))),
    ("matrix of 20-grams", ngram_matrix, T(2, 20), 20),
    ("n must lie in", ngram_rank, SPACE, (1, 4)),
    ("p must have 8 entries, got 3", BIGRAMS.quality, U8, P),
    ("not linear in q", ngram_pair(MIXED, 1).text_quality, U6),
    ("max_order must be at least 1, got 0", qd.ms_jaccard, MIXED, U6, U6, 0),

    ("has 2 tokens; take a smaller", qd.ms_jaccard, MIXED, POINT, U6, 2),
    ("num_texts must be at least 1", expected_distinct, MIXED, U6, 1, 0),
    ("sums over 2-grams", expected_distinct, MIXED, U6, 2, 10**9),
]  # fmt: skip
CLOSED_OVER = jnp.array(POINT)
DISTRIBUTIONS = [
    ("all zero", qd.normalize, np.zeros(3)),
    ("beta must be .* at least 0, got -1", qd.temper, P, -1.0),
    (r"lie in \[0, 1\], got 1.5", qd.mix, P, U3, 1.5),
    ("num_samples must be at least 1", qd.sample, KEY, P, 0),
    ("one vector", jax.vmap(qd.entropy), np.ones((2, 2, 2))),
    ("positive everywhere", jax.jit(lambda x: x + as_interior(CLOSED_OVER)), 1.0),
    ("order must be positive and finite", renyi_divergence, P, P, 0),
]
SHORT = qd.ConcavePair(lambda p: p[:2], qd.entropy)
PAIRS = [
    ("order must be positive", qd.Tsallis, 0.0),

    ("Shannon entropy; use qdtheory.functions.SE", qd.Tsallis, 1.0),
    ("not allowed in an expression", named({}, "sin(x)"), np.sin),
    ("num_references .*got 0", single_token_bleu_pair, 0, 1),
    ("num_self_references", single_token_bleu_pair, 1, 0),
    ("k must be at least 2, got 1", qd.pairs.distinct_k_pair, 1),
    (r"one score a text, shape \(3,\)", scored([1, 2]).quality, P, P),

    ("minus infinity, got nan for text 1", scored, [1, np.nan]),
    (r"shape \(3,\), got shape \(2,\)", SHORT.quality, P, P),
    *(
        ("^classes must be one whole number a text", qd.PooledPair, qd.LL_SE, classes)
        for classes in (
            *([0, 2], [-1, 0], [0.5], [], [[[0]]], [True], [1, 2], None, [[-1], [-1]]),
        )
    ),
    ("square matrix with a row and a column", qd.KernelPair, np.ones((2, 3))),

    (r"finite, got nan at \[1, 1\]", qd.KernelPair, np.diag([1.0, np.nan])),
    (r"symmetric, got 0.5 at \[0, 1\]", qd.KernelPair, np.array([[1, 0.5], [0.4, 1]])),
    ("q must have 3 entries, got 4", KERNEL.quality, U4, P),

    ("1 on the diagonal", qd.VendiPair, 2 * np.eye(2)),
    ("positive semidefinite", qd.VendiPair, np.array([[1.0, 2], [2, 1]])),
    # The brevity penalty sees who is the candidate.
    ("for texts of one length, got", bleu_kernel, MIXED, 1),
    ("number from 1 on, got 1.5", qd.expected_bleu, MIXED, U6, U6, 2, 1.5),
    ("num_self_references must be a whole number", qd.BleuPair, MIXED, 2, 2, 0),
    ("max_order must be at least 1, got 0", qd.expected_bleu, MIXED, U6, U6, 0),
    ("None or \"epsilon\", got 'add'", qd.expected_bleu, MIXED, U6, U6, 2, 2, "add"),
    ("q must have 6 entries, got 8", qd.expected_bleu, MIXED, U8, U6),

    ("BLEU table alone would take", qd.BleuPair, T(5, 8)),
    ("texts of 63 n-grams and lengths", bleu_table, T(1, 12), 7),
]  # fmt: skip
FLAT = [
    (qd.Tsallis(20.0), "too flat near 0|linear"),
    ("CR", "it is linear"),
    (lambda x: x**2, "rises"),
    (single_token_bleu_pair(2, 5).g, "strictly concave"),
]


OF_FOUR = qd.pareto_optimum(qd.LL_SE, U4, -1.0)
FRONTIERS = [
    ("resolution", qd.check_rationality, qd.CR_NRR, 2),
    ("at most 0, got 0.5; .*al", qd.pareto_optimum, qd.LL_SE, P, 0.5),


    (r"finite or -inf; .*NaN or \+inf", qd.pareto_frontier, scored(lambda p: p / 0), P),
    ("every text has score -inf", qd.pareto_frontier, scored(lambda p: -p / 0), P),
    ("num_points .*least 3", qd.pareto_frontier, qd.LL_SE, P, 2),
    (r"w must lie in \(-inf, 0\), got 0", frontier_slopes, qd.LL_SE, P, 0.0),

    ("B rests on g'", saturation_weight, qd.SeparablePair("CR", lambda x: -(x**2)), P),
    ("optimum.q must have 3", kkt_residual, qd.LL_SE, P, OF_FOUR),
    *(
        (words, solve, qd.SeparablePair("CR", g), p, number)
        for g, words in FLAT
        for solve, p, number in (
            (qd.pareto_optimum, [0.0, 1.0, 0.0], -1.0),
            (qd.pareto_frontier, P, 20),
        )
    ),
    (r"\(3,\) and \(8,\)", qd.pareto_filter, P, U8),
    ("must not hold NaN", qd.pareto_filter, P * np.nan, P),
]  # fmt: skip


def judged(*formulas):
    return qd.check_compatibility(separable(*formulas))


def of_size(number, pair):
    return qd.check_compatibility(pair, num_texts=number)


def product_of(q, p):
    return q @ p


def undefined(q, p=None):
    return jnp.log(-q).sum()


NOWHERE = qd.FunctionPair(lambda q, p: q @ jnp.log(p - p), lambda q: -(q @ q))
VERDICTS = [
    ("pass p or num_texts", qd.check_compatibility, kernel_pair(np.eye(3))),
    ("positive", qd.check_compatibility, qd.LL_SE, [0.5, 0.5, 0.0]),
    ("grad U is not finite at P_i = 0.5", qd.check_compatibility, NOWHERE, HALVES),
    ("U or V is not finite at P", of_size, 4, qd.FunctionPair(product_of, undefined)),
    ("^f is not finite at x = 1e-06; .* smooth", judged, "log(x - 0.5)", "-x**2"),
    ("^f' is not finite at x = 0.5", judged, "sqrt((x - 0.5)**2)", "-x**2"),
    ("^g is not finite at x = 0.25", judged, "x", "1/(x - 0.25)"),
    # Undefined between the grid's points only.
    ("^f is not defined near x = 0.333", judged, "sqrt((x - 1/3)**2 - 1e-8)", "-x**2"),
    ("is of 3 texts, got 4", of_size, 4, qd.PooledPair(qd.LL_SE, [0, 1, 0])),
]
LL, NRR = qd.LL_NRR.quality, qd.LL_NRR.diversity
CONVEX = qd.SeparablePair("x", lambda x: x**2)
solve = qd.quality_discrepancy
exactly = partial(solve, method="exact")


def in_steps(q, p=None):
    return (q > 0.15).sum().astype(float)


def limited(pair):
    return qd.certify(pair, U3, tolerance=1e-3, max_steps=5)


DISCREPANCIES = [
    ("nonnegative", solve, qd.LL_SE, [0.6, -0.4]),
    ("quality of P itself must be", solve, scored(lambda p: p - np.inf), P),
    ("concave up to one point", exactly, CONVEX, HALVES),
    ("diversity of P itself is nan", solve, qd.FunctionPair(LL, undefined), P),
    ("the quality has gradient 0 at P", solve, qd.FunctionPair(in_steps, NRR), FALLING),
    ("diversity has gradient 0", solve, qd.FunctionPair(LL, in_steps), FALLING),
    ("one of ascent, sgd, got", partial(search, method=P), qd.LL_SE, P),
    ("at least 4, got 2", partial(search, num_starts=2), qd.LL_SE, P),
    ("one vector, got shape", search, qd.LL_SE, P[None, None]),
    ("finite, got -inf", search, scored([-np.inf, 0]), HALVES),
    ("finite and at least 3, got 2", search_frontier, KERNEL, U3, 2),
    ("must be positive, got 0", partial(qd.certify, tolerance=0), qd.CR_NRR, P),
    ("found must have 3 entries", qd.certify, qd.CR_NRR, P, U4),
    ("leave out tolerance and max_steps", limited, KERNEL),
]
NAMES = [
    ("'rogue-l'; do you mean ROUGE-L, .*MODULE", qd.check, "rogue-l", "NRR"),
    ("are each a quality; name both kinds, such", qd.check, "BLEU-2", "ROUGE-L"),
    ("LL has no number of references; leave", qd.check, "LL of 3 references", "SE"),
    ("no metric is called", qd.check, "BLEU-2 of 0 references", "SE"),
    ("no metric is called", qd.check, "a\nb", "SE"),
    ("'ROUGE-L'.*a metric, needs another beside it", qd.check, "ROUGE-L"),
    ("ROUGE is not allowed.* come two together", qd.check, "ROUGE-L", "-x log x"),
    ("ROUGE is not .* without p or num_texts", qd.check, "ROUGE-L", "NRR", HALVES),
    ("no metric is called 'zzzz'; give your own", find_metric, "zzzz"),
    ("no pair is called 'LL-XX'; there are LL-SE, ", qd.check_compatibility, "LL-XX"),
    ("BLEU needs a space", qd.pareto_frontier, "BLEU-2", U4),
]
LSTM = qd.LSTMLanguageModel
random_model = partial(LSTM.random, KEY)
MODEL, ENDING = random_model(2, 3, 3), random_model(3, 3, 3, end_token=2)
GATE = [(3, 4), (4, 4), (4,)]
SHAPES = [(2, 3), *4 * GATE, (4, 2), (2,)]
PARTS = product(("input", "forget", "output", "cell"), "WUb")
ARRAYS = ["embeddings", *(f"{part}_{gate}" for gate, part in PARTS)]
ARRAYS += ["W_logits", "b_logits"]


def changed(at, change):
    """SeqGAN's 15 arrays, one changed, for 2 tokens, embedding 3 and hidden 4."""
    arrays = [np.ones(shape) for shape in SHAPES]
    arrays[at] = change(arrays[at])
    return LSTM.from_arrays(arrays)


MODELS = [
    ("vocab_size must be at least 1", random_model, 0),

    ("sigma must be positive .*got 0", random_model, 2, 3, 3, 0.0),

    ("end_token .* 2, got 1", partial(random_model, 3, end_token=1)),
    ("last of at least 2 tokens", partial(random_model, 1, end_token=0)),

    ("must have shapes", lambda: replace(MODEL, output_weights=jnp.ones((4, 2)))),
    ("SeqGAN's 15 .*got 14", LSTM.from_arrays, [np.zeros(s) for s in SHAPES[:14]]),
    ("b_logits must be finite", changed, 14, lambda x: x * np.nan),
    *(
        (f"{name} must have shape", changed, i, lambda x: x[None])
        for i, name in enumerate(ARRAYS)
        if i not in (0, 2)
    ),
    # The sizes are read from these two.
    *(("and U_input must be matrices", changed, i, np.ravel) for i in (0, 2)),
    ("over 2 tokens.*3", MODEL.probabilities, T(3, 2)),
    ("temperature must be positive", MODEL.probabilities, SPACE, 0.0),

    ("pass length_probabilities, or", MODEL.probabilities, MIXED),
    ("must have 2 entries, got 3", MODEL.probabilities, MIXED, 1.0, P),

    ("length", qd.oracle, MIXED, 5),
    (r"use lengths \(1, 2, 3\), got", ENDING.probabilities, SPACE),
    ("end token is not c", ENDING.probabilities, T(3, 1)),
    ("without an end token", ENDING.probabilities, MIXED, 1.0, HALVES),
    ("length must be at least 1, got 0", MODEL.sample, KEY, 3, 0),

    (r"table.*\(2,\)", MODEL.log_probability, np.array([0, 1])),
    ("got -2", MODEL.log_probability, np.array([[0, -2]])),
    ("without -1", MODEL.log_probability, np.array([[0, -1]])),
    ("at least one", ENDING.log_probability, np.array([[-1, -1]])),
    ("only after", ENDING.log_probability, np.array([[0, -1, 1]])),

]  # fmt: skip
NO_PAIR = "^pair must be a pair, such as qd.LL_SE"
CODE = [
    *(qd.SeparablePair(lambda x: x, "-x**2"), qd.SeparablePair("x", lambda x: -(x**2))),
    *(qd.LinearPair(jnp.sqrt, "NRR"), qd.ConcavePair(jnp.log, qd.entropy), FUNCTIONS),
]
TYPES = [
    ("must be an integer, got 2.0", T, 2.0, 3),

    ("one length or a tuple", T, 2, [1, 2]),

    ("integers", SPACE.index, np.zeros(3)),
    ("integers", MODEL.log_probability, np.zeros((2, 3))),

    ("expected a name, as text, got", find_metric, [1]),
    ("expected one number a text, or", scored, np.array([1.0, 2.0j])),

    ("space must be a space of texts, such as qd.T", qd.oracle, 4, 3),
    (NO_PAIR, qd.certify, 4, P),
    (NO_PAIR, qd.PooledPair, "LL-SE", [0, 1]),
    *(
        (f"^{name} must be a function of .*, got ", kind, *arguments)
        for kind, first in ((qd.FunctionPair, "quality"), (qd.ConcavePair, "text_qual"))
        for name, arguments in ((f"{first}.*", (3, len)), ("diversity", (len, "log")))
    ),
    ("array of float64, got list", qd.KernelPair, [[1.0]]),
    ("pair must be a SeparablePair", qd.check_rationality, FUNCTIONS),
    ("SeparablePair or", qd.pareto_optimum, FUNCTIONS, P, -1.0),
    ("search_frontier finds points", qd.pareto_frontier, KERNEL, U3),
    ("SeparablePair or LinearPair; got a Kernel", exactly, KERNEL, U3),
    ("a VendiPair; got a Separable", partial(solve, method="convex"), qd.LL_SE, P),
    *(("code, which is tried and not proved", qd.certify, pair, P) for pair in CODE),
    ("bound is known for BLEU of order 1", qd.certify, qd.BleuPair(MIXED, 2, 2, 3), U6),
    (r"write verdict\.compatible is True", lambda: bool(qd.check("LL-SE"))),

    ("is a pair: leave the diversity out", qd.check, qd.LL_SE, "NRR"),
    ("goes with a function diversity", qd.check, lambda q, p: q @ p, "NRR"),

]  # fmt: skip
TABLE = [
    *(SPACES + DISTRIBUTIONS + PAIRS + FRONTIERS + VERDICTS + DISCREPANCIES + NAMES),
    *MODELS,
]


def refuse(error, words, function, *arguments):
    with pytest.raises(error, match=words) as raised:
        function(*arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_a_wrong_value(row):
    refuse(ValueError, *row)


@pytest.mark.parametrize("row", TYPES, ids=[row[0] for row in TYPES])
def test_a_wrong_type(row):
    refuse(TypeError, *row)


# --- An argument of another kind ------------------------------------------------------
# What takes arguments at the top, and a call that is right.
RIGHT = {
    **{"TextSpace": (2, 3), "oracle": (SPACE, 0, 1.0, 4), "sample": (KEY, P, 3)},
    **{"normalize": (P,), "temper": (P, 2.0), "mix": (P, U3, 0.5)},
    **{"SeparablePair": ("log(x)", "-x**2"), "LinearPair": (P, "-x**2")},
    **{"BleuPair": (SPACE, 1, 2, 2), "Expression": ("log(x)",), "Tsallis": (2.0,)},
    "expected_bleu": (SPACE, U8, U8, 2, 2),
    "expected_self_bleu": (SPACE, U8, 2, 2),
    "ms_jaccard": (SPACE, U8, U8, 2),
    **{"entropy": (P,), "coverage_rate": (U3, P), "kl_divergence": (U3, P)},
    **{"pareto_optimum": (qd.CR_NRR, P, -1.0), "pareto_frontier": (qd.LL_SE, P, 3)},
    **{"pareto_filter": (P, U3), "kernel_criterion": (np.eye(3),)},
    **{"check": ("log(x)", "-x**2"), "check_compatibility": (qd.CR_NRR,)},
    **{"check_rationality": (qd.CR_NRR, 5), "certify": (qd.CR_NRR, P, U3)},
    "quality_discrepancy": (qd.CR_NRR, P),
}
WRONG = None, "cat", [[0.5, 0.5], [1.0]], qd.CR_NRR, np.array([1.0, 2.0j])
# What Python says of a value that nobody looked at.
UNSEEN = "unhashable|ambiguous|complex'|has no (attribute|len)|not supported between"
UNSEEN += "|not iterable"


@pytest.mark.parametrize("name", RIGHT)
def test_an_argument_of_another_kind_is_refused_in_one_line(name):
    function, right = getattr(qd, name), RIGHT[name]
    function(*right)
    for i, wrong in product(range(len(right)), WRONG):
        given = (*right[:i], wrong, *right[i + 1 :])
        try:
            function(*given)
        except (TypeError, ValueError) as error:
            said = str(error)
            assert "\n" not in said
            assert not re.search(UNSEEN, said), (given, said)
        else:  # a default, or a pair where a pair is meant
            taken = {"pair": qd.CR_NRR, "check": None, "certify": None}
            assert wrong in (taken.get(name), right[i], qd.CR_NRR), given
