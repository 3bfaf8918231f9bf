"""Functions of distributions: divergences, n-gram metrics, expected BLEU.

What is no distribution of the shape that is documented for it, or is a number out of
its range, raises a ValueError.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
