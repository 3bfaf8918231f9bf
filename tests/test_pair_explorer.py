"""The explorer in the explorer reads formulas and finds models as the library does."""

import json
import random
import shlex

import formula_texts
import numpy as np
import pytest
from browser import in_a_browser
from explorer_page import DOCS, enter, text
from typer.testing import CliRunner
from verdict_referee import formula

import qdtheory as qd
from qdtheory.commands.cli import app
from qdtheory.formulas.expressions import Expression

pytestmark = [
    pytest.mark.slow,
    in_a_browser,
]
POINTS = [0.02, 0.1, 0.25, 0.5, 0.9, 1.0]
CONCAVE = [
    "-x**2", "-x*log(x)", "sqrt(x)", "log(x)", "-x**3", "x**0.3", "-exp(2*x)",
    "-1/(0.1 + x)", "log(1 + 5*x)", "sqrt(x) - exp(x)", "-x**1.5", "log(0.01 + x)",
    "x - x**2", "-0.1*x*log(x) - x**2", "-x**4 - 0.01*x**2",
]  # fmt: skip
# The f under which no model wins.
MATCHED = {
    "-x**2": "x", "-x*log(x)": "log(x)", "sqrt(x)": "-x**-0.5", "-x**1.5": "sqrt(x)",
    "log(x)": "-1/x", "-x**3": "x**2",
}  # fmt: skip
# Concave up to some point, and convex beyond.
BENT = [
    "-x*(1 - (1 - x)**2)", "-x*(1 - (1 - x)**4)", "-x*(1 - (1 - x)**32)",
    "x**3 - 2*x**2", "x*exp(-5*x)",
]  # fmt: skip


def ask(explorer, function, values):
    """A JavaScript function of each value; the message of an error, as text."""
    return explorer.evaluate(
        f"""{json.dumps(values)}.map((value) => {{
          try {{ return ({function})(value); }}
          catch (error) {{ return error.message; }}
        }})"""
    )


# --- formulas -----------------------------------------------------------------


def read_in_python(written):
    try:
        formula = Expression(written)
    except ValueError as error:
        return str(error)
    jets = [formula.jet(np.array([x])) for x in POINTS]
    return np.array([[j.value, j.slope, j.curvature] for j in jets])[:, :, 0]


def read_in_the_page(explorer, texts):
    """Jets at the points, or messages; numbers as text, as JSON has no infinity."""
    answers = ask(
        explorer,
        f"""(text) => {{
          const f = Formulas.read(text);
          return {POINTS}.map((x) => f.jet(x).map(String));
        }}""",
        texts,
    )
    return [
        a if isinstance(a, str) else np.array(a, object).astype(float) for a in answers
    ]


def test_values_and_derivatives_of_a_thousand_formulas_agree(explorer):
    rng = random.Random(2)
    texts = formula_texts.texts(800, seed=1)
    texts += [formula_texts.spelled(rng)[0] for _ in range(600)]
    read = [(t, a) for t in texts if not isinstance(a := read_in_python(t), str)]
    assert len(read) > 1000
    there = read_in_the_page(explorer, [t for t, _ in read])
    differ = [t for (t, a), b in zip(read, there) if not agree(a, b)]
    assert len(differ) <= 5, differ  # a rounding error, or beside a pole


def agree(a, b):
    """Whether numbers are equal up to rounding in the largest of them at a point.

    At 1, the last point, the page has no limits: what it cannot tell is not compared.
    """
    untold = ~np.isfinite(b)
    untold[:-1] = False
    a = np.where(untold, b, a)
    size = np.where(np.isfinite(a), np.abs(a), 0).max(axis=1, keepdims=True)
    finite = np.isfinite(a)
    close = np.abs(np.where(finite, a, 0) - np.where(finite, b, 0)) <= 1e-9 * (1 + size)
    return bool((np.where(finite, close, ~np.isfinite(b))).all())


