"""What rests on what: the needs hold, agree with Coq and the proofs, and are drawn."""

import re
from collections import defaultdict
from html import unescape

import coverage_page
import pytest
import theorem_boxes
import theorem_graph
from browser import DESK, PHONE, in_a_browser
from bs4 import BeautifulSoup
from processes import ROOT
from test_claims import MARKED

GRAPH = theorem_graph.statements()
TABLE = coverage_page.rows(theorem_boxes.TABLE)
PROOFS = "\n".join(path.read_text() for path in sorted((ROOT / "proofs").glob("*.v")))

KINDS = "Theorem|Lemma|Proposition|Corollary|Definition|Property"
NUMBERED = re.compile(rf"\b(?:{KINDS}) (?:\d|K\b)")
# "By Taylor's theorem the mean" is about another's; these are about the lecture's own.
OWN = re.compile(r"\b(?:the|last|this) (?i:(theorem|lemma))\b")
ELSEWHERE = re.compile(r"(?i:notebook)\s+(\d+b?)\b")
CITED = re.compile(theorem_graph.CLAIM)
DOMINANCE = re.compile(r"Pareto-opti|dominat")


def with_needs(**needs):
    """The graph with other needs for some statements, by their anchors."""
    changed = {f"{name}".replace("_", "-"): text for name, text in needs.items()}
    places = {one.anchor: i for i, one in enumerate(GRAPH)}
    table = [row.copy() for row in TABLE]
    for anchor, text in changed.items():
        table[places[anchor]]["needs"] = text
    return theorem_graph.statements(table)


def statement(anchor, graph=GRAPH):
    (found,) = (one for one in graph if one.anchor == anchor)
    return found


def titles(found):
    return [one.title for one in found]


# --- names ----------------------------------------------------------------------


def test_every_need_names_one_statement_and_none_needs_itself():
    for one in GRAPH:
        assert one not in theorem_graph.above(one)
        assert len({*one.needs}) == len(one.needs), one.title
    assert titles(statement("theorem-16b-3").needs) == [
        "Proposition 16b.1",
        "Lemma 16b.2",
    ]
    assert statement("theorem-16b-3") in statement("lemma-16b-2").needed_by


@pytest.mark.parametrize(
    ("need", "number"),
    [
        ("03 Theorem 7", 0),
        ("04b Proposition", 2),  # which of the two?
        ("05 Proposition N5.2", 0),
        ("Theorem 2", 0),
        ("30 Theorem 2", 0),
    ],
)
def test_a_name_that_does_not_resolve_is_refused(need, number):
    with pytest.raises(ValueError, match=f"names {number} statements instead of one"):
        with_needs(lemma_3_3=need)


def test_a_circle_is_refused():
    graph = with_needs(definition_3_1="03 Lemma 2")
    with pytest.raises(ValueError, match=r"Lemma 3\.3 needs itself"):
        theorem_graph.above(statement("lemma-3-3", graph))


def test_a_row_that_ends_before_the_needs_has_none():
    table = [row | {"needs": None} for row in TABLE]
    assert [one.needs for one in theorem_graph.statements(table)] == [[]] * len(TABLE)


# --- Coq ------------------------------------------------------------------------


def uses(code):
    """What each definition and theorem of the proofs uses, through all others."""
    code = re.sub(r"\(\*.*?\*\)", " ", code, flags=re.DOTALL)
    pieces = re.split(
        r"\b(?:Lemma|Theorem|Corollary|Definition|Fixpoint|Let) (\w+)", code
    )
    words = defaultdict(set)
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        words[name] |= {*re.findall(r"\w+", text)}
    found = {name: text & {*words} - {name} for name, text in words.items()}
    for _ in found:
        found = {
            name: known.union(*(found[other] for other in known))
            for name, known in found.items()
        }
    return found


def owners(graph):
    """The statement that each name in Coq belongs to: the first that has it."""
    found = {}
    for one in graph:
        for name in coverage_page.parts(one.row["coq"]):
            found.setdefault(name, one)
    return found


def disagreements(graph, code=PROOFS):
    """Statements whose proof in Coq uses others than they need, of those in Coq."""
    owner, used = owners(graph), uses(code)
    for one in graph:
        names = {*coverage_page.parts(one.row["coq"])}
        if names:
            reached = names.union(*(used[name] for name in names))
            in_coq = {owner[name] for name in reached & {*owner}} - {one}
            needed = {far for far in theorem_graph.above(one) if far.row["coq"]}
            if in_coq != needed:
                yield one.title, titles(in_coq), titles(needed)


