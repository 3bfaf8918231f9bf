"""The pages' claims, figures, code and boxes are where readers look for them."""

import csv
import doctest
import io
import json
import re
import struct
import warnings
from base64 import b64encode
from pathlib import Path

import claim_links
import coverage_page
import lecture_figures
import notebook_cells
import pytest
import theorem_boxes
import yaml
from browser import in_a_browser
from bs4 import BeautifulSoup
from build import METADATA
from notebook_cells import cells_of, source_of, tags_of
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils
from test_claims import MARKED

ROOT = Path(__file__).parents[1]
SOURCES = sorted(ROOT.glob("notebooks/src/*.md"))
PROOFS = {path.name: path.read_text() for path in (ROOT / "proofs").glob("*.v")}
ROWS = coverage_page.rows(theorem_boxes.TABLE)

# Enough of a picture for what reads its width: 300 pixels.
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 300, 200)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="36pt"></svg>'


def text(source, *tags):
    return {"cell_type": "markdown", "source": source, "metadata": {"tags": [*tags]}}


def code(source, *outputs, **metadata):
    return {
        "cell_type": "code",
        "execution_count": 1,
        "source": source,
        "metadata": metadata,
        "outputs": [*outputs],
    }


def printed(lines):
    return {"output_type": "stream", "name": "stdout", "text": lines}


def claimed(number, sentence):
    data = {"text/plain": f"{number}  {sentence}"}
    data["text/markdown"] = f"**{number}** {sentence}"
    return {"output_type": "display_data", "metadata": {}, "data": data}


def drawn(**data):
    kinds = {"png": "image/png", "svg": "image/svg+xml"}
    data = {kinds[name]: content for name, content in data.items()}
    return {"output_type": "display_data", "metadata": {}, "data": data}


CELLS = [
    text("# Draw\n\nThe opening.\n\n**Reading** 5 min"),
    code("import numpy", tags=["setup"]),
    code("draw()", printed("said\n"), drawn(png=b64encode(PNG).decode())),
    text("## Again"),
    code("again()", drawn(svg=SVG), alt="A line.", tags=["cover", "loose"]),
    text("It *rises*\n(T2.1).\n\nAnd so on, as T2.1 to T2.3 and N3.8-9 say."),
    text("> **Theorem 2 (1), Li 2020.** Let $f$ rise.\n>\n> **Lemma.** It is so."),
    text("*Proof.* Add. ∎", "proof"),
    text("> **Definition 1** (Li 2020). A *model* is Q.\n\n> Nothing in bold.\n"),
    code("x = 1"),
    code("y = 2"),
    code(
        "print(x)",
        *(printed("before\n"), claimed("T2.1", "one is $1$ and more")),
        *(claimed("T2.3", "three"), printed("after\n")),
    ),
    text("`T2.1` and [N3.8, N3.9](03_draw.ipynb), [N3.8](03_draw.ipynb#again) stay."),
    code("claim(8)", claimed("N3.8", "eight"), claimed("N3.9", "nine")),
    code("check(1)", printed("03.1 not attempted\n"), tags=["exercise"]),
]
PAGE = """# Page

(coq_name)=
## T2.1 in a heading

T2.1, T9.9 and Python3.11; the range [T2.1 to T2.3](../notebooks/03_draw.ipynb).

```{folded} A file
T2.3 in it.
```
"""
TABLE = """notebook,label,claims,second_route,part,coq
03_draw,"Theorem 2 (1), Li 2020",T2.1;N3.8-N3.9,by hand,“if”,coq_name
03_draw,Lemma,T2.3,,,
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The pages of a site of one lecture, and what Sphinx warned of."""
    folder = tmp_path_factory.mktemp("small")
    for name in ("notebooks", "docs"):
        (folder / name).mkdir()
    book = {"cells": CELLS, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 4}
    (folder / "notebooks/03_draw.ipynb").write_text(json.dumps(book))
    (folder / "docs/page.md").write_text(PAGE)
    (folder / "theorems.csv").write_text(TABLE)
    (folder / "conf.py").write_text("")
    said = io.StringIO()
    settings = {
        "extensions": [
            *("claim_links", "folded", "folded_code", "lecture_figures"),
            *("theorem_boxes", "myst_nb", "sphinx.ext.mathjax"),
        ],
        "root_doc": "docs/page",
        "nb_execution_mode": "off",
        "nb_render_markdown_format": "myst",
        "myst_enable_extensions": ["dollarmath"],
        "html_static_path": [str(ROOT / "docs/static")],
        "html_theme": "basic",
        "suppress_warnings": ["toc.not_included"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notebook_cells, "NOTEBOOKS", folder / "notebooks")
        patch.setattr(theorem_boxes, "TABLE", folder / "theorems.csv")
        forget()
        with warnings.catch_warnings(), patch_docutils(), docutils_namespace():
            warnings.simplefilter("ignore")
            place = folder / "html"
            app = Sphinx(
                *(folder, folder, place, folder / "trees", "html"),
                confoverrides=settings,
                status=None,
                warning=said,
            )
            app.build()
        forget()
    pages = {
        path.stem: path.read_text()
        for path in (place / "notebooks/03_draw.html", place / "docs/page.html")
    }
    return pages | {"warnings": said.getvalue()}


def forget():
    coverage_page.printed.cache_clear()
    coverage_page.claims.cache_clear()


def flat(html):
    return re.sub(r"\s+", " ", html)


def words(html):
    return re.sub("<.*?>", "", html)


# --- claims ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("(T2.1).", ["T2.1"]),
        ("T2.3 to T2.5, L1.1", ["T2.3", "T2.5", "L1.1"]),
        ("N14.15-17 and N14.15\N{EN DASH}18", ["N14.15", "N14.17", "N14.15", "N14.18"]),
        ("T2.1-T2.3", ["T2.1", "T2.3"]),
        ("E5.1-fold N3.1-3.5", ["E5.1", "N3.1"]),
        ("Python3.11, GPT2.1, T2, T2.x, H2.1", []),
    ],
)
def test_the_numbers_of_a_text_are_found(said, numbers):
    assert [*claim_links.mentioned(said)] == numbers


