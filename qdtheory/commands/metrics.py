"""The command metrics: what is known of each metric, and what to print beside it."""

from typing import Annotated, Any

import typer

from qdtheory.commands.errors import fail
from qdtheory.commands.inputs import AsJson
from qdtheory.commands.outputs import print_json, print_rows


def metrics(
    name: Annotated[
        str | None, typer.Argument(help="One metric, by any of its names.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What is known of a metric that you report, and what belongs beside it?

    For each metric the table says if it has a partner, with which no model can beat
    the real distribution in both, always or under conditions, and what to print
    beside it. With a name it says all that is known: when and why, formula, form,
    estimator, the functions that compute it and the claims that show it.

    Example: qdtheory metrics Vendi
    """
    from qdtheory.metrics.catalogue import METRICS, find_metric

    if name is None:
        if as_json:
            print_json({"metrics": [_facts(metric) for metric in METRICS]})
        else:
            titles = "you report", "kind", "status", "partner", "what to print"
            rows = [(x.name, x.kind, x.status, x.partner, x.beside) for x in METRICS]
            print_rows(titles, rows)
        return
    try:
        metric = find_metric(name)
    except ValueError as error:
        fail(f"{error}; `qdtheory metrics` lists all")
    facts = _facts(metric)
    if as_json:
        print_json(facts)
        return
    print(f"{metric.name} ({metric.kind}). {metric.verdict}")
    print(metric.beside)
    for title in list(facts)[2:]:
        shown = facts[title]
        if title not in ("status", "verdict", "beside") and shown:
            shown = shown if isinstance(shown, str) else ", ".join(shown)
            print(f"  {title.replace('_', ' '):11}  {shown}")


def _facts(metric: Any) -> dict[str, Any]:
    return vars(metric) | {"claims": metric.claims}
