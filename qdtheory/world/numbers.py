"""Constants and field options that every room uses."""

import numpy as np

STATIC = {"static": True}
EPS = float(np.finfo(float).eps)