def test_a_name_stands_for_its_formula(explorer):
    names = ["LL", "CR", "SE", "NRR", "SDI"]
    answers = ask(explorer, "(name) => Formulas.read(name).jet(0.3)[0]", names)
    functions = [qd.LL_SE.f, qd.CR_NRR.f, qd.LL_SE.g, qd.CR_NRR.g, qd.formulas.SDI]
    assert answers == pytest.approx([float(h(0.3)) for h in functions], rel=1e-14)


# --- QDisc ----------------------------------------------------------------------


def problems(count):
    """Pairs of random formulas, ten P each: one size a pair, as each size compiles."""
    rng, draws = random.Random(3), np.random.default_rng(3)
    found = []
    while len(found) < count:
        blocks = rng.sample(CONCAVE, rng.choice([1, 2]))
        if rng.random() < 0.25:
            blocks = rng.sample(BENT, 1)
        g = " + ".join(f"{rng.choice([0.1, 1, 2, 5])}*({block})" for block in blocks)
        size = rng.choice([3, 8, 64])
        for _ in range(10):
            f = Expression(formula(rng))
            if rng.random() < 0.3 and len(blocks) == 1 and blocks[0] in MATCHED:
                f = Expression(f"2*({MATCHED[blocks[0]]}) + 1")
            p = draws.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])))
            if rng.random() < 0.15 and "log(x)" not in g.replace("x*log(x)", ""):
                p[rng.randrange(size)] = 0
                p = p / p.sum()
            scores = f.value(p)
            if not ((scores < np.inf).all() and np.isfinite(scores[p > 0]).all()):
                continue
            finite = scores[np.isfinite(scores)]
            # Else all is rounding, or too small for XLA, which has no subnormals.
            if np.ptp(finite) > max(1e-6 * np.abs(finite).max(), 1e-100):
                found.append((f.text, g, p))
    return found[:count]


def test_qdisc_of_200_random_problems_is_the_librarys(explorer):
    """Within 1e-6 of the range of the texts' finite scores, the unit of the seals."""
    asked = problems(200)
    answers = ask(
        explorer,
        """([f, g, p]) => {
          const posed = BestModels.pose(Formulas.read(f), Formulas.read(g), p);
          const {qdisc, drate, won, q} = BestModels.discrepancy(posed, p);
          return {qdisc, drate, won, q, spread: posed.spread};
        }""",
        [(f, g, p.tolist()) for f, g, p in asked],
    )
    wins = 0
    for (f, g, p), there in zip(asked, answers):
        pair = qd.SeparablePair(f, g)
        here = qd.quality_discrepancy(pair, p)
        assert "proved" in here.reason, (f, g, here.reason)
        assert not isinstance(there, str), (f, g, p, there)
        assert there["qdisc"] == pytest.approx(here.qdisc, abs=1e-6 * there["spread"])
        assert (there["won"] or None) == here.dominated_in, (f, g, p)
        assert (there["drate"] is None) == (here.drate is None)
        if here.drate is not None:
            assert there["drate"] == pytest.approx(here.drate, abs=1e-6)
        if here.dominated_in == "quality":
            wins += 1
            q = np.array(there["q"])
            assert q.min() >= 0
            assert q.sum() == pytest.approx(1, abs=1e-12)
            v, least = float(pair.diversity(q)), float(pair.diversity(p))
            assert v == pytest.approx(least, rel=1e-9) or v > least
    assert 100 < wins < 200


def test_points_of_the_frontier_are_the_librarys(explorer):
    p = np.random.default_rng(0).dirichlet(np.ones(12))
    for pair in (qd.LL_SE, qd.CR_NRR, qd.CR_SE):
        f, g = pair.name.split("-")
        (points,) = ask(
            explorer,
            f"(p) => BestModels.pose("
            f"Formulas.read({f!r}), Formulas.read({g!r}), p).points",
            [p.tolist()],
        )
        quality, diversity = np.array(points).T
        assert (np.diff(quality) > 0).all()
        curve = qd.pareto_frontier(pair, p, 4001)
        u, v = np.array([curve.quality, curve.diversity])
        expected = np.interp(quality, np.sort(u), v[np.argsort(u)])
        np.testing.assert_allclose(diversity, expected, atol=1e-4)


