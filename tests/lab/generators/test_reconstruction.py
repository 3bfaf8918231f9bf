"""Reconstruction scored exactly, against NLTK and against texts decoded one by one."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab.generators import (
    Autoencoder,
    circle_grid,
    greedy_distribution,
    greedy_texts,
    normal_grid,
    reconstruct,
    refined,
)
from nltk.translate.bleu_score import sentence_bleu
from refusals import refused

import qdtheory as qd

SPACE = qd.TextSpace(2, 4)
P = np.random.default_rng(0).dirichlet(np.ones(16))
MODEL = Autoencoder.random(jax.random.key(2), SPACE, circle_grid(64))


def greedy_by_hand(model, code):
    text = []
    logits = np.asarray(model.next_token_logits(SPACE, jnp.asarray(code)[None])[0])
    for t in range(4):
        row = 2**t - 1 + sum(a * 2 ** (t - 1 - i) for i, a in enumerate(text))
        text.append(int(logits[row].argmax()))
    return np.array(text)


def rouge(candidate, reference, n):
    ours, theirs = ([tuple(x[i : i + n]) for i in range(5 - n)]
                    for x in (candidate, reference))  # fmt: skip
    return sum(min(ours.count(g), theirs.count(g)) for g in set(theirs)) / (5 - n)


@pytest.mark.claim("N23.10")
@pytest.mark.filterwarnings("ignore::UserWarning")  # NLTK: no match of some order
def test_paired_scores_are_those_of_nltk():
    found = reconstruct(MODEL, SPACE, P)
    codes = MODEL.text_codes()
    likely = np.exp(np.asarray(MODEL.log_decoded(SPACE, codes)))
    decoded = [greedy_by_hand(MODEL, z).tolist() for z in np.asarray(codes)]
    texts = SPACE.tokens.tolist()
    scores = np.zeros((2, 3))
    for weight, text, other in zip(P, texts, decoded):
        for n in (1, 2, 3):
            bleu = sentence_bleu([text], other, [1 / n] * n)
            scores[0, n - 1] += weight * (bleu if bleu > 1e-9 else 0)
            scores[1, n - 1] += weight * rouge(other, text, n)
    np.testing.assert_allclose([found.bleu, found.rouge], scores, atol=1e-12)
    same = [text == other for text, other in zip(texts, decoded)]
    assert float(found.accuracy) == pytest.approx(P @ same, abs=1e-12)
    assert float(found.nll) == pytest.approx(-P @ np.log(np.diagonal(likely)))


@pytest.mark.claim("N23.10")
def test_scores_of_the_longest_order_are_the_accuracy():
    found = reconstruct(MODEL, SPACE, P, max_order=4)
    assert float(found.bleu[3]) == pytest.approx(float(found.accuracy), abs=1e-12)
    assert float(found.rouge[3]) == pytest.approx(float(found.accuracy), abs=1e-12)


def test_greedy_texts_are_decoded_token_by_token():
    codes = np.linspace(-2, 2, 33)[:, None] * [[1.0, -0.5]]
    found = greedy_texts(MODEL, SPACE, jnp.asarray(codes))
    expected = SPACE.index(np.array([greedy_by_hand(MODEL, z) for z in codes]))
    assert found.tolist() == expected.tolist()
    assert len(set(expected)) > 2


@pytest.mark.parametrize("grid", [normal_grid(129), circle_grid(128)])
def test_the_greedy_law_converges_within_its_bound(grid):
    model = Autoencoder.random(jax.random.key(5), SPACE, grid)
    coarse, bound = greedy_distribution(model, SPACE)
    for _ in range(5):
        model = refined(model)
    fine, less = greedy_distribution(model, SPACE)
    assert float(coarse.sum()) == pytest.approx(1, abs=1e-12)
    assert float(jnp.abs(fine - coarse).sum() / 2) <= float(bound) + float(less)
    assert float(less) < 0.1 * float(bound)


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    def model_of(change, p=P, space=SPACE, **settings):
        return lambda: reconstruct(replace(MODEL, **change), space, p, **settings)

    lost, short = {"codes": np.full((16, 2), np.nan)}, np.full(8, 1 / 8)
    three = "has 16 codes and 82 outputs, the space needs"
    refused(
        ("max_order must be at least 1, got 0", model_of({}, max_order=0)),
        ("n must lie in [1, 4]", model_of({}, max_order=5)),
        ("p must have 16 entries, got 8", model_of({}, short)),
        (three, model_of({}, short, qd.TextSpace(2, 3))),
        ("holds NaN: its training diverged", model_of(lost)),
    )
