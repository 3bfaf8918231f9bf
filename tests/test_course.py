"""Slides, handouts, the page on teaching and the class's copy are whole."""

import json
import re
import shutil
import zipfile
from hashlib import sha256

import address
import course_pages
import notebook_cells
import pytest
from browser import DESK, PHONE, in_a_browser
from lecture_sizes import is_spine
from notebook_cells import lecture as of

from qdtheory.course.exercises import EXERCISES

STEMS = [path.stem for path in notebook_cells.lectures()]
TEACHING = course_pages.TEACHING.read_text()
WORDS = 100  # on a slide beside a figure, a table or what a cell prints
FEW = 30  # on a slide of the spine, where a figure speaks
NOT_WORDS = re.compile(
    r"<(figure|pre|table)\b.*?</\1>|\\\[.*?\\\]|\\\(.*?\\\)|<[^>]+>", re.DOTALL
)


# --- a small course -----------------------------------------------------------

HIGH = {"data": {"image/png": "aGlnaA==\n"}}
SMALL = [
    ("markdown", "# Draw\n\nYou will draw $x < 1$.\n\n**Reading** 5 min", ["slide"]),
    ("markdown", "## Lines\n\nNot on a slide.", []),
    ("markdown", "Two *points* give one line.", ["slide"]),
    ("code", {"text": ["T2.1  |a - b| = 0 ", "< 1\n"]}, ["slide-continued"]),
    ("markdown", "> **Theorem 1.** There is\n> one line.\n\nIts proof.", []),
    ("code", HIGH, ["slide", "cover"]),
    ("markdown", "A line (T2.1).\n\nMore.", []),
    ("markdown", "## Where it breaks\n\nSee [two](02_two.ipynb#lines).", ["slide"]),
    ("markdown", "## Exercises\n\n**1.** Draw.\n\n<details>a hint</details>", []),
    ("markdown", "## What to remember\n\n* Draw.\n\n## Sources\n\nNone.", []),
]


@pytest.fixture
def lecture(tmp_path, monkeypatch):
    cells = []
    for kind, content, tags in SMALL:
        cell = {"cell_type": kind, "metadata": {"tags": tags, "alt": 'A "line".'}}
        text = {"source": content} if kind == "markdown" else {"source": "draw()"}
        outputs = {} if kind == "markdown" else {"outputs": [content]}
        cells.append(cell | text | outputs)
    path = tmp_path / "01_draw.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    monkeypatch.setattr(notebook_cells, "NOTEBOOKS", tmp_path)
    return path


PICTURE = f"_images/{sha256(b'high').hexdigest()}.png"  # the bytes of the output
IMAGE = f'<img alt="A &quot;line&quot;." src="../{PICTURE}">'
FIGURE = f'<figure><a href="../{PICTURE}">{IMAGE}</a>'
CAPTION = "<figcaption><p>A line (T2.1).</p>\n</figcaption></figure>"


def test_the_slides_of_a_small_lecture(lecture):
    deck = [(slide.title, slide.parts) for slide in course_pages.slides(lecture)]
    printed = "<pre>T2.1  |a - b| = 0 &lt; 1</pre>"
    link = '<a href="../notebooks/02_two.html#lines">two</a>'
    formula = '<span class="math inline">\\(x &lt; 1\\)</span>'
    assert deck == [
        ("01 · Draw", [f"<p>You will draw {formula}.</p>\n", FIGURE + CAPTION]),
        ("Lines", ["<p>Two <em>points</em> give one line.</p>\n", printed]),
        ("Lines", [FIGURE + CAPTION]),
        ("Where it breaks", [f"<p>See {link}.</p>\n"]),
        ("What to remember", ["<ul>\n<li>Draw.</li>\n</ul>\n"]),
    ]


