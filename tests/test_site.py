"""The site builds without a warning, asks nothing of the network, and reads well."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from html import unescape
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browser import CHROMIUM, Browser

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow

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


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The built site; of several workers the first to need it builds it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    html = folder / "html"
    with (folder / "html.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not html.exists():
            # Pages of modules that have moved since would be orphans.
            shutil.rmtree(ROOT / "docs/generated", ignore_errors=True)
            command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", "-d"]
            result = subprocess.run(
                [sys.executable, *command, folder / "trees", ".", folder / "building"],
                cwd=ROOT,
                capture_output=True,
                text=True,
            )
            assert result.returncode == 0, result.stderr
            (folder / "building").rename(html)
    return html


def pages(site):
    return [p for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]


def test_the_site_stands_alone(site):
    names = {str(page.relative_to(site)) for page in pages(site)}
    sources = ROOT.glob("notebooks/*.ipynb")
    assert names >= {f"notebooks/{path.stem}.html" for path in sources}
    assert "docs/generated/qdtheory.pairs.separable.html" in names
    for path in [*pages(site), *site.rglob("*.css")]:
        assert not (found := FETCHED.search(path.read_text())), (path, found)
    sidebar = re.sub(r"\s+", " ", (site / "docs/index.html").read_text())
    assert sidebar.count(">03 Trace the Pareto frontier</a>") == 2  # and its solutions
    page = (site / "docs/generated/qdtheory.pairs.separable.html").read_text()
    assert re.search(r'<script defer="defer" src="[./]*/_static/tex-svg-full.js', page)
    (script,) = site.rglob("_static/tex-svg-full.js")
    assert script.stat().st_size > 1_000_000


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

in_a_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="needs Chromium; Debian, Ubuntu: apt-get install chromium"
)
PHONE, DESK = 390, 1280
MINUS = "\N{MINUS SIGN}"

# Formulas that were left as they are in the source, or that MathJax could not read.
UNSET_MATHS = r"""
(() => {
  const found = [...document.querySelectorAll("span.math, div.math")]
    .filter((node) => !node.querySelector("mjx-container"));
  found.push(...document.querySelectorAll(
    "[data-mml-node=merror], mjx-container [fill=red]"));
  const walker = document.createTreeWalker(
    document.body, NodeFilter.SHOW_TEXT, (node) =>
      /\$[^$]+\$|\\[([]/.test(node.textContent) &&
      !node.parentElement.closest("pre, code, script, style, mjx-container")
        ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP);
  while (walker.nextNode()) found.push(walker.currentNode);
  return found.map((node) => `maths: ${node.textContent.slice(0, 60)}`);
})()
"""

# What a page that scrolls sideways holds beyond its right edge.
TOO_WIDE = """
document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("main *")]
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
    .filter((node) => !node.parentElement.closest("pre, svg"))
    .slice(0, 3).map((node) => `too wide: ${node.outerHTML.slice(0, 90)}`)
"""

# MathJax's formulas and the colours of code are alike on all pages, and many: boxes and
# plain text take their places, but colours stay where contrast is judged.
AXE = """
(async () => {
  const formulas = [...document.querySelectorAll("mjx-container")]
    .map((node) => [node, node.getBoundingClientRect().width]);
  for (const [node, width] of formulas) {
    const box = document.createElement("span");
    box.style = `display: inline-block; width: ${width}px`;
    node.replaceWith(box);
  }
  for (const node of CONTRAST ? [] : document.querySelectorAll("pre"))
    node.textContent = node.textContent;
  const {violations} = await axe.run({
    preload: false, resultTypes: ["violations"],
    rules: {"color-contrast": {enabled: CONTRAST}}});
  return violations
    .filter(({id, impact}) =>
      ["serious", "critical"].includes(impact) || id == "heading-order")
    .map(({id, nodes: [node]}) => `${id}: ${node.html.slice(0, 90)}`);
})()
"""
CONTRAST_PAGES = {
    "docs/index.html",
    "docs/explorer.html",
    "docs/generated/qdtheory.pairs.separable.html",
    "notebooks/solutions/02_quality_and_diversity.html",
}
# Pages made by one template are alike to axe: a few of each, and all that are written
# by hand.
AXE_PAGES = re.compile(
    r"docs/\w+\.html|search\.html|genindex\.html|notebooks/(02|10|16)_\w+\.html"
    r"|docs/generated/qdtheory\.(theory\.frontier|text\.bleu)\.html"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


def faults(browser, address, site, axe=True, contrast=True):
    """What is wrong with a page, loaded on a phone; its width on a desk too."""
    browser.resize(PHONE)
    browser.open(address)
    found = browser.evaluate(UNSET_MATHS) + browser.evaluate(TOO_WIDE)
    if axe:
        rules = files("axe_playwright_python").joinpath("axe.min.js").read_text()
        browser.evaluate(f"{rules}; 0")
        found += browser.evaluate(AXE.replace("CONTRAST", str(contrast).lower()))
    browser.resize(DESK)
    found += browser.evaluate(TOO_WIDE)
    found += browser.complaints()
    asked = [a for a in browser.requested() if not a.startswith((site, "data:"))]
    return found + [f"asks for {address}" for address in asked]


@in_a_browser
def test_every_page_loads_reads_and_fits_at_both_widths(site, browser):
    found, judged = {}, []
    for page in pages(site):
        name = str(page.relative_to(site))
        if name.startswith(("slides/", "handouts/")):
            continue  # test_course.py opens these
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
def test_the_summary_prints_on_one_page(site, browser):
    browser.open((site / "docs/summary.html").as_uri())
    pdf = b64decode(browser.send("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert len(re.findall(rb"/Type /Page\b(?!s)", pdf)) == 1


@in_a_browser
def test_the_search_finds_the_coverage_rate(site, browser):
    browser.open((site / "search.html").as_uri() + "?q=coverage+rate")
    found = browser.evaluate(
        """new Promise((resolve) => {
          const look = () => {
            const links = [...document.querySelectorAll("#search-results li a")];
            const said = document.querySelector("#search-results .search-summary");
            said?.textContent.startsWith("Search finished")
              ? resolve(links.map((a) => a.href)) : setTimeout(look, 50);
          };
          look();
        })"""
    )
    for page in (
        "notebooks/02_quality_and_diversity.html",
        "docs/generated/qdtheory.metrics.ngrams.html#qdtheory.metrics.ngrams.coverage_rate",
    ):
        assert f"{site.as_uri()}/{page}" in found
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
        return browser.evaluate(
            f"document.getElementById('explorer-{name}').textContent"
        )

    def choose(pair):
        browser.evaluate(
            f"""(() => {{
              const choice = document.getElementById("explorer-pair");
              const option = [...choice.options].find((o) => o.text === "{pair}");
              choice.value = option.value;
              choice.dispatchEvent(new Event("change"));
            }})()"""
        )

    before = centre("dot")
    browser.evaluate("document.getElementById('explorer-slider').focus()")
    for _ in range(15):  # from 15 to the middle
        browser.press("ArrowRight")
    assert text("weight").startswith(f"w = {MINUS}1.00:")
    assert centre("dot")[0] > before[0] + 10
    # A star of five points is a little higher than wide.
    assert centre("dot") == pytest.approx(centre("star"), abs=1.5)
    assert [text(f"model-{i}") for i in (0, 1)] == [text(f"real-{i}") for i in (0, 1)]
    assert "on the frontier" in text("verdict")
    choose("CR-SE")
    assert centre("dot")[1] == pytest.approx(centre("star")[1], abs=1.5)
    assert centre("dot")[0] > centre("star")[0] + 5
    assert "not on the frontier" in text("verdict")
    choose("BLEU-NSBLEU")
    assert "found by search" in text("verdict")
    browser.press("End")
    assert text("weight") == f"w = {MINUS}∞"
    assert text("model-1") == f"{MINUS}1.000"
    assert browser.complaints() == []
