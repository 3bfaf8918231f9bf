"""Each status that a program reads has a row in docs/numerics.md, and an example."""

import importlib
import json
import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Literal, Union, get_args, get_origin

import numpy as np
import pytest
from api_page import public

import qdtheory as qd
from qdtheory.catalogue.metrics import Metric, find_metric
from qdtheory.commands import check
from qdtheory.course.notebooks import VERDICT
from qdtheory.rewards import check_reward
from qdtheory.support.records import Record

NUMERICS = Path(__file__).parents[1] / "docs/numerics.md"
# Fields that repeat what the caller asked for.
ECHOES = {"Metric.kind", "Comparison.paired", "Range.log"}


def documented():
    """The values in each field's rows."""
    text = NUMERICS.read_text("utf-8").split("## Statuses")[1].split("\n## ")[0]
    rows, field = {}, None
    for first, values in re.findall(r"^\| (.*?) ?\| (.+?) \|", text, re.MULTILINE)[1:]:
        field = first or field
        rows.setdefault(field, []).extend(re.findall("`(.+?)`", values))
    return {
        field.replace("`", ""): [json.loads(value) for value in values]
        for field, values in rows.items()
    }


def values_of(kind):
    """The values of a type that has a few only; None for another type."""
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    found = [
        value
        for part in parts
        for value in (
            get_args(part)
            if get_origin(part) is Literal
            else {bool: (True, False), type(None): (None,)}.get(part, ())
        )
    ]
    return found if any(value is not None for value in found) else None


def in_code():
    """The values of each field of a public record, and of the commands' answers."""
    named = [
        getattr(importlib.import_module(module), name)
        for module, names in public().items()
        for name in names
    ]
    records = [x for x in named if isinstance(x, type) and issubclass(x, Record)]
    found = {
        f"{record.__name__}.{part.name}": values
        for record in (*records, Metric)
        for part in fields(record)
        if part.name in record.__annotations__  # not that of another record
        if (values := values_of(part.type)) is not None
    }
    return {name: found[name] for name in found if name not in ECHOES} | {
        "grade, each exercise": [
            *VERDICT.pattern.split("(")[-1][:-1].split("|"),
            "stopped",
        ],
        "check --exit-code": [*check.EXIT_STATUSES.values()],
    }


def test_the_page_lists_the_values_that_there_are():
    listed, there = documented(), in_code()
    assert listed.keys() == there.keys()
    for field, values in there.items():
        assert sorted(map(repr, listed[field])) == sorted(map(repr, values)), field


P, EVEN = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.3, 0.3, 0.2, 0.2])
FUNCTIONS = qd.FunctionPair(qd.LL_NRR.quality, qd.LL_NRR.diversity)
NEAR = np.array([[1, 0.95, 0.95], [0.95, 1, 0.5], [0.95, 0.5, 1.1]])


def verdicts():
    """Verdicts of every status, with other P beaten, not known to be, and not asked."""
    concave = qd.compatible_quality(lambda q: -(q @ q))
    return [
        qd.check("LL-SE"),
        qd.check("LL-NRR"),
        qd.check("BLEU-4 of 1 reference", "Self-BLEU-4 of 1 reference"),
        qd.check("LL-NRR", p=EVEN),
        qd.check("5", "-x**2"),
        qd.check_compatibility(concave, P),
        qd.check_compatibility(qd.KernelPair(NEAR), P[1:] / P[1:].sum()),
    ]


def discrepancies():
    """Results of every status, and of every kind of loss."""
    pair = qd.BleuPair(qd.TextSpace(2, 2), 1, 2, 2)
    p = qd.normalize(np.array([4.0, 3, 2, 1]))
    return [
        qd.quality_discrepancy(qd.LL_NRR, P),
        qd.quality_discrepancy(qd.LL_SE, P),
        qd.quality_discrepancy(qd.LinearPair(np.ones(4), "-x**2"), P),
        qd.quality_discrepancy(qd.VendiPair(np.eye(4)), P),
        qd.quality_discrepancy(pair, p, num_starts=4),
    ]


