"""In a browser every page loads and can be read; search and switches work."""

import random
import re
from urllib.parse import urlencode

import pytest
from browser import DESK, PHONE, in_a_browser
from test_explorer import HELD
from test_pages import pages

import qdtheory as qd

pytestmark = in_a_browser

LECTURE = "notebooks/03_pareto_frontier.html"
MINUS = "\N{MINUS SIGN}"

# --- every page -----------------------------------------------------------------

# Pages made by one template are alike to axe: one of each, and all written by hand.
AXE = re.compile(
    r"docs/(parts/)?\w+\.html|(search|genindex)\.html|notebooks/(02|10|16)_\w+\.html"
    r"|docs/generated/qdtheory\.(frontier|pairs|text)\.html"
    r"|notebooks/solutions/02_\w+\.html|(slides|handouts)/(index|02_\w+)\.html"
)


def faults(browser, page, site):
    """What is wrong with a page on a phone."""
    browser.resize(PHONE)
    browser.open(page.as_uri())
    found = browser.check("unsetMaths()")
    if AXE.fullmatch(str(page.relative_to(site))):
        found += browser.judged_by_axe()
    found += browser.check("tooWide()") + browser.complaints()
    ours = site.as_uri(), "data:"
    asked = [a for a in browser.requested() if not a.startswith(ours)]
    return found + [f"asks for {address}" for address in asked]


FOLDERS = ".", "docs", "docs/parts", "docs/generated", "notebooks"
FOLDERS += "notebooks/solutions", "slides", "handouts"


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_page_loads_reads_and_fits_a_phone(site, browser, folder):
    there = [p for p in pages(site) if p.parent == site / folder]
    there = [p for p in there if p != site / "index.html"]  # which leads on at once
    assert len(there) >= 2
    found = {page.name: faults(browser, page, site) for page in there}
    assert {name: what for name, what in found.items() if what} == {}


# --- the pages of the book ------------------------------------------------------


def test_the_switch_opens_all_code_and_a_link_opens_a_fold(site, browser):
    is_open = "document.querySelectorAll('details.code[open]').length"
    switch = "document.querySelector('.code-switch').click()"
    browser.open((site / LECTURE).as_uri())
    folds = browser.evaluate("document.querySelectorAll('details.code').length")
    browser.evaluate("document.querySelector('details pre').id = 'inside'; 0")
    browser.evaluate("location.hash = 'inside'; new Promise((r) => setTimeout(r, 100))")
    opened = browser.evaluate(is_open)  # that one, and those open from the start
    assert 1 <= opened <= 4
    browser.evaluate(switch)
    assert browser.evaluate(is_open) == folds > 10
    browser.open((site / "notebooks/04_when_a_pair_is_a_divergence.html").as_uri())
    assert browser.evaluate(f"{is_open} > 10")
    browser.evaluate(switch)
    browser.open((site / LECTURE).as_uri())
    assert browser.evaluate(is_open) == 0
    copies = "document.querySelectorAll('.highlight > .copybtn').length"
    assert browser.evaluate(copies) == browser.evaluate(
        "document.querySelectorAll('.highlight > pre').length"
    )
    assert browser.complaints() == []


# --- the search -----------------------------------------------------------------

FOUND = {
    "RLHF": "does-rlhf-lose-diversity",
    "top-p": "which-sampler-loses-the-least-quality-at-a-given-diversity",
    "How do I compare two models?": "how-many-sentences-tell-two-models-apart",
    "pass@k": "how-do-i-compute-pass-k-from-n-samples",
    "tokenizer": "do-case-and-tokenizer-matter",
    "theorem 3": "theorem-3-a-corollary-for-sums",
    "N8.11": "N8.11",
    "is t2.1 true": "T2.1",
}


def search(site, browser, words):
    browser.open((site / "search.html").as_uri() + f"?q={words.replace(' ', '+')}")
    said = "document.querySelector('#search-results .search-summary')?.textContent"
    browser.until(f"/finished|did not match/.test({said})")


def test_on_a_phone_two_panels_stand_one_above_the_other(site, browser):
    boxes = """[...document.querySelectorAll('#figure-8-2 img')].map((image) => {
        const {left, top, bottom, width} = image.getBoundingClientRect();
        return [left, top, bottom, width, image.naturalWidth];
    })"""
    browser.resize(PHONE)
    browser.open((site / "notebooks/08_bleu_and_self_bleu.html").as_uri())
    browser.until("document.querySelectorAll('#figure-8-2 img').length === 2")
    (left, _, end, width, whole), (start, below, *_) = browser.evaluate(boxes)
    assert left == start
    assert 0 <= below - end < 20
    assert PHONE * 0.8 < width < whole / 1.5  # so letters are larger than if it shrank
    browser.resize(DESK)
    first, second = browser.evaluate(boxes)
    assert second[3] == 0 < first[3]


