"""Checks of settings: the ends of ranges, and what is said beyond them."""

import math
from typing import Literal

import numpy as np
import pytest
from refusals import refused

from qdtheory.text.checks import require_choice, require_positive, require_whole


def test_ends_of_whole_numbers_belong_to_the_range_and_none_if_it_may():
    for value in (2, 5, np.int8(3)):
        require_whole("k", value, 2, 5)
    require_whole("k", None, 2, 5, optional=True)
    refused(
        ("k: expected a whole number from 1 on, got 0", require_whole, "k", 0),
        ("from 2 to 5, of six, got 6", require_whole, "k", 6, 2, 5, ", of six"),
        ("got 2.5", require_whole, "k", 2.5),
        ("got None", require_whole, "k", None),
    )
    with pytest.raises(ValueError, match="from 1 on, or None, got 0"):
        require_whole("k", 0, optional=True)


def test_ends_of_positive_numbers_do_not_belong_to_the_range():
    require_positive("x", 1e9)
    require_positive("x", np.float32(0.5), below=1)
    refused(
        ("x: expected a positive number, got 0", require_positive, "x", 0),
        ("x: expected a positive number, got inf", require_positive, "x", math.inf),
        ("a number between 0 and 1, got 1", require_positive, "x", 1, 1),
        ("a number between 0 and 1, got nan", require_positive, "x", math.nan, 1),
        ("got '0.5'", require_positive, "x", "0.5"),
    )


def test_choices_are_the_words_of_a_literal():
    require_choice("c", "b", Literal["a", "b"])
    words = 'c: expected "a", "b" or "d", got None'
    refused((words, require_choice, "c", None, Literal["a", "b", "d"]))
