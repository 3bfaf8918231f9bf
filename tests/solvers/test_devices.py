"""Rows on two devices have the results of one; a process of its own has two."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.solvers.devices import over_devices

# Seven oracles on two devices: one shard is filled up.
ON_DEVICES = """
import json, sys
import jax
import jax.numpy as jnp
import numpy as np
import qdtheory as qd
from qdtheory.solvers.devices import over_devices

space = qd.TextSpace(vocab_size=2, lengths=3)
p = np.stack([qd.oracle(space, seed) for seed in range(7)])
found = qd.solvers.search(qd.BleuPair(space, 2, 2, 2), p, num_starts=8)
optimum = over_devices(lambda p, w: qd.pareto_optimum(qd.CR_NRR, p, w).q, p, -0.5)
spread = len(optimum.sharding.device_set)
numbers = found.gain, optimum, found.q
print(json.dumps([jax.device_count(), spread, *(x.tolist() for x in numbers)]))
"""


def on_devices(number):
    """What a process finds that has so many devices."""
    flag = f"--xla_force_host_platform_device_count={number}"
    flags = f"{os.environ.get('XLA_FLAGS', '')} {flag}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_ENABLE_X64": "1"}
    run = subprocess.run(
        [sys.executable, "-c", ON_DEVICES],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


@pytest.mark.slow
def test_two_devices_find_what_one_finds():
    (one, alone, *expected), (two, both, *found) = map(on_devices, (1, 2))
    assert (one, alone, two, both) == (1, 1, 2, 2)
    # The same steps, compiled for another layout. Rounding moves where a search ends,
    # by the square root of what it moves the gain.
    for ours, theirs, tolerance in zip(found, expected, (1e-9, 1e-12, 1e-5)):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)
    assert min(found[0]) > 1e-3


def test_rows_are_those_of_the_function_alone():
    p = np.random.default_rng(0).dirichlet(np.ones(5), 3)
    found = over_devices(lambda p, q: qd.kl_divergence(p, q), p, p[0])
    expected = [float(qd.kl_divergence(row, p[0])) for row in p]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_trees_go_in_and_come_out():
    keys = jax.random.split(jax.random.key(0), 3)
    batch = {"key": keys, "scale": jnp.arange(3.0)}

    def draw(row):
        return row["scale"] * jax.random.normal(row["key"]), row["key"]

    drawn, again = over_devices(draw, batch)
    expected = [k * float(jax.random.normal(key)) for k, key in enumerate(keys)]
    np.testing.assert_allclose(drawn, expected, rtol=1e-12)
    assert (jax.random.key_data(again) == jax.random.key_data(keys)).all()


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("batch", [np.ones((0, 2)), (np.ones(2), np.ones(3)), ()])
def test_batches_of_no_length_are_refused(batch):
    with pytest.raises(ValueError, match="one and the same number of rows"):
        over_devices(jnp.sum, batch)
