"""Lecture 20."""

from typing import Any

import numpy as np

import qdtheory as qd
from qdtheory.course.answers.common import Truth
from qdtheory.course.grading import Fault, as_numbers, require


def is_pair_of_two_rewards(answer: Any) -> Truth:
    """A formula of D that is a pair, rewards 1/2 with 1 and e / (1 + e) with 3."""
    readable = isinstance(answer, str) or callable(answer)
    require(readable, 'expected a formula of D as text, like "log(D)", or a function')
    try:
        given = answer if callable(answer) else qd.generators.given_reward(answer)
    except (TypeError, ValueError) as error:
        raise Fault(str(error)) from None
    rho: Any = getattr(given, "of_discriminator", given)
    d = np.append([0.5, np.e / (1 + np.e)], np.linspace(0.05, 0.95, 7))
    rewards = np.array([float(as_numbers(rho(x))) for x in d])
    for name, value, expected in zip((".5", ".731"), rewards, (1, 3), strict=False):
        near = np.abs(value - expected) <= 1e-9
        require(near, f"{value:.4g} at D = {name}, expected {expected}")
    # The only pairs are lines in the logit (N20.6), and two values fix a line.
    is_pair = np.allclose(rewards, 1 + 2 * np.log(d / (1 - d)), rtol=0, atol=1e-9)
    require(is_pair, "right at both values, but the objective is no pair (N20.6)")
    return True
