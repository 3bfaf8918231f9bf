"""The exam has twenty questions, and its key is right: the library computes it anew."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from coverage_page import claims
from lab import conditional, metrics
from lab import generators as gen

import qdtheory as qd
from qdtheory import text

DOCS = Path(__file__).parents[1] / "docs"
EXAM = (DOCS / "exam.md").read_text()
KEY = (DOCS / "exam_key.md").read_text()
CLAIM = re.compile(r"\b[TLNE]\d+\.\d+\b")
PARTS, POINTS = 6, 3


def entries(page):
    """Number and text of each entry of a page."""
    found = re.findall(r"^\*\*(\d+)\.\*\* (.+?)(?=^\*\*|^## |\Z)", page, re.M | re.S)
    return {int(number): words.strip() for number, words in found}


QUESTIONS, ENTRIES = entries(EXAM), entries(KEY)
ANSWERS = {number: words.split("\n\n")[0] for number, words in ENTRIES.items()}


def numbers(words):
    """The numbers in a text: those with a decimal point, and -1."""
    return [float(n) for n in re.findall(r"-?\d*\.\d+|-\d\b", words)]


def test_twenty_questions_over_the_six_parts_and_a_key_to_each():
    assert list(QUESTIONS) == list(ENTRIES) == list(range(1, 21))
    headings = re.findall(r"^## .+$", EXAM, re.MULTILINE)
    assert re.findall(r"^## .+$", KEY, re.MULTILINE) == headings
    # No part without a question, and each entry under the heading of its question.
    exam, key = (
        [list(entries(part)) for part in re.split(r"^## ", page, flags=re.M)]
        for page in (EXAM, KEY)
    )
    assert exam == key
    assert len(headings) == len([*filter(None, exam[1:])]) == PARTS
    assert f"60 minutes, 20 questions of {POINTS} points each" in EXAM


def test_the_exam_gives_nothing_away():
    assert not CLAIM.search(EXAM)


@pytest.mark.parametrize("number", ENTRIES)
def test_an_entry_names_claims_that_a_notebook_prints_and_gives_three_points(number):
    *_, why, points = ENTRIES[number].split("\n\n")
    named = CLAIM.findall(why)
    assert named
    assert set(named) <= claims().keys()
    assert sum(map(int, re.findall(r"\b(\d) for ", points))) == POINTS
    assert points.startswith("Points: ")


# --- computed anew ------------------------------------------------------------


def coverage_and_repetition():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.4, 0.0])
    return [qd.coverage_rate(q, p), qd.negative_repetition_rate(q)]


def optimum():
    return qd.pareto_optimum(qd.LL_SE, np.array([0.6, 0.3, 0.1]), -2.0).q


def share_and_divergence():
    p, q, pair = np.array([0.5, 0.5]), np.array([1.0, 0.0]), qd.CR_NRR
    share = float(qd.check_compatibility(pair).alpha)
    quality = pair.quality(p, p) - pair.quality(q, p)
    diversity = pair.diversity(p) - pair.diversity(q)
    return [share, share * quality + (1 - share) * diversity]


def bleu():
    space, p = qd.TextSpace(vocab_size=2, lengths=1), np.array([0.8, 0.2])
    return [qd.expected_bleu(space, q, p, 1)[0] for q in (p, np.array([1.0, 0.0]))]


def repetition_of_a_sample():
    rate, sample = text.negative_repetition_rate, ["a", "a", "b", "b"]
    return [rate(sample, 1, estimator) for estimator in ("plug-in", "pairs")]


def distance_of_two_samples():
    """From .008 by the ratio of the exact means at sizes four and one."""
    chances = {"a": 0.7, "b": 0.3}

    def mean(size):
        samples = list(itertools.product(chances, repeat=size))
        weights = [float(np.prod([chances[word] for word in s])) for s in samples]
        return sum(
            u * v * text.cnd(list(x), list(y), 1, "plug-in")
            for x, u in zip(samples, weights, strict=True)
            for y, v in zip(samples, weights, strict=True)
        )

    return [0.008 * mean(4) / mean(1)]


def discriminator():
    q, p = np.array([0.3, 0.7]), np.array([0.2, 0.8])
    says = qd.rewards.optimal_discriminator(q, p)[0]
    return [says, np.log(says / (1 - says))]


def decoders():
    space, law = qd.TextSpace(vocab_size=4, lengths=1), np.array([0.5, 0.3, 0.15, 0.05])
    return [gen.decode(law, space, rule)[0] for rule in (gen.TopP(0.7), gen.MinP(0.2))]


def answers_to_messages():
    answers, half = np.eye(2), np.array([0.5, 0.5])
    return [
        conditional.average_diversity(qd.CR_NRR, answers, half),
        conditional.pooled_diversity(qd.CR_NRR, answers, half),
    ]


def oracle_nll():
    p = np.array([0.6, 0.4])
    return [qd.cross_entropy(q, p) for q in (p, np.array([1.0, 0.0]))]


COMPUTED = {
    1: coverage_and_repetition,
    4: optimum,
    7: share_and_divergence,
    9: bleu,
    12: repetition_of_a_sample,
    13: distance_of_two_samples,
    15: discriminator,
    17: decoders,
    18: answers_to_messages,
    19: oracle_nll,
}


@pytest.mark.parametrize("number", COMPUTED)
def test_the_numbers_of_the_key_are_those_of_the_library(number):
    told, found = numbers(ANSWERS[number]), COMPUTED[number]()
    assert told == pytest.approx([*map(float, found)], abs=5e-5 + 1e-9)
    # Each is given with the digits that a pocket calculator shows.
    assert len(told) == len(set(told))


def test_every_answer_with_a_number_is_computed():
    assert {n for n in ANSWERS if numbers(ANSWERS[n])} == COMPUTED.keys()
    assert len(COMPUTED) == 10
    assert "The ten questions that\nask for a number carry half" in KEY


def test_the_pairs_of_question_5_are_judged_by_the_library():
    formulas = re.findall(r"\$f = (.+?)\$,\s+\$g = (.+?)\$", QUESTIONS[5])
    for old, new in (("\\log x", "*log(x)"), ("^", "**"), ("-x *log", "-x*log")):
        formulas = [(f.replace(old, new), g.replace(old, new)) for f, g in formulas]
    pairs = [
        qd.SeparablePair(qd.Expression(f.lstrip("*")), qd.Expression(g))
        for f, g in formulas
    ]
    verdicts = [qd.check_compatibility(pair).compatible for pair in pairs]
    assert verdicts == [True, True, False, True]
    assert ANSWERS[5] == "Yes, yes, no, yes."


def test_the_reward_of_question_15_is_log_likelihood_and_entropy():
    q, p = np.array([0.3, 0.7]), np.array([0.2, 0.8])
    reward = np.log(p / q) @ q
    pair = qd.LL_SE
    assert reward == pytest.approx(float(pair.quality(q, p) + pair.diversity(q)))


# --- true or false, and the choice ---------------------------------------------


def test_what_is_false_has_a_counterexample():
    false = [n for n in QUESTIONS if ANSWERS[n] == "False."]
    assert false == [2, 8, 10, 16]
    for number in (*false, 20):
        assert QUESTIONS[number].startswith("True or false, with a reason")
    space = qd.TextSpace(vocab_size=2, lengths=2)  # aa, ab, ba, bb
    p = np.array([0.3, 0.3, 0.39, 0.01])
    tokens = gen.decode(p, space, gen.Temperature(0.5))
    power = p**2 / (p @ p)
    assert np.abs(tokens - power).max() > 0.01
    # Uniform P, Self-BLEU of 1001 candidates: equal quality, more diversity.
    pair = qd.pairs.single_token_bleu_pair(1, 1000)
    uniform, collapsed = np.full(64, 1 / 64), np.full(64, 0.001)
    collapsed[0] = 1 - 63 * 0.001
    gain = pair.quality(collapsed, uniform) - pair.quality(uniform, uniform)
    assert abs(float(gain)) <= 1e-12
    assert pair.diversity(collapsed) > pair.diversity(uniform)  # 8 and 10


def test_a_constant_reward_moves_probabilities():
    """One draw, one step of a table of logits, over both texts, by hand."""
    q, rate = np.array([0.2, 0.35, 0.45]), 0.5
    steps = rate * (np.eye(3) - q)
    after = np.exp(np.log(q) + steps)
    mean = q @ (after / after.sum(axis=1, keepdims=True))
    assert np.abs(mean - q).max() > 1e-3


def test_two_draws_differ_as_the_repetition_rate_says():
    assert ANSWERS[20] == "True."
    for q in np.random.default_rng(0).dirichlet(np.ones(5), 20):
        expected = 2 + float(qd.negative_repetition_rate(q))
        assert float(metrics.distinct_k(q, 2)) == pytest.approx(expected)


def test_of_the_choices_only_one_is_compatible():
    assert ANSWERS[11] == "B."
    assert qd.check_compatibility(qd.CR_NRR).compatible
    assert not qd.check_compatibility(qd.LL_NRR).compatible
    assert not qd.check_compatibility(qd.CR_SE).compatible


def test_shuffled_words_keep_their_unigrams():
    assert ANSWERS[14] == "Only that of bigrams."
    sentences = ["the cat sat down", "a dog ran off", "the dog sat up"]
    shuffled = [" ".join(reversed(sentence.split())) for sentence in sentences]
    assert text.cnd(shuffled, sentences, 1, "plug-in") == 0
    assert text.cnd(shuffled, sentences, 2, "plug-in") > 0