# --- the page ----------------------------------------------------------------------


def type_pair(explorer, f, g, p=None):
    enter(explorer, "pair-f", f)
    enter(explorer, "pair-g", g)
    if p is not None:
        enter(explorer, "pair-p", p)


def test_a_winning_model_is_shown_with_its_gain(explorer):
    type_pair(explorer, "log(x)", "-x**2", "0.5 0.3 0.2")
    found = qd.quality_discrepancy(qd.LL_NRR, np.array([0.5, 0.3, 0.2]))
    said = text(explorer, "pair-verdict")
    assert f"{found.qdisc:.3g}" in said
    assert f"{100 * found.drate:.3g} %" in said
    assert (
        explorer.evaluate("document.querySelectorAll('#pair-bars .model').length") == 3
    )
    assert explorer.evaluate("Boolean(document.querySelector('#pair-plane .better'))")
    enter(explorer, "pair-zoom", False)
    assert explorer.evaluate("Boolean(document.querySelector('#pair-plane .dot'))")
    enter(explorer, "pair-zoom", True)


def test_without_a_winner_the_page_names_the_proof_and_claims_nothing(explorer):
    type_pair(explorer, "log(x)", "-x*log(x)", "0.5 0.3 0.2")
    assert text(explorer, "pair-verdict").startswith("No better model found")
    assert "compatible" not in text(explorer, "pair-app")
    command = text(explorer, "pair-check")
    assert command == 'qdtheory check --f "log(x)" --g "-x*log(x)"'
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.stdout.startswith("compatible:")
    assert text(explorer, "pair-qdisc").endswith("--p p.txt")


def test_the_command_has_the_formulas_as_they_were_typed_but_for_quotes(explorer):
    type_pair(explorer, "\u201c\\log{p}\u201d", "\u2212x\u00b2", "0.5 0.3 0.2")
    command = text(explorer, "pair-check")
    assert shlex.split(command)[3::2] == [r"\log{p}", "\u2212x\u00b2"]
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.stdout.startswith("incompatible:")


