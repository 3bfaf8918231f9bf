"""Bad input, and the one error it gets: what was expected, what came, what to do."""

import dataclasses
import subprocess
import sys
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from refusals import refused

import qdtheory as qd

P, UNIFORM3 = np.array([0.5, 0.3, 0.2]), np.full(3, 1 / 3)
SPACE = qd.TextSpace(vocab_size=2, lengths=3)
MIXED = qd.TextSpace(vocab_size=2, lengths=(1, 2))
UNIFORM8 = np.full(8, 0.125)
KEY = jax.random.key(0)
LSTM = qd.LSTMLanguageModel
random_model = partial(LSTM.random, KEY)
MODEL = random_model(vocab_size=2, embedding_size=3, hidden_size=3)
ENDING = random_model(vocab_size=3, embedding_size=3, hidden_size=3, end_token=2)
BIGRAMS, HALVES = qd.pairs.ngram_pair(SPACE, 2), np.full(2, 0.5)
FUNCTION_PAIR = qd.FunctionPair(lambda q, p: q @ p, lambda q: q.max(), "any")


def linear(scores) -> qd.LinearPair:
    return qd.LinearPair(scores, qd.functions.SE)


def arrays(**changed) -> list[np.ndarray]:
    """SeqGAN's 15 arrays for 2 tokens, embedding 3 and hidden 4."""
    gate = [(3, 4), (4, 4), (4,)]
    shapes = [(2, 3), *4 * gate, (4, 2), (2,)]
    return [changed.get(f"at_{i}", np.zeros(shape)) for i, shape in enumerate(shapes)]


# -- a vector that is no distribution, wherever one is asked for ----------------------

BAD_VECTORS = {
    "negative": ([1.5, -0.5, 0.0], ValueError, "nonnegative, got -0.5 at index 1"),
    "nan": ([0.5, np.nan, 0.5], ValueError, "finite, got nan at index 1"),
    "infinite": ([0.5, np.inf, 0.5], ValueError, "finite, got inf at index 1"),
    "unnormalised": ([0.5, 0.5, 0.1], ValueError, r"sum to 1, got 1.1; .*normalize\("),
    "all zero": ([0.0, 0.0, 0.0], ValueError, "sum to 1, got 0"),
    "wrong length": ([0.25] * 4, ValueError, "must have 3 entries, got 4"),
    "empty": ([], ValueError, "is empty"),
    "matrix": ([[0.5, 0.3, 0.2]], ValueError, r"one vector, got shape \(1, 3\).*vmap"),
    "scalar": (1.0, ValueError, r"one vector, got shape \(\)"),
}
BAD_KINDS = {
    "booleans": (np.array([True, False, False]), TypeError, "numbers, got bool; .*as"),
    "32 bits": (np.float32([0.5, 0.3, 0.201]), ValueError, r"got 1.001.*; call norm"),
    "complex": (P + 0j, TypeError, "real numbers, got complex128"),
    "text": (np.array(["a", "b", "c"]), TypeError, "real numbers, got <U1"),
    "list": ([0.5, 0.3, 0.1], ValueError, r"sum to 1, got 0.9; call normalize\("),
    "list of text": (["a", "b", "c"], TypeError, "real numbers, got <U1"),
    "list of lists": ([[0.5, 0.5], [1.0]], TypeError, "got a list of list"),
    "empty list": ([], ValueError, "is empty"),
    "counts": ([50, 30, 20], ValueError, r"sum to 1, got 100; call normalize\("),
    "number": (1.0, TypeError, "got float"),
    "none": (None, TypeError, "list of real numbers, got NoneType; .*numpy.asarray"),
    "set": ({0.5, 0.3, 0.2}, TypeError, "list of real numbers, got set"),
}
VECTORS = BAD_KINDS | {
    name: (np.array(values), error, message)
    for name, (values, error, message) in BAD_VECTORS.items()
}
# Each takes the vector beside a good distribution over 3 texts.
BESIDE = {
    "kl_divergence": lambda x: qd.kl_divergence(P, x),
    "cross_entropy": lambda x: qd.cross_entropy(P, x),
    "jensen_shannon_divergence": lambda x: qd.jensen_shannon_divergence(P, x),
    "total_variation": lambda x: qd.divergences.total_variation(P, x),
    "hellinger_distance": lambda x: qd.divergences.hellinger_distance(P, x),
    "bhattacharyya_distance": lambda x: qd.divergences.bhattacharyya_distance(P, x),
    "mix": lambda x: qd.mix(P, x, 0.5),
    "coverage_rate": lambda x: qd.coverage_rate(P, x),
    "cnd": lambda x: qd.cnd(P, x),
    "quality": lambda x: qd.LL_SE.quality(x, P),
    "linear quality": lambda x: linear(lambda p: p).quality(x, P),
}
# Each takes it alone, or first.
ALONE = {
    "entropy": lambda x: qd.entropy(x),
    "temper": lambda x: qd.temper(x, 2.0),
    "sample": lambda x: qd.sample(KEY, x, 3),
    "negative_repetition_rate": lambda x: qd.negative_repetition_rate(x),
    "diversity": lambda x: qd.CR_SE.diversity(x),
    "text_quality": lambda x: qd.CR_SE.text_quality(x),
    "pareto_optimum": lambda x: qd.pareto_optimum(qd.CR_NRR, x, -1.0),
    "pareto_frontier": lambda x: qd.pareto_frontier(qd.LL_SE, x),
    "saturation_weight": lambda x: qd.frontier.saturation_weight(qd.CR_NRR, x),
    "frontier_slopes": lambda x: qd.frontier.frontier_slopes(qd.LL_SE, x, -1.0),
}


