"""A bar after two seconds, on a terminal alone."""

import io
import sys

import pytest

from qdtheory.support import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_progress_shows_after_two_seconds_on_a_terminal(monkeypatch, stream):
    class Elapsed:
        """A timer whose time has come as soon as it starts."""

        def __init__(self, delay, function):
            assert delay == 2.0
            self.start = function

        def cancel(self):
            pass

    monkeypatch.setattr(progress, "Timer", Elapsed)
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setenv("TERM", "xterm")
    with progress.progress(2) as step:
        step("Counting sheep")
    assert ("Counting sheep" in sys.stderr.getvalue()) == (stream is Terminal)


def test_quick_work_shows_no_progress(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.progress(2) as step:
        step("Counting sheep")
    assert sys.stderr.getvalue() == ""