@pytest.mark.parametrize(
    ("f", "g", "p", "where", "said"),
    [
        ("1/2x", "-x**2", "0.5 0.5", "pair-f-error", "write (1/2)*x or 1/(2*x)"),
        ("x", "lnx", "0.5 0.5", "pair-g-error", "lnx is not allowed in an expression"),
        ("x", "x**2", "0.5 0.5", "pair-verdict", "g must be strictly concave"),
        ("x", "x", "0.5 0.5", "pair-verdict", "it is linear, to within rounding"),
        ("x", "-(x - 0.5)**3", "0.5 0.5", "pair-verdict", "g must be strictly concave"),
        ("x", "sqrt(0.5 - x)", "0.5 0.5", "pair-verdict", "g' is NaN at 0.5"),
        ("1/x", "-x**2", "1 0", "pair-verdict", "quality of P itself must be finite"),
        ("x", "log(x)", "1 0", "pair-verdict", "diversity of P itself is not finite"),
        ("x", "-x**2", "0.5 0.6", "pair-p-error", "P must sum to 1, got 1.1"),
        ("x", "-x**2", "1.5 -0.5", "pair-p-error", "P must be nonnegative, got -0.5"),
        ("x", "-x**2", "0.5 half", "pair-p-error", "expected numbers such as 0.25"),
        ("x", "-x**2", "1", "pair-p-error", "2 texts or more"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_line_where_it_stands(explorer, f, g, p, where, said):
    type_pair(explorer, f, g, p)
    assert said in text(explorer, where)
    type_pair(explorer, "x", "-x**2", "0.5 0.5")
    assert said not in text(explorer, where)


def test_a_text_of_probability_0_may_have_a_score_of_minus_infinity(explorer):
    type_pair(explorer, "log(x)", "-x**2", "0.6 0.4 0")
    found = qd.quality_discrepancy(qd.LL_NRR, np.array([0.6, 0.4, 0.0]))
    assert found.dominated_in is None
    assert text(explorer, "pair-verdict").startswith("No better model found")


def test_weights_are_divided_when_asked_only(explorer):
    type_pair(explorer, "x", "-x**2", "3 1")
    assert "P must sum to 1, got 4" in text(explorer, "pair-p-error")
    explorer.evaluate("document.getElementById('pair-divide').click()")
    assert explorer.evaluate("document.getElementById('pair-p').value") == "0.75 0.25"
    assert text(explorer, "pair-p-error") == ""


def real(explorer):
    written = explorer.evaluate("document.getElementById('pair-p').value")
    return np.array([float(x) for x in written.split()])


def test_a_drawn_distribution_depends_on_its_seed_and_concentration(explorer):
    drawn = []
    for seed, concentration in ((1, -1), (2, -1), (1, 1.5), (1, -1)):
        enter(explorer, "pair-seed", seed)
        enter(explorer, "pair-concentration", concentration)
        enter(explorer, "pair-size", 40)
        drawn.append(real(explorer))
        assert drawn[-1].sum() == pytest.approx(1, abs=1e-12)
        assert (np.diff(drawn[-1]) <= 0).all()
        assert drawn[-1].min() > 0
    spiky, other, even, again = drawn
    assert spiky.tolist() == again.tolist() != other.tolist()
    assert spiky.max() > 3 * even.max()


def test_gamma_variables_have_their_mean_and_variance(explorer):
    """The first of 2 texts is a beta variable, of mean 1/2 before they are sorted."""
    for concentration in (0.5, 2.0):
        drawn = ask(
            explorer,
            f"(seed) => RealDistribution.draw(2, {concentration}, seed)[0]",
            list(range(2000)),
        )
        squares = np.mean((np.array(drawn) - 0.5) ** 2)
        assert squares == pytest.approx(0.25 / (2 * concentration + 1), rel=0.06)


def test_a_bar_is_dragged_and_the_others_make_room(explorer):
    type_pair(explorer, "x", "-x**2", "0.4 0.3 0.2 0.1")
    explorer.evaluate("document.getElementById('pair-bars').scrollIntoView()")
    box = explorer.evaluate(
        "(() => {const b = document.querySelectorAll('#pair-bars .real')[0]"
        ".getBoundingClientRect(); return [b.x + b.width / 2, b.y, b.height]})()"
    )
    x, top, height = box
    for kind, y in (
        ("mousePressed", top),
        ("mouseMoved", top + height / 2),
        ("mouseReleased", top + height / 2),
    ):
        explorer.send(
            "Input.dispatchMouseEvent",
            **{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1},
            buttons=0 if kind == "mouseReleased" else 1,
        )
    p = real(explorer)
    assert p[0] == pytest.approx(0.2, abs=0.01)
    assert p[1:] == pytest.approx((1 - p[0]) * np.array([3, 2, 1]) / 6, abs=2e-5)
    assert p.sum() == pytest.approx(1, abs=1e-12)


def test_the_keyboard_reaches_a_text_and_moves_it(explorer):
    type_pair(explorer, "x", "-x**2", "0.4 0.3 0.2 0.1")
    explorer.evaluate("document.querySelector('#pair-app details').open = true")
    enter(explorer, "pair-text", 3)
    explorer.evaluate("document.getElementById('pair-probability').focus()")
    explorer.press("ArrowRight")
    assert real(explorer)[2] == pytest.approx(0.201)
    explorer.press("Home")
    assert real(explorer)[2] == 0
    assert real(explorer).sum() == pytest.approx(1, abs=1e-12)


def test_the_page_fits_a_phone(explorer):
    explorer.resize(390)
    type_pair(explorer, "+".join(["log(1 + x)"] * 12), "-x**2")
    assert explorer.evaluate("document.documentElement.scrollWidth") <= 390
    explorer.resize(1280)


def test_scripts_are_small_and_never_run_text():
    for path in DOCS.glob("static/*.js"):
        if path.name in ("explorer_data.js", "named_pairs.js"):
            continue
        script = path.read_text()
        assert len(script) < 20_000, path
        assert all(x not in script for x in ("eval(", "new Function", "innerHTML"))