# Every kind at one door; at every door what shows that the check is there: a vector
# that it alone refuses, a list that sums to less, and a vector of another size.
@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("vector", VECTORS)
def test_each_bad_vector_has_its_message(vector):
    value, error, message = VECTORS[vector]
    with pytest.raises(error, match=message):
        qd.kl_divergence(P, value)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("call", (BESIDE | ALONE).values(), ids=BESIDE | ALONE)
def test_every_door_has_the_check(call):
    told_the_size = call in BESIDE.values()
    for vector in ("negative", "list", *["wrong length"] * told_the_size):
        value, error, message = VECTORS[vector]
        with pytest.raises(error, match=message):
            call(value)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("call", (BESIDE | ALONE).values(), ids=BESIDE | ALONE)
def test_every_door_takes_lists_integers_and_32_bits(call):
    for given in ([0.25, 0.25, 0.5], [0, 1, 0]):
        expected = jax.tree.map(np.asarray, call(np.array(given, float)))
        for kind in (tuple, np.float32, jnp.array, pd.Series):
            found = jax.tree.map(np.asarray, call(kind(given)))
            jax.tree.map(np.testing.assert_array_equal, found, expected)


# -- everything else, one row a mistake -----------------------------------------------

VALUES = [
    # Text spaces.
    ("vocab_size must be at least 1, got 0", lambda: qd.TextSpace(0, 3)),
    ("length must be at least 1, got 0", lambda: qd.TextSpace(2, 0)),
    (r"lengths must increase, got \(\)", lambda: qd.TextSpace(2, ())),
    (r"increase, got \(2, 1\); sort", lambda: qd.TextSpace(2, (2, 1))),
    ("each once", lambda: qd.TextSpace(2, (2, 2))),
    (
        "1,000,000,000,000 texts is too large .* GiB .*fewer tokens or shorter",
        lambda: qd.TextSpace(10, 12),
    ),
    (r"n must lie in \[1, 3\], got 0", lambda: SPACE.ngrams(0)),
    (r"n must lie in \[1, 3\], got 4", lambda: SPACE.ngrams(4)),
    ("q must have 8 entries, got 3", lambda: SPACE.ngram_counts(P, 1)),
    ("q must have 8 entries", lambda: SPACE.ngram_distribution(P, 1)),
    ("n must lie in", lambda: SPACE.ngram_distribution(UNIFORM8, 4)),
    ("a smaller n", lambda: MIXED.ngram_distribution(np.eye(6)[0], 2)),
    (r"3 tokens .*shape \(2,\)", lambda: SPACE.index(np.array([0, 1]))),
    (r"3 tokens .*shape \(\)", lambda: SPACE.index(np.array(0))),
    (r"\[0, 2, 0\] is no text", lambda: SPACE.index(np.array([0, 2, 0]))),
    ("is no text", lambda: SPACE.index(np.array([0, 1, -1]))),
    (r"\[-1, 0\] is no", lambda: MIXED.index(np.array([[0, 1], [-1, 0]]))),
    # n-gram maps and pairs.
    ("n must lie in", lambda: qd.ngrams.ngram_matrix(SPACE, 4)),
    ("matrix of 20-grams", lambda: qd.ngrams.ngram_matrix(qd.TextSpace(2, 20), 20)),
    ("n must lie in", lambda: qd.ngrams.ngram_rank(SPACE, (1, 4))),
    ("n must lie in", lambda: qd.pairs.ngram_pair(SPACE, 0)),
    (
        "one whole number a text",
        lambda: dataclasses.replace(qd.pairs.ngram_pair(SPACE, 1), map=[0, 2]),
    ),
    ("shorter than n", lambda: qd.pairs.ngram_pair(MIXED, 2).diversity(np.eye(6)[0])),
    ("q must have 8 entries", lambda: BIGRAMS.diversity(P)),
    ("p must have 8 entries, got 3", lambda: BIGRAMS.quality(UNIFORM8, P)),
    (
        "not linear in q",
        lambda: qd.pairs.ngram_pair(MIXED, 1).text_quality(np.full(6, 1 / 6)),
    ),
    # Distributions.
    ("all zero", lambda: qd.normalize(np.zeros(3))),
    ("nonnegative, got -1", lambda: qd.normalize(np.array([1.0, -1.0]))),
    ("nonnegative, got -1", lambda: qd.normalize([3, -1])),
    ("beta must be .* at least 0, got -1", lambda: qd.temper(P, -1.0)),
    ("beta must be finite", lambda: qd.temper(P, np.inf)),
    (r"lie in \[0, 1\], got 1.5", lambda: qd.mix(P, UNIFORM3, 1.5)),
    (r"lie in \[0, 1\], got nan", lambda: qd.mix(P, UNIFORM3, np.nan)),
    ("p must sum to 1", lambda: qd.mix(np.array([0.5, 0.6]), P, 0.5)),
    ("num_samples must be at least 1", lambda: qd.sample(KEY, P, 0)),
    ("one vector", lambda: jax.vmap(qd.entropy)(np.ones((2, 2, 2)))),
    # Pairs and the frontier.
    ("order must be positive", lambda: qd.Tsallis(0.0)),
    ("positive and finite", lambda: qd.Tsallis(np.inf)),
    ("Shannon entropy; use qdtheory.functions.SE", lambda: qd.Tsallis(1.0)),
    ("num_references .*got 0", lambda: qd.pairs.single_token_bleu_pair(0, 1)),
    ("num_self_references", lambda: qd.pairs.single_token_bleu_pair(1, 0)),
    ("resolution", lambda: qd.check_rationality(qd.CR_NRR, 2)),
    ("at most 0, got 0.5; .*al", lambda: qd.pareto_optimum(qd.LL_SE, P, 0.5)),
    ("at most 0, got nan", lambda: qd.pareto_optimum(qd.LL_SE, P, np.nan)),
    (
        "strictly concave",
        lambda: qd.pareto_optimum(qd.pairs.single_token_bleu_pair(2, 5), P, -1.0),
    ),
    (
        "it is linear",
        lambda: qd.pareto_optimum(qd.SeparablePair("CR", "CR"), P, -1.0),
    ),
    ("nonnegative", lambda: qd.pareto_optimum(linear(jnp.sqrt), -P, -1.0)),
    (
        r"finite or -inf; .*NaN or \+inf",
        lambda: qd.pareto_frontier(linear(lambda p: p / 0), P),
    ),
    (
        "every text has score -inf",
        lambda: qd.pareto_frontier(linear(lambda p: -p / 0), P),
    ),
    ("num_points .*least 3", lambda: qd.pareto_frontier(qd.LL_SE, P, 2)),
    (
        r"w must lie in \(-inf, 0\), got 0",
        lambda: qd.frontier.frontier_slopes(qd.LL_SE, P, 0.0),
    ),
    (r"0\), got -inf", lambda: qd.frontier.frontier_slopes(qd.LL_SE, P, -np.inf)),
    (r"\(3,\) and \(8,\)", lambda: qd.pareto_filter(P, UNIFORM8)),
    ("must not hold NaN", lambda: qd.pareto_filter(P * np.nan, P)),
    # Language models.
    ("vocab_size must be at least 1", lambda: random_model(vocab_size=0)),
    ("hidden_size must be at least", lambda: random_model(2, hidden_size=0)),
    ("embedding_size must be", lambda: random_model(2, embedding_size=0)),
    ("sigma must be positive .*got 0", lambda: random_model(2, sigma=0.0)),
    ("sigma must be .*got nan", lambda: random_model(2, sigma=np.nan)),
    ("end_token .* 2, got 1", lambda: random_model(3, end_token=1)),
    ("last of at least 2 tokens", lambda: random_model(1, end_token=0)),
    ("SeqGAN's 15 .*got 14", lambda: LSTM.from_arrays(arrays()[:14])),
    ("end_token", lambda: dataclasses.replace(MODEL, end_token=0)),
    (
        r"b_input .*\(4,\), got \(5,\)",
        lambda: LSTM.from_arrays(arrays(at_3=np.zeros(5))),
    ),
    ("over 2 tokens.*3", lambda: MODEL.probabilities(qd.TextSpace(3, 2))),
    ("temperature must be positive", lambda: MODEL.probabilities(SPACE, 0.0)),
    ("temperature .*finite", lambda: MODEL.probabilities(SPACE, np.inf)),
    ("pass length_probabilities, or", lambda: MODEL.probabilities(MIXED)),
    (
        "must have 2 entries, got 3",
        lambda: MODEL.probabilities(MIXED, length_probabilities=P),
    ),
    (
        "length_probabilities must sum to 1, got 1.2",
        lambda: MODEL.probabilities(MIXED, length_probabilities=HALVES + 0.1),
    ),
    (r"use lengths \(1, 2, 3\), got", lambda: ENDING.probabilities(SPACE)),
    ("end token is not c", lambda: ENDING.probabilities(qd.TextSpace(3, 1))),
    (
        "without an end token",
        lambda: ENDING.probabilities(MIXED, length_probabilities=HALVES),
    ),
    ("num_texts must be at least 1, got 0", lambda: MODEL.sample(KEY, 0, 3)),
    ("length must be at least 1, got 0", lambda: MODEL.sample(KEY, 3, 0)),
    ("temperature must be positive", lambda: MODEL.sample(KEY, 3, 3, -1.0)),
    (r"table.*\(2,\)", lambda: MODEL.log_probability(np.array([0, 1]))),
    ("table", lambda: MODEL.log_probability(np.zeros((2, 0), int))),
    (r"0 \.\. 1, got 2", lambda: MODEL.log_probability(np.array([[0, 2]]))),
    ("got -2", lambda: MODEL.log_probability(np.array([[0, -2]]))),
    ("without -1", lambda: MODEL.log_probability(np.array([[0, -1]]))),
    ("at least one", lambda: ENDING.log_probability(np.array([[-1, -1]]))),
    ("only after", lambda: ENDING.log_probability(np.array([[0, -1, 1]]))),
    (r"0 \.\. 1, got 2", lambda: ENDING.log_probability(np.array([[0, 2]]))),
]
TYPES = [
    ("must be an integer, got 2.0", lambda: qd.TextSpace(2.0, 3)),
    ("a length must be an integer, got 3.0", lambda: qd.TextSpace(2, 3.0)),
    ("one length or a tuple", lambda: qd.TextSpace(2, [1, 2])),
    ("must be an integer, got True", lambda: qd.TextSpace(True, 3)),
    ("real numbers, got <U1", lambda: qd.normalize(["a", "b"])),
    ("numbers, got bool", lambda: jax.jit(qd.entropy)(np.ones(2, bool))),
    ("SeparablePair or", lambda: qd.pareto_optimum(FUNCTION_PAIR, P, -1.0)),
]
TABLE = [(ValueError, *row) for row in VALUES] + [(TypeError, *row) for row in TYPES]


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(("error", "message", "call"), TABLE)
def test_mistake(error, message, call):
    with pytest.raises(error, match=message):
        call()