def test_uses_are_followed_and_comments_are_none():
    code = "Lemma a : x. Proof. exact b. Qed. Definition b := c. Lemma c : y. (* a *)"
    assert uses(code) == {"a": {"b", "c"}, "b": {"c"}, "c": set()}


def test_what_coq_uses_is_what_the_statements_need():
    assert [*disagreements(GRAPH)] == []
    assert len({id(one) for one in owners(GRAPH).values()}) >= 9
    assert "below_tangent" in uses(PROOFS)["LL_SE_is_compatible"]


@pytest.mark.parametrize(
    ("anchor", "needs"),
    [
        ("theorem_2_3", "02 Property 1"),  # and Property 2
        ("lemma_3_4", ""),
        ("theorem_20_1", "04 Theorem 3"),
        ("theorem_5_1", "04 Theorem 3"),
    ],
)
def test_a_need_that_coq_does_not_have_or_has_besides_is_found(anchor, needs):
    found = [title for title, _, _ in disagreements(with_needs(**{anchor: needs}))]
    assert statement(anchor.replace("_", "-")).title in found


def test_a_use_in_coq_that_is_no_need_is_found():
    line = "intros [Hp Hp1] [Hq best] Hi Hj Hij."
    assert PROOFS.count(line) == 1
    code = PROOFS.replace(line, f"pose proof only_the_logit. {line}")
    assert [title for title, _, _ in disagreements(GRAPH, code)] == ["Lemma 3.4"]


# --- the proofs in the lectures -------------------------------------------------


def missing(graph, one, text):
    """What a text names of other statements and the statement does not need."""
    needs = theorem_graph.above(one)
    text = " ".join(text.split())
    for name in NUMBERED.findall(text):
        named = {far for far in graph if far.head == name} - {one}
        if named and not named & {*needs}:
            yield name
    for kind in OWN.findall(text):
        if not any(
            far.lecture == one.lecture and far.kind == kind.capitalize()
            for far in one.needs
        ):
            yield f"the {kind}"
    for number in ELSEWHERE.findall(text):
        if not any(far.lecture.split("_")[0] == number for far in one.needs):
            yield f"notebook {number}"
    for claim in CITED.findall(text):
        shown = {far for far in graph if claim in coverage_page.ids(far.row["claims"])}
        if shown - {one} and not shown & {one, *needs}:
            yield claim


@pytest.mark.parametrize("one", GRAPH, ids=lambda one: one.anchor)
def test_what_a_proof_names_is_needed(one):
    assert [*missing(GRAPH, one, theorem_graph.proof(one, GRAPH))] == []


@pytest.mark.parametrize("one", GRAPH, ids=lambda one: one.anchor)
def test_what_a_statement_is_about_is_needed(one):
    said = theorem_graph.texts(one, GRAPH)
    assert said.startswith("**")
    first = statement("definition-3-1")
    rest = said.split("**", 2)[2]
    for name in {*NUMBERED.findall(f"{one.head} {rest}")} - {one.head}:
        assert name in {far.head for far in theorem_graph.above(one)}, name
    if one is not first and DOMINANCE.search(said):
        assert first in theorem_graph.above(one)


def test_a_statement_without_a_proof_cell_is_one_of_these():
    """Definitions; what is repeated, or taken from a book, or from the text above."""
    without = [one for one in GRAPH if not theorem_graph.proof(one, GRAPH)]
    assert [
        one.title for one in without if one.kind not in theorem_boxes.DEFINITIONS
    ] == [
        "Lemma 3.3",
        "Theorem 5.1",
        "Theorem 5.2",
        "Theorem 16.2",
    ]


@pytest.mark.parametrize(
    ("anchor", "names"),
    [
        ("corollary_6_1", ["Theorem 3"]),
        ("proposition_6b_1", ["Theorem 1"]),
        ("proposition_8_1", ["N6.8"]),
        ("theorem_16b_3", ["the lemma"]),
        ("proposition_16_4", ["notebook 04b"]),
        ("theorem_18_2", ["the theorem"]),
        ("theorem_18b_2", ["notebook 18"]),
    ],
)
def test_a_proof_that_names_what_is_not_needed_is_found(anchor, names):
    graph = with_needs(**{anchor: ""})
    one = statement(anchor.replace("_", "-"), graph)
    found = {
        name.lower() for name in missing(graph, one, theorem_graph.proof(one, graph))
    }
    assert found >= {name.lower() for name in names}


# --- the page -------------------------------------------------------------------


