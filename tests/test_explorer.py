"""The explorer's data are what the library gives, and show what the page says."""

import json

import explorer_data as explorer
import jax
import numpy as np
import pytest
from explorer_page import DOCS

DIGITS = 1e-4  # five digits are written
MIDDLE = explorer.NUM_STEPS // 2
REALS = {name: np.asarray(p) for name, p in explorer.reals().items()}
OF_BLEU = "BLEU-NSBLEU"


@pytest.fixture(scope="module")
def shown():
    text = explorer.DATA.read_text()
    assert len(text) < 110_000
    return json.loads(text.removeprefix("const EXPLORER = ").removesuffix(";\n"))


@pytest.fixture(scope="module")
def worlds(shown):
    """For each real distribution its pairs, by their names."""
    return {
        world["name"]: {pair["name"]: pair for pair in world["pairs"]}
        for world in shown
    }


def models(pair):
    """The models that are written, of sum 1."""
    q = np.array(pair["q"])
    assert np.abs(q.sum(axis=1) - 1).max() < DIGITS
    return q / q.sum(axis=1, keepdims=True)


def test_the_texts_and_their_probabilities_are_the_librarys(shown):
    space = explorer.SPACE
    assert [world["name"] for world in shown] == [*REALS]
    for world, p in zip(shown, REALS.values(), strict=True):
        tokens = space.tokens[int(np.argmax(p))]
        assert world["texts"][0] == "".join("ab"[token] for token in tokens)
        assert len(set(world["texts"])) == space.num_texts
        np.testing.assert_allclose(world["p"], np.sort(p)[::-1], rtol=DIGITS)


@pytest.mark.parametrize("name", ["LL-SE", "CR-NRR", "LL-NRR", "CR-SE"])
@pytest.mark.parametrize("real", REALS)
def test_an_exact_frontier_is_what_the_script_writes(worlds, real, name):
    written = explorer.entry(name, explorer.pairs()[name], REALS[real])
    there = worlds[real][name]
    assert written.keys() == there.keys()
    assert (there["found"], there["axes"]) == (False, written["axes"])
    assert there["w"][0] == 0
    assert there["w"][-1] is written["w"][-1] is None
    np.testing.assert_allclose(there["w"][:-1], written["w"][:-1], rtol=DIGITS)
    for key in ("real", "gain", "quality", "diversity", "q"):
        np.testing.assert_allclose(there[key], written[key], rtol=DIGITS, atol=1e-9)


def test_the_models_of_ll_se_are_powers_of_the_real_distribution(shown, worlds):
    for world in shown:
        pair = worlds[world["name"]]["LL-SE"]
        w = np.array(pair["w"][:-1])
        powers = np.array(world["p"]) ** -w[:, None]
        expected = powers / powers.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(models(pair)[:-1], expected, atol=DIGITS)
        assert w[MIDDLE] == -1


def test_beyond_the_star_the_rare_texts_leave_cr_nrr_one_by_one(shown, worlds):
    for world in shown:
        pair = worlds[world["name"]]["CR-NRR"]
        assert pair["w"][MIDDLE] == -2
        assert pair["q"][MIDDLE] == pytest.approx(world["p"], rel=DIGITS)
        support = (np.array(pair["q"]) > 0).sum(axis=1)
        assert set(support[: MIDDLE + 1]) == {16}
        assert (np.diff(support[MIDDLE:]) <= 0).all()
        assert support[-1] == 1


def test_a_divergence_has_no_better_model_and_another_pair_has_one(worlds):
    even = worlds["an oracle, nearly even"]
    for pairs in worlds.values():
        assert pairs["LL-SE"]["gain"] == pairs["CR-NRR"]["gain"] == 0
        for name in ("LL-NRR", "CR-SE"):
            pair, (u, v) = pairs[name], pairs[name]["real"]
            assert pair["diversity"][MIDDLE] == pytest.approx(v, rel=DIGITS)
            better = pair["quality"][MIDDLE] - u
            assert pair["gain"] == pytest.approx(better, abs=DIGITS)
            assert pair["gain"] >= even[name]["gain"] > 0


@pytest.mark.parametrize("real", REALS)
def test_the_models_found_for_bleu_are_stationary_and_as_good_as_shown(worlds, real):
    p, pair, there = REALS[real], explorer.pairs()[OF_BLEU], worlds[real][OF_BLEU]
    assert there["found"]
    q = np.zeros((explorer.NUM_STEPS + 1, p.size))
    q[:, np.argsort(-p)] = models(there)
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
    assert there["gain"] > 0.003


def test_our_scripts_are_short_and_never_run_text():
    data = {"explorer_data.js", "named_pairs.js"}
    paths = [path for path in DOCS.rglob("*.js") if path.name not in data]
    scripts = [path.read_text("utf-8") for path in paths]
    assert sum(script.count("\n") for script in scripts) <= 500
    assert max(len(line) for script in scripts for line in script.splitlines()) <= 110
    for script in scripts:
        assert all(x not in script for x in ("eval(", "new Function", "innerHTML"))