def test_a_slide_in_words_of_its_own_has_the_figure_and_notes(lecture):
    book = json.loads(lecture.read_text())
    question = {"slide": "Is it one?", "notes": "Ask *them*."}
    book["cells"][0]["metadata"] |= question
    book["cells"][5]["metadata"] |= {"slide": "One line.\n\n$a < b$\n"}
    lecture.write_text(json.dumps(book))
    notebook_cells.cells_of.cache_clear()
    first, _, drawn, *_ = course_pages.slides(lecture)
    assert first == course_pages.Slide("Is it one?", [], "Ask *them*.")
    formula = '<p><span class="math inline">\\(a &lt; b\\)</span></p>\n'
    assert drawn == course_pages.Slide("One line.", [formula, f"{FIGURE}</figure>"])
    deck = course_pages.deck_page(lecture)
    assert '<ol><li value="1"><p>Ask <em>them</em>.</p>\n</li></ol>' in deck


def test_a_deck_holds_the_rows_of_teaching_as_notes(lecture, monkeypatch, tmp_path):
    page = tmp_path / "teaching.md"
    page.write_text(
        "## Each lecture\n\n| Lecture | Say |\n|---|---|\n"
        "| [01 Draw](../notebooks/01_draw.ipynb) | Show *it*. |\n"
        "| [02 Two](../notebooks/02_two.ipynb) | Not this. |\n\n## Misconceptions\n\n"
        "| What | Shown by |\n|---|---|\n| A. | [T2.1](../notebooks/01_draw.ipynb) |\n"
    )
    monkeypatch.setattr(course_pages, "TEACHING", page)
    each, wrong = course_pages.notes(lecture)
    assert each.startswith("<p><strong>Each lecture</strong></p>")
    assert "<li>Say: Show <em>it</em>.</li>" in each
    assert '<a href="../notebooks/01_draw.html">T2.1</a>' in wrong
    deck = course_pages.deck_page(lecture)
    assert deck.index(each) < deck.index(wrong)
    assert "Not this" not in deck
    assert deck.count('<section class="slide"') == 5
    assert "<h1>01 · Draw</h1>" in deck
    assert deck.count("<h2>Lines</h2>") == 2


def test_the_handout_of_a_small_lecture(lecture):
    page = course_pages.handout_page(lecture)
    order = [
        "<h1>01 · Draw</h1>",
        "You will draw",
        FIGURE + CAPTION,
        "<h2>Definitions and theorems</h2>",
        "There is\none line.",
        "<h2>What to remember</h2>",
        "<h2>Exercises</h2>",
    ]
    assert sorted(order, key=page.index) == order
    for left_out in ("a hint", "Its proof", "Sources", "What is claimed"):
        assert left_out not in page


# --- the course ---------------------------------------------------------------


@pytest.mark.parametrize("stem", STEMS)
def test_a_deck_has_ten_to_fifteen_slides_that_are_neither_empty_nor_full(stem):
    deck = course_pages.slides(of(stem))
    assert 10 <= len(deck) <= 15
    assert deck[-1].title == "What to remember"
    for number, slide in enumerate(deck, start=1):
        words = NOT_WORDS.sub(" ", " ".join(slide.parts)).split()
        assert slide.title, number
        assert slide.notes or "".join(slide.parts).strip(), (number, slide.title)
        assert len(words) <= WORDS, (number, slide.title, len(words))


@pytest.mark.parametrize("stem", [*filter(is_spine, STEMS)])
def test_a_slide_of_the_spine_has_one_idea_in_few_words_and_notes(stem):
    deck = course_pages.slides(of(stem))
    assert len(deck) >= 12
    for number, slide in enumerate(deck, start=1):
        said = NOT_WORDS.sub(" ", " ".join([slide.title, *slide.parts])).split()
        assert len(said) <= FEW, (number, slide.title, len(said))
        assert slide.notes, (number, slide.title)
        assert "<pre" not in "".join(slide.parts), (number, slide.title)
    drawn = sum("<img" in "".join(slide.parts) for slide in deck)
    assert 2 * drawn >= len(deck)


