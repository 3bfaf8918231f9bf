"""What every folder counts on: the machine's EPS, and fields that JAX leaves alone."""

from dataclasses import dataclass, field

import jax
import numpy as np
import pytest

from qdtheory.support.numbers import EPS, STATIC, one_of, within


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


@pytest.mark.parametrize(
    ("ends", "high", "inside", "outside", "words"),
    [
        ("[]", 1, (0, 0.5, 1), (-1e-9, 1.1), r"must lie in \[0, 1\], got"),
        ("()", 1, (0.5,), (0, 1), r"must lie in \(0, 1\), got"),
        ("(]", 2, (2, 1e-300), (0, 2.1), r"must lie in \(0, 2\], got"),
        (
            "()",
            np.inf,
            (1e-300, 1e300),
            (0, np.inf),
            "must be positive and finite, got",
        ),
        ("[]", np.inf, (0, 1e300), (-1, np.inf), "must be finite and at least 0, got"),
    ],
)
def test_within_says_the_name_the_range_and_what_came(
    ends, high, inside, outside, words
):
    for number in inside:
        within(share=number, low=0, high=high, ends=ends)
    for number in (*outside, np.nan, -np.inf):
        with pytest.raises(ValueError, match=f"^share {words} {number}$"):
            within(other=0.5, share=number, low=0, high=high, ends=ends)
    jax.jit(lambda x: within(x=x, low=0, high=high, ends=ends))(5.0)


def test_one_of_names_all_choices():
    one_of({"sgd": 1, "adam": 2}, optimizer="adam")
    with pytest.raises(ValueError, match=r"^way must be one of up, down, got 'left'$"):
        one_of(("up", "down"), other="up", way="left")


def test_within_any_low_end():
    with pytest.raises(ValueError, match="size must be finite and at least 2, got 1"):
        within(size=1, low=2)
    with pytest.raises(ValueError, match="size must be finite and above 2, got 2"):
        within(size=2, low=2, ends="()")
