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


def turn(explorer, **dials):
    for name in ("temperature", "topK", "topP", "minP"):
        enter(
            explorer,
            f"decoder-{name}",
            dials.get(name, {"minP": 0, "topK": 4}.get(name, 1)),
        )


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
        on = rng.random(4) < 0.6
        dials.append(
            {
                "temperature": float(rng.uniform(0.1, 3)) if on[0] else 1,
                "topK": int(rng.integers(1, 5)) if on[1] else 4,
                "topP": float(rng.random()) if on[2] else 1,
                "minP": float(rng.random()) if on[3] else 0,
            }
        )
    there = decoded(explorer, dials)
    for dial, q in zip(dials, there):
        steps = (
            Temperature(dial["temperature"]),
            TopK(dial["topK"]),
            TopP(dial["topP"]),
            MinP(dial["minP"]),
        )
        np.testing.assert_allclose(q, decode(p, SPACE, steps), rtol=0, atol=1e-12)


def test_ties_and_ends_of_the_dials_are_the_librarys(explorer):
    laws = [
        [0.4, 0.4, 0.1, 0.1],
        [0.25] * 4,
        [0.5, 0.25, 0.25, 0.0],
        [1.0, 0.0, 0.0, 0.0],
    ]
    dials = {
        "temperature": [0.1, 0.5, 3.0],
        "topK": [1, 2, 3, 9],
        "topP": [0, 0.3, 0.5, 0.75, 1],
        "minP": [0, 0.25, 0.5, 1],
    }
    made = {"temperature": Temperature, "topK": TopK, "topP": TopP, "minP": MinP}
    for name, values in dials.items():
        for value in values:
            there = explorer.evaluate(
                f"{json.dumps(laws)}.map((law) => Decoders.decode("
                f"[[law]], {{...Decoders.NEUTRAL, {name}: {value}}}))"
            )
            np.testing.assert_allclose(
                there, made[name](value)(np.array(laws)), rtol=0, atol=1e-15
            )


def test_the_neutral_dials_are_on_the_star(explorer):
    turn(explorer, temperature=0.5, topK=2)
    explorer.evaluate("document.getElementById('decoder-reset').click()")
    assert "the dot is on the star" in text(explorer, "decoder-verdict")
    for i in (0, 1):
        assert text(explorer, f"decoder-model-{i}") == text(
            explorer, f"decoder-real-{i}"
        )
    assert text(explorer, "decoder-kept") == "64"


@pytest.mark.parametrize("pair", [qd.LL_SE, qd.CR_NRR])
@pytest.mark.parametrize(
    "dials", [{"temperature": 0.5}, {"topK": 2}, {"topP": 0.7}, {"minP": 0.3}]
)
def test_a_turned_dial_leaves_the_frontier_by_what_the_page_says(
    explorer, p, pair, dials
):
    enter(explorer, "decoder-pair", pair.name)
    turn(explorer, **dials)
    neutral = {"temperature": 1, "topK": 4, "topP": 1, "minP": 0}
    q = np.array(decoded(explorer, [neutral | dials])[0])
    # QDisc of the decoded model under the real one's scores is the distance.
    scores = np.log(p) if pair is qd.LL_SE else p
    away = qd.quality_discrepancy(qd.LinearPair(scores, pair.g), q).qdisc
    assert away > 1e-6
    said = text(explorer, "decoder-verdict")
    assert "has left the frontier" in said
    assert float(said.split("has ")[-1].split(" more")[0]) == pytest.approx(
        away, rel=0.06
    )


def test_no_dial_is_better_than_the_model_itself_in_both(explorer, p):
    for pair in (qd.LL_SE, qd.CR_NRR):
        for t in (0.3, 0.7, 1.5, 2.5):
            q = decode(p, SPACE, Temperature(t))
            gains = [
                float(pair.quality(q, p) - pair.quality(p, p)),
                float(pair.diversity(q) - pair.diversity(p)),
            ]
            assert min(gains) < 0


def test_the_keyboard_turns_a_dial(explorer):
    turn(explorer)
    explorer.evaluate("document.getElementById('decoder-topK').focus()")
    explorer.press("ArrowLeft")
    assert text(explorer, "decoder-topK-shown") == "3"
    assert int(text(explorer, "decoder-kept")) == 27