def test_every_claim_has_a_number_that_is_found_and_a_short_sentence():
    for claim in coverage_page.claims():
        assert re.fullmatch(claim_links.ID, claim), claim
        assert 5 < len(claim_links.sentence(claim)) <= claim_links.LONGEST


def test_a_claim_is_a_sentence_with_its_anchor_and_what_is_printed_is_folded(small):
    page = BeautifulSoup(small["03_draw"], "lxml")
    sentence = page.select_one("p.claim#T2\\.1")
    assert sentence.get_text() == r"T2.1 one is \(1\) and more"
    assert sentence.a["href"] == "#T2.1"
    assert [p["id"] for p in page.select("p.claim")] == ["T2.1", "T2.3", "N3.8", "N3.9"]
    assert page.find(string=re.compile("before")).find_parent("details") is not None
    assert page.find(string=re.compile("after")).find_parent("details") is not None
    assert page.find(string=re.compile("not attempted")).find_parent("details") is None


def test_a_number_is_a_link_with_the_sentence_as_hover_text(small):
    page = flat(small["03_draw"])
    link = '<a class="claim-link reference internal" href="#{0}" title="{1}">{2}</a>'
    assert link.format("T2.1", "one is $1$ and more", "T2.1") + " to " in page
    eight, nine = (
        link.format(f"N3.{n}", word, "{}") for n, word in ((8, "eight"), (9, "nine"))
    )
    assert f"{eight.format('N3.8')}-{nine.format('9')} say" in page
    assert f"{eight.format('N3.8')}, {nine.format('N3.9')}, " in page  # was one link
    assert '<span class="pre">T2.1</span>' in page  # code stays
    other = flat(small["page"])
    there = link.replace("#", "../notebooks/03_draw.html#")
    assert there.format("T2.3", "three", "T2.3") + " in it." in other
    assert "T2.1 in a heading" in other


def test_a_number_that_no_notebook_claims_is_a_warning(small):
    assert small["warnings"].count("WARNING") == 1
    assert "docs/page.md:6: WARNING: no notebook makes the claim T9.9" in flat(
        re.sub(r"\x1b\[[\d;]*m", "", small["warnings"])
    )


def bare(html):
    """The text of a page that is in no link, code, formula or heading."""
    article = BeautifulSoup(html, "lxml").article
    for node in article.select("a, pre, code, h1, h2, h3, script, nav, dt, .math"):
        node.replace_with(" ")
    return article.get_text()


