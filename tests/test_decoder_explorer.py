"""The decoder explorer decodes as the library does, and says what that costs."""

import json

import numpy as np
import pytest
from browser import in_a_browser
from explorer_page import DOCS, enter, text

import qdtheory as qd
from qdtheory.generators.decoders import (
    MinP,
    Temperature,
    TopK,
    TopP,
    decode,
    text_distribution,
)

pytestmark = in_a_browser
SPACE = qd.TextSpace(vocab_size=4, lengths=3)


@pytest.fixture(scope="module")
def p():
    written = (DOCS / "static/explorer_data.js").read_text()
    data = json.loads(written.removeprefix("const EXPLORER = ").removesuffix(";\n"))
    return text_distribution([np.array(law) for law in data["model"]["laws"]], SPACE)


NEUTRAL = {"temperature": 1, "topK": 4, "topP": 1, "minP": 0}
MADE = {"temperature": Temperature, "topK": TopK, "topP": TopP, "minP": MinP}


def turn(explorer, **dials):
    for name, value in (NEUTRAL | dials).items():
        enter(explorer, f"decoder-{name}", value)


def decoded(explorer, dials):
    """What the page makes of its language model, dials by dials."""
    return explorer.evaluate(
        f"{json.dumps(dials)}"
        ".map((dials) => Decoders.decode(EXPLORER.model.laws, dials))"
    )


def test_decoders_are_the_librarys_at_random_dials(explorer, p):
    rng = np.random.default_rng(0)
    dials = []
    for _ in range(200):
        drawn = {
            "temperature": float(rng.uniform(0.1, 3)),
            "topK": int(rng.integers(1, 5)),
            "topP": float(rng.random()),
            "minP": float(rng.random()),
        }
        on = {name: value for name, value in drawn.items() if rng.random() < 0.6}
        dials.append(NEUTRAL | on)
    for dial, q in zip(dials, decoded(explorer, dials), strict=True):
        steps = tuple(made(dial[name]) for name, made in MADE.items())
        np.testing.assert_allclose(q, decode(p, SPACE, steps), rtol=0, atol=1e-12)


def test_ties_and_ends_of_the_dials_are_the_librarys(explorer):
    laws = [[0.4, 0.4, 0.1, 0.1], [0.25] * 4, [0.5, 0.25, 0.25, 0.0], [1.0, 0, 0, 0]]
    for name, values in {
        "temperature": [0.1, 0.5, 3.0],
        "topK": [1, 2, 3, 9],
        "topP": [0, 0.3, 0.5, 0.75, 1],
        "minP": [0, 0.25, 0.5, 1],
    }.items():
        for value in values:
            there = explorer.evaluate(
                f"{json.dumps(laws)}.map((law) => Decoders.decode("
                f"[[law]], {{...Decoders.NEUTRAL, {name}: {value}}}))"
            )
            here = MADE[name](value)(np.array(laws))
            np.testing.assert_allclose(there, here, rtol=0, atol=1e-15)


def test_the_neutral_dials_are_on_the_star(explorer):
    turn(explorer, temperature=0.5, topK=2)
    explorer.evaluate("document.getElementById('decoder-reset').click()")
    assert "the dot is on the star" in text(explorer, "decoder-verdict")
    for i in (0, 1):
        shown = (text(explorer, f"decoder-{x}-{i}") for x in ("model", "real"))
        assert len(set(shown)) == 1
    assert text(explorer, "decoder-kept") == "64"


@pytest.mark.parametrize("pair", [qd.LL_SE, qd.CR_NRR])
@pytest.mark.parametrize(
    "dial", [{"temperature": 0.5}, {"topK": 2}, {"topP": 0.7}, {"minP": 0.3}]
)
def test_a_turned_dial_leaves_the_frontier_by_what_the_page_says(
    explorer, p, pair, dial
):
    enter(explorer, "decoder-pair", pair.name)
    turn(explorer, **dial)
    q = np.array(decoded(explorer, [NEUTRAL | dial])[0])
    # QDisc of the decoded model under the real one's scores is the distance.
    scores = np.log(p) if pair is qd.LL_SE else p
    away = qd.quality_discrepancy(qd.LinearPair(scores, pair.g), q).qdisc
    assert away > 1e-6
    said = text(explorer, "decoder-verdict")
    assert "has left the frontier" in said
    number = float(said.split("has ")[-1].split(" more")[0])
    assert number == pytest.approx(away, rel=0.06)


def test_no_dial_is_better_than_the_model_itself_in_both(explorer, p):
    for pair in (qd.LL_SE, qd.CR_NRR):
        for t in (0.3, 0.7, 1.5, 2.5):
            q = decode(p, SPACE, Temperature(t))
            gains = (
                pair.quality(q, p) - pair.quality(p, p),
                pair.diversity(q) - pair.diversity(p),
            )
            assert min(map(float, gains)) < 0


def test_the_keyboard_turns_a_dial(explorer):
    turn(explorer)
    explorer.evaluate("document.getElementById('decoder-topK').focus()")
    explorer.press("ArrowLeft")
    assert text(explorer, "decoder-topK-shown") == "3"
    assert int(text(explorer, "decoder-kept")) == 27
