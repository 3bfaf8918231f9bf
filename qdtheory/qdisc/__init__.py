"""The discrepancy of a pair at P: QDisc, DRate, and bounds by weak duality."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
