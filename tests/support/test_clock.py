"""Work that does not end is stopped, and work that ends is left alone."""

import contextlib
import threading

import pytest

from qdtheory.support.clock import time_limit


def test_endless_work_is_stopped_past_handlers_of_exceptions():
    def endless():
        while True:
            with contextlib.suppress(Exception):  # as a library might do
                sum(range(100))

    with pytest.raises(TimeoutError, match=r"after 0\.05 seconds"), time_limit(0.05):
        endless()


def test_it_stops_the_thread_that_asked():
    caught = []

    def work():
        try:
            with time_limit(0.05):
                while True:
                    pass
        except TimeoutError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert len(caught) == 1


def test_what_ends_in_time_returns_and_raises_as_it_does():
    with time_limit(10.0):
        found = 1 + 1
    assert found == 2
    with pytest.raises(KeyError), time_limit(10.0):
        raise KeyError("x")
