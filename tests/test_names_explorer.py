"""The lists of named pairs in the explorer answer as the library does."""

import json
import random
import shlex

import named_pairs
import pytest
from browser import in_a_browser
from calls import call
from coverage_page import claims
from explorer_page import DOCS, enter, text

import qdtheory as qd

WRITTEN = (DOCS / "static/named_pairs.js").read_text("utf-8")
HELD = json.loads(WRITTEN.removeprefix("const NAMED = ").removesuffix(";\n"))


@pytest.mark.slow
def test_the_page_holds_what_the_library_says():
    assert json.loads(json.dumps(named_pairs.data())) == HELD


def test_the_page_leads_to_the_notebooks_of_its_claims():
    assert HELD["claims"] == {claim: claims()[claim][0] for claim in HELD["claims"]}


@pytest.mark.parametrize("seed", range(12))
def test_the_commands_of_random_answers_say_what_the_page_says(seed):
    rng = random.Random(seed)
    i, j = (rng.randrange(len(HELD[kind])) for kind in ("quality", "diversity"))
    u, v = HELD["quality"][i], HELD["diversity"][j]
    status, sentences, *rival = HELD["answers"][i * len(HELD["diversity"]) + j]
    arguments = shlex.split(f"check {u['typed']} {v['typed']}")
    told = " ".join(call(*arguments).stdout.split())  # without line breaks
    pair = f"{u['name']} and {v['name']}"
    assert told.startswith(f"{named_pairs.STATUSES[status]}: {pair} ")
    assert all(HELD["sentences"][k] in told for k in sentences)
    assert ("A rival Q of this P gains" in told) == bool(rival)


def choose(explorer, quality, diversity):
    for kind, name in (("quality", quality), ("diversity", diversity)):
        names = [entry["name"] for entry in HELD[kind]]
        enter(explorer, f"names-{kind}", str(names.index(name)))


@pytest.mark.slow
@in_a_browser
def test_forty_choices_show_the_librarys_answer(explorer):
    rng = random.Random(7)
    for _ in range(40):
        u, v = (rng.choice(HELD[kind])["name"] for kind in ("quality", "diversity"))
        choose(explorer, u, v)
        verdict = qd.check(u, v)
        first = {"undecided": "No verdict"}.get(verdict.status, verdict.status)
        said = text(explorer, "names-verdict").lower()
        assert said.startswith(first.lower())
        shown = text(explorer, "names-reasons") + text(explorer, "names-instead")
        assert shown == "".join((verdict.reason, *verdict.notes, *verdict.instead))
        hidden = explorer.evaluate("document.getElementById('names-rival').hidden")
        assert hidden is not bool(verdict.texts)
        if verdict.texts:
            rows = explorer.evaluate(
                "[...document.querySelectorAll('#names-texts tr')].map((row) =>"
                " [...row.children].map((cell) => cell.textContent))"
            )
            assert len(rows) == 8
            for name, p, q in rows:
                i = verdict.texts.index(name)
                assert float(p) == pytest.approx(float(verdict.witness.p[i]), abs=1e-6)
                assert float(q) == pytest.approx(float(verdict.witness.q[i]), abs=1e-6)


@pytest.mark.slow
@in_a_browser
def test_the_address_holds_the_choice_in_any_spelling(explorer):
    choose(explorer, "ROUGE-L", "Distinct-2")
    address = explorer.evaluate("location.hash")
    assert address == "#quality=ROUGE-L&diversity=Distinct-2"
    choose(explorer, "LL", "SE")
    verdict = "document.getElementById('names-verdict').textContent"
    for given, says in (
        (address[1:], "both ROUGE-L and Distinct-2"),
        ("quality=bleu_2&diversity=self bleu 2", "Self-BLEU-2 of 2 references"),
        ("quality=bleu_2&diversity=<b>nothing", "The lists have no diversity"),
    ):
        explorer.evaluate(f"location.hash = {given!r}")
        explorer.until(f"{verdict}.includes({says!r})")
    assert explorer.evaluate("document.querySelector('#names-app b') === null")


@pytest.mark.slow
@in_a_browser
def test_the_answers_fit_a_phone_and_axe_finds_nothing(explorer):
    explorer.resize(390)
    choose(explorer, "BLEU-4 of 2 references", "Self-BLEU-4 of 2 references")
    assert explorer.evaluate("document.documentElement.scrollWidth") <= 390
    explorer.resize(1280)
