"""A pair at one real distribution, as the arrays and functions that solvers take.

P is checked once, where the pair is posed (`qdtheory.pairs.forms.pose`). Past it
distributions are arrays that need no further check, and no solver sees the pair.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from qdtheory.formulas.code import Code
from qdtheory.formulas.scalar_functions import ScalarFunction, evaluate
from qdtheory.world.numbers import PerText, Scalar, TextVector

# A scalar of a distribution.
Functional = Callable[[Any], Array]


def given_scores(scores: ArrayLike | Sequence[int | float]) -> np.ndarray:
    """Check scores given as numbers, shape (N,), finite or minus infinity."""
    try:
        values = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            "scores: expected one number a text, or a function of p that gives them, "
            f"got {scores!r:.60}"
        ) from None
    if values.ndim != 1 or not values.size:
        raise ValueError(
            f"scores: expected one number a text, shape (N,), got shape {values.shape}"
        )
    bad = np.flatnonzero(~(values < np.inf))
    if bad.size:
        raise ValueError(
            f"scores: expected numbers or minus infinity, got {values[bad[0]]} for "
            f"text {bad[0]}"
        )
    return values


@jax.jit
def expected_score(q: PerText, scores: PerText) -> Scalar:
    r"""Expected score $\sum_i q_i \phi_i$ with $0 \cdot \infty = 0$, linear in q."""
    q = jnp.asarray(q)
    return (q * jnp.where((q == 0) & jnp.isinf(scores), 0.0, scores)).sum()


def total_diversity(g: ScalarFunction, q: PerText) -> Scalar:
    r"""Separable diversity of a distribution, $\sum_i g(q_i)$."""
    return evaluate(g, q).sum() if isinstance(g, Code) else _total(g, q)


@partial(jax.jit, static_argnums=0)
def _total(g: ScalarFunction, q: PerText) -> Scalar:
    return jax.vmap(g)(q).sum()


@dataclass(frozen=True)
class Posed:
    """The problem that a pair's form poses at one real distribution, checked before."""

    form: Any
    p: TextVector

    @property
    def g(self) -> Any:
        """The function that diversity sums over the texts, if there is one."""
        return self.form.g

    @cached_property
    def scores(self) -> TextVector:
        """Score of each text, finite or minus infinity; U(P) is checked to be finite.

        Not computed in the functions that use them: compiled together, a product and a
        difference may be fused, and `scores.max() - scores` is not 0 at the best text.
        """
        scores = np.asarray(self.form.scores(self.p))
        quality = float(expected_score(self.p, scores))
        if not np.isfinite(quality) or not (scores < np.inf).all():
            raise ValueError(
                f"the quality of P itself must be finite, got {quality:.6g}, and no "
                "score NaN or +inf; the pair's scores are not so at this p"
            )
        return scores

    @cached_property
    def score_error(self) -> float:
        """Error bound of a score in 64 bits; 0 for a function, taken as exact."""
        return self.form.score_error(self.p)

    @cached_property
    def spread(self) -> float:
        """The greatest finite score minus the least, the unit of gains."""
        return float(np.ptp(self.scores[np.isfinite(self.scores)]))

    @cached_property
    def real_quality(self) -> float:
        """U(P; P)."""
        return self.quality(self.p)

    @cached_property
    def real_diversity(self) -> float:
        """V(P), which models have to attain; it is checked to be finite."""
        diversity = self.diversity(self.p)
        if not np.isfinite(diversity):
            raise ValueError(
                f"the diversity of P itself is {diversity}; V(P) must be a finite "
                "number (has g a pole at 0, and P a text of probability 0?)"
            )
        return diversity

    def quality(self, q: PerText) -> float:
        """U(Q; P) of a model."""
        if self.form.quality is None:
            return float(expected_score(q, self.scores))
        return float(self.form.quality(q, self.p))

    def diversity(self, q: PerText) -> float:
        """V(Q) of a model."""
        return float(self.form.diversity(q))

    def gain(self, q: PerText) -> float:
        """U(Q; P) - U(P; P) by the scores; minus infinity if V(Q) < V(P)."""
        if not self.diversity(q) >= self.real_diversity:
            return -np.inf
        return float(expected_score(np.asarray(q) - self.p, self.scores))
