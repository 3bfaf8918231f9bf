"""Training text generators, exactly: what a reward makes of a model.

A model is any pytree with `probabilities(space)`, such as `LSTMLanguageModel` or the
tables of this room. The public names and their modules stand in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
