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
    """Choose the number of parts for a cluster.

    Args:
        client: a `distributed.Client`.

    Returns:
        Two for each thread of its workers.

    Raises:
        ModuleNotFoundError: distributed is missing.
        TypeError: the client is something else.
        ValueError: the cluster has no worker.
    """
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

    Args:
        client: a `distributed.Client`.
        candidates: as in `partial_sums`, and so are the texts and the settings.
        references: real text.
        max_order: highest order of the n-grams.
        averaged: whether counts are divided by the n-grams of their sentence.
        num_parts: how many parts there are; None: two for each thread.
        step: called with a description after each part.

    Returns:
        The sums of all parts.

    Raises:
        ModuleNotFoundError: see `num_parts_on`, and so is TypeError.
        ValueError: see `partial_sums` and `num_parts_on`.
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
