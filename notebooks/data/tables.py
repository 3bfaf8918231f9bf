"""What scripts and notebooks share: the corpora's folder and the form of a table.

Lines of provenance begin with "# "; the header and the rows follow.
"""

import argparse
import csv
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any


def corpora() -> Path:
    """The folder that QDTHEORY_DATA names."""
    folder = os.environ.get("QDTHEORY_DATA")
    if not folder:
        sys.exit("set QDTHEORY_DATA to the folder of the corpora, see the docstring")
    return Path(folder)


def versions(*packages: str) -> str:
    """Of qdtheory and other packages, as in "qdtheory 0.1.0, numpy 2.4.6"."""
    return ", ".join(f"{name} {version(name)}" for name in ("qdtheory", *packages))


def read(name: str) -> list[dict[str, str]]:
    """The rows of a table beside this file, as text; none if it is not there yet."""
    path = Path(__file__).parent.joinpath(name)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def provenance(name: str) -> list[str]:
    """The lines of a table that say how it was made."""
    text = Path(__file__).parent.joinpath(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith("#")]


def cells(row: Iterable, digits: int = 6) -> list:
    """A row as it is written."""
    return [f"{x:.{digits}g}" if isinstance(x, float) else x for x in row]


def part(
    path: Path, settings: str, rows: Callable[[], Iterable[Iterable]]
) -> list[list[str]]:
    """Rows of a table from a file of their own, made if it is not there.

    The file appears whole, so that a run that is killed loses the part under way only,
    and another takes up where it stands. Floats have five digits. The first line is the
    settings; a file with other ones ends the run.
    """
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([settings])
            writer.writerows(cells(row, 5) for row in rows())
        os.replace(unfinished, path)
    with path.open(encoding="utf-8", newline="") as file:
        (found,), *table = csv.reader(file)
    if found != settings:
        sys.exit(f"{path} was made with {found}; this script has {settings}")
    return table


def arguments(description: str) -> argparse.ArgumentParser:
    """Those of a script whose problems may go to a cluster."""
    found = argparse.ArgumentParser(description=description.splitlines()[0])
    found.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a Dask cluster to use, or a number of processes to start here",
    )
    return found


def solved(
    solve: Callable[[Any], Any], problems: Sequence[Any], scheduler: str | None
) -> Iterator[tuple[int, Any]]:
    """Place and result of each problem, as they come; `solve` is of a module here.

    A script hence calls its `main` by its own name, not as `__main__`.
    """
    # Only what needs them imports the library and Dask.
    from qdtheory.text.cluster import connected

    with ExitStack() as stack:
        client = None
        if scheduler is not None:
            place = int(scheduler) if scheduler.isdecimal() else scheduler
            try:
                client = stack.enter_context(connected(place))
            except (ModuleNotFoundError, ConnectionError) as error:
                sys.exit(f"--scheduler: {error}")
            for path in sorted(Path(__file__).parent.glob("*.py")):
                client.upload_file(str(path), load=False)
        start = time.perf_counter()
        try:
            for place, result in as_solved(solve, problems, client=client):
                taken = time.perf_counter() - start
                print(f"{taken:6.0f} s  {problems[place]}", file=sys.stderr)
                yield place, result
        except ValueError as error:
            if not str(error).startswith("client: "):
                raise
            sys.exit(f"--scheduler: {error}")


def as_solved(
    solve: Callable[[Any], Any], problems: Iterable[Any], client: Any
) -> Iterator[tuple[int, Any]]:
    """Place and result of each problem: in turn, or as a cluster's workers give them.

    What a worker that dies had in hand is solved again by another. Problems, results
    and `solve` are sent as pickles.
    """
    if client is None:
        yield from enumerate(map(solve, problems))
        return
    from distributed import as_completed

    from qdtheory.text.cluster import num_threads

    num_threads(client)
    # Not pure: equal problems are solved as often as they are asked for.
    futures = client.map(solve, list(problems), pure=False)
    places = {future.key: place for place, future in enumerate(futures)}
    waiting = as_completed(futures)
    # A future that is no longer held lets its worker forget the result.
    del futures
    for future in waiting:
        yield places[future.key], future.result()


def complete(
    name: str,
    comments: Sequence[str],
    columns: Sequence[str],
    problems: Mapping[tuple[str, ...], Any],
    solve: Callable[[Any], Sequence],
    scheduler: str | None,
) -> None:
    """Add the rows that a table lacks, and write it anew after each.

    Args:
        name: of the table.
        comments: as in `write`, and so are the columns.
        columns: those of the key, then those that are solved for.
        problems: by the key of each row, as text, in the order of the table.
        solve: the rest of the row, from a problem.
        scheduler: see `solved`.
    """
    size = len(next(iter(problems)))
    known: dict[tuple[str, ...], Sequence] = {
        tuple(row.values())[:size]: tuple(row.values())[size:] for row in read(name)
    }
    missing = [key for key in problems if key not in known]
    of_missing = [problems[key] for key in missing]
    for place, rest in solved(solve, of_missing, scheduler):
        known[missing[place]] = rest
        rows = ((*key, *known[key]) for key in problems if key in known)
        write(name, comments, columns, rows)


def in_parts(
    description: str,
    name: str,
    columns: Sequence[str],
    settings: str,
    packages: Sequence[str],
    rows: Callable[[int], list],
    num_oracles: int,
) -> None:
    """The command of a table whose oracles each have a part in a folder.

    A run that is killed loses the oracles under way only, and another takes up where it
    stands.

    Args:
        description: of the script.
        name: of the table, without ".csv", and of the parts.
        columns: of the table.
        settings: see `part`.
        packages: see `versions`.
        rows: those of an oracle.
        num_oracles: unless the user asks for another number.
    """
    parser = arguments(description)
    parser.add_argument("folder", type=Path, help="where the parts lie")
    parser.add_argument("--oracles", type=int, default=num_oracles)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    paths = [options.folder / f"{name}_{k:03}.csv" for k in range(options.oracles)]
    missing = [oracle for oracle, path in enumerate(paths) if not path.exists()]
    for oracle in set(range(options.oracles)) - set(missing):
        part(paths[oracle], settings, list)  # ends the run if it is of another
    for place, found in solved(rows, missing, options.scheduler):
        part(paths[missing[place]], settings, lambda: found)  # noqa: B023
    table = [row for path in paths for row in part(path, settings, list)]
    comments = [
        f"python notebooks/data/make_{name}.py FOLDER",
        f"{versions(*packages)}; {settings}",
    ]
    write(f"{name}.csv", comments, columns, table)


def write(
    name: str,
    comments: Iterable[str],
    columns: Sequence[str],
    rows: Iterable[Iterable],
) -> None:
    """Write a table beside this file, in one go; floats with six digits, None empty."""
    text = io.StringIO(newline="")
    text.writelines(f"# {comment}\n" for comment in comments)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        found = cells(row)
        if len(found) != len(columns):
            raise ValueError(f"{name}: expected {len(columns)} cells, got {found}")
        writer.writerow(found)
    path = Path(__file__).parent.joinpath(name)
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
