"""The site builds without a warning, asks nothing of the network, and reads well."""

import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import coverage_page
import explorer_page
import light_pages
import page_head
import parts_page
import publish
import pytest
import solutions_page
from browser import DESK, PHONE, in_a_browser

ROOT = Path(__file__).parents[1]

# What a browser fetches by itself: not the links a reader may click.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc=[\"']?(?:https?:)?//"
    r"|<link\b[^>]*\shref=[\"']?(?:https?:)?//[^>]*"
    r"|(?:url\(|@import\s)\s*[\"']?(?:https?:)?//"
)


@pytest.mark.parametrize(
    ("text", "fetched"),
    [
        ('<script defer src="https://example.org/a.js">', True),
        ('<link rel="stylesheet" href="//example.org/a.css">', True),
        ("@font-face { src: url(https://example.org/a.woff) }", True),
        ("@import 'https://example.org/a.css'", True),
        ('<a href="https://example.org">', False),
        ('<script src="../_static/a.js">', False),
    ],
)
def test_the_pattern_finds_what_a_browser_fetches(text, fetched):
    assert bool(FETCHED.search(text)) is fetched


def pages(site):
    return [p for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]


def test_the_site_stands_alone(site):
    names = {str(page.relative_to(site)) for page in pages(site)}
    sources = ROOT.glob("notebooks/*.ipynb")
    assert names >= {f"notebooks/{path.stem}.html" for path in sources}
    assert "docs/generated/qdtheory.pairs.html" in names
    for path in [*pages(site), *site.rglob("*.css")]:
        assert not (found := FETCHED.search(path.read_text())), (path, found)
    sidebar = re.sub(r"\s+", " ", (site / "docs/index.html").read_text())
    assert sidebar.count(">03 Trace the Pareto frontier</a>") == 1
    page = (site / "docs/generated/qdtheory.pairs.html").read_text()
    assert re.search(r'<script defer="defer" src="[./]*/_static/tex-svg-full.js', page)
    (script,) = site.rglob("_static/tex-svg-full.js")
    assert script.stat().st_size > 1_000_000


