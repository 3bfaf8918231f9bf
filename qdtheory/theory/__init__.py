"""The theorems: frontier, dominance, compatibility and what proves it.

An argument outside of the domain that is documented for it raises a ValueError.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
