"""Records compare by value, print short, turn into JSON and fit a terminal or page."""

import copy
import json
import pickle
import re
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import conditional
from rich.cells import cell_len

import qdtheory as qd
from qdtheory import text
from qdtheory.catalogue.metrics import METRICS
from qdtheory.support.layout import fact_lines, number, table_lines, wrapped
from qdtheory.support.records import Record, plain

P = np.random.default_rng(0).dirichlet(np.ones(16))
TWO = P.reshape(2, 8) / P.reshape(2, 8).sum(axis=1, keepdims=True)
TEXTS = ["a b c", "a c", "b c a"] * 10
RESULTS = {
    "exact": lambda: qd.quality_discrepancy(qd.LL_NRR, P),
    "bounded": lambda: qd.certify(qd.LL_NRR, P),
    "average": lambda: conditional.average_discrepancy(qd.CR_NRR, TWO, np.full(2, 0.5)),
    "beaten": lambda: qd.check_compatibility(qd.LL_NRR),
    "criterion": lambda: qd.kernel_criterion(np.eye(16)),
    "frontier": lambda: qd.pareto_frontier(qd.LL_SE, P, num_points=20),
    "model": lambda: qd.LSTMLanguageModel.random(jax.random.key(0), vocab_size=4),
    "interval": lambda: text.jackknife_interval(lambda c: text.bleu(c, TEXTS), TEXTS),
    "report": lambda: text.evaluate({"ours": TEXTS}, TEXTS, max_order=2),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_record_equals_its_like_prints_short_and_stays_frozen(name):
    one, other = RESULTS[name](), RESULTS[name]()
    assert one is not other
    assert one == other == copy.deepcopy(one) == pickle.loads(pickle.dumps(one))
    assert all(one != stranger for stranger in (None, 1, "", object()))
    for part in fields(one):
        if part.init and part.name != "end_token":
            value, changed = getattr(one, part.name), copy.copy(one)
            different = value + 1 if hasattr(value, "shape") else 0.125
            object.__setattr__(changed, part.name, different)
            assert changed != one, part.name
    if name != "report":  # whose repr is the table
        assert re.fullmatch(rf"{type(one).__name__}\(.{{,700}}\)", repr(one))
    shown = json.loads(one.to_json(), parse_constant=pytest.fail)
    assert shown == plain(one) == json.loads(other.to_json(indent=2))
    with pytest.raises(FrozenInstanceError):
        setattr(one, fields(one)[0].name, 1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


class Anything(Record):
    value: object
    hidden: object = None


SHORT = [
    (np.arange(8.0), "<8 numbers>"),
    (np.arange(6.0).reshape(2, 3) > 2, "<2 x 3 booleans>"),
    (np.float64(0.25), "0.25"),
    (jnp.array([0.5, 1 / 3]), "[0.5, 0.333333]"),
    ([*range(9)], "[0, 1, 2, 3, ... 9]"),
    ({"a": P}, "<a>"),
    (jax.ShapeDtypeStruct((), float), "<1 numbers>"),
]
KERNEL = qd.KernelPair(np.eye(2))
EQUAL = [
    (np.nan, jnp.array(np.nan)),
    ([1, (2, P)], (1, [2, jnp.asarray(P)])),
    ({"a": P}, {"a": P.copy()}),
    (KERNEL, qd.KernelPair(np.eye(2))),
]
UNEQUAL = [
    *(({"a": P}, {"b": P}), (P, P[:5]), (P, None), (None, P), (P, "word")),
    *(("word", 1.5), ((1, 2), (1, 2, 3)), (qd.LL_SE, qd.LL_NRR)),
    (KERNEL, qd.KernelPair(2 * np.eye(2))),
]
PLAIN = [
    ([np.inf, -np.inf, np.nan, np.float32(0.5)], [None, None, None, 0.5]),
    ([np.int64(3), np.bool_(True)], [3, True]),
    ({1: (jnp.array([1, 2]), "é")}, {"1": [[1, 2], "é"]}),
    (qd.LL_SE, "LL-SE"),
    (Anything(Anything(1)), {"value": {"value": 1, "hidden": None}, "hidden": None}),
]


def test_values_of_all_kinds_are_shown_compared_and_written_as_json():
    for value, shown in SHORT:
        assert repr(Anything(value)) == f"Anything(value={shown})"
    for one, other in EQUAL:
        assert Anything(one) == Anything(other)
    for one, other in UNEQUAL:
        assert Anything(one) != Anything(other)
    for value, written in PLAIN:
        assert plain(value) == written
    assert replace(Anything(1), value=2) == Anything(2)


def test_a_traced_record_can_be_shown_and_compared():
    seen = []

    def optimum(w):
        found = qd.pareto_optimum(qd.LL_SE, P[:4] / P[:4].sum(), w)
        others = found, copy.copy(found), replace(found, q=found.q + 0)
        seen.append((*(found == other for other in others), repr(found)))
        return found

    weights = jnp.array([-1.0, -2.0])
    batch = jax.jit(jax.vmap(optimum))(weights)
    assert batch == jax.vmap(optimum)(weights)
    assert seen[0][:3] == (True, True, False)
    assert "quality=<1 numbers>" in seen[0][3]
    assert len(jax.tree.leaves(batch)) == len(fields(batch))


def test_public_results_are_records():
    # Texts, functions and pairs are what results are of.
    kept = {"TextSpace", "Tsallis", "Expression", "Corpus", "NgramCounts"}
    public = {name: getattr(room, name) for room in (qd, text) for name in dir(room)}
    for name in public.keys() - kept - {"References", "NoiseFamily"}:
        found = public[name]
        if isinstance(found, type) and is_dataclass(found):
            assert issubclass(found, Record) or name.endswith("Pair"), name


# --- In a terminal of any width -------------------------------------------------------

WORDS = st.text(st.sampled_from("ab 文é\u0301-"), max_size=60)
ROWS = st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=4)


def letters(*texts):
    return sorted("".join("".join(texts).split()))


@given(ROWS, st.integers(10, 60), st.sampled_from(["", "  "]))
def test_texts_tables_and_facts_fit_and_lose_nothing(rows, width, rest):
    for cell in rows[0] if rows else ():
        lines, words = wrapped(cell, width, rest=rest), cell.split()
        assert max(map(cell_len, lines)) <= width
        assert "".join("".join(lines).split()) == "".join(words)
        if max(map(cell_len, words), default=0) <= width - len(rest):
            assert [word for line in lines for word in line.split()] == words
    lines = table_lines(("a", "b", "c"), rows, width)
    if rows:
        assert max(map(cell_len, lines), default=0) <= width
    shown, expected = letters(*lines), letters(*map("".join, rows))
    for letter in {*expected} - {*"abc-"}:
        assert shown.count(letter) == expected.count(letter)
    facts = [(name, value) for name, value, _ in rows]
    lines = fact_lines(facts, width)
    assert max(map(cell_len, lines), default=0) <= width
    kept = [name + value for name, value in facts if value.strip()]
    assert letters(*lines) == letters(*kept)


def test_numbers_are_written_in_one_way():
    values = [20.999999999996, 1 / 3, -1.2345e-301, 10**7, jnp.asarray(0.208), None]
    told = ["21", "0.333333", "-1.2345e-301", "10000000", "0.208", ""]
    assert [*map(number, values)] == told
    assert number(np.array([0.5, 0.3, 0.2])) == "0.5 0.3 0.2"


def text_of(page):
    """What a page says; it raises unless each tag is closed."""
    return "".join(ElementTree.fromstring(f"<div>{page}</div>").itertext())


ANSWERS = {name: RESULTS[name] for name in ("exact", "bounded", "beaten")} | {
    "marked up": lambda: qd.Verdict(None, f"<b>f & g</b> {'many words ' * 9}"),
    "metric": lambda: METRICS[3],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_prints_its_whole_reason_and_shows_it_in_a_notebook(name):
    found = ANSWERS[name]()
    title, sentences, facts = found.summary()
    facts = [fact for fact in facts if fact[1]]
    for width in (40, 200):
        assert max(map(cell_len, found.to_text(width).splitlines())) <= width
        words = " ".join(found.to_text(width).split())
        assert words.startswith(" ".join([title, *sentences]).strip())
        assert all(" ".join(value.split()) in words for _, value in facts)
    assert str(found) == found.to_text(80)
    told = "".join([title, *sentences, *map("".join, facts)])
    assert text_of(found._repr_html_()) == told