def test_the_search_leads_from_what_people_type_to_the_place(site, browser):
    answers = "[...document.querySelectorAll('.search-answers a')].map((a) => a.hash)"
    links = "[...document.querySelectorAll('#search-results li a')].map((a) => a.href)"
    for words, anchor in FOUND.items():
        search(site, browser, words)
        assert f"#{anchor}" in browser.evaluate(answers)[:3], words
    browser.evaluate("document.querySelector('.search-answers a').click()")
    browser.until("location.hash == '#T2.1' && document.readyState == 'complete'")
    for words, place in {
        "negative cnd": "questions.html#why-is-my-cnd-negative",
        "coverage rate": "generated/qdtheory.ngrams.html#qdtheory.ngrams.coverage_rate",
    }.items():
        search(site, browser, words)
        assert f"{site.as_uri()}/docs/{place}" in browser.evaluate(links)
    assert browser.complaints() == []


# --- the explorer ---------------------------------------------------------------


def test_the_slider_of_the_explorer_moves_the_point(explorer):
    def ahead():
        """How far the model is to the right of the star, and above it."""
        return explorer.evaluate(
            """(() => {
              const [dot, star] = ["dot", "star"].map((name) => document
                .querySelector(`#explorer-plane .${name}`).getBoundingClientRect());
              return [dot.x + dot.width / 2 - star.x - star.width / 2,
                star.y + star.height / 2 - dot.y - dot.height / 2];
            })()"""
        )

    def text(name):
        return explorer.text(f"explorer-{name}")

    def choose(name, wanted):
        places = f"[...document.getElementById('explorer-{name}').options]"
        place = explorer.evaluate(f"{places}.findIndex((o) => o.text === '{wanted}')")
        explorer.enter(f"explorer-{name}", place)

    assert ahead()[0] < -10
    explorer.evaluate("document.getElementById('explorer-slider').focus()")
    for _ in range(10):  # from 10 to the middle
        explorer.press("ArrowRight")
    assert text("weight").startswith(f"w = {MINUS}1.00:")
    # A star of five points is a little higher than wide.
    assert ahead() == pytest.approx([0, 0], abs=1.5)
    assert [text(f"model-{i}") for i in (0, 1)] == [text(f"real-{i}") for i in (0, 1)]
    assert "on the frontier" in text("verdict")
    choose("pair", "CR-SE")
    away, above = ahead()
    assert away > 5
    assert above == pytest.approx(0, abs=1.5)
    assert "not on the frontier" in text("verdict")
    choose("world", "an oracle, nearly even")
    assert 0 < ahead()[0] < away
    choose("pair", "BLEU-NSBLEU")
    assert "found by search" in text("verdict")
    explorer.press("End")
    assert text("model-1") == f"{MINUS}1.000"


@pytest.mark.slow
def test_choices_of_names_show_the_librarys_answer(explorer):
    rng = random.Random(7)
    for _ in range(25):
        chosen = [rng.choice(HELD[kind])["name"] for kind in ("quality", "diversity")]
        for kind, name in zip(("quality", "diversity"), chosen, strict=True):
            place = [entry["name"] for entry in HELD[kind]].index(name)
            explorer.enter(f"names-{kind}", place)
        address = urlencode(dict(zip(("quality", "diversity"), chosen, strict=True)))
        assert explorer.evaluate("location.hash") == f"#{address}"
        verdict = qd.check(*chosen)
        first = verdict.status.replace("undecided", "no verdict")
        assert explorer.text("names-verdict").lower().startswith(first)
        shown = explorer.text("names-reasons") + explorer.text("names-instead")
        assert shown == "".join((verdict.reason, *verdict.notes, *verdict.instead))
        rows = "[...document.querySelectorAll('#names-texts tr')]"
        texts = "[...row.children].map((cell) => cell.textContent)"
        rows = explorer.evaluate(f"{rows}.map((row) => {texts})")
        for name, *found in rows if verdict.texts else []:
            i, beats = verdict.texts.index(name), verdict.witness
            expected = float(beats.p[i]), float(beats.q[i])
            assert [*map(float, found)] == pytest.approx(expected, abs=1e-6)
    says = "document.getElementById('names-verdict').textContent"
    for given, said in {
        "quality=bleu_2&diversity=self bleu 2": "Self-BLEU-2 of 2 references",
        "quality=bleu_2&diversity=<b>nothing": "no diversity “<b>nothing",
    }.items():
        explorer.evaluate(f"location.hash = {given!r}")
        explorer.until(f"{says}.includes({said!r})")
