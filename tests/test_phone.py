"""On a phone and on a desk every page shows all it holds, in letters one can read."""

import re
from functools import cache
from pathlib import Path

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
    """Height of a figure's smallest letters in pixels, as it is drawn; not exponents."""
    if figure.kind == "image/svg+xml":
        found = re.findall(rb"font(?:-size)?: ?([\d.]+)px", figure.picture)
        sizes = {*map(float, found)}
        raised = {round(0.7 * size, 3) for size in sizes}
        points = min(size for size in sizes if round(size, 3) not in raised)
        return points * figure.width / float(
            re.search(rb'viewBox="0 0 ([\d.]+)', figure.picture)[1]
        )
    code = notebook_cells.source_of(cells(figure.lecture)[figure.cell])
    sizes = re.findall(r"(?:font|label)size=(\d[\d.]*)|\"size\": (\d[\d.]*)", code)
    sizes += re.findall(r"^(?:\w+\.)+(?:label|title|font)?size: ([\d.]+)()$", STYLE, re.M)
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
        browser.evaluate("new Promise((r) => requestAnimationFrame(() => setTimeout(r)))")
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
