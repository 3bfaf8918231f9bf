"""The explorer's data are what the library gives, and show what the page says."""

import json

import explorer_data as explorer
import jax
import numpy as np
import pytest

DIGITS = 1e-4  # five digits are written
MIDDLE = explorer.NUM_STEPS // 2


@pytest.fixture(scope="module")
def shown():
    text = explorer.DATA.read_text()
    assert len(text) < 150_000
    data = json.loads(text.removeprefix("const EXPLORER = ").removesuffix(";\n"))
    return data | {"pairs": {pair["name"]: pair for pair in data["pairs"]}}


def test_the_grammar_and_the_language_model_are_the_librarys(shown):
    def written(value):
        return json.loads(json.dumps(value))

    assert shown["formulas"] == written(explorer.grammar())
    model = explorer.language_model()
    assert shown["model"]["tokens"] == model["tokens"]
    for there, here in zip(shown["model"]["laws"], model["laws"], strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-9)


def normalised(shown, name):
    q = np.array(shown["pairs"][name]["q"])
    assert np.abs(q.sum(axis=1) - 1).max() < DIGITS
    return q / q.sum(axis=1, keepdims=True)


def test_the_texts_and_their_probabilities_are_the_oracles(shown):
    space, p = explorer.real()
    assert shown["texts"][0] == "".join(
        "ab"[token] for token in space.tokens[int(np.argmax(p))]
    )
    assert len(set(shown["texts"])) == space.num_texts
    np.testing.assert_allclose(shown["p"], np.sort(p)[::-1], rtol=DIGITS)


@pytest.mark.parametrize("name", ["LL-NRR", "CR-SE"])
def test_an_exact_frontier_is_what_the_script_writes(shown, name):
    space, p = explorer.real()
    written = explorer.entry(name, explorer.pairs(space)[name], space, p)
    there = shown["pairs"][name]
    assert written.keys() == there.keys()
    assert (there["found"], there["axes"]) == (False, written["axes"])
    assert there["w"][0] == 0
    assert there["w"][-1] is written["w"][-1] is None
    for key in ("real", "gain", "quality", "diversity", "q"):
        np.testing.assert_allclose(there[key], written[key], rtol=DIGITS, atol=1e-9)


def test_the_models_of_ll_se_are_powers_of_the_real_distribution(shown):
    w = np.array(shown["pairs"]["LL-SE"]["w"][:-1])
    powers = np.array(shown["p"]) ** -w[:, None]
    np.testing.assert_allclose(
        normalised(shown, "LL-SE")[:-1],
        powers / powers.sum(axis=1, keepdims=True),
        atol=DIGITS,
    )
    assert w[MIDDLE] == -1


def test_beyond_the_star_the_rare_texts_leave_cr_nrr_one_by_one(shown):
    pair = shown["pairs"]["CR-NRR"]
    assert pair["w"][MIDDLE] == -2
    assert pair["q"][MIDDLE] == pytest.approx(shown["p"], rel=DIGITS)
    support = (np.array(pair["q"]) > 0).sum(axis=1)
    assert set(support[: MIDDLE + 1]) == {16}
    assert (np.diff(support[MIDDLE:]) <= 0).all()
    assert support[-1] == 1


@pytest.mark.parametrize("name", ["LL-NRR", "CR-SE"])
def test_in_the_middle_a_model_as_diverse_is_better(shown, name):
    pair = shown["pairs"][name]
    u, v = pair["real"]
    assert pair["diversity"][MIDDLE] == pytest.approx(v, rel=DIGITS)
    assert pair["gain"] == pytest.approx(pair["quality"][MIDDLE] - u, abs=DIGITS)
    assert pair["gain"] > 0.01


def test_the_models_found_for_bleu_are_stationary_and_as_good_as_shown(shown):
    space, p = explorer.real()
    descending = np.argsort(-np.asarray(p))
    pair, there = explorer.pairs(space)["BLEU-NSBLEU"], shown["pairs"]["BLEU-NSBLEU"]
    assert there["found"]
    q = np.zeros((explorer.NUM_LEVELS, space.num_texts))
    q[:, descending] = normalised(shown, "BLEU-NSBLEU")
    assert (q[0] > 1e-9).sum() == 4  # a search leaves 1e-12
    quality = jax.vmap(pair.quality, (0, None))(q, p)
    diversity = jax.vmap(pair.diversity)(q)
    np.testing.assert_allclose(there["quality"], quality, atol=DIGITS)
    np.testing.assert_allclose(there["diversity"], diversity, atol=DIGITS)
    # No step towards a text gains at first order: the price w is the slope.
    w = np.array([x for x in there["w"] if x is not None])[:, None]
    slope = jax.vmap(jax.grad(pair.diversity))(q)[:-1] - w * pair.text_quality(p)
    gap = slope.max(axis=1) - (q[:-1] * slope).sum(axis=1)
    assert gap.max() < 1e-3 * np.abs(w).max()  # five digits, times the slopes
    # A model at least as diverse as the real distribution is better by the gain.
    u, v = there["real"]
    between = np.interp(-v, -np.array(there["diversity"]), there["quality"])
    assert there["gain"] == pytest.approx(between - u, rel=0.05)  # chords of 41 points
    assert there["gain"] > 0.005
