"""Exact quality-diversity theory for text generators.

The names here compute over every text of a tiny space, `qdtheory.text` has metrics of
the same names over corpora.

The public names and their modules stand in `__init__.pyi`; a module is imported when
one of its names is first used.
"""

import lazy_loader

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name != "__version__":
        return _public(name)
    # Late: it takes longer than the rest, and until `main` runs Ctrl-C is not heard.
    from importlib.metadata import version

    return version(__name__)