@cache
def examples(kind):
    """Records that show as many values of their fields as are cheap."""
    return {
        "Verdict": verdicts,
        "KernelCriterion": lambda: [
            qd.kernel_criterion(k) for k in (np.eye(3), NEAR, 1 - np.eye(3))
        ],
        "Rationality": lambda: [
            qd.check_rationality(qd.pairs.single_token_bleu_pair(1, k)) for k in (3, 4)
        ],
        "Bounds": discrepancies,
        "Discrepancy": discrepancies,
        "ParetoFrontier": lambda: [
            qd.pareto_frontier(qd.LL_SE, P, num_points=5),
            qd.search.search_frontier(FUNCTIONS, P, num_points=5),
        ],
        "RewardVerdict": lambda: [
            check_reward(formula)
            for formula in (
                "log(D/(1-D))",
                "D",
                "1",
                "-D",
                "D*(1-D)",
                "(D-0.5)**2 + D/2",
            )
        ],
        "Metric": lambda: [
            find_metric(name) for name in ("LL", "BLEU", "ROUGE-L", "KL", "utility")
        ],
    }[kind]()


# Shown by no formula, kernel or search of a second.
RARE = {
    ("RewardVerdict.rises", None),
    ("RewardVerdict.is_pair", None),
    ("Discrepancy.converged", False),
}


@pytest.mark.parametrize("field", sorted(name for name in in_code() if "." in name))
def test_each_value_has_an_example(field):
    kind, _, name = field.partition(".")
    found = {getattr(record, name) for record in examples(kind)}
    assert {(field, value) for value in documented()[field]} - RARE <= {
        (field, value) for value in found
    }


def beats(pair, q, p):
    """What a model gains over P in quality and diversity."""
    return (
        float(pair.quality(q, p) - pair.quality(p, p)),
        float(pair.diversity(q) - pair.diversity(p)),
    )


def test_a_verdict_keeps_what_its_status_promises():
    words = {True: "compatible", False: "incompatible"}
    for verdict in examples("Verdict"):
        if verdict.compatible is None:
            assert verdict.status in ("not_beaten_at_p", "undecided", "conditional")
        else:
            assert verdict.status == words[verdict.compatible]
            assert verdict.other_p is None
        beaten_somewhere = verdict.status in ("incompatible", "conditional")
        assert (verdict.witness is None) != beaten_somewhere
        if verdict.status == "not_beaten_at_p":
            assert verdict.other_p is not None
    models = np.random.default_rng(0).dirichlet(np.ones(4), 300)
    assert not any(min(beats(qd.LL_NRR, q, EVEN)) > 0 for q in models)
    _, beaten, *_ = examples("Verdict")
    assert min(beats(qd.LL_NRR, beaten.witness.q, beaten.witness.p)) > 0


def test_a_discrepancy_keeps_what_its_status_promises():
    for found in examples("Discrepancy"):
        scores = np.asarray(found.pair.text_quality(found.p))
        width = {"exact": 1e-9, "certified": 1e-5, "lower_bound": np.inf}[found.status]
        slack = width * np.ptp(scores[np.isfinite(scores)]) + 1e-15
        assert found.upper_bound - found.qdisc <= slack
        quality, diversity = beats(found.pair, found.q, found.p)
        if found.dominated_in == "quality":
            assert quality > 0
            assert diversity >= -1e-14
        elif found.dominated_in == "diversity":
            assert diversity > 0
            assert quality >= -1e-14


def test_the_statuses_of_json_are_those_of_the_records():
    for kind in ("Verdict", "Discrepancy", "ParetoFrontier", "RewardVerdict"):
        for record in examples(kind):
            assert json.loads(record.to_json())["status"] == record.status
