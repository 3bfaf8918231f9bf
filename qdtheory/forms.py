"""What a verdict, a solver or a bound needs of a pair: its form, and its problem at P.

A `Form` says what is known of a pair at every P, a `Problem` has its numbers at one.
Both are made in `pairs`: nothing else need know what classes of pairs there are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from qdtheory.support.numbers import EPS, PerText, Scalar, TextVector

# A scalar of a distribution, such as V.
Functional = Callable[[Any], Array]


# --- Scores ---------------------------------------------------------------------------
def given_scores(scores: ArrayLike | Sequence[int | float]) -> np.ndarray:
    """Check scores given as numbers, shape (N,), finite or minus infinity."""
    try:
        if np.iscomplexobj(scores):  # of which NumPy would take the real part
            raise TypeError
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


# --- A pair at every P ----------------------------------------------------------------
@dataclass(frozen=True)
class Form:
    """Any pair, with functions of it that check nothing.

    Attributes:
        pair: the pair as it was given.
        scores: of P, the score of each text, of which U is the mean under Q, if U is
            linear in Q (else a call raises); f(P_i) if there is an f.
        quality: U, of Q and P; None where it is computed from the scores.
        diversity: V, of Q; the sum of g(Q_i) if there is a g.
        f: the `Function` of a separable quality, or None.
        g: the `Function` of a separable diversity, or None.
        num_texts: N, if the pair is of one number of texts.
        score_error: of P, the error of a score in 64 bits, with a kernel, a table or a
            user's function taken as exact.
        code: names of what is a user's Python function; no seal rests on it.
    """

    pair: Any
    scores: Callable
    quality: Any
    diversity: Callable
    f: Any = None
    g: Any = None
    num_texts: int | None = None
    score_error: Callable[[np.ndarray], float] = lambda _: 0.0
    code: tuple[str, ...] = ()


class Separable(Form):
    """A score for each text, f(P_i) if there is an f, and V that sums g(Q_i)."""


class Concave(Form):
    """A score for each text, and V that is concave as the pair states."""


class Vendi(Concave):
    """The log of the Vendi score, with the quality that fits it."""


class Kernel(Form):
    """A similarity of two texts."""


class Bleu(Form):
    """BLEU against Self-BLEU, other than of whole texts, which is separable."""


class Pooled(Form):
    """A separable pair on distributions of n-grams or classes."""


# --- A pair at one P ------------------------------------------------------------------
@dataclass(frozen=True)
class Problem:
    """A pair at one real P: maximise U(Q; P) over models Q with V(Q) >= V(P).

    Made by `pairs.pose`, which checks P. Judges, solvers and bounds take it, or arrays
    of it, and never a pair.

    Attributes:
        form: what is known of the pair.
        p: the real distribution, shape (N,).
    """

    form: Form
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

    def magnitude(self, q: PerText) -> float:
        """The sum of the absolute terms of a gain, of U(Q) and of U(P)."""
        return float(expected_score(self.p + q, np.abs(self.scores)))

    def rounding(self, q: PerText) -> float:
        """Bound on the rounding error of a gain.

        U(Q) and U(P) are sums of N products, and of scores off by `score_error`.
        """
        return 4 * (self.p.size * EPS * self.magnitude(q) + self.score_error)