def test_the_site_is_light(site):
    files = [path for path in site.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 33e6  # .5 are the package
    assert (site / "_static/search_texts.js").stat().st_size < 2e6
    assert (site / "_static/social.png").stat().st_size < 100e3
    assert [path for path in files if path.suffix in (".map", ".po", ".mo")] == []
    assert light_pages.equal_pictures(site / "_images") == {}


def test_the_icons_that_pages_show_are_left():
    script = (
        'var a={"x":1},b={"bars":[448,512,["navicon"],"f0c9","M0"],'
        'sun:[1,2,[],"f1",["M1","M2"]],"moon":[1,2,[],"f2","M3"]};run()'
    )
    left = 'var a={"x":1},b={"bars":[448,512,["navicon"],"f0c9","M0"],};run()'
    names = light_pages.icons(['<i class="fa-solid fa-navicon">'])
    assert light_pages.without_others(script, names) == left


def test_every_lecture_is_in_one_part_and_the_parts_keep_the_numbers_in_order():
    listed = [name for part in parts_page.parts() for name in parts_page.lectures(part)]
    assert sorted(listed) == sorted(p.stem for p in ROOT.glob("notebooks/*.ipynb"))
    for part in parts_page.parts():
        assert parts_page.lectures(part) == sorted(parts_page.lectures(part))
    pages_of_parts = {path.stem for path in ROOT.glob("docs/parts/*.md")}
    assert pages_of_parts == set(parts_page.parts())


@pytest.mark.parametrize("part", parts_page.parts())
def test_a_part_says_in_five_sentences_what_one_will_know(part):
    text = (ROOT / f"docs/parts/{part}.md").read_text()
    opening = " ".join(text.split("\n\n")[1].split())
    assert opening.startswith("After these ")
    count = len(re.findall(r"[.?](?= [A-Z]|$)", opening))
    assert count == 5
    assert len(parts_page.COVER.findall(text)) == 1


def test_a_part_shows_its_best_figure_and_its_lectures(site):
    text = (site / "docs/parts/frontier.html").read_text()
    (source,) = re.findall(r'<img alt="[^"]+" class="cover" src="([^"]+)"', text)
    assert (site / "docs/parts" / source).exists()
    for name in parts_page.lectures("frontier"):
        assert f'{name}.html"' in text
    assert (site / "notebooks/03_pareto_frontier.html").exists()  # links stay


def test_solutions_stand_folded_below_their_exercises(site):
    for solved in ROOT.glob("notebooks/solutions/*.ipynb"):
        text = (site / f"notebooks/{solved.stem}.html").read_text()
        exercises = text[text.index('<section id="exercises">') :]
        exercises = exercises[: exercises.index("</section>")]
        before, folded = exercises.split('<details class="solution">')
        # Hints, too, are folded, and stand before.
        assert before.count("<details>") == before.count("Hint for") > 0, solved.stem
        assert f'href="solutions/{solved.stem}.html"' in folded, solved.stem
        assert text.count('<details class="solution">') == text.count("Solutions</summ")


def test_a_solution_that_no_cell_checks_is_refused():
    def cell(source, *tags):
        kind = "markdown" if source.startswith("[") else "code"
        return {"cell_type": kind, "source": source, "metadata": {"tags": tags}}

    text, code = cell("[a](../b.ipynb)", "solution"), cell("x = 1", "solution")
    check, other = cell("check(x)", "exercise"), cell("y")
    found = solutions_page.with_solutions([other, check], [text, code, check], "01_a")
    sources = [one["source"] for one in found]
    assert sources[:2] == ["y", "check(x)"]
    assert sources[3:5] == ["[a](b.ipynb)", "x = 1"]
    with pytest.raises(AssertionError, match="no cell checks"):
        solutions_page.with_solutions([check], [code], "01_a")
    with pytest.raises(AssertionError, match="lacks the cell 'check"):
        solutions_page.with_solutions([other], [code, check], "01_a")


def test_a_solution_hangs_under_its_lecture_and_is_skipped_at_its_foot(site):
    text = (site / "notebooks/03_pareto_frontier.html").read_text()
    assert re.search(r'class="right-next"\s+href="03b_ends_of_', text)
    solved = (site / "notebooks/solutions/03_pareto_frontier.html").read_text()
    assert 'href="../03_pareto_frontier.html">Lecture 03</a>' in solved
    assert re.search(r'class="left-prev"\s+href="../03_pareto_frontier', solved)
    assert re.search(r'class="right-next"\s+href="../03b_ends_of_', solved)


# What the first page says of a claim, and what the claim prints.
NUMBERS = {
    "N14.1": (
        "192 of the 198 pairs some model scores higher than real text in both; 6 are",
        "6 pairs compatible, 192 not",
    ),
    "N25.2": (
        "among nine real ones is a quality, and no model beats real text in both. With "
        "eight real ones, or ten, some model does",
        "with 8, 9, 10 real texts: incompatible, compatible, incompatible",
    ),
    "N26.10": (
        "real sentences, drawn by two features, beat fresh real sentences in both",
        "real text beats real text in BLEU-2, 3, 4 with Self-BLEU",
    ),
    "N10.42": (
        "20.6, 20.5 and 19.4, real text 25.1",
        "20.6, 20.5 and 19.4, real text 25.1",
    ),
}


@pytest.mark.parametrize("claim", NUMBERS)
def test_the_first_page_says_what_the_claims_print(claim):
    text = " ".join((ROOT / "docs/index.md").read_text().split())
    here, there = NUMBERS[claim]
    assert here in text
    assert f"({claim})" in text[text.index(here) :][:200]
    assert there in " ".join(coverage_page.claims()[claim][1])


def test_the_first_page_draws_its_picture_itself(site):
    text = (site / "docs/index.html").read_text()
    assert text.count('<svg class="panel"') == 4
    assert text.index("lucky in both") < text.index("better in both")
    assert "@misc{qdtheory," in text


def test_a_page_says_what_it_is_to_those_who_link_to_it(site):
    text = (site / "notebooks/03_pareto_frontier.html").read_text()
    assert '<meta name="description" content="Which models cannot be beaten' in text
    assert '<meta property="og:title" content="Trace the Pareto frontier">' in text
    assert "og:image" not in text  # it needs the site's address


def test_the_picture_beside_a_link_has_the_address_of_the_site():
    app = SimpleNamespace(config=SimpleNamespace(html_baseurl="https://a.org/b/"))
    context = {}
    page_head.tell(app, "docs/index", "page.html", context, None)
    assert context == {"social_picture": "https://a.org/b/_static/social.png"}


def test_the_root_leads_to_the_first_page(site):
    text = (site / "index.html").read_text()
    assert 'content="0; url=docs/index.html"' in text
    assert '<a href="docs/index.html">' in text


def version(site, name):
    """A site of one page, of a version."""
    (site / "docs").mkdir(parents=True)
    page = f'<html lang="en" data-content_root="../"><span id="version">{name}</span>'
    scripts = '<script src="../site.js"></script><script src="../versions.js"></script>'
    (site / "docs/index.html").write_text(page + scripts)
    (site / "site.js").write_text((ROOT / "docs/static/site.js").read_text())
    return site


def test_versions_lie_beside_each_other(tmp_path):
    folder = tmp_path / "published"
    for name in ("1.2.0", "1.10.0"):
        publish.publish(version(tmp_path / name, name), folder)
    assert (
        folder / "versions.js"
    ).read_text() == 'showVersions(["1.10.0", "1.2.0"]);\n'
    assert "url=1.10.0/docs/index.html" in (folder / "index.html").read_text()
    publish.publish(tmp_path / "1.2.0", folder)  # again: the list is the same
    assert (folder / "versions.js").read_text().count("1.2.0") == 1


def test_every_link_within_the_site_resolves(site):
    texts = {page.resolve(): page.read_text() for page in pages(site)}
    anchors = {page: set(re.findall(r'\sid="([^"]+)"', texts[page])) for page in texts}
    broken, followed = [], 0
    for page, text in texts.items():
        for link in set(re.findall(r'\s(?:href|src)="([^"]*)"', text)):
            parts = urlsplit(unescape(link))
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            target = (page.parent / unquote(parts.path)).resolve()
            target = target if parts.path else page
            fragment = unquote(parts.fragment)
            if not target.is_file() or (
                fragment and fragment not in anchors.get(target, ())
            ):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []
    assert followed > 1000


# --- in a browser -------------------------------------------------------------

MINUS = "\N{MINUS SIGN}"
CONTRAST_PAGES = {
    "docs/index.html",
    "docs/coverage.html",
    "docs/parts/frontier.html",
    "search.html",
    "docs/explorer.html",
    "docs/generated/qdtheory.pairs.html",
    "notebooks/solutions/02_quality_and_diversity.html",
}
# Pages made by one template are alike to axe: a few of each, and all that are written
# by hand.
AXE_PAGES = re.compile(
    r"docs/(parts/)?\w+\.html|search\.html|genindex\.html|notebooks/(02|10|16)_\w+\.html"
    r"|docs/generated/qdtheory\.(theory\.frontier|text\.bleu)\.html"
)


def faults(browser, address, site, axe=True, contrast=True):
    """What is wrong with a page, on a phone and on a desk, in light and in dark."""
    browser.prefer("light")
    browser.resize(PHONE)
    browser.open(address)
    found = browser.check("unsetMaths()") + browser.check("tooWide()")
    if axe:
        found += browser.judged_by_axe(contrast)
    browser.resize(DESK)
    found += browser.check("tooWide()")
    browser.prefer("dark")
    found += browser.check("staysLight()") + browser.check("tooWide()")
    if contrast:
        found += browser.check("contrastInTheDark()")
    browser.resize(PHONE)
    found += browser.check("tooWide()")
    found += browser.complaints()
    asked = [a for a in browser.requested() if not a.startswith((site, "data:"))]
    return found + [f"asks for {address}" for address in asked]


@pytest.mark.slow
@in_a_browser
def test_every_page_loads_reads_and_fits_at_both_widths(site, browser):
    found, judged = {}, []
    for page in pages(site):
        name = str(page.relative_to(site))
        # The first leads on at once; test_course.py opens the others.
        if name == "index.html" or name.startswith(("slides/", "handouts/")):
            continue
        contrast = name in CONTRAST_PAGES
        axe = contrast or AXE_PAGES.fullmatch(name) is not None
        judged += [name] if axe else []
        found[name] = faults(browser, page.as_uri(), site.as_uri(), axe, contrast)
    assert {name: what for name, what in found.items() if what} == {}
    assert found.keys() >= CONTRAST_PAGES
    assert len(judged) >= 18


@in_a_browser
@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<p>We know that $x^2$ is.", "maths: We know"),
        ('<span class="math">x</span>', "maths: x"),
        ('<div style="width: 400px">x</div>', "too wide: <div"),
        ('<div style="margin-left: 600px; width: 700px">x</div>', "too wide: <div"),
        ('<img src="absent.png">', "image-alt: <img"),
        ('<img src="absent.png">', "net::ERR_FILE_NOT_FOUND"),
        ('<p style="color: #999; background: #fff">pale</p>', "color-contrast: <p"),
        (
            """<script>
            const dark = matchMedia("(prefers-color-scheme: dark)");
            document.documentElement.dataset.theme = "auto";
            dark.onchange = () => document.querySelector("p").style.color = "#222";
            </script><style>
            @media (prefers-color-scheme: dark) {body {background: #111}}</style>
            <p style="color: #000">dim</p>""",
            "color-contrast in the dark: <p",
        ),
        (
            """<script>document.documentElement.dataset.theme = "auto"</script>
            <style>body {background: #fff}</style>""",
            "stays light: rgb(255, 255, 255)",
        ),
        ("<script>absent()</script>", '{"exceptionId"'),
        ("<script>console.error('no')</script>", '[{"type": "string"'),
        ('<img alt="" src="file:///absent">', "asks for file:///absent"),
    ],
)
def test_a_fault_of_a_page_is_found(tmp_path, browser, body, fault):
    page = tmp_path / "page.html"
    page.write_text(f'<html lang="en"><title>x</title><main><h1>x</h1>{body}</main>')
    found = faults(browser, page.as_uri(), tmp_path.as_uri())
    assert any(text.startswith(fault) for text in found), found


