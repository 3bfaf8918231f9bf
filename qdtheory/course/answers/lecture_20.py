"""Lecture 20."""

from typing import Any

import numpy as np

from qdtheory.course.answers.common import near, require
from qdtheory.course.grading import as_formula, as_numbers


def is_pair_of_two_rewards(answer: Any) -> bool:
    """A formula of D that is a pair, rewards 1/2 with 1 and e / (1 + e) with 3."""
    readable = isinstance(answer, str) or callable(answer)
    require(readable, 'expected a formula of D as text, like "log(D)", or a function')
    rho = answer if callable(answer) else as_formula(answer, "D")
    d = np.array([0.5, np.e / (1 + np.e), *np.linspace(0.05, 0.95, 19)])
    rewards = np.array([float(as_numbers(rho(x))) for x in d])
    falls = np.diff(rewards[2:]) < -1e-12
    why = "falls, at D = {:.6g} for one; a text that looks more real must be worth more"
    rises = callable(answer) or not falls.any()
    require(rises, "the reward {} " + why, answer, d[3:][falls.argmax()])
    near(rewards[:1], 1, "{1:.4g} at D = .5, expected 1")
    near(rewards[1:2], 3, "{1:.4g} at D = .731, expected 3")
    # The only pairs are lines in the logit (N20.6), and two values fix a line.
    why = "right at both values, but the objective is no pair (N20.6)"
    return near(rewards, 1 + 2 * np.log(d / (1 - d)), why)
