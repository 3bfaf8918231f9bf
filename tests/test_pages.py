"""The site: links that lead somewhere; claims, figures, statements, code in place."""

import re
from html import unescape
from urllib.parse import unquote, urlsplit

import address
import claim_links
import lecture_figures
import notebook_cells
import parts_page
import pytest
import theorem_graph
from browser import DOCS
from bs4 import BeautifulSoup
from coverage_page import claims, parts
from processes import ROOT

LECTURES = notebook_cells.lectures()
GRAPH = theorem_graph.statements()


def flat(page):
    return " ".join(page.get_text().split())


# --- without the site -----------------------------------------------------------


def test_every_lecture_is_in_one_part_and_the_parts_keep_the_order():
    listed = {part: parts_page.lectures(part) for part in parts_page.parts()}
    names = [name for found in listed.values() for name in found]
    assert sorted(names) == [path.stem for path in LECTURES]
    first = "00b_one_sitting"  # the map uses what it defines
    inner = [sorted(found, key=lambda x: (x != first, x)) for found in listed.values()]
    assert [*listed.values()] == inner
    assert {path.stem for path in DOCS.glob("parts/*.md")} == listed.keys()


def test_the_numbers_of_a_text_are_found():
    of_texts = {
        "(T2.1). T2.3 to T2.5, L1.1, T2.1-T2.3": "T2.1 T2.3 T2.5 L1.1 T2.1 T2.3",
        "N14.15-17 and N14.15\N{EN DASH}18": "N14.15 N14.17 N14.15 N14.18",
        "E5.1-fold N3.1-3.5, Python3.11, GPT2.1, T2, T2.x, H2.1": "E5.1 N3.1",
    }
    for said, numbers in of_texts.items():
        assert [*claim_links.mentioned(said)] == numbers.split()


# --- every page -----------------------------------------------------------------


def pages(site):
    return [p for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]


def test_every_page_is_there_and_every_link_within_the_site_resolves(site):
    texts = {page.resolve(): page.read_text() for page in pages(site)}
    names = {str(page.relative_to(site.resolve())) for page in texts}
    assert names >= {f"notebooks/{path.stem}.html" for path in LECTURES}
    assert names >= {f"{x}/03_pareto_frontier.html" for x in ("slides", "handouts")}
    assert "docs/generated/qdtheory.pairs.html" in names
    anchors = {page: set(re.findall(r'\sid="([^"]+)"', texts[page])) for page in texts}
    broken, followed = [], 0
    for page, html in texts.items():
        for link in set(re.findall(r'\s(?:href|src)="([^"]*)"', html)):
            parts = urlsplit(unescape(link))
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            path, fragment = unquote(parts.path), unquote(parts.fragment)
            target = (page.parent / path).resolve() if path else page
            there = not fragment or fragment in anchors.get(target, ())
            if not (target.is_file() and there):
                broken.append(f"{page.relative_to(site.resolve())}: {link}")
    assert broken == []
    assert followed > 1000


