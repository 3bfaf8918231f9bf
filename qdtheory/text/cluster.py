"""Partial sums by the workers of a Dask cluster, or of two processes on one machine."""

from collections.abc import Callable, Mapping
from typing import Any

from qdtheory.text.corpus import Corpus
from qdtheory.text.partial_sums import PartialSums, count, merge
from qdtheory.text.sides import sides_of
from qdtheory.world.cluster import num_threads

# More parts than threads, so that no thread waits long for the last part.
PARTS_A_THREAD = 2


def num_parts_on(client: Any) -> int:
    """Choose the number of parts for a cluster."""
    return PARTS_A_THREAD * num_threads(client)


def sums_on(
    client: Any,
    candidates: Mapping[str, Corpus],
    references: Corpus,
    max_order: int,
    averaged: bool = False,
    num_parts: int | None = None,
    step: Callable[[str], None] = lambda text: None,
) -> PartialSums:
    """Add up all parts of the n-grams of texts on a cluster.

    Each worker gets the texts once. Parts are merged as they come; what a worker that
    dies has not handed in is counted again by another.
    """
    most = num_parts_on(client)
    from distributed import as_completed  # pyright: ignore[reportMissingImports]

    size = num_parts or most
    # In a list, or each text would be scattered by itself.
    scattered: Any = client.scatter([sides_of(candidates, references)], broadcast=True)
    (sides,) = scattered
    futures = [
        client.submit(count, sides, max_order, averaged, part, size, pure=False)
        for part in range(size)
    ]
    whole = None
    for future in as_completed(futures):
        part = future.result()
        whole = part if whole is None else merge(whole, part)
        step(f"Counted {len(whole.totals.parts)} of {size} parts")
    assert whole is not None
    return whole
