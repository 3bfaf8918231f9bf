"""What every room counts on: the machine's EPS, and fields that JAX leaves alone."""

from dataclasses import dataclass, field

import jax
import numpy as np

from qdtheory.world.numbers import EPS, STATIC


def test_eps_is_the_distance_from_1_to_the_next_number():
    assert np.nextafter(1.0, 2.0) == 1 + EPS


def test_a_static_field_is_no_leaf():
    @jax.tree_util.register_dataclass
    @dataclass
    class Named:
        value: float
        name: str = field(metadata=STATIC)

    doubled = jax.tree.map(lambda x: 2 * x, Named(1.5, "a"))
    assert (doubled.value, doubled.name) == (3.0, "a")
