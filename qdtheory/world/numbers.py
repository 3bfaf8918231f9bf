"""Constants and field options that every room uses."""

import numpy as np

STATIC = {"static": True}
EPS = float(np.finfo(float).eps)
# Smallest normal number: stands for 0 where a function or its slope is undefined there.
TINY = float(np.finfo(float).tiny)
# Rounding error of a sum of a few terms, relative to the sum of absolute values.
NOISE = 8 * EPS
