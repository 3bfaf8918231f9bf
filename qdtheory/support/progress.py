"""A bar for work that takes longer than two seconds."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer


@contextmanager
def progress(total: int | None) -> Iterator[Callable[[str], None]]:
    """Yield a function that advances a bar, drawn on a terminal after two seconds."""
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    # The time goes on while a step takes long, as reading gigabytes does.
    columns = *Progress.get_default_columns()[:3], TimeElapsedColumn()
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=total)
    timer = Timer(2.0, bar.start)
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield lambda text: bar.update(task, advance=1, description=text)
    finally:
        timer.cancel()
        if bar.live.is_started:
            bar.stop()
