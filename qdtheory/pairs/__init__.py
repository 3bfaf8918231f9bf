"""Pairs of a quality and a diversity, and what is known of their form.

A pair has `quality(q, p)` and `diversity(q)`, which take one distribution per call
and return a scalar; use `jax.vmap` for batches. Pairs whose quality is linear in q
also have `text_quality(p)`, the score of each text, with
`quality = text_quality(p) @ q`. The named qualities f and diversities g combine
freely: `SeparablePair(LL, NRR)`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