def test_on_every_page_each_number_is_a_link_and_each_claim_an_anchor(site):
    links = 0
    for path in site.rglob("*.html"):
        if "_static" in path.parts or path.parent.name == "generated":
            continue
        html = path.read_text()
        if "<article" in html:
            assert [*claim_links.mentioned(bare(html))] == [], path
        links += html.count('class="claim-link')
    assert links > 900
    for claim, (notebook, _) in coverage_page.claims().items():
        page = (site / f"notebooks/{notebook}.html").read_text()
        assert page.count(f' id="{claim}"') == 1


# --- figures --------------------------------------------------------------------


@pytest.fixture
def lecture(tmp_path):
    """The notebook of the small site."""
    path = tmp_path / "03_draw.ipynb"
    path.write_text(json.dumps({"cells": CELLS}))
    return path


def test_a_figure_has_a_number_an_alt_text_and_a_caption(lecture):
    first, second = lecture_figures.figures(lecture)
    assert (first.number, first.kind, first.picture) == ("3.1", "image/png", PNG)
    assert (first.alt, first.caption, first.cover, first.width) == ("", "", False, 300)
    assert (second.number, second.anchor) == ("3.2", "figure-3-2")
    assert (second.kind, second.picture) == ("image/svg+xml", SVG.encode())
    assert (second.alt, second.caption) == ("A line.", "It *rises* (T2.1).")
    assert second.width == 96  # 72 points


def test_the_cover_is_the_figure_with_the_tag_or_the_first(lecture, monkeypatch):
    monkeypatch.setattr(notebook_cells, "NOTEBOOKS", lecture.parent)
    assert lecture_figures.covers()["03_draw"].number == "3.2"
    lecture.with_stem("04_plain").write_text(lecture.read_text().replace("cover", "x"))
    assert lecture_figures.covers()["04_plain"].number == "4.1"


def test_a_picture_becomes_a_numbered_figure_with_its_caption(small):
    page = flat(small["03_draw"])
    first, second = (
        re.search(rf'<figure class="[^"]*" id="figure-3-{n}">.*?</figure>', page)[0]
        for n in (1, 2)
    )
    assert '<span class="caption-number">Figure 3.1</span>' in first
    assert 'alt="Figure 3.1"' in first  # its cell says nothing
    assert "width: 300px" in first
    assert re.search(r'<a [^>]*href="\.\./_images/\w+\.png"><img', first)
    assert 'alt="A line."' in second
    assert '<span class="caption-number">Figure 3.2</span> It <em>rises</em>' in second
    assert page.count("It <em>rises</em>") == 2  # and at the head
    assert "<p>And so on" in page


def test_the_cover_stands_below_the_opening_and_links_its_place(small):
    page = flat(small["03_draw"])
    cover = re.search(r'<figure class="[^"]*cover[^"]*" id="cover">.*?</figure>', page)[
        0
    ]
    assert re.search(rf"The opening.</p> {re.escape(cover)} <p><strong>Reading", page)
    assert re.search(r'<a [^>]*href="#figure-3-2"><img alt="A line."', cover)
    assert 'href="#figure-3-2">Figure 3.2</a>' in cover
    assert page.count('<span class="caption-number">Figure 3.2</span>') == 1


@pytest.mark.parametrize("path", notebook_cells.lectures(), ids=lambda path: path.stem)
def test_every_figure_says_what_is_seen_and_one_is_the_cover(path):
    drawn = lecture_figures.figures(path)
    for figure in drawn:
        assert 8 <= len(figure.alt.split()) <= 60, figure.number
        assert "$" not in figure.alt
        assert figure.caption, figure.number
    tagged = sum("cover" in tags_of(cell) for cell in cells_of(path))
    assert tagged == sum(figure.cover for figure in drawn) == bool(drawn)


# --- folds ----------------------------------------------------------------------


def test_code_is_folded_and_exercises_are_not(small):
    page = flat(small["03_draw"])
    folds = re.findall(r'<details class="folded code"> (.*?)</details>', page)
    assert all(fold.startswith("<summary>Code</summary>") for fold in folds)
    # Cells that show nothing share the fold of the cell of code that follows.
    inside = [words(fold).split() for fold in folds]
    assert inside == [
        ["Code", "import", "numpy", "draw()", "said"],
        ["Code", "again()"],
        ["Code", "x", "=", "1", "y", "=", "2", "print(x)", "before", "after"],
        ["Code", "claim(8)"],
    ]
    assert page.rindex(">check<") > page.rindex("</details>")
    assert "<details open" not in page


