"""Metrics of corpora: sample estimates of what `qdtheory` computes on a space.

The public names and their modules stand in `__init__.pyi`; none of them needs JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
