"""A limit to the time that symbolic work may take."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds, after which bisection in ball arithmetic decides instead.
SYMBOLIC = 10.0


class _Late(BaseException):
    """Raised inside the work, past handlers of `Exception`."""


@contextmanager
def time_limit(seconds: float = SYMBOLIC) -> Iterator[None]:
    """Stop work in Python after so many seconds."""
    thread = ctypes.c_ulong(threading.get_ident())
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    guard, working = threading.Lock(), True

    def stop() -> None:
        with guard:
            if working:
                raise_in(thread, ctypes.py_object(_Late))

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        try:
            yield
        finally:
            with guard:
                working = False
            timer.cancel()
    except _Late:
        raise TimeoutError(f"stopped after {seconds:g} seconds") from None
