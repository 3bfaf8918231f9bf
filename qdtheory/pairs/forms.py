"""The form of a pair: what every door asks of it, answered once.

`form_of` alone looks at the class of a pair. A door matches the form and hands arrays
and functions to one judge, one solver or one bound.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from qdtheory.formulas.code import Code
from qdtheory.formulas.posed import Posed, total_diversity
from qdtheory.formulas.scalar_functions import evaluate
from qdtheory.formulas.tracing import require_traceable, require_values
from qdtheory.metrics.bleu import BleuTable, text_bleu
from qdtheory.pairs import base
from qdtheory.pairs.bleu import BleuPair
from qdtheory.pairs.kernel import KernelPair, VendiPair
from qdtheory.pairs.named import named_pair, single_token_bleu_pair
from qdtheory.pairs.pooled import PooledPair
from qdtheory.world.distributions import check_distribution
from qdtheory.world.numbers import EPS, PerText, TextVector

# Compiled, so that the pairs' own checks see no values.
_text_quality = jax.jit(lambda pair, p: pair.text_quality(p))
_quality = jax.jit(lambda pair, q, p: pair.quality(q, p))
_diversity = jax.jit(lambda pair, q: pair.diversity(q))


# --- The forms ----------------------------------------------------------------------
@dataclass(frozen=True)
class Form:
    """Any pair, with functions of it that check nothing.

    Where quality is None it is the mean of scores, which depend on P: f(P_i) if there
    is an f. V is the sum of g(Q_i) if there is a g. A pair of one number of texts has
    it as `num_texts`. The score error is that of 64 bits at a P, with a kernel, a table
    or a user's function taken as exact. What is code of the user's is named, and no
    seal rests on it.
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


def form_of(pair: Any, p: TextVector | None = None) -> Form:
    """Tell the form of a pair, given by its name or as it is, with its code as it is.

    At a P code that has not changed is compiled once.
    """
    pair = named_pair(pair) if isinstance(pair, str) else pair
    base.require_pair(pair)
    return replace(_form_of(base.renewed(pair, p)), pair=pair)


def _form_of(pair: Any) -> Form:
    compiled = _compiled(pair)
    match pair:
        case base.SeparablePair(f=f, g=g):
            scores, code = partial(evaluate, f), _code_in(f=f, g=g)
            diversity = partial(total_diversity, g)
            return Separable(pair, scores, None, diversity, f, g, code=code)
        case base.LinearPair(g=g):
            scores = _one_a_text(pair.scores, "scores")
            given = isinstance(pair.scores, base.Scores)
            code = ("scores(p)",) * (not given) + _code_in(g=g)
            diversity = partial(total_diversity, g)
            return Separable(pair, scores, None, diversity, g=g, code=code)
        case base.ConcavePair():
            scores = _one_a_text(pair.text_quality, "text_quality")
            code = "text_quality(p)", "diversity(q)"
            return Concave(pair, scores, None, pair.diversity, code=code)
        case VendiPair():
            scores = _one_a_text(pair.text_quality, "text_quality")
            return Vendi(pair, scores, None, pair.diversity)
        case KernelPair(kernel=kernel):
            error = partial(_kernel_error, kernel)
            return Kernel(pair, *compiled, num_texts=len(kernel), score_error=error)
        case BleuPair(smoothing=None) if pair.space.lengths == (pair.max_order,):
            # The n-gram of the whole text matches only where the text is a reference.
            r, k = int(pair.num_references), int(pair.num_self_references)
            form = form_of(single_token_bleu_pair(r, k))
            return replace(form, pair=pair, num_texts=pair.space.num_texts)
        case BleuPair():
            return bleu_form(pair)
        case PooledPair():
            code = form_of(pair.pair).code
            return Pooled(pair, *compiled, num_texts=len(pair.map), code=code)
    functions = pair.quality, pair.diversity
    code = "quality(q, p)", "diversity(q)"
    return Form(pair, lambda p: pair.text_quality(p), *functions, code=code)


def _code_in(**functions: Any) -> tuple[str, ...]:
    return tuple(name for name, h in functions.items() if isinstance(h, Code))


def bleu_form(pair: BleuPair) -> Bleu:
    """BLEU by its table, even that of whole texts."""
    error = partial(bleu_error, pair.table, r=float(pair.num_references))
    number = pair.space.num_texts
    return Bleu(pair, *_compiled(pair), num_texts=number, score_error=error)


def _compiled(pair: base.Pair) -> tuple[Callable, ...]:
    """The library's own functions, whose arrays compiled code takes as arguments."""
    return tuple(partial(f, pair) for f in (_text_quality, _quality, _diversity))


def _one_a_text(scores: Callable, name: str) -> Callable:
    """The scores of a user, once there is seen to be one a text."""
    return lambda p: base.one_score_a_text(scores(jnp.asarray(p)), p, name)


def pose(pair: base.Pair | Form | str, p: PerText) -> Posed:
    """Check a real distribution, and pose a pair, or its form, there.

    Example:
        >>> from qdtheory.pairs.named import CR_NRR
        >>> posed = pose(CR_NRR, np.array([0.75, 0.25]))
        >>> posed.real_quality, posed.real_diversity, posed.spread
        (0.625, -0.625, 0.5)
        >>> posed.gain(np.array([0.5, 0.5]))
        -0.125
    """
    require_values(p)
    p = np.asarray(check_distribution(p))
    form = pair if isinstance(pair, Form) else form_of(pair, p)
    require_traceable_form(form, p)
    return Posed(form, p)


def require_traceable_form(form: Form, p: TextVector) -> None:
    """Raise unless JAX can trace the functions of a user, tried at a distribution."""
    # Other forms are of the library's own functions, or were checked when made.
    if type(form) is Form:
        require_traceable(form.quality, p, p, name="quality(q, p)")
    if type(form) in (Form, Concave):
        require_traceable(form.diversity, p, name="diversity(q)")


# --- Error bounds, and the kernel of a quadratic diversity --------------------------
def quadratic_form(pair: KernelPair | BleuPair) -> tuple[np.ndarray, float]:
    """The symmetric K with V = -Q'KQ, for one Self-BLEU reference, and its error."""
    if isinstance(pair, KernelPair):
        kernel, error = np.asarray(pair.kernel), 0.0
    else:
        table, texts = pair.table, np.eye(pair.space.num_texts)
        kernel = np.asarray(jax.lax.map(lambda b: text_bleu(table, b, 1), texts))
        error = bleu_error(table, texts[0], r=1.0)
    kernel = (kernel + kernel.T) / 2
    return kernel, error + EPS * float(np.abs(kernel).max())


def _kernel_error(kernel: ArrayLike, p: TextVector) -> float:
    sizes = np.abs(np.asarray(kernel)) @ p
    return (p.size + 2) * EPS * float(sizes.max())


def bleu_error(table: BleuTable, p: TextVector, r: float) -> float:
    """Error of a text's expected BLEU, in its probabilities, powers and sum."""
    sizes = np.bincount(np.asarray(table.text), np.abs(table.weight))
    roundings = r * (p.size + 2) + table.num_sets + 4
    return roundings * EPS * float(sizes.max())


def name_of(pair: Any) -> str:
    """The pair's name, or that of its class if it has none."""
    return getattr(pair, "name", type(pair).__name__)
