"""Texts, distributions over them and the models that give them: no metric yet."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
