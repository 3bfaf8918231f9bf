"""The tables of metrics.md, made from the library's catalogue of metrics."""

import re

from api_page import defined_at
from coverage_page import links, table

from qdtheory.catalogue.metrics import METRICS

KINDS = ("quality", "diversity", "both in one", "divergence")
TITLES = (
    "Metric",
    "Formula and form",
    "Partner and verdict",
    "From samples",
    "Beside it",
)


def code(text):
    """Names between backquotes; a star or underscore elsewhere means itself."""
    return re.sub(r"(?<!`)([*_])(?!`)", r"\\\1", text) if "`" not in text else text


def link(typed):
    """A function as it is typed, linked to where the reference documents it."""
    _, *module, name = typed.split(".")
    place = ".".join(["qdtheory", *module]) if module else defined_at()[name]
    return f"{{py:obj}}`{typed} <{place}.{name}>`"


def cells(metric):
    """The row of one metric."""
    names = f"<br>{', '.join(map(code, metric.other_names))}" * bool(metric.other_names)
    linked = *map(link, metric.functions), *(f"`{x}`" for x in metric.in_lab)
    functions = ", ".join(linked)
    return (
        f"**{code(metric.name)}**{names}",
        f"`{metric.formula}`<br>{metric.form}",
        f"{code(metric.partner)}<br>{code(metric.verdict)}",
        f"{metric.estimator}<br>{functions}",
        f"{code(metric.beside)}<br>{links(';'.join(metric.claims))}",
    )


def texts():
    """One table for each kind of metric, under the name of its place."""
    return {
        kind: table(
            TITLES,
            "16 22 22 20 20",
            (cells(metric) for metric in METRICS if metric.kind == kind),
        )
        for kind in KINDS
    }