def test_a_proof_and_a_file_are_folded(small):
    page = flat(small["03_draw"])
    proof = re.search(r'<details class="folded proof">.*?</details>', page)[0]
    assert "<summary>Proof</summary>" in proof
    assert "<em>Proof.</em> Add. ∎" in proof
    assert "<summary>A file</summary>" in small["page"]


@pytest.mark.parametrize("path", notebook_cells.lectures(), ids=lambda path: path.stem)
def test_a_proof_holds_no_heading(path):
    for cell in cells_of(path):
        if "proof" in tags_of(cell):
            assert cell["cell_type"] == "markdown"
            assert not re.search(r"^#+ ", source_of(cell), re.MULTILINE)


# --- statements -----------------------------------------------------------------


def test_a_statement_stands_in_a_numbered_box_with_its_badges(small):
    page = flat(small["03_draw"])
    first, second, third = re.findall(
        r'<div class="statement [^"]*admonition" id="([\w-]+)"> '
        r'<p class="admonition-title">(.*?)</p> (.*?)</div>',
        page,
    )
    assert [first[0], second[0], third[0]] == [
        "theorem-3-1",
        "lemma-3-2",
        "definition-3-3",
    ]
    assert [words(box[1]) for box in (first, second, third)] == [
        "Theorem 3.1 (Theorem 2 (1), Li 2020)#",
        "Lemma 3.2#",
        "Definition 3.3 (Definition 1, Li 2020)#",
    ]
    assert first[2].startswith("<p>Let <span")
    below = words(first[2])
    assert "checked in T2.1, N3.8 to N3.9" in below
    assert "second route: by hand" in below
    assert "machine-checked (“if”): coq_name" in below
    assert 'href="../docs/page.html#coq-name"' in first[2]
    assert 'href="#N3.8"' in first[2]
    assert words(second[2]).strip() == "It is so. checked in T2.3"
    assert third[2].startswith("<p>A <em>model</em> is Q.")
    assert "<blockquote> <div><p>Nothing in bold.</p>" in page


def labels(path):
    """The words in bold that the statements of a source begin with."""
    for quotation in re.findall(r"^>.*(?:\n>.*)*", path.read_text(), re.MULTILINE):
        lines = re.sub(r"^> ?", "", quotation, flags=re.MULTILINE)
        for paragraph in lines.split("\n\n"):
            if found := re.match(r"\*\*(.+?)\*\*", paragraph, re.DOTALL):
                plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[1])
                yield " ".join(plain.split()).rstrip(".")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_statement_has_a_row_and_every_row_a_statement(path):
    listed = [row["label"] for row in ROWS if row["notebook"] == path.stem]
    assert listed == [*labels(path)]


def test_the_rows_name_claims_that_tests_show_and_proofs_that_coq_reads():
    stems = {path.stem for path in SOURCES}
    marked = {mark.claim for mark in MARKED}
    stated = re.findall(
        r"^(?:Theorem|Corollary|Definition) (\w+)", "\n".join(PROOFS.values()), re.M
    )
    for row in ROWS:
        assert row["notebook"] in stems
        assert row["claims"]
        assert row["second_route"]
        assert {*coverage_page.ids(row["claims"])} <= {*coverage_page.claims()} & marked
        assert {*coverage_page.parts(row["coq"])} <= {*stated}
        assert row["coq"] or not row["part"]
    assert len([row for row in ROWS if row["coq"]]) >= 4


def test_each_machine_checked_theorem_has_its_statement_on_the_page():
    page = (ROOT / "docs/proofs.md").read_text()
    theorems = re.findall(r"^Print Assumptions (\w+)", PROOFS["Assumptions.v"], re.M)
    assert len(theorems) == 23
    for name in theorems:
        assert f"({name})=" in page
    shown = set()
    for file, start, end in re.findall(
        r"\.\./proofs/(\w+\.v)\n:language: coq\n:start-at: (.+)\n:end-before: (.+)",
        page,
    ):
        start, end = map(yaml.safe_load, (start, end))
        # Up to the first line with these words, as literalinclude takes it.
        lines = PROOFS[file].splitlines()
        first = next(i for i, line in enumerate(lines) if start in line)
        last = next(i for i in range(first + 1, len(lines)) if end in lines[i])
        piece = "\n".join(lines[first:last])
        shown |= set(re.findall(r"^(?:Theorem|Corollary|Lemma) (\w+)", piece, re.M))
        assert "Proof." not in piece
        assert "Qed" not in piece
    assert shown == {*theorems}