def test_the_site_is_light(site):
    files = [path for path in site.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 22e6  # .5 are the package
    assert (site / "_static/search_texts.js").stat().st_size < 2e6
    assert (site / "_static/social.png").stat().st_size < 100e3


def bare(html):
    """The text of a page that is in no link, code, formula or heading."""
    article = BeautifulSoup(html, "lxml").article
    for node in article.select("a, pre, code, h1, h2, h3, script, nav, dt, .math"):
        node.replace_with(" ")
    return article.get_text()


def test_on_every_page_each_number_is_a_link(site):
    links = 0
    for path in pages(site):
        html = path.read_text()
        if "<article" in html and path.parent.name != "generated":
            assert [*claim_links.mentioned(bare(html))] == [], path
        links += html.count('class="claim-link')
    assert links > 900


def test_every_page_says_its_licences_and_the_parts_link_their_lectures(site):
    sources = [*DOCS.glob("*.md"), *DOCS.glob("parts/*.md")]
    names = [path.relative_to(ROOT).with_suffix("").as_posix() for path in sources]
    for folder in ("notebooks", "notebooks/solutions", "docs/generated"):
        names += [f"{folder}/{path.stem}" for path in (site / folder).glob("*.html")]
    assert len(names) > 120
    for name in names:
        page = (site / f"{name}.html").read_text()
        assert page.count(address.LICENCES) == 1, name
    package = address.requirement(released=address.RELEASED, copy=address.WHEEL)
    assert package in (site / "docs/index.html").read_text()
    for part in parts_page.parts():
        page = (site / f"docs/parts/{part}.html").read_text()
        assert all(f'{name}.html"' in page for name in parts_page.lectures(part))


def links_of_the_sidebar(site, name):
    page = BeautifulSoup((site / f"{name}.html").read_text(), "lxml")
    return [a.get_text() for a in page.select("nav.bd-links a")]


def test_the_first_page_opens_with_a_picture_and_four_doors_that_say_their_minutes(
    site,
):
    page = BeautifulSoup((site / "docs/index.html").read_text(), "lxml").article
    first = page.find(["img", "p", "ul"])
    assert first.name == "img"
    assert first["alt"] == lecture_figures.covers()["08_bleu_and_self_bleu"].alt
    doors = page.select("section#four-doors > section")
    assert len(doors) == 4
    assert all(re.search(r"\d+ min", flat(door)) for door in doors)
    read = flat(doors[1])
    for name in ("00b_one_sitting", "00_map"):
        assert parts_page.minutes(name) in read


def test_the_sidebar_has_twelve_links_and_below_a_page_what_belongs_to_it(site):
    first = links_of_the_sidebar(site, "docs/index")
    assert len(first) == 12
    lecture = links_of_the_sidebar(site, "notebooks/03_pareto_frontier")
    part = parts_page.lectures("frontier")
    below = parts_page.below("03_pareto_frontier")
    inner = {name for one in part for name in parts_page.below(one)} - {*below}
    expected = [parts_page.titled(name) for name in part if name not in inner]
    assert [x for x in lecture if x not in {*first, "Solutions"}] == expected


# --- a lecture's page -----------------------------------------------------------


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_a_lecture_has_its_claims_figures_statements_code_and_downloads(site, path):
    page = BeautifulSoup((site / f"notebooks/{path.stem}.html").read_text(), "lxml")
    own = [claim for claim, (name, _) in claims().items() if name == path.stem]
    for claim in own:
        (sentence,) = page.select(f"p.claim[id='{claim}']")
        assert flat(sentence).startswith(f"{claim} ")
        for link in page.select(f"a.claim-link[href='#{claim}']"):
            assert link["title"] == claim_links.sentence(claim)
    stem = path.stem.split("_")[0].lstrip("0") or "0"
    for number, figure in enumerate(lecture_figures.figures(path), start=1):
        assert figure.number == f"{stem}.{number}"
        (drawn,) = page.select(f"figure#{figure.anchor}")
        assert flat(drawn).startswith(f"Figure {figure.number} ")
        assert drawn.img["alt"] == figure.alt
    for one in (one for one in GRAPH if one.lecture == path.stem):
        (box,) = page.select(f"div.statement#{one.anchor}")
        said, links = flat(box), {a["href"] for a in box.select("a")}
        assert said.startswith(one.title)
        assert f"second route: {one.row['second_route']}" in said
        assert ("machine-checked" in said) == one.is_checked
        for name in parts(one.row["coq"]):
            assert f"../docs/proofs.html#{name.lower().replace('_', '-')}" in links
        named = {link.partition("#")[2] for link in links}
        assert named >= {part.partition("-")[0] for part in parts(one.row["claims"])}
    beside = [] if address.RELEASED else [f"../downloads/{address.WHEEL}"]
    needs = page.find("strong", string="Needs").find_parent("p")
    links = [a["href"] for a in needs.select("a[href^='../downloads/']")]
    assert links == [f"../downloads/{path.stem}.zip", *beside]
    solved = (path.parent / f"solutions/{path.name}").exists()
    to_them = page.article.select(f"p a[href='solutions/{path.stem}.html']")
    assert bool(to_them) == solved


def test_the_page_of_statements_says_of_each_its_state_its_tests_and_its_needs(site):
    page = BeautifulSoup((site / "docs/theorem_graph.html").read_text(), "lxml")
    for one in GRAPH:
        (entry,) = page.select(f"details#{one.anchor}")
        said = flat(entry)
        assert said.startswith(one.title)
        assert all(state in said for state in one.states)
        assert all(test.name in said for test in theorem_graph.tests_of(one))
        shown = {a.get_text() for a in entry.select("a")}
        assert shown >= {far.title for far in (*one.needs, *one.needed_by)}
