"""What commands print on standard output: JSON and tables."""

import json
from typing import Any


def print_json(report: dict[str, Any]) -> None:
    """Print a report as JSON, which knows no arrays and no infinity."""
    text = json.dumps(report, default=lambda array: array.tolist())
    plain = json.loads(text, parse_constant=lambda _: None)
    print(json.dumps(plain, indent=2))


def print_table(table: Any) -> None:
    """Print a table of rich in full, beyond the terminal's width if need be.

    Rich would cut what does not fit, and with it the exponent of a number.
    """
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(highlight=False)
    unbounded = console.options.update(max_width=10_000)
    natural = Measurement.get(console, unbounded, table).maximum
    console.width = max(console.width, natural)
    console.print(table)