def test_the_tests_are_those_that_the_claims_are_checked_by():
    marked = {(mark.claim, mark.test, mark.says) for mark in MARKED}
    found = {
        (claim, test.name, test.recounts)
        for claim, tests in theorem_graph.tests().items()
        for test in tests
    }
    assert found == marked
    for one in GRAPH:
        assert theorem_graph.tests_of(one)


def test_boxes_stand_apart_and_every_line_leads_to_the_right():
    boxes, begins, bottom = theorem_graph.boxes(GRAPH)
    linked = {one for one in GRAPH if one.needs or one.needed_by}
    assert {*boxes} == linked | {one for one in GRAPH if one.is_checked}
    assert [*begins.values()] == sorted(begins.values())
    for one, box in boxes.items():
        assert 0 < box.y < box.y + box.height < bottom
        assert all(len(line) <= theorem_graph.LETTERS for line in box.lines)
        for need in one.needs:
            assert boxes[need].layer < box.layer
        for other in boxes.values():
            if other is not box and other.layer == box.layer:
                apart = max(
                    other.y - box.y - box.height, box.y - other.y - other.height
                )
                assert apart >= theorem_graph.GAP


def test_a_line_is_left_out_where_others_lead_there():
    graph = with_needs(lemma_3_3="03 Theorem 2;03 Definition 1")
    assert titles(theorem_graph.lines_left(statement("lemma-3-3", graph))) == [
        "Theorem 3.2"
    ]


@pytest.fixture(scope="module")
def page(site):
    return BeautifulSoup((site / "docs/theorem_graph.html").read_text(), "lxml")


def ids_of(path, cache={}):  # noqa: B006
    if path not in cache:
        soup = BeautifulSoup(path.read_text(), "lxml")
        cache[path] = {node["id"] for node in soup.select("[id]")}
    return cache[path]


def test_every_link_of_the_page_leads_somewhere(site, page):
    here = site / "docs/theorem_graph.html"
    links = {a["href"] for a in page.article.select("a[href]")}
    assert sum(link.startswith("../notebooks/") for link in links) > len(GRAPH)
    assert sum(link.startswith("proofs.html#") for link in links) >= 15
    for link in links:
        address, _, anchor = link.partition("#")
        path = (here.parent / address).resolve() if address else here
        assert path.exists(), link
        if anchor:
            assert anchor in ids_of(path), link


def test_each_statement_says_its_state_its_words_and_its_tests(page):
    for one in GRAPH:
        (entry,) = page.select(f"details#{one.anchor}")
        said = unescape(" ".join(entry.get_text().split()))
        assert said.startswith(one.title)
        assert all(state in said for state in one.states)
        assert len(entry.select("span.math, div.math")) > 0 or "$" not in (
            theorem_graph.texts(one, GRAPH)
        )
        shown = {a.get_text() for a in entry.select("a")}
        assert shown >= {test.name for test in theorem_graph.tests_of(one)}
        assert shown >= {far.title for far in (*one.needs, *one.needed_by)}


@in_a_browser
def test_a_desk_shows_the_graph_and_a_click_opens_the_entry(site, browser):
    browser.resize(DESK)
    browser.open((site / "docs/theorem_graph.html").as_uri())
    assert browser.evaluate("document.querySelector('svg a rect').checkVisibility()")
    # No text leaves its box.
    assert (
        browser.evaluate("""[...document.querySelectorAll('.theorem-graph svg a')]
        .filter(a => { const box = a.querySelector('rect').getBBox();
            return [...a.querySelectorAll('text')].some(text => {
                const inner = text.getBBox();
                return inner.x + inner.width > box.x + box.width - 2; }); })
        .map(a => a.id)""")
        == []
    )
    assert (
        browser.evaluate(
            "document.querySelector('.theorem-graph').getBoundingClientRect().right"
        )
        <= DESK
    )
    browser.evaluate("""document.querySelector('#box-theorem-4-2')
        .dispatchEvent(new MouseEvent('click', {bubbles: true}))""")
    browser.until("document.querySelector('#theorem-4-2').open")
    assert browser.complaints() == []


@in_a_browser
def test_a_phone_shows_the_list_without_the_graph(site, browser):
    browser.resize(PHONE)
    browser.open((site / "docs/theorem_graph.html").as_uri())
    assert not browser.evaluate(
        "document.querySelector('svg a rect').checkVisibility()"
    )
    assert browser.evaluate("document.documentElement.scrollWidth") <= PHONE
    browser.evaluate("document.querySelectorAll('details').forEach(x => x.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= PHONE
