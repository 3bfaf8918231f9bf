"""Metrics of corpora: sample estimates of what the exact wing computes on a space.

The public names and their modules stand in `__init__.pyi`; language models and
embeddings need JAX, and import it when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
