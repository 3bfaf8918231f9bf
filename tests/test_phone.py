"""On a phone and on a desk every page shows all it holds, in letters one can read."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import quote_plus

import course_pages
import lecture_figures
import notebook_cells
import pytest
from browser import DESK, PHONE, in_a_browser

ROOT = Path(__file__).parents[1]
STYLE = (ROOT / "qdtheory/qdtheory.mplstyle").read_text()
SMALLEST = 9.5  # pixels of the screen; most are 11 and more

SOME = [
    "docs/coverage.html",
    "docs/index.html",
    "docs/questions.html",
    "notebooks/00_map.html",
    "notebooks/15b_damaged_texts.html",
    "slides/15b_damaged_texts.html",
]


def letters(figure):
    """Height in pixels of a figure's smallest letters as drawn, but exponents."""
    if figure.kind == "image/svg+xml":
        found = re.findall(rb"font(?:-size)?: ?([\d.]+)px", figure.picture)
        sizes = {*map(float, found)}
        raised = {round(0.7 * size, 3) for size in sizes}
        points = min(size for size in sizes if round(size, 3) not in raised)
        return (
            points
            * figure.width
            / float(re.search(rb'viewBox="0 0 ([\d.]+)', figure.picture)[1])
        )
    code = notebook_cells.source_of(cells(figure.lecture)[figure.cell])
    sizes = re.findall(r"(?:font|label)size=(\d[\d.]*)|\"size\": (\d[\d.]*)", code)
    sizes += re.findall(
        r"^(?:\w+\.)+(?:label|title|font)?size: ([\d.]+)()$", STYLE, re.M
    )
    return min(float(one or other) for one, other in sizes) * 100 / 72


def cells(lecture):
    return notebook_cells.cells_of(notebook_cells.lecture(lecture))


@cache
def figures():
    """The figures of the lectures by the name of their files."""
    return {
        Path(course_pages.picture_file(figure)[0]).name: figure
        for path in notebook_cells.lectures()
        for figure in lecture_figures.figures(path)
    }


def small_figures(browser):
    """The figures on the page whose letters are too small, or that are distorted."""
    found = []
    for address, wide, high in browser.check("pictures()"):
        name = address.rpartition("/")[2]
        if abs(wide / high - 1) > 0.02:
            found.append(f"distorted: {name} {wide:.2f} {high:.2f}")
        if name in figures() and wide * letters(figures()[name]) < SMALLEST:
            figure = figures()[name].number
            found.append(f"small: {figure} {wide * letters(figures()[name]):.1f}")
    return found


def faults(browser, address):
    """What a reader cannot read of a page, on a phone and on a desk."""
    found = []
    for width in (PHONE, DESK):
        browser.resize(width)
        if width == PHONE:
            browser.open(address)
            browser.check("stand()")
        # The page marks what scrolls when it has been laid out anew.
        browser.evaluate(
            "new Promise((r) => requestAnimationFrame(() => setTimeout(r)))"
        )
        for check in (
            *("tooWide()", "unsigned()", "brokenWords()", "highHeads()"),
            "covering()",
        ):
            found += [f"{width}: {fault}" for fault in browser.check(check)]
        if width == PHONE or "/slides/" not in address:
            found += [f"{width}: {fault}" for fault in small_figures(browser)]
    return found


@in_a_browser
@pytest.mark.parametrize("name", SOME)
def test_a_page_can_be_read_at_both_widths(site, browser, name):
    assert faults(browser, (site / name).as_uri()) == []


@pytest.mark.slow
@in_a_browser
def test_every_page_can_be_read_at_both_widths(site, browser):
    found = {}
    for page in sorted(site.rglob("*.html")):
        name = str(page.relative_to(site))
        if "_static" not in page.parts and name != "index.html":  # which leads on
            found[name] = faults(browser, page.as_uri())
    assert {name: what for name, what in found.items() if what} == {}
    assert len(found) > 200


WIDE = "width: 100px; white-space: nowrap"
SVG = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' {}/>"
DRAWN = SVG.format("width='200' height='100'")


@in_a_browser
@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (f'<pre style="{WIDE}; overflow: auto">{"word " * 30}</pre>', "no sign: <pre"),
        (f'<p style="{WIDE}; overflow: hidden">{"word " * 30}</p>', "cut off: <p"),
        (
            '<table style="width: 9px; overflow-wrap: anywhere"><td>word</td></table>',
            "broken: word in word",
        ),
        (
            f'<table><thead><th style="width: 9px">{"no " * 9}</th></thead></table>',
            "high: no no",
        ),
        (
            '<div class="cell"><div class="code"><summary style="position: absolute">'
            'Code</summary></div><div class="cell_output"><pre>word</pre></div></div>',
            "covering: Code",
        ),
        (f'<img alt="" src="{DRAWN}" style="height: 9px; width: 50px">', "distorted: "),
    ],
)
def test_what_cannot_be_read_is_found(tmp_path, browser, body, fault):
    page = tmp_path / "page.html"
    page.write_text(f'<html lang="en"><title>x</title><main>{body}</main>')
    found = faults(browser, page.as_uri())
    assert [said for said in found if said.startswith(f"{PHONE}: {fault}")], found