def test_a_lecture_has_goals_homework_and_words_to_say():
    section = TEACHING.partition("\n## Each lecture\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \[(\S+) (.+)\]\((.+?)\) \| (.+) \|$", section, re.MULTILINE)
    assert sorted(number for number, *_ in rows) == [s.split("_")[0] for s in STEMS]
    for number, title, link, facts in rows:
        path = (course_pages.ROOT / "docs" / link).resolve()
        assert course_pages.title_of(path) == f"{number} · {title}"
        goals, homework, say = facts.split(" | ")
        assert 2 <= len(goals.split("; ")) <= 3, number
        assert 10 <= len(say.split()) <= 45, number
        own = [exercise for exercise in EXERCISES if exercise.split(".")[0] == number]
        if own:  # all but the wrong statement, which is for the class
            assert re.fullmatch(rf"{own[0]} to {own[-2]}, \d0 min", homework), number
            text = course_pages.exercises(path)
            last = own[-1].split(".")[1]
            assert re.search(
                rf"{last}\.(?:\*\*)? (?:\*\*)?One of these statements", text
            )
        else:
            assert homework == "none"


def test_the_page_on_teaching_links_decks_and_handouts():
    source = [TEACHING]
    course_pages.link_course(None, "docs/teaching", source)
    for stem in STEMS:
        for folder in ("slides", "handouts"):
            assert source[0].count(f'<a href="../{folder}/{stem}.html">') == 1
    other = [TEACHING]
    course_pages.link_course(None, "docs/index", other)
    assert other == [TEACHING]


def test_the_class_gets_notebooks_data_handouts_and_exam_without_answers(tmp_path):
    target = tmp_path / "new" / "class.zip"
    course_pages.write_class(target)
    with zipfile.ZipFile(target) as file:
        texts = {name: file.read(name) for name in file.namelist()}
    names = {name.removeprefix("qdtheory_class/") for name in texts}
    assert names >= {f"notebooks/{stem}.ipynb" for stem in STEMS}
    assert names >= {f"handouts/{stem}.html" for stem in STEMS}
    assert names >= {"handouts/exam.html", "notebooks/data/tables.py"}
    assert names >= {"_static/handout.css", "_static/tex-svg-full.js"}
    readme = texts["qdtheory_class/README.txt"].decode()
    assert "\n      pip install ipywidgets jupyterlab nltk seaborn " in readme
    assert (address.WHEEL in names) is not address.RELEASED
    assert names >= {"_static/scrolls.css", "_static/scrolls.js"}
    assert not [name for name in names if "solution" in name or "key" in name]
    for name, text in texts.items():
        if name.endswith(".ipynb"):
            for cell in json.loads(text)["cells"]:
                assert "solution" not in cell["metadata"].get("tags", [])
    exam = texts["qdtheory_class/handouts/exam.html"].decode()
    assert exam.count("<strong>") == 20
    shown = re.findall(r'src="\.\./(.+?)"', b"".join(texts.values()).decode("latin"))
    assert {name for name in shown if name.startswith("_images/")} <= names
    assert "Points:" not in exam
    handout = texts["qdtheory_class/handouts/05_break_each_hypothesis.html"].decode()
    assert 'href="../notebooks/03_pareto_frontier.ipynb' in handout
    assert "notebooks/03_pareto_frontier.html" not in handout


# --- in a browser -------------------------------------------------------------

