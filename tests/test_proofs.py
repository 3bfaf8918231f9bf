"""The proofs in Coq: what they say is listed, holds, and fails when it is changed."""

import re
import shutil

import numpy as np
import pytest
from processes import ROOT, ran

import qdtheory as qd

FILES = sorted((ROOT / "proofs").glob("*.v"))
needs_coq = pytest.mark.skipif(
    not shutil.which("coqc"), reason="Coq is not installed; see docs/proofs.md"
)


def proofs(folder, *files):
    """Run `make proofs`, for these files only if others are compiled."""
    chosen = [f"PROOFS={' '.join(files)}"] if files else []
    return ran("make", "--no-print-directory", "proofs", *chosen, cwd=folder)


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """A folder with the proofs, compiled there, and what Coq said."""
    folder = tmp_path_factory.mktemp("checked")
    shutil.copytree(ROOT / "proofs", folder / "proofs")
    shutil.copy(ROOT / "Makefile", folder)
    return folder, proofs(folder)


@pytest.fixture
def copy(checked, tmp_path):
    shutil.copytree(checked[0], tmp_path / "copy")
    return tmp_path / "copy"


def test_every_theorem_is_printed_and_none_admitted():
    stated, printed = set(), set()
    for path in FILES:
        code = re.sub(r"\(\*.*?\*\)", "", path.read_text(), flags=re.DOTALL)
        stated |= set(re.findall(r"^(?:Theorem|Corollary) (\w+)", code, re.MULTILINE))
        printed |= set(re.findall(r"^Print Assumptions (\w+)\.", code, re.MULTILINE))
        for word in ("Admitted", "admit", "Axiom", "Parameter", "Conjecture"):
            assert not re.search(rf"\b{word}\b", code), f"{path.name}: {word}"
    # What is used inside a proof of another theorem rests on the same axioms.
    assert stated - printed == {"value_is_greatest_at_P"}
    assert printed - stated == {"entropy_slope"}


def test_every_file_is_compiled_and_on_the_page():
    compiled = re.search(r"^PROOFS := (.+)$", (ROOT / "Makefile").read_text(), re.M)
    assert {path.stem for path in FILES} == set(compiled[1].split())
    page = (ROOT / "docs/proofs.md").read_text()
    shown = {
        path.stem for path in FILES if f"literalinclude}} ../proofs/{path.name}" in page
    }
    assert shown == {path.stem for path in FILES} - {"Assumptions"}


@needs_coq
@pytest.mark.slow
def test_the_proofs_hold(checked):
    _, done = checked
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("23 theorems; their axioms are those of the reals")


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
def test_a_changed_statement_fails(copy, name, old, new):
    path = copy / "proofs" / name
    code = path.read_text()
    assert code.count(old) == 1
    path.write_text(code.replace(old, new))
    done = proofs(copy, path.stem)
    assert done.returncode != 0
    assert f"./{name}" in done.stderr


@needs_coq
@pytest.mark.slow
def test_an_axiom_of_ones_own_is_named(copy):
    path = copy / "proofs/Counterexample.v"
    code = path.read_text()
    start, end = (code.index(word) for word in ("Lemma gain", "Theorem LL_NRR"))
    statement = code[start:end].partition("Proof.")[0].replace("Lemma", "Axiom")
    path.write_text(code[:start] + statement + code[end:])
    done = proofs(copy, "Counterexample", "Assumptions")
    assert done.returncode != 0
    assert done.stderr.splitlines()[:2] == [
        "Axioms that are not allowed:",
        "gain_in_quality",
    ]


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
