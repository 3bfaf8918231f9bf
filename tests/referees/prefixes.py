"""What follows a prefix, by summing over texts."""

import numpy as np


def masses_after(space, q, prefix):
    """The mass of q on each next token after a prefix; the end of the text is last."""
    after = (space.tokens[:, : len(prefix)] == prefix).all(axis=1)
    token = space.tokens[after, len(prefix)] % (space.vocab_size + 1)  # -1 is the end
    return np.bincount(token, np.asarray(q)[after], space.vocab_size + 1)
