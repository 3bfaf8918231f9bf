"""What the benchmarks share: clocks, peak memory, captions, a process for each case."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CAPTIONS = Path(os.environ.get("QDTHEORY_DATA", ""), "coco60", "train.txt")
TIMERS = {
    signal.ITIMER_REAL: signal.SIGALRM,
    signal.ITIMER_VIRTUAL: signal.SIGVTALRM,
}


def seconds(
    function: Callable, *arguments, clock: Callable = time.perf_counter, **options
) -> tuple[Any, Any]:
    """How long a call takes, and its value."""
    start = clock()
    value = function(*arguments, **options)
    if "jax" in sys.modules:  # which returns before it is done
        sys.modules["jax"].block_until_ready(value)
    return clock() - start, value


def least(
    function: Callable, *arguments, rounds: int, clock: Callable = time.process_time
) -> tuple[float, Any]:
    """The time of the fastest of some calls, and its value."""
    runs = [seconds(function, *arguments, clock=clock) for _ in range(rounds)]
    return min(runs, key=lambda run: run[0])


def peak(who: int = resource.RUSAGE_SELF) -> float:
    """The most memory that the process has taken so far, in MB."""
    return resource.getrusage(who).ru_maxrss / 1024


@contextmanager
def at_most(limit: float, timer: int) -> Iterator[None]:
    """Raise TimeoutError after so many seconds of the clock or of this process."""
    number = TIMERS[timer]

    def hang(*_: object) -> None:
        raise TimeoutError(f"no answer within {limit:g} s")

    before = signal.signal(number, hang)
    signal.setitimer(timer, limit)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)


def captions(first: int = 0, last: int | None = None) -> list[str]:
    """Some of COCO's captions."""
    if "QDTHEORY_DATA" not in os.environ:
        sys.exit("QDTHEORY_DATA does not name a folder with coco60/train.txt")
    return CAPTIONS.read_text(encoding="utf-8").splitlines()[first:last]


def run(cases: Mapping[str, Callable[[], None]]) -> None:
    """Run the case that the command line names, or all.

    Each of all runs in a process of its own, so that it has its own peak memory.
    """
    if len(sys.argv) > 1:
        cases[sys.argv[1]]()
        return
    for case in cases:
        subprocess.run([sys.executable, sys.argv[0], case], check=True)