@in_a_browser
def test_a_figure_that_is_drawn_too_small_is_found(tmp_path, browser):
    name, figure = next(iter(figures().items()))
    (tmp_path / name).write_bytes(figure.picture)
    page = tmp_path / "page.html"
    page.write_text(f'<main><img alt="" src="{name}" style="width: 300px"></main>')
    assert any("small: " in said for said in faults(browser, page.as_uri()))


# --- what scrolls -------------------------------------------------------------

LECTURE = "notebooks/24_decoders_and_alignment.html"


@in_a_browser
def test_what_scrolls_shows_on_which_side_there_is_more(site, browser):
    browser.resize(PHONE)
    browser.open((site / LECTURE).as_uri())

    def sign(place):
        return browser.evaluate(
            f"""new Promise((resolve) => {{
              const frame = document.querySelector("#cover > a");
              const {{scrollWidth, clientWidth}} = frame;
              frame.scrollLeft = {place} * (scrollWidth - clientWidth);
              requestAnimationFrame(() => setTimeout(() => resolve([
                frame.dataset.more, frame.tabIndex,
                getComputedStyle(frame, "::after").content.replace(/ \\/ ""$/, "")])));
            }})"""
        )

    assert sign(0) == ["right", 0, '"scroll →"']
    assert sign(0.5) == ["both", 0, '"← scroll →"']
    assert sign(1) == ["left", 0, '"← scroll"']
    browser.resize(DESK)
    browser.until("!document.querySelector('#cover > a').dataset.more")


# --- the sidebar --------------------------------------------------------------

# Where the link of the page is in each frame, and where the sidebar is.
FRAMES = """
const frames = [];
const look = () => {
  const bar = document.getElementById("pst-primary-sidebar");
  const here = [...document.querySelectorAll(".bd-sidebar-primary .current > a")].pop();
  if (here) frames.push([bar.scrollTop, here.getBoundingClientRect().top].join(" "));
  requestAnimationFrame(look);
};
look();
"""


@in_a_browser
def test_the_sidebar_is_where_the_page_is_from_the_first_frame_on(site, browser):
    browser.resize(DESK, 600)
    browser.open((site / "docs/index.html").as_uri())
    script = browser.send("Page.addScriptToEvaluateOnNewDocument", source=FRAMES)
    try:
        browser.open((site / LECTURE).as_uri())
        browser.until("frames.length > 20")
        (frame,) = set(browser.evaluate("frames"))
    finally:
        browser.send("Page.removeScriptToEvaluateOnNewDocument", **script)
    scrolled, top = map(float, frame.split())
    assert scrolled > 0
    assert 0 < top < 600


@in_a_browser
def test_on_a_phone_the_sidebar_opens_where_the_page_is(site, browser):
    browser.resize(PHONE, 600)
    browser.open((site / LECTURE).as_uri())
    place = """(() => {
      const bar = document.getElementById("pst-primary-sidebar-modal");
      const here = [...bar.querySelectorAll(".current > a")].pop();
      return [bar.open, bar.scrollTop, here.getBoundingClientRect().top];
    })()"""
    browser.evaluate("document.querySelector('.primary-toggle').click()")
    is_open, scrolled, top = first = browser.evaluate(place)
    assert is_open
    assert scrolled > 0
    assert 0 < top < 600
    browser.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
    assert browser.evaluate(place) == first


# --- the search ---------------------------------------------------------------

FOUND = {
    "RLHF": "does-rlhf-lose-diversity",
    "top-p": "which-sampler-loses-the-least-quality-at-a-given-diversity",
    "nucleus sampling": "a-truncation-leaves-it-at-once",
    "exposure bias": "which-objective-has-p-as-its-optimum",
    "How do I compare two models?": "how-many-sentences-tell-two-models-apart",
    "mode collapse": "which-topics-are-lost",
    "confidence intervals": "intervals",
    "pass@k": "how-do-i-compute-pass-k-from-n-samples",
    "LLM": "several-answers-a-prompt",
    "N8.11": "N8.11",
    "is t2.1 true": "T2.1",
}


@in_a_browser
def test_the_search_leads_from_what_people_type_to_the_place(site, browser):
    for query, anchor in FOUND.items():
        browser.open((site / "search.html").as_uri() + f"?q={quote_plus(query)}")
        browser.until(
            """/finished|did not match/.test(document
              .querySelector("#search-results .search-summary")?.textContent)"""
        )
        links = browser.evaluate(
            "[...document.querySelectorAll('.search-answers a')].map((a) => a.hash)"
        )
        assert f"#{anchor}" in links[:3], query
        assert browser.complaints() == []
    browser.evaluate("document.querySelector('.search-answers a').click()")
    browser.until("location.hash == '#T2.1' && document.readyState == 'complete'")


@in_a_browser
def test_the_results_name_the_pages_whose_words_are_listed_alone(site, browser):
    browser.open((site / "search.html").as_uri() + "?q=teacher+forcing")
    browser.until("document.querySelectorAll('#search-results li > a').length > 1")
    text = (site / "notebooks/22_adversarial_generators.html").read_text()
    assert re.search('<meta content="[^"]*teacher, forcing[^"]*" name="keywords"', text)
