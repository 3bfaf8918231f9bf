"""The statements, what each needs, and the proofs in Coq: listed, true, and in step."""

import doctest
import re
import shutil
from collections import defaultdict

import coverage_page
import numpy as np
import pytest
import theorem_boxes
import theorem_graph
from processes import ROOT, ran
from test_claims import MARKED

import qdtheory as qd

FILES = {path.name: path.read_text() for path in sorted(ROOT.glob("proofs/*.v"))}
CODE = "\n".join(FILES.values())
PAGE = (ROOT / "docs/proofs.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
SOURCES = sorted(ROOT.glob("notebooks/src/*.md"))
TABLE = coverage_page.rows(theorem_boxes.TABLE)
GRAPH = theorem_graph.statements()
PRINTED = re.findall(r"^Print Assumptions (\w+)\.", FILES["Assumptions.v"], re.M)


def without_comments(code):
    return re.sub(r"\(\*.*?\*\)", " ", code, flags=re.DOTALL)


# --- Coq ------------------------------------------------------------------------


def test_every_theorem_is_compiled_printed_and_on_the_page_and_none_admitted():
    compiled = re.search(r"^PROOFS := (.+)$", MAKEFILE, re.M)
    assert {f"{name}.v" for name in compiled[1].split()} == {*FILES}
    code = without_comments(CODE)
    for word in ("Admitted", "admit", "Axiom", "Parameter", "Conjecture"):
        assert not re.search(rf"\b{word}\b", code), word
    stated = {*re.findall(r"^(?:Theorem|Corollary) (\w+)", code, re.MULTILINE)}
    # What is used inside a proof of another theorem rests on the same axioms.
    assert stated - {*PRINTED} == {"value_is_greatest_at_P"}
    assert {*PRINTED} - stated == {"entropy_slope"}
    assert len(PRINTED) == 23
    for name in {*FILES} - {"Assumptions.v"}:
        assert f"literalinclude}} ../proofs/{name}" in PAGE
    assert all(f"({name})=" in PAGE for name in PRINTED)


def test_the_functions_name_the_proofs_about_them():
    named = set()
    for path in ROOT.glob("qdtheory/**/*.py"):
        for words, file in re.findall(
            r"machine-checked[^.]*?((?:`\w+`[,\s]*(?:and\s*)?)+)in\s+proofs/(\w+\.v)",
            path.read_text(),
        ):
            for name in re.findall(r"`(\w+)`", words):
                assert re.search(rf"^\w+ {name}\b", FILES[file], re.M), name
                named.add(path.stem)
    assert named == {"beaten", "frontier", "compatibility", "rewards"}


NO_COQ = "Coq is not installed; see docs/proofs.md"
needs_coq = pytest.mark.skipif(not shutil.which("coqc"), reason=NO_COQ)


def proofs(folder, *files):
    """Run `make proofs`, for these files only if others are compiled."""
    chosen = [f"PROOFS={' '.join(files)}"] if files else []
    return ran("make", "--no-print-directory", "proofs", *chosen, cwd=folder)


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """A folder with the proofs, compiled there."""
    folder = tmp_path_factory.mktemp("checked")
    shutil.copytree(ROOT / "proofs", folder / "proofs")
    shutil.copy(ROOT / "Makefile", folder)
    done = proofs(folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("23 theorems; their axioms are those of the reals")
    return folder


@pytest.fixture
def copy(checked, tmp_path):
    return shutil.copytree(checked, tmp_path / "copy")


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("Theorem3.v", "slope_negative : w0 < 0", "slope_negative : w0 > 0"),
        ("Theorem2.v", "Rbar_le dg0 (w * f (p i) + b)", "Rbar_le 0 dg0"),
        ("Theorem2.v", "w <= 0 -> distribution n q", "0 <= w -> distribution n q"),
        ("Theorem2.v", "p i < p j -> f (p i) < f (p j)", "p i < p j -> True"),
        ("TwoErrors.v", "concave n V -> rho = -1 -> forall", "rho = -1 -> forall"),
        ("TwoErrors.v", "Rmin x y <= sqrt", "Rmax x y <= sqrt"),
        ("Theorem1.v", "e <= q j ->\n    quality", "e <= q j ->\n    - quality"),
        ("Counterexample.v", "37 / 100 | _ => 7", "34 / 100 | _ => 10"),
        ("LogitTheorem.v", "rho d = c * logit d + k", "rho d = c * logit d"),
    ],
)
def test_the_proofs_hold_and_a_changed_statement_fails(copy, name, old, new):
    assert FILES[name].count(old) == 1
    path = copy / "proofs" / name
    path.write_text(FILES[name].replace(old, new))
    done = proofs(copy, path.stem)
    assert done.returncode != 0
    assert f"./{name}" in done.stderr


