"""Records print short, compare by value and never raise, also where JAX traces them."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab import conditional

import qdtheory as qd
from qdtheory import text
from qdtheory.support.records import Record, plain

P = np.random.default_rng(0).dirichlet(np.ones(16))
TWO = P.reshape(2, 8) / P.reshape(2, 8).sum(axis=1, keepdims=True)
TEXTS = ["a b c", "a c", "b c a"] * 10

RESULTS = {
    "exact": lambda: qd.quality_discrepancy(qd.LL_NRR, P),
    "kernel": lambda: qd.quality_discrepancy(qd.KernelPair(np.eye(16)), P),
    "bounded": lambda: qd.certify(qd.LL_NRR, P),
    "average": lambda: conditional.average_discrepancy(qd.CR_NRR, TWO, np.full(2, 0.5)),
    "transport": lambda: conditional.transport_bound(qd.CR_NRR, TWO, np.full(2, 0.5)),
    "compatible": lambda: qd.check_compatibility(qd.LL_SE),
    "incompatible": lambda: qd.check_compatibility(qd.LL_NRR),
    "rationality": lambda: qd.check_rationality(qd.LL_SE, 16),
    "criterion": lambda: qd.kernel_criterion(np.eye(16)),
    "dominance": lambda: qd.dominance(P, P, 0.1, 0.1),
    "optimum": lambda: qd.pareto_optimum(qd.LL_SE, P, -2.0),
    "frontier": lambda: qd.pareto_frontier(qd.LL_SE, P, num_points=20),
    "slopes": lambda: qd.frontier.frontier_slopes(qd.LL_SE, P, -2.0),
    "model": lambda: qd.LSTMLanguageModel.random(jax.random.key(0), vocab_size=4),
    "interval": lambda: text.jackknife_interval(lambda c: text.bleu(c, TEXTS), TEXTS),
    "report": lambda: text.evaluate({"ours": TEXTS}, TEXTS, max_order=2),
}


@pytest.fixture(scope="module", params=RESULTS)
def pair(request):
    """The same result twice, from arrays of their own."""
    make = RESULTS[request.param]
    return make(), make()


def test_records_are_equal_by_value(pair):
    one, other = pair
    assert one is not other
    assert one == other
    assert one == copy.deepcopy(one) == pickle.loads(pickle.dumps(one))
    for stranger in (None, 1, "", object()):
        assert one != stranger


def test_a_record_differs_if_one_attribute_does(pair):
    one, _ = pair
    for part in fields(one):
        value = getattr(one, part.name)
        if part.init and part.name != "end_token":
            changed = copy.copy(one)
            object.__setattr__(changed, part.name, _other(value))
            assert changed != one, part.name


def _other(value):
    match value:
        case dict():
            return {}
        case bool() | None | str():
            return 0.125
        case float() | int():
            return value + 1 if abs(value) < np.inf else 0.125
        case tuple():
            return (*value, 0.125)
    return value + 1 if hasattr(value, "shape") else None


def test_records_print_short_are_json_and_stay_frozen(pair):
    one, other = pair
    assert len(repr(one)) < 800
    assert repr(one).startswith(f"{type(one).__name__}(")
    assert "\n" not in repr(one)
    shown = json.loads(one.to_json(), parse_constant=pytest.fail)
    assert shown == plain(one) == json.loads(other.to_json(indent=2))
    with pytest.raises(FrozenInstanceError):
        setattr(one, fields(one)[0].name, 1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_a_discrepancy_shows_its_numbers():
    found = qd.quality_discrepancy(qd.LL_NRR, P)
    assert repr(found).startswith(f"Discrepancy(qdisc={found.qdisc:.6g}, upper_bound=")
    assert "q=<16 numbers>" in repr(found)
    assert "status='exact'" in repr(found)
    assert "num_starts" not in repr(found)
    shown = json.loads(found.to_json())
    assert shown["q"] == found.q.tolist()
    assert shown["pair"] == "LL-NRR"
    assert shown["num_starts"] is None


def test_what_is_missing_or_undecided_is_told_apart():
    assert "compatible=None" in repr(qd.Verdict(None, "not decided"))
    assert repr(qd.Verdict(True, "r" * 80)) == (
        f"Verdict(compatible=True, reason='{'r' * 69}...', status='compatible')"
    )


class Anything(Record):
    value: object
    hidden: object = None


def test_values_of_all_kinds():
    vectors = np.arange(8.0), np.arange(6.0).reshape(2, 3) > 2, np.float64(0.25)
    shown = [repr(Anything(vector)) for vector in vectors]
    assert shown == [
        "Anything(value=<8 numbers>)",
        "Anything(value=<2 x 3 booleans>)",
        "Anything(value=0.25)",
    ]
    assert repr(Anything(jnp.array([0.5, 1 / 3]))) == "Anything(value=[0.5, 0.333333])"
    assert repr(Anything([*range(9)])) == "Anything(value=[0, 1, 2, 3, ... 9])"
    assert repr(Anything({"a": P})) == "Anything(value=<a>)"
    assert Anything(np.nan) == Anything(jnp.array(np.nan))
    assert Anything([1, (2, P)]) == Anything((1, [2, jnp.asarray(P)]))
    assert Anything({"a": P}) == Anything({"a": P.copy()})
    for one, other in [
        ({"a": P}, {"b": P}),
        (P, P[:5]),
        (P, None),
        (None, P),
        (P, "word"),
        ("word", 1.5),
        ((1, 2), (1, 2, 3)),
        (qd.KernelPair(np.eye(2)), qd.KernelPair(2 * np.eye(2))),
        (qd.LL_SE, qd.LL_NRR),
    ]:
        assert Anything(one) != Anything(other)
    assert Anything(qd.KernelPair(np.eye(2))) == Anything(qd.KernelPair(np.eye(2)))
    assert replace(Anything(1), value=2) == Anything(2)


def test_json_of_values_that_json_lacks():
    values = [np.inf, -np.inf, np.nan, np.float32(0.5), np.int64(3), np.bool_(True)]
    assert plain(values) == [None, None, None, 0.5, 3, True]
    assert plain({1: (jnp.array([1, 2]), "é")}) == {"1": [[1, 2], "é"]}
    assert plain(qd.LL_SE) == "LL-SE"
    assert plain(Anything(Anything(1))) == {
        "value": {"value": 1, "hidden": None},
        "hidden": None,
    }


def test_a_traced_record_can_be_shown_and_compared():
    seen = []

    def diversity(w):
        optimum = qd.pareto_optimum(qd.LL_SE, P[:4] / P[:4].sum(), w)
        seen.append((repr(optimum), optimum == optimum, optimum == copy.copy(optimum)))
        seen.append(optimum == replace(optimum, q=optimum.q + 0))
        return optimum

    weights = jnp.array([-1.0, -2.0])
    batch = jax.jit(jax.vmap(diversity))(weights)
    assert seen[0][1:] == (True, True)
    assert seen[1] is False
    assert "q=<4 numbers>" in seen[0][0]
    assert "quality=<1 numbers>" in seen[0][0]
    assert batch == jax.vmap(diversity)(weights)
    assert len(jax.tree.leaves(batch)) == len(fields(batch))
    assert repr(Anything(jax.ShapeDtypeStruct((), float))) == (
        "Anything(value=<1 numbers>)"
    )


def test_public_results_are_records():
    # Texts, functions and pairs are what results are of.
    kept = {"TextSpace", "Tsallis", "Expression", "Corpus", "NgramCounts"}
    kept |= {"References", "NoiseFamily"}
    others = {
        name
        for room in (qd, text)
        for name in dir(room)
        if isinstance(found := getattr(room, name), type)
        and is_dataclass(found)
        and not issubclass(found, Record)
        and not name.endswith("Pair")
    }
    assert others - kept == set()