@in_a_browser
def test_the_first_page_paints_without_scripts(site, browser):
    browser.prefer("light")
    browser.resize(PHONE)
    with browser.without_scripts():
        browser.open((site / "index.html").as_uri())  # which leads to it
        browser.until("/docs/.test(location.href) && document.readyState == 'complete'")
        seen = browser.evaluate(
            """(() => {
              const shown = (node) => node.checkVisibility({opacityProperty: true});
              const top = (node) => node.getBoundingClientRect().top;
              const panels = [...document.querySelectorAll(".picture > svg")]
                .slice(0, 2);
              const words = [...document.querySelectorAll(".picture text")];
              return {
                title: shown(document.querySelector("article h1")),
                panels: panels.map((panel) => [shown(panel), top(panel)]),
                points: Math.min(...words.map((word) => {
                  const {a, b} = word.getScreenCTM();
                  const size = parseFloat(getComputedStyle(word).fontSize);
                  return 0.75 * size * Math.hypot(a, b);
                })),
                width: Math.min(...panels.map((p) => p.getBoundingClientRect().width)),
              };
            })()"""
        )
    assert seen["title"]
    (one, first), (other, second) = seen["panels"]
    assert one
    assert other
    assert first < 844 - 200  # on the first screen of a phone
    assert second > first  # below it: side by side their words would be small
    assert seen["width"] > 300
    assert seen["points"] >= 9


