"""Independent problems on a Dask cluster, or one after another where there is none."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from qdtheory.world.packages import required

# Of a scheduler to answer.
SECONDS = 10


@contextmanager
def connected(address: str | int) -> Iterator[Any]:
    """Connect to the scheduler of a Dask cluster, or start workers on this machine.

    Args:
        address: of the scheduler, such as "tcp://10.0.0.1:8786"; or the number of
            processes to start here, of one thread each.

    Yields:
        A `distributed.Client`, closed at the end; so are the processes.

    Raises:
        ModuleNotFoundError: distributed is missing.
        ConnectionError: no scheduler answers there within ten seconds.

    Example:
        >>> with connected("nowhere"):  # doctest: +SKIP
        ...     pass
        Traceback (most recent call last):
        ConnectionError: nowhere: no answer; is dask scheduler up?
    """
    with required("a cluster", "scale"):
        from distributed import (  # pyright: ignore[reportMissingImports]
            Client,
            LocalCluster,
        )
    with ExitStack() as stack:
        if isinstance(address, int):
            settings: Any = {"threads_per_worker": 1, "dashboard_address": None}
            local = LocalCluster(n_workers=address, **settings)
            place: Any = stack.enter_context(local)
        else:
            place = address
        try:
            client = stack.enter_context(Client(place, timeout=SECONDS))
        except (OSError, ValueError, TypeError) as error:
            said, *_ = str(error).splitlines() or ["no answer"]
            message = f"{address}: {said}; is dask scheduler up?"
            raise ConnectionError(message) from None
        yield client


def num_threads(client: Any) -> int:
    """Count the threads of a cluster's workers.

    Args:
        client: a `distributed.Client`.

    Returns:
        Their number, at least 1.

    Raises:
        ModuleNotFoundError: distributed is missing.
        TypeError: the client is something else.
        ValueError: the cluster has no worker.
    """
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


def as_solved(
    solve: Callable[[Any], Any], problems: Iterable[Any], *, client: Any = None
) -> Iterator[tuple[int, Any]]:
    """Solve independent problems; yield the place and the result of each.

    With a client, the workers of its cluster solve them, and results come in any order;
    what a worker that dies had in hand is solved again by another. Problems and results
    are sent as pickles, and so is `solve`, which workers import from the module that
    defines it. Without a client, they are solved here in turn.

    Args:
        solve: a function of one problem.
        problems: its arguments, such as real distributions.
        client: a `distributed.Client`.

    Yields:
        The place of a problem among all, and its result.

    Raises:
        ModuleNotFoundError: see `num_threads`, and so are TypeError and ValueError.
        Exception: what `solve` raises; the problems not yet solved are given up.

    Example:
        >>> import numpy as np
        >>> import qdtheory as qd
        >>> from functools import partial
        >>> oracles = np.random.default_rng(0).dirichlet(np.ones(5), 3)
        >>> solve = partial(qd.quality_discrepancy, qd.LL_NRR)
        >>> [(k, f"{found.qdisc:.4f}") for k, found in as_solved(solve, oracles)]
        [(0, '0.0272'), (1, '0.0312'), (2, '0.0265')]
    """
    if client is None:
        for place, problem in enumerate(problems):
            yield place, solve(problem)
        return
    num_threads(client)
    from distributed import as_completed  # pyright: ignore[reportMissingImports]

    # Not pure: equal problems are solved as often as they are asked for.
    futures = client.map(solve, list(problems), pure=False)
    places = {future.key: place for place, future in enumerate(futures)}
    waiting = as_completed(futures)
    # A future that is no longer held lets its worker forget the result.
    del futures
    for future in waiting:
        yield places[future.key], future.result()
