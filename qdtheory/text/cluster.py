"""Partial sums by the workers of a Dask cluster, or of two processes on one machine."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import reduce
from typing import Any

from qdtheory.text.numbered import NumberedText
from qdtheory.text.partial_sums import PartialSums, count, merge
from qdtheory.world.packages import required

# More parts than threads, so that no thread waits long for the last part.
PARTS_A_THREAD = 2
# Of a scheduler to answer.
SECONDS = 10


@contextmanager
def connected(address: str | int) -> Iterator[Any]:
    """Connect to a scheduler's address, or start so many processes of one thread."""
    with required("a cluster", "scale"):
        from distributed import Client, LocalCluster  # pyright: ignore
    with ExitStack() as stack:
        if isinstance(address, int):
            settings: Any = {"threads_per_worker": 1, "dashboard_address": None}
            local = LocalCluster(n_workers=address, **settings)
            scheduler: Any = stack.enter_context(local)
        else:
            scheduler = address
        try:
            client = stack.enter_context(Client(scheduler, timeout=SECONDS))
        except (OSError, ValueError, TypeError) as error:
            said, *_ = str(error).splitlines() or ["no answer"]
            message = f"{address}: {said}; is dask scheduler up?"
            raise ConnectionError(message) from None
        yield client


def num_threads(client: Any) -> int:
    """Count the threads of the workers of a `distributed.Client`."""
    with required("a cluster", "scale"):
        from distributed import Client  # pyright: ignore[reportMissingImports]
    if not isinstance(client, Client):
        raise TypeError(
            f"client: expected a distributed.Client, got {type(client).__name__}"
        )
    of_workers: Any = client.nthreads()
    if not of_workers:
        raise ValueError("client: the cluster has no worker; start one (dask worker)")
    return sum(of_workers.values())


def num_parts_on(client: Any) -> int:
    """Choose how many parts the workers of a `distributed.Client` count."""
    return PARTS_A_THREAD * num_threads(client)


def sums_on(
    client: Any,
    sides: Mapping[str, NumberedText],
    max_order: int,
    averaged: bool,
    num_parts: int,
    step: Callable[[str], None],
) -> PartialSums:
    """Add up all parts on a cluster; those of a worker that dies are counted again."""
    from distributed import as_completed  # pyright: ignore[reportMissingImports]

    # In a list, or each text would be scattered by itself.
    (scattered,) = client.scatter([sides], broadcast=True)
    settings = max_order, averaged
    futures = [
        client.submit(count, scattered, *settings, part, num_parts, pure=False)
        for part in range(num_parts)
    ]

    def counted() -> Iterator[PartialSums]:
        for number, future in enumerate(as_completed(futures), start=1):
            yield future.result()
            step(f"Counted {number} of {num_parts} parts")

    return reduce(merge, counted())