# Pages of one template: axe reads some, and every width is tried on all.
READ_BY_AXE = {"02_quality_and_diversity", "10_real_text", "24_decoders_and_alignment"}
ALL_SLIDES = "document.body.classList.remove('turning')"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Decks and handouts where a browser finds what they load."""
    folder = tmp_path_factory.mktemp("course")
    course_pages.write_pages(folder)
    (folder / "_static").mkdir()
    for path in (*course_pages.STATIC.glob("*.*s"), course_pages.mathjax()):
        shutil.copy(path, folder / "_static")
    return folder


@in_a_browser
class TestInABrowser:
    @pytest.mark.slow
    @pytest.mark.parametrize("folder", ["slides", "handouts"])
    def test_every_page_fits_is_set_and_asks_for_nothing(self, course, browser, folder):
        found, pages = {}, sorted((course / folder).glob("*.html"))
        assert len(pages) == len(STEMS) + 1
        for page in pages:
            browser.prefer("light")
            browser.resize(PHONE)
            browser.open(page.as_uri())
            faults = browser.check("unsetMaths()")
            for width in (PHONE, DESK):
                browser.resize(width)
                browser.evaluate(ALL_SLIDES)
                faults += browser.check("tooWide()")
            if page.stem in READ_BY_AXE or page.stem == "index":
                for scheme in ("light", "dark"):
                    browser.prefer(scheme)
                    browser.open(page.as_uri())
                    browser.evaluate(ALL_SLIDES)
                    faults += [f"{scheme}: {x}" for x in browser.judged_by_axe()]
            faults += browser.complaints()
            asked = [a for a in browser.requested() if not a.startswith("data:")]
            faults += [a for a in asked if not a.startswith(course.as_uri())]
            found[page.name] = faults
        assert {name: what for name, what in found.items() if what} == {}

    @pytest.mark.slow
    def test_a_slide_fits_a_wall(self, course, browser):
        full = {}
        browser.resize(1280, 720)
        for stem in STEMS:
            browser.open((course / "slides" / f"{stem}.html").as_uri())
            full[stem] = browser.evaluate(
                """slides.flatMap((slide, place) => {
                  turn(place);
                  const shown = document.documentElement.scrollHeight <= innerHeight;
                  return shown ? [] : [place + 1];
                })"""
            )
        assert {stem: places for stem, places in full.items() if places} == {}

    def test_keys_turn_pages(self, course, browser):
        address = (course / "slides/03_pareto_frontier.html").as_uri()
        browser.resize(1280, 720)
        browser.open(address)

        def shown():
            now = [
                "location.hash",
                "slides.filter((s) => s.checkVisibility()).map((s) => s.id)",
            ]
            address, places = browser.evaluate(f"[{', '.join(now)}]")
            assert places == [address.removeprefix("#")]
            return address

        last = f"#slide-{len(course_pages.slides(of('03_pareto_frontier')))}"
        assert shown() == "#slide-1"
        for key, place in (
            ("ArrowLeft", "#slide-1"),
            ("ArrowRight", "#slide-2"),
            ("ArrowRight", "#slide-3"),
            ("ArrowLeft", "#slide-2"),
            ("End", last),
            ("ArrowRight", last),
            ("Home", "#slide-1"),
        ):
            browser.press(key)
            assert shown() == place, key
        browser.open("about:blank")
        browser.open(f"{address}#slide-4")
        assert shown() == "#slide-4"
        assert browser.complaints() == []

    def test_a_deck_reads_without_scripts(self, course, browser):
        page = course / "slides/04_when_a_pair_is_a_divergence.html"
        bare = page.with_name("bare.html")
        bare.write_text(re.sub(r"<script.*?</script>", "", page.read_text()))
        browser.open(bare.as_uri())
        bare.unlink()
        heights = browser.evaluate(
            "[...document.querySelectorAll('.slide')].map((s) => s.clientHeight)"
        )
        assert len(heights) == len(course_pages.slides(of(page.stem)))
        assert min(heights) > 50
        assert browser.evaluate("document.querySelector('#notes summary').textContent")

    @pytest.mark.slow
    @pytest.mark.parametrize("stem", STEMS)
    def test_a_handout_prints_on_two_pages(self, course, browser, stem):
        browser.open((course / "handouts" / f"{stem}.html").as_uri())
        assert 1 <= browser.printed_pages() <= 2

    def test_a_deck_prints_one_slide_a_page(self, course, browser):
        browser.open((course / "slides/03_pareto_frontier.html").as_uri())
        slides = course_pages.slides(of("03_pareto_frontier"))
        assert browser.printed_pages() == len(slides)