@in_a_browser
def test_a_reader_chooses_the_colours_and_figures_follow(site, browser):
    browser.prefer("light")
    browser.open((site / "notebooks/03_pareto_frontier.html").as_uri())
    seen = """(() => {
      const figure = document.querySelector(".bd-article .cell_output img");
      const {filter} = getComputedStyle(figure);
      return [document.documentElement.dataset.theme, filter.includes("invert")];
    })()"""
    press = "document.querySelector('.theme-change-button[data-mode={}]').click()"
    assert browser.evaluate(seen) == ["light", False]
    browser.evaluate(press.format("dark"))
    assert browser.evaluate(seen) == ["dark", True]
    browser.evaluate(press.format("auto"))
    assert browser.evaluate(seen) == ["light", False]
    assert browser.complaints() == []


@in_a_browser
def test_no_icon_of_a_page_is_missing(site, browser):
    browser.open((site / "notebooks/03_pareto_frontier.html").as_uri())
    seen = browser.evaluate(
        """(() => {
          const names = [...document.querySelectorAll("svg.svg-inline--fa")]
            .map((icon) => icon.dataset.icon);
          return [names, document.querySelectorAll("i.fa-solid").length];
        })()"""
    )
    names, missing = seen
    assert {"bars", "magnifying-glass", "chevron-down", "download"} <= {*names}
    assert missing == 0


@in_a_browser
def test_the_column_shown_by_is_on_the_screen_of_a_phone(site, browser):
    browser.resize(PHONE)
    browser.open((site / "docs/coverage.html").as_uri())
    seen = browser.evaluate(
        """[...document.querySelectorAll("table.stacked")].map((table) => {
          const cell = table.tBodies[0].rows[0].cells[2];
          const {left, right} = cell.getBoundingClientRect();
          return [cell.dataset.column, left, right];
        })"""
    )
    assert len(seen) == 5
    for column, left, right in seen:
        assert column == "Shown by"
        assert left >= 0
        assert right <= PHONE


