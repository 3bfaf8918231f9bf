"""A batch is shared out among devices; a process of its own has two."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=2, lengths=3)
PAIR, P = qd.BleuPair(SPACE, 2, 2, 2), [qd.oracle(SPACE, seed) for seed in range(3)]
ON_DEVICES = """
import importlib, json
import jax
from test_devices import P, PAIR

solvers = importlib.import_module("qdtheory.solvers.search")
used, alone = set(), solvers._search_one
def seen(*args):
    found = alone(*args)
    used.update(found.q.devices())
    return found
solvers._search_one = seen
found = solvers.search(PAIR, jax.numpy.stack(P), num_starts=8)
print(json.dumps([len(used), found.gain.tolist(), found.q.tolist()]))
"""


@pytest.mark.slow
def test_two_devices_find_what_one_finds():
    flags = "--xla_force_host_platform_device_count=2"
    run = subprocess.run(
        [sys.executable, "-c", ON_DEVICES],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_ENABLE_X64": "1"},
        cwd=os.path.dirname(__file__),
        capture_output=True,
        text=True,
        check=True,
    )
    expected = qd.solvers.search(PAIR, np.stack(P), num_starts=8)
    devices, gain, q = json.loads(run.stdout)
    assert devices == 2
    # Rounding moves where a search ends, by the square root of what it moves the gain.
    np.testing.assert_allclose(gain, expected.gain, rtol=0, atol=1e-9)
    np.testing.assert_allclose(q, expected.q, rtol=0, atol=1e-5)
    assert min(gain) > 1e-3
