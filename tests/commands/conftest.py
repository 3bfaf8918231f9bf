"""A folder with metrics of one's own, and distributions."""

import sys
from pathlib import Path

import numpy as np
import pytest

METRICS = """
import jax.numpy as jnp

def quality(q, p):
    return jnp.log(p) @ q

def coverage(q, p):
    return q @ p

def diversity(q):
    return -(q @ q)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("my_metrics.py").write_text(METRICS)
    Path("p.txt").write_text("0.1\n0.2\n0.3\n0.4\n")
    Path("three.txt").write_text("0.6\n0.3\n0.1\n")
    Path("marked.txt").write_text("0.1\n0.2\n0.3\n0.4\n", "utf-8-sig")
    np.save("p.npy", np.full(9, 1 / 9))
    np.save("quarters.npy", np.full(4, 0.25, dtype=np.float32))
    yield tmp_path
    sys.modules.pop("my_metrics", None)