# -- an argument of another kind ------------------------------------------------------

# What takes arguments at the top, and a call that is right.
RIGHT = {
    "TextSpace": (2, 3),
    "oracle": (SPACE, 0, 1.0, 4),
    "normalize": (P,),
    "temper": (P, 2.0),
    "mix": (P, UNIFORM3, 0.5),
    "sample": (KEY, P, 3),
    "entropy": (P,),
    "SeparablePair": ("log(x)", "-x**2"),
    "LinearPair": (P, "-x**2"),
    "BleuPair": (SPACE, 1, 2, 2),
    "Expression": ("log(x)",),
    "Tsallis": (2.0,),
    "expected_bleu": (SPACE, UNIFORM8, UNIFORM8, 2, 2),
    "expected_self_bleu": (SPACE, UNIFORM8, 2, 2),
    "coverage_rate": (UNIFORM3, P),
    "negative_repetition_rate": (P,),
    "cnd": (UNIFORM3, P),
    "kl_divergence": (UNIFORM3, P),
    "cross_entropy": (UNIFORM3, P),
    "jensen_shannon_divergence": (UNIFORM3, P),
    "ms_jaccard": (SPACE, UNIFORM8, UNIFORM8, 2),
    "pareto_optimum": (qd.CR_NRR, P, -1.0),
    "pareto_frontier": (qd.LL_SE, P, 3),
    "pareto_filter": (P, UNIFORM3),
    "check": ("log(x)", "-x**2"),
    "check_compatibility": (qd.CR_NRR,),
    "check_rationality": (qd.CR_NRR, 5),
    "kernel_criterion": (np.eye(3),),
    "quality_discrepancy": (qd.CR_NRR, P),
    "certify": (qd.CR_NRR, P, UNIFORM3),
}
WRONG = {
    "None": None,
    "a text": "cat",
    "ragged": [[0.5, 0.5], [1.0]],
    "a pair": qd.CR_NRR,
}
# What Python says of a value that nobody looked at.
UNSEEN = "has no attribute", "not supported between", "has no len", "not iterable"


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("name", RIGHT)
def test_an_argument_of_another_kind_is_refused_in_one_line(name):
    function, right = getattr(qd, name), RIGHT[name]
    function(*right)
    for i, wrong in product(range(len(right)), WRONG.values()):
        given = (*right[:i], wrong, *right[i + 1 :])
        try:
            function(*given)
        except (TypeError, ValueError) as error:
            said = str(error)
            assert "\n" not in said
            assert not any(words in said for words in UNSEEN), (given, said)
        else:  # a default, or a pair where a pair is meant
            taken = {"pair": qd.CR_NRR, "check": None, "certify": None}
            assert wrong in (taken.get(name), right[i], qd.CR_NRR), given


