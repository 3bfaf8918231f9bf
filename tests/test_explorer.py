"""What the explorer draws and says is what the library gives."""

import json

import explorer_data as explorer
import jax
import named_pairs
import numpy as np
import pytest
from browser import DOCS

DIGITS = 1e-4  # five digits are written
REALS = {name: np.asarray(p) for name, p in explorer.reals().items()}
PAIRS = explorer.pairs()
OF_BLEU = "BLEU-NSBLEU"


def written(path, name):
    """What a script that holds data says."""
    text = path.read_text("utf-8")
    return json.loads(text.removeprefix(f"const {name} = ").removesuffix(";\n"))


SHOWN = written(explorer.DATA, "EXPLORER")
WORLDS = {
    world["name"]: {pair["name"]: pair for pair in world["pairs"]} for world in SHOWN
}


def test_the_texts_and_their_probabilities_are_the_librarys():
    space = explorer.SPACE
    assert [world["name"] for world in SHOWN] == [*REALS]
    for world, p in zip(SHOWN, REALS.values(), strict=True):
        tokens = space.tokens[int(np.argmax(p))]
        assert world["texts"][0] == "".join("ab"[token] for token in tokens)
        assert len(set(world["texts"])) == space.num_texts
        np.testing.assert_allclose(world["p"], np.sort(p)[::-1], rtol=DIGITS)


@pytest.mark.parametrize("name", ["LL-SE", "CR-NRR", "LL-NRR", "CR-SE"])
@pytest.mark.parametrize("real", REALS)
def test_an_exact_frontier_is_what_the_script_writes(real, name):
    made = explorer.entry(name, PAIRS[name], REALS[real])
    there = WORLDS[real][name]
    assert made.keys() == there.keys()
    assert (there["found"], there["axes"]) == (False, made["axes"])
    assert there["w"][0] == 0
    assert there["w"][-1] is made["w"][-1] is None
    np.testing.assert_allclose(there["w"][:-1], made["w"][:-1], rtol=DIGITS)
    for key in ("real", "gain", "quality", "diversity", "q"):
        np.testing.assert_allclose(there[key], made[key], rtol=DIGITS, atol=1e-9)


@pytest.mark.parametrize("real", REALS)
def test_the_models_found_for_bleu_are_stationary_and_as_good_as_shown(real):
    p, pair, there = REALS[real], PAIRS[OF_BLEU], WORLDS[real][OF_BLEU]
    assert there["found"]
    q = np.zeros((explorer.NUM_STEPS + 1, p.size))
    q[:, np.argsort(-p)] = there["q"]
    assert np.abs(q.sum(axis=1) - 1).max() < DIGITS
    q /= q.sum(axis=1, keepdims=True)
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


def test_our_scripts_never_run_text():
    data = {explorer.DATA.name, named_pairs.DATA.name}
    scripts = [p.read_text("utf-8") for p in DOCS.rglob("*.js") if p.name not in data]
    assert len(scripts) > 4
    for script in scripts:
        assert all(x not in script for x in ("eval(", "new Function", "innerHTML"))


# --- the lists of named pairs ---------------------------------------------------

HELD = written(named_pairs.DATA, "NAMED")


@pytest.mark.slow
def test_the_page_holds_what_the_library_says():
    assert json.loads(json.dumps(named_pairs.data())) == HELD
