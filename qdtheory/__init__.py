"""Exact quality-diversity theory for text generators.

Two wings share one vocabulary: the exact wing computes over every text of a tiny
space (this namespace), the sample wing over corpora (`qdtheory.text`).

The public names and their modules stand in `__init__.pyi`; a module is imported when
one of its names is first used.
"""

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("qdtheory")