def test_the_functions_name_the_proofs_about_them():
    named = {}
    for path in (ROOT / "qdtheory").rglob("*.py"):
        for words, file in re.findall(
            r"machine-checked[^.]*?((?:`\w+`[,\s]*(?:and\s*)?)+)in\s+proofs/(\w+\.v)",
            path.read_text(),
        ):
            for name in re.findall(r"`(\w+)`", words):
                assert re.search(rf"^\w+ {name}\b", PROOFS[file], re.M), name
                named.setdefault(path.stem, []).append(name)
    assert named.keys() == {"beaten", "frontier", "compatibility", "rewards"}


def test_the_names_of_statements_are_as_documented():
    assert doctest.testmod(theorem_boxes) == (0, 5)


def test_the_table_of_statements_is_plain_csv():
    with theorem_boxes.TABLE.open(newline="") as file:
        assert {len(row) for row in csv.reader(file)} == {7}


# --- in a browser ---------------------------------------------------------------

LECTURE = "notebooks/03_pareto_frontier.html"


@in_a_browser
def test_a_click_on_a_number_leads_to_the_claim(site, browser):
    browser.resize(390)
    browser.open((site / "docs/coverage.html").as_uri())
    browser.events.clear()
    title = browser.evaluate(
        """(() => {
          const link = [...document.querySelectorAll("a.claim-link")]
            .find((a) => a.textContent === "T2.1");
          link.click();
          return link.title;
        })()"""
    )
    browser.wait_for("Page.loadEventFired")
    assert browser.evaluate("location.hash") == "#T2.1"
    top, bottom, said = browser.evaluate(
        """(() => {
          const line = document.getElementById("T2.1");
          const {top, bottom} = line.getBoundingClientRect();
          return [top, innerHeight - bottom, line.textContent];
        })()"""
    )
    assert top >= 0
    assert bottom >= 0
    assert " ".join(said.split()) == f"T2.1 {title}"
    assert browser.complaints() == []


OPEN = "document.querySelectorAll('details.code[open]').length"


@in_a_browser
def test_the_switch_opens_all_code_and_is_remembered(site, browser):
    browser.resize(1280)
    page = (site / LECTURE).as_uri()
    browser.open(page)
    folds = browser.evaluate("document.querySelectorAll('details.code').length")
    assert folds > 10
    assert browser.evaluate(OPEN) == 0
    browser.evaluate("document.querySelector('details.code > summary').click()")
    assert browser.evaluate(OPEN) == 1
    switch = "document.querySelector('.code-switch')"
    assert browser.evaluate(f"{switch}.textContent") == "Show all code"
    browser.evaluate(f"{switch}.click()")
    assert browser.evaluate(OPEN) == folds
    browser.open((site / "notebooks/04_when_a_pair_is_a_divergence.html").as_uri())
    assert browser.evaluate(f"{OPEN} > 10")
    assert browser.evaluate(f"{switch}.textContent") == "Hide all code"
    browser.evaluate(f"{switch}.click()")
    browser.open(page)
    assert browser.evaluate(OPEN) == 0
    assert browser.complaints() == []


@in_a_browser
def test_without_scripts_a_fold_opens(site, browser):
    with browser.without_scripts():
        browser.open((site / LECTURE).as_uri())
        root = browser.send("DOM.getDocument")["root"]["nodeId"]
        fold = "details.code"
        first = browser.send(
            "DOM.querySelector", nodeId=root, selector=f"{fold} > summary"
        )
        browser.send("DOM.focus", nodeId=first["nodeId"])
        browser.press("Enter")
        opened = browser.send(
            "DOM.querySelectorAll", nodeId=root, selector=f"{fold}[open]"
        )
        assert len(opened["nodeIds"]) == 1


@in_a_browser
def test_a_link_to_what_is_folded_opens_the_fold(site, browser):
    browser.open((site / LECTURE).as_uri())
    browser.evaluate("document.querySelector('details pre').id = 'inside'; 0")
    browser.evaluate("location.hash = 'inside'; new Promise((r) => setTimeout(r, 100))")
    assert browser.evaluate(f"{OPEN}") == 1