@needs_coq
@pytest.mark.slow
def test_an_axiom_of_ones_own_is_named(copy):
    code = FILES["Counterexample.v"]
    start, end = (code.index(word) for word in ("Lemma gain", "Theorem LL_NRR"))
    statement = code[start:end].partition("Proof.")[0].replace("Lemma", "Axiom")
    path = copy / "proofs/Counterexample.v"
    path.write_text(code[:start] + statement + code[end:])
    done = proofs(copy, "Counterexample", "Assumptions")
    assert done.returncode != 0
    said = ["Axioms that are not allowed:", "gain_in_quality"]
    assert done.stderr.splitlines()[:2] == said


def test_without_coq_it_says_what_to_install(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    make, shell = shutil.which("make"), shutil.which("sh")
    done = ran(make, "proofs", f"SHELL={shell}", cwd=tmp_path, PATH="/nonexistent")
    assert done.returncode != 0
    assert "needs Coq 8.16 or newer and Coquelicot" in done.stderr


@pytest.mark.claim("T3.8")
def test_the_library_finds_the_counterexample_of_the_proof_too():
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.56, 0.37, 0.07])
    assert float(qd.LL_NRR.quality(q, p)) > float(qd.LL_NRR.quality(p, p))
    assert float(qd.LL_NRR.diversity(q)) > float(qd.LL_NRR.diversity(p))
    assert qd.quality_discrepancy(qd.LL_NRR, p).qdisc > 0.005


# --- the table of statements ----------------------------------------------------


def labels(path):
    """The words in bold that the statements of a source begin with."""
    for quotation in re.findall(r"^>.*(?:\n>.*)*", path.read_text(), re.MULTILINE):
        lines = re.sub(r"^> ?", "", quotation, flags=re.MULTILINE)
        for paragraph in lines.split("\n\n"):
            if found := re.match(r"\*\*(.+?)\*\*", paragraph, re.DOTALL):
                plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[1])
                yield " ".join(plain.split()).rstrip(".")


def test_every_statement_has_a_row_and_every_row_a_statement_claims_and_tests():
    listed = [(row["notebook"], row["label"]) for row in TABLE]
    sources = {path.stem: [*labels(path)] for path in SOURCES}
    assert {name for name, _ in listed} <= {*sources}
    for stem, said in sources.items():
        assert [label for name, label in listed if name == stem] == said, stem
    marked = {mark.claim for mark in MARKED}
    stated = {*re.findall(r"^(?:Theorem|Corollary|Definition) (\w+)", CODE, re.M)}
    for row in TABLE:
        assert row["claims"]
        assert row["second_route"]
        assert {*coverage_page.ids(row["claims"])} <= {*coverage_page.claims()} & marked
        assert {*coverage_page.parts(row["coq"])} <= stated
        assert row["coq"] or not row["part"]
    assert doctest.testmod(theorem_boxes) == (0, 5)


# --- what rests on what ---------------------------------------------------------

KINDS = "Theorem|Lemma|Proposition|Corollary|Definition|Property"
NUMBERED = re.compile(rf"\b(?:{KINDS}) (?:\d|K\b)")
# "By Taylor's theorem the mean" is about another's; these are about the lecture's own.
OWN = re.compile(r"\b(?:the|last|this) (?i:(theorem|lemma))\b")
ELSEWHERE = re.compile(r"(?i:notebook)\s+(\d+b?)\b")
CITED = re.compile(theorem_graph.CLAIM)
DOMINANCE = re.compile(r"Pareto-opti|dominat")


