"""The page of metrics has every metric of the catalogue, with links to its claims."""

from pathlib import Path

import metrics_page

from qdtheory.catalogue.metrics import METRICS


def test_every_metric_stands_in_the_table_of_its_kind():
    tables = metrics_page.tables()
    for metric in METRICS:
        rows = tables[metric.kind].split("\n* - ")
        title = f"**{metrics_page.code(metric.name)}**"
        (row,) = (row for row in rows if row.startswith(title))
        for claim in metric.claims:
            assert claim in row
        for typed in (*metric.functions, *metric.in_lab):
            assert f"`{typed}" in row


def test_the_page_has_a_place_for_every_table():
    page = (Path(__file__).parents[1] / "docs/metrics.md").read_text()
    for kind in metrics_page.tables():
        assert f"<!-- {kind} -->" in page