@pytest.mark.usefixtures("as_a_user")
def test_what_is_no_pair_and_no_space_is_named():
    refused(
        ("space must be a space of texts, such as qd.T", qd.oracle, 4, 3),
        ("pair must be a pair, such as qd.LL_SE", qd.certify, 4, P),
        ("pair must be a pair, such as qd.LL_SE", qd.check_compatibility, None),
        ("pair must be a pair, such as qd.LL_SE", qd.pareto_frontier, [P], P),
        ("pair must be a SeparablePair", qd.check_rationality, FUNCTION_PAIR),
        ("vocab_size must be a number, got None", random_model, None),
        ("beta must be a number, got 'cat'", qd.temper, P, "cat"),
        error=TypeError,
    )


# -- 64-bit mode off ------------------------------------------------------------------

IN_32_BITS = """
import jax, numpy as np, qdtheory as qd
p, calls = np.array([0.5, 0.5]), 0
space = qd.TextSpace(vocab_size=2, lengths=1)
jax.config.update("jax_enable_x64", False)
for call in (
    lambda: qd.entropy(p),
    lambda: qd.normalize(p),
    lambda: qd.kl_divergence(p, p),
    lambda: qd.cnd(p, p),
    lambda: space.ngram_distribution(p, 1),
    lambda: qd.CR_NRR.quality(p, p),
    lambda: qd.pareto_frontier(qd.LL_SE, p),
    lambda: qd.check_rationality(qd.LL_SE),
    lambda: qd.LSTMLanguageModel.random(jax.random.key(0), vocab_size=2),
    lambda: qd.LSTMLanguageModel.from_arrays([]),
):
    try:
        call()
    except RuntimeError as error:
        assert "jax.config.update('jax_enable_x64', True)" in str(error), error
        calls += 1
print(calls)
"""


def test_64_bit_mode_off():
    # In a process of its own: the switch belongs before the first array.
    result = subprocess.run(
        [sys.executable, "-c", IN_32_BITS], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "10\n"