@in_a_browser
def test_a_reader_changes_the_version(tmp_path, browser):
    for name in ("1.0.0", "1.1.0"):
        publish.publish(version(tmp_path / name, name), tmp_path / "published")
    browser.open((tmp_path / "published/1.0.0/docs/index.html").as_uri())
    browser.until("document.querySelector('select') != null")
    names = "[...document.querySelectorAll('option')].map((o) => [o.text, o.selected])"
    assert browser.evaluate(names) == [["1.1.0", False], ["1.0.0", True]]
    browser.evaluate(
        """(() => {
          const choice = document.querySelector("select");
          choice.value = "1.1.0";
          choice.dispatchEvent(new Event("change"));
        })()"""
    )
    browser.until("location.href.includes('1.1.0/docs/index.html')")
    assert browser.complaints() == []


@in_a_browser
def test_the_summary_prints_on_one_page(site, browser):
    browser.open((site / "docs/summary.html").as_uri())
    assert browser.printed_pages() == 1


@in_a_browser
def test_the_search_finds_the_coverage_rate(site, browser):
    browser.open((site / "search.html").as_uri() + "?q=coverage+rate")
    browser.until(
        """document.querySelector("#search-results .search-summary")
          ?.textContent.startsWith("Search finished")"""
    )
    found = browser.evaluate(
        "[...document.querySelectorAll('#search-results li a')].map((a) => a.href)"
    )
    for page in (
        "notebooks/02_quality_and_diversity.html",
        "docs/generated/qdtheory.ngrams.html#qdtheory.ngrams.coverage_rate",
    ):
        assert f"{site.as_uri()}/{page}" in found
    said = browser.evaluate(
        """(() => {
          const link = document.querySelector("#search-results a[href='" +
            "notebooks/02_quality_and_diversity.html']");
          const item = link.closest("li");
          return [
            item.querySelector(".search-place").textContent,
            [...item.querySelectorAll("mark")].map((m) => m.textContent.toLowerCase()),
          ];
        })()"""
    )
    assert said[0].startswith("Part 1. The world \u203a Lecture 02 \u203a ")
    assert {*said[1]} == {"coverage", "rate"}
    assert browser.complaints() == []


@in_a_browser
def test_the_slider_of_the_explorer_moves_the_point(site, browser):
    browser.open((site / "docs/explorer.html").as_uri())

    def centre(shape):
        return browser.evaluate(
            f"""(() => {{
              const shape = document.querySelector("#explorer-plane .{shape}");
              const {{x, y, width, height}} = shape.getBoundingClientRect();
              return [x + width / 2, y + height / 2];
            }})()"""
        )

    def text(name):
        return explorer_page.text(browser, f"explorer-{name}")

    def choose(name, wanted):
        places = f"[...document.getElementById('explorer-{name}').options]"
        place = browser.evaluate(f"{places}.findIndex((o) => o.text === '{wanted}')")
        explorer_page.enter(browser, f"explorer-{name}", place)

    before = centre("dot")
    browser.evaluate("document.getElementById('explorer-slider').focus()")
    for _ in range(10):  # from 10 to the middle
        browser.press("ArrowRight")
    assert text("weight").startswith(f"w = {MINUS}1.00:")
    assert centre("dot")[0] > before[0] + 10
    # A star of five points is a little higher than wide.
    assert centre("dot") == pytest.approx(centre("star"), abs=1.5)
    assert [text(f"model-{i}") for i in (0, 1)] == [text(f"real-{i}") for i in (0, 1)]
    assert "on the frontier" in text("verdict")
    choose("pair", "CR-SE")
    assert centre("dot")[1] == pytest.approx(centre("star")[1], abs=1.5)
    assert centre("dot")[0] > centre("star")[0] + 5
    assert "not on the frontier" in text("verdict")
    away = centre("dot")[0] - centre("star")[0]
    choose("world", "an oracle, nearly even")
    assert 0 < centre("dot")[0] - centre("star")[0] < away
    choose("pair", "BLEU-NSBLEU")
    assert "found by search" in text("verdict")
    browser.press("End")
    assert text("weight") == f"w = {MINUS}∞"
    assert text("model-1") == f"{MINUS}1.000"
    assert browser.complaints() == []
