"""What the pages tell one to type does what they say; the exam's key is right."""

import contextlib
import io
import itertools
import re
import shlex
from itertools import pairwise

import address
import numpy as np
import pytest
from calls import call, samples
from coverage_page import claims
from lab import conditional, metrics
from lab import generators as gen
from packaging.requirements import Requirement
from processes import ROOT

import qdtheory as qd
from qdtheory import text

FENCED = re.compile(r"^(`{3,}|~{3,})[ ]*(.*?)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
MAKEFILE = (ROOT / "Makefile").read_text()


def blocks(page):
    """The fenced blocks of a page, each its language and its text."""
    return [found[1:] for found in FENCED.findall((ROOT / page).read_text())]


# --- the README -----------------------------------------------------------------

README = blocks("README.md")
LINES = [line for kind, block in README if kind == "sh" for line in block.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the pages name."""
    folder = tmp_path_factory.mktemp("texts")
    for name, content in samples().items():
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_readme_does_what_it_says(line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    command, _, said = line.partition("  # ")
    match shlex.split(command):
        case ["qdtheory", *arguments]:
            (expected,) = (y for (_, x), (_, y) in pairwise(README) if x == f"{line}\n")
            begins, more, _ = expected.partition("...\n")
            printed = call(*arguments).stdout
            assert printed.startswith(begins) if more else printed == expected
        case ["pip", "install", wanted]:
            # A copy of the project is its folder.
            assert wanted.startswith("qdtheory" if address.RELEASED else ".")
            extras = Requirement(re.sub(r"^\.", "qdtheory", wanted)).extras
            assert extras == (set(address.EXTRAS) if said else set())
        case _:
            pytest.fail(f"no test runs {command}")


def test_the_code_prints_what_the_page_says():
    found = blocks("docs/teaching.md")
    (pair,) = (pair for pair in pairwise(found) if pair[0][0] == "python")
    (_, code), (kind, printed) = pair
    assert kind == "text"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "teaching", "exec"), {})
    assert out.getvalue() == printed


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_and_targets_of_the_pages_exist(page):
    whole = (ROOT / page).read_text()
    prose = re.sub(r"`.*?`", "", whole, flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", prose)
    assert [link for link in links if not (ROOT / link).exists()] == []
    targets = re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE)
    commands = re.findall(r"^make ([\w-]+)|`make ([\w-]+)`", whole, re.MULTILINE)
    assert {"".join(names) for names in commands} <= set(targets)


# --- questions people ask -------------------------------------------------------

QUESTIONS_PAGE = (ROOT / "docs/questions.md").read_text()
BLOCK = r"```(sh|python)\n(.*?)\n```"
ENTRY = re.compile(rf"^### ([^\n]+)\n\n((?:(?!\n\n).)+)\n\n{BLOCK}", re.M | re.S)
LINK = re.compile(r"\[([A-Z]+\d+\.\d+)\]\(\.\./notebooks/(\w+)\.ipynb\)")
ENTRIES = ENTRY.findall(QUESTIONS_PAGE)
# Languages are fitted, or a search is made.
SLOW = re.compile("language-model|lm_score|doctor")


def test_an_answer_has_a_number_that_its_claim_prints():
    questions = [question for question, *_ in ENTRIES]
    assert len({*questions}) == QUESTIONS_PAGE.count("\n### ") >= 34
    assert QUESTIONS_PAGE.count("```") == 2 * (len(questions) + 1)
    for question, answer, *_ in ENTRIES:
        ((claim, notebook),) = LINK.findall(answer)
        (number,) = re.findall(r"\*\*(.+?)\*\*", LINK.sub("", answer))
        assert re.fullmatch(r"-?[\d,.]*\d(e[+-]\d+)?%?", number), question
        there, printed = claims()[claim]
        assert there == notebook, question
        found = rf"(?<![\d.]){re.escape(number)}(?![\d%]|\.\d|e[+-])"
        assert re.search(found, " ".join(printed)), (question, printed)


@pytest.fixture(scope="module")
def names(folder):
    """What the lines of Python go on from."""
    found = {}
    with contextlib.chdir(folder):
        prepare = re.search(BLOCK, QUESTIONS_PAGE, re.DOTALL)[2]
        exec(compile(prepare, "docs/questions.md", "exec"), found)
    return found


@pytest.mark.parametrize(
    ("language", "code"),
    [
        pytest.param(
            *rest, id=question, marks=[pytest.mark.slow] * bool(SLOW.search(rest[1]))
        )
        for question, _, *rest in ENTRIES
    ],
)
def test_the_line_of_an_answer_runs(language, code, folder, names, monkeypatch):
    monkeypatch.chdir(folder)
    if language == "python":
        exec(compile(code, "docs/questions.md", "exec"), {**names})
        return
    program, *arguments = shlex.split(code)
    result = call(*arguments)
    assert (program, result.exit_code) == ("qdtheory", 0), result.output
    assert result.stdout


# --- the exam -------------------------------------------------------------------

EXAM, KEY = ((ROOT / f"docs/{name}.md").read_text() for name in ("exam", "exam_key"))
CLAIM = re.compile(r"\b[TLNE]\d+\.\d+\b")


def entries(page):
    """Number and text of each entry of a page."""
    found = re.findall(r"^\*\*(\d+)\.\*\* (.+?)(?=^\*\*|^## |\Z)", page, re.M | re.S)
    return {int(number): words.strip() for number, words in found}


QUESTIONS, OF_KEY = entries(EXAM), entries(KEY)
ANSWERS = {number: words.split("\n\n")[0] for number, words in OF_KEY.items()}


def numbers(words):
    """The numbers in a text: those with a decimal point, and -1."""
    return [float(n) for n in re.findall(r"-?\d*\.\d+|-\d\b", words)]


def test_twenty_questions_have_a_key_with_claims_and_points_and_give_nothing_away():
    assert list(QUESTIONS) == list(OF_KEY) == list(range(1, 21))
    assert not CLAIM.search(EXAM)
    for number, words in OF_KEY.items():
        *_, why, points = words.split("\n\n")
        named = CLAIM.findall(why)
        assert named, number
        assert set(named) <= claims().keys(), number
        assert points.startswith("Points: ")
        assert sum(map(int, re.findall(r"\b(\d) for ", points))) == 3, number


A, B, C = np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([0.6, 0.4])
D, E = np.array([0.6, 0.4, 0]), np.array([0.5, 0.3, 0.2])


def share_and_divergence():
    share, pair = float(qd.check_compatibility(qd.CR_NRR).alpha), qd.CR_NRR
    quality = pair.quality(B, B) - pair.quality(A, B)
    diversity = pair.diversity(B) - pair.diversity(A)
    return [share, share * quality + (1 - share) * diversity]


def bleu():
    space, p = qd.TextSpace(vocab_size=2, lengths=1), np.array([0.8, 0.2])
    return [qd.expected_bleu(space, q, p, 1)[0] for q in (p, A)]


def distance_of_two_samples():
    """From .008 by the ratio of the exact means at sizes four and one."""
    chances = {"a": 0.7, "b": 0.3}

    def mean(size):
        samples = [*itertools.product(chances, repeat=size)]
        weights = [np.prod([chances[word] for word in sample]) for sample in samples]
        found = [[text.cnd([*x], [*y], 1, "plug-in") for x in samples] for y in samples]
        return weights @ np.array(found) @ weights

    return [0.008 * mean(4) / mean(1)]


def discriminator():
    q, p = np.array([0.3, 0.7]), np.array([0.2, 0.8])
    says = gen.optimal_discriminator(q, p)[0]
    return [says, np.log(says / (1 - says))]


def decoders():
    space, law = qd.TextSpace(vocab_size=4, lengths=1), np.array([0.5, 0.3, 0.15, 0.05])
    return [gen.decode(law, space, rule)[0] for rule in (gen.TopP(0.7), gen.MinP(0.2))]


of_texts = text.negative_repetition_rate
AVERAGED = conditional.average_diversity, conditional.pooled_diversity
COMPUTED = {
    1: lambda: [qd.coverage_rate(D, E), qd.negative_repetition_rate(C)],
    4: lambda: qd.pareto_optimum(qd.LL_SE, np.array([0.6, 0.3, 0.1]), -2.0).q,
    7: share_and_divergence,
    9: bleu,
    12: lambda: [of_texts(list("aabb"), 1, way) for way in ("plug-in", "pairs")],
    13: distance_of_two_samples,
    15: discriminator,
    17: decoders,
    18: lambda: [f(qd.CR_NRR, np.eye(2), B) for f in AVERAGED],
    19: lambda: [qd.cross_entropy(q, C) for q in (C, A)],
}


@pytest.mark.parametrize("number", COMPUTED)
def test_the_numbers_of_the_key_are_those_of_the_library(number):
    told, found = numbers(ANSWERS[number]), COMPUTED[number]()
    assert told == pytest.approx([*map(float, found)], abs=5e-5 + 1e-9)
    assert {n for n in ANSWERS if numbers(ANSWERS[n])} == COMPUTED.keys()


def test_the_pairs_of_questions_5_and_11_are_judged_by_the_library():
    formulas = re.findall(r"\$f = (.+?)\$,\s+\$g = (.+?)\$", QUESTIONS[5])
    verdicts = []
    for pair in formulas:
        f, g = (qd.Expression(formula.replace("\\", "")) for formula in pair)
        verdicts.append(qd.check_compatibility(qd.SeparablePair(f, g)).compatible)
    assert verdicts == [True, True, False, True]
    assert (ANSWERS[5], ANSWERS[11]) == ("Yes, yes, no, yes.", "B.")
    judged = [qd.check_compatibility(pair) for pair in (qd.CR_NRR, qd.LL_NRR, qd.CR_SE)]
    assert [verdict.compatible for verdict in judged] == [True, False, False]


def test_what_is_false_has_a_counterexample_and_what_is_true_holds():
    assert [n for n in QUESTIONS if ANSWERS[n] == "False."] == [2, 8, 10, 16]
    space = qd.TextSpace(vocab_size=2, lengths=2)  # aa, ab, ba, bb
    p = np.array([0.3, 0.3, 0.39, 0.01])
    tokens = gen.decode(p, space, gen.Temperature(0.5))
    assert np.abs(tokens - p**2 / (p @ p)).max() > 0.01  # 2
    # Uniform P, Self-BLEU of 1001 candidates: equal quality, more diversity.
    pair = qd.pairs.single_token_bleu_pair(1, 1000)
    uniform, collapsed = np.full(64, 1 / 64), np.full(64, 0.001)
    collapsed[0] = 1 - 63 * 0.001
    gain = pair.quality(collapsed, uniform) - pair.quality(uniform, uniform)
    assert abs(float(gain)) <= 1e-12
    assert pair.diversity(collapsed) > pair.diversity(uniform)  # 8 and 10
    # 16: one draw, one step of a table of logits with a constant reward, by hand.
    q = np.array([0.2, 0.35, 0.45])
    after = np.exp(np.log(q) + 0.5 * (np.eye(3) - q))
    assert np.abs(q @ (after / after.sum(axis=1, keepdims=True)) - q).max() > 1e-3
    # 15: the reward is log-likelihood and entropy.
    q, p = np.array([0.3, 0.7]), np.array([0.2, 0.8])
    both = float(qd.LL_SE.quality(q, p) + qd.LL_SE.diversity(q))
    assert np.log(p / q) @ q == pytest.approx(both)
    assert ANSWERS[20] == "True."
    for q in np.random.default_rng(0).dirichlet(np.ones(5), 20):
        expected = 2 + float(qd.negative_repetition_rate(q))
        assert float(metrics.distinct_k(q, 2)) == pytest.approx(expected)


def test_shuffled_words_keep_their_unigrams():
    assert ANSWERS[14] == "Only that of bigrams."
    sentences = ["the cat sat down", "a dog ran off", "the dog sat up"]
    shuffled = [" ".join(reversed(sentence.split())) for sentence in sentences]
    assert text.cnd(shuffled, sentences, 1, "plug-in") == 0
    assert text.cnd(shuffled, sentences, 2, "plug-in") > 0
