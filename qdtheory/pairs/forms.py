"""What methods ask of a pair: its form, and the rounding error of its scores."""

from typing import Any, TypeGuard

import jax
import numpy as np
from jaxtyping import Float

from qdtheory.metrics.bleu_table import text_bleu
from qdtheory.pairs.base import LinearPair, Pair
from qdtheory.pairs.bleu import BleuPair
from qdtheory.pairs.concave import ConcavePair
from qdtheory.pairs.kernel import KernelPair
from qdtheory.pairs.named import single_token_bleu_pair
from qdtheory.pairs.separable import SeparablePair
from qdtheory.world.numbers import EPS


# --- Forms --------------------------------------------------------------------------
def separable_form(pair: Pair) -> SeparablePair | LinearPair | None:
    """Return the pair as scores and a sum of g(Q_i), if it has that form.

    Args:
        pair: any pair.

    Returns:
        The pair itself, an equal separable pair (BLEU on texts of one n-gram), or
        None.
    """
    if isinstance(pair, SeparablePair | LinearPair):
        return pair
    if (
        isinstance(pair, BleuPair)
        and pair.smoothing is None
        and pair.space.lengths == (pair.max_order,)
    ):
        # The n-gram of the whole text matches only where the text is a reference.
        return single_token_bleu_pair(
            int(pair.num_references), int(pair.num_self_references)
        )
    return None


def is_concave(pair: Pair) -> TypeGuard[ConcavePair]:
    """Whether quality is linear and diversity concave, as the pair states.

    Args:
        pair: any pair.

    Returns:
        True for a `ConcavePair`.
    """
    return isinstance(pair, ConcavePair)


def has_tails(pair: Pair) -> TypeGuard[BleuPair]:
    """Whether the pair is BLEU-1 on texts of one length, a sum over tails of counts.

    Args:
        pair: any pair.

    Returns:
        True for BLEU of order 1, with any numbers of references.
    """
    return isinstance(pair, BleuPair) and pair.max_order == len(pair.space.lengths) == 1


def is_quadratic(pair: Pair) -> TypeGuard[KernelPair | BleuPair]:
    """Whether diversity is -Q'KQ: a kernel, or BLEU with one Self-BLEU reference.

    Args:
        pair: any pair.

    Returns:
        True if `quadratic_form` takes the pair.
    """
    return isinstance(pair, KernelPair) or _has_self_references(pair, 1)


def is_cubic(pair: Pair) -> TypeGuard[BleuPair]:
    """Whether diversity is BLEU with two Self-BLEU references.

    Args:
        pair: any pair.

    Returns:
        True for BLEU of any order.
    """
    return _has_self_references(pair, 2)


def _has_self_references(pair: Pair, number: int) -> bool:
    return isinstance(pair, BleuPair) and float(pair.num_self_references) == number


def quadratic_form(pair: KernelPair | BleuPair) -> tuple[np.ndarray, float]:
    """Return the symmetric K with V = -Q'KQ, and the error bound of an entry.

    Args:
        pair: a pair that `is_quadratic` accepts.

    Returns:
        K, shape (N, N), and its rounding error.
    """
    if isinstance(pair, KernelPair):
        kernel, error = np.asarray(pair.kernel), 0.0
    else:
        texts = np.eye(pair.space.num_texts)
        kernel = np.asarray(jax.lax.map(lambda b: text_bleu(pair.table, b, 1), texts))
        error = bleu_error(pair, 1.0)
    kernel = (kernel + kernel.T) / 2
    return kernel, error + EPS * float(np.abs(kernel).max())


def name_of(pair: Any) -> str:
    """Return the pair's name, or that of its class if it has none.

    Args:
        pair: any pair.

    Returns:
        A name for messages.
    """
    return getattr(pair, "name", type(pair).__name__)


# --- Error bounds -------------------------------------------------------------------
def score_error(pair: Pair, p: Float[np.ndarray, " texts"]) -> float:
    """Error bound of a score in 64 bits, taking the kernel or table as exact.

    Args:
        pair: any pair with a score for each text.
        p: the real distribution, shape (N,).

    Returns:
        A nonnegative number; 0 for a user's function, taken as exact.
    """
    match pair:
        case KernelPair():
            sizes = np.abs(np.asarray(pair.kernel)) @ p
            return (p.size + 2) * EPS * float(sizes.max())
        case BleuPair():
            return bleu_error(pair, float(pair.num_references))
    return 0.0


def bleu_error(pair: BleuPair, num_references: float) -> float:
    """Error bound of a text's expected BLEU in 64 bits, taking the table as exact.

    Args:
        pair: the pair whose table is used.
        num_references: n.

    Returns:
        Rounding error of the probabilities, their powers and the sum of the terms.
    """
    table, n = pair.table, pair.space.num_texts
    sizes = np.bincount(np.asarray(table.text), np.abs(table.weight))
    roundings = num_references * (n + 2) + table.num_sets + 4
    return roundings * EPS * float(sizes.max())
