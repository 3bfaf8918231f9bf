"""A folder with metrics of one's own, and distributions good and bad."""

import sys
from pathlib import Path

import numpy as np
import pytest

METRICS = """
import jax, jax.numpy as jnp, numpy as np

def quality(q, p):
    return jnp.log(p) @ q

def diversity(q):
    return -(q @ q)

def numpy_only(q):
    return -np.sum(np.square(q))

def broken(q):
    raise RuntimeError("first line\\nsecond line")

def vector(q):
    return q

def number_of_texts(q):
    return q.size

def uniform_only(q):
    if not isinstance(q, jax.core.Tracer) and q[0] != q[1]:
        raise KeyError("uniform")
    return -(q @ q)

not_a_function = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("my_metrics.py").write_text(METRICS)
    Path("my_exit.py").write_text("raise SystemExit('stop')")
    Path("my_syntax.py").write_text("def f(:")
    Path("p.txt").write_text("0.1\n0.2\n0.3\n0.4\n")
    Path("word.txt").write_text("0.5\nhalf\n")
    Path("weights.txt").write_text("1\n2\n")
    Path("zero.txt").write_text("0.5\n0.5\n0\n")
    Path("empty.txt").touch()
    Path("latin.txt").write_bytes(b"0.5 \xff")
    np.save("p.npy", np.full(9, 1 / 9))
    np.save("single.npy", np.array([0.5, 0.3, 0.2], dtype=np.float32))
    np.save("pickled.npy", np.array([None, 1]), allow_pickle=True)
    np.save("words.npy", np.array(["a", "b"]))
    np.save("square.npy", np.eye(2))
    Path("wide.txt").write_text("0.5\n0.5", "utf-16")
    Path("marked.txt").write_text("0.1\n0.2\n0.3\n0.4\n", "utf-8-sig")
    np.save("quarters.npy", np.full(4, 0.25, dtype=np.float32))
    Path("bad.npy").write_bytes(b"no array")
    yield tmp_path
    for module in ("my_metrics", "my_exit", "my_syntax"):
        sys.modules.pop(module, None)