def with_needs(anchor, text):
    """The graph with other needs for one statement."""
    table = [row.copy() for row in TABLE]
    table[[one.anchor for one in GRAPH].index(anchor)]["needs"] = text
    return theorem_graph.statements(table)


def statement(anchor, graph=GRAPH):
    (found,) = (one for one in graph if one.anchor == anchor)
    return found


def above(statement):
    """What a statement needs, and what that needs, and so on."""
    found, left = [], [*statement.needs]
    while left:
        one = left.pop()
        assert one is not statement, f"{statement.title} needs itself"
        if one not in found:
            found.append(one)
            left += one.needs
    return found


def test_every_need_names_one_statement_and_none_needs_itself():
    for one in GRAPH:
        assert one not in above(one)
        assert len({*one.needs}) == len(one.needs), one.title
    assert statement("theorem-16b-3") in statement("lemma-16b-2").needed_by
    graph = with_needs("definition-3-1", "03 Lemma 2")
    with pytest.raises(AssertionError, match=r"Lemma 3\.3 needs itself"):
        above(statement("lemma-3-3", graph))


def uses(code):
    """What each definition and theorem of the proofs uses, through all others."""
    kinds = "Lemma|Theorem|Corollary|Definition|Fixpoint|Let"
    pieces = re.split(rf"\b(?:{kinds}) (\w+)", without_comments(code))
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


def disagreements(graph):
    """Statements whose proof in Coq uses others than they need, of those in Coq."""
    used, owner = uses(CODE), {}
    for one in graph:
        for name in coverage_page.parts(one.row["coq"]):
            owner.setdefault(name, one)
    for one in graph:
        if names := {*coverage_page.parts(one.row["coq"])}:
            reached = names.union(*(used[name] for name in names))
            in_coq = {owner[name] for name in reached & {*owner}} - {one}
            if in_coq != {far for far in above(one) if far.row["coq"]}:
                yield one.title


def test_what_coq_uses_is_what_the_statements_need():
    assert [*disagreements(GRAPH)] == []
    assert "below_tangent" in uses(CODE)["LL_SE_is_compatible"]
    for anchor, needs in {"theorem-2-3": "02 Property 1", "lemma-3-4": ""}.items():
        assert statement(anchor).title in disagreements(with_needs(anchor, needs))


def missing(graph, one):
    """What a proof in a lecture names and the statement does not need."""
    needs = {*above(one)}
    text = " ".join(one.proof.split())
    own = {far.kind.lower() for far in one.needs if far.lecture == one.lecture}
    yield from (
        f"the {kind}" for x in OWN.findall(text) if (kind := x.lower()) not in own
    )
    numbers = {far.lecture.split("_")[0] for far in one.needs}
    yield from (f"notebook {n}" for n in ELSEWHERE.findall(text) if n not in numbers)
    for name in NUMBERED.findall(text) + CITED.findall(text):
        meant = {
            x for x in graph if name in (x.head, *coverage_page.ids(x.row["claims"]))
        }
        needed = needs | {one} if CITED.fullmatch(name) else needs
        if meant - {one} and not meant & needed:
            yield name


def test_what_a_statement_is_about_and_its_proof_names_is_needed():
    first, without = statement("definition-3-1"), []
    for one in GRAPH:
        assert [*missing(GRAPH, one)] == [], one.title
        far_above = above(one)
        names = {*NUMBERED.findall(f"{one.head} {one.words.split('**', 2)[2]}")}
        assert names - {one.head} <= {far.head for far in far_above}, one.title
        if one is not first and DOMINANCE.search(one.words):
            assert first in far_above, one.title
        if one.kind not in theorem_boxes.DEFINITIONS:
            without += [one.title] * (not one.proof)
    graph = with_needs("corollary-6-1", "")
    assert "Theorem 3" in missing(graph, statement("corollary-6-1", graph))
    # What is repeated, or taken from a book, or from the text above.
    assert without == ["Lemma 3.3", "Theorem 5.1", "Theorem 5.2", "Theorem 16.1"]
