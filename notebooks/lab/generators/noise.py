r"""What a reward without information does: the drift of noisy policy gradients.

A step on a batch of B texts $x_b \sim Q$ adds $\frac{\eta}{B} \sum_b r_b s_{x_b}$ to
the parameters, with the scores $s_x = \nabla \log Q(x)$. If the rewards $r_b$ are
independent of the texts, its mean is 0, since $\mathrm{E}\, s = 0$, and its covariance
is $\frac{\eta^2}{B} \mathrm{E}[r^2]$ times the Fisher matrix. So a function F of the
parameters changes by

$$\mathrm{E}[\Delta F] = \frac{\eta^2 \mathrm{E}[r^2]}{2B}
\operatorname{tr}(\text{Fisher} \cdot \nabla^2 F) + O(\eta^3).$$

A fixed baseline changes the mean of the rewards, never their variance.
"""

from collections.abc import Callable
from itertools import product
from typing import Any, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Float, Int
from scipy.stats import binom

from lab.generators.models import Model
from qdtheory.distributions import as_distribution, require_positive
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import PerText, TextArray, within

# Batches that `expectation` lists at most.
MAX_BATCHES = 1_000_000

AnyModel = TypeVar("AnyModel", bound=Model)


@runtime_checkable
class Optimizer(Protocol):
    """The two functions of an Optax optimiser, such as `optax.sgd(0.1)`."""

    init: Any
    update: Any


def constant_reward_drift(
    q: PerText,
    learning_rate: float,
    batch_size: int,
    mean: float = 1.0,
    variance: float = 0.0,
) -> TextArray:
    r"""Drift of Q under SGD, one logit a text, with rewards that ignore the text.

    $\mathrm{E}[\Delta Q_i] =
    \frac{\eta^2 \mathrm{E}[r^2]}{2B}\, Q_i\,(f_i - Q \cdot f) + O(\eta^3)$ with the
    fitness $f_i = Q_i (1 + 2 S_2) - 3 Q_i^2$, $S_2 = \sum_i Q_i^2$. It rises up to
    $Q_i = (1 + 2 S_2) / 6$: common texts become more common if none exceeds that, and
    the distribution is flattened above.

    Args:
        q: the model, shape (N,).
        learning_rate: $\eta$, positive.
        batch_size: B, at least 1.
        mean: mean of the rewards.
        variance: their variance, nonnegative. With the batch's mean reward as baseline,
            put 0 for the mean and (1 - 1/B) times the variance, with the mean of the
            other rewards B / (B - 1) times.

    Returns:
        Expected change of each probability, shape (N,); the sum is 0.

    Raises:
        ValueError: `q` is not a distribution, or a number is out of range.

    References:
        Williams 1992 for the step; Choshen et al. 2020 saw rewards that carry no
        information make frequent words more frequent. The drift is derived here.

    Claims: N21.1, N21.2, N21.3.

    Example:
        >>> constant_reward_drift(np.array([0.9, 0.1]), 0.1, 1).round(6).tolist()
        [-0.00013, 0.00013]
    """
    q = as_distribution(q, "q")
    within(learning_rate=learning_rate, low=0, ends="()")
    require_positive(batch_size=batch_size)
    if not (np.isfinite(mean) and 0 <= variance < np.inf):
        raise ValueError(
            "rewards need a finite mean and a finite, nonnegative variance, got "
            f"{mean} and {variance}"
        )
    fitness = q * (1 + 2 * q @ q) - 3 * q**2
    rate = learning_rate**2 * (mean**2 + variance) / (2 * batch_size)
    return rate * q * (fitness - q @ fitness)


def fisher_drift(
    model: Model,
    space: TextSpace,
    learning_rate: float,
    batch_size: int,
    of: Callable[[Array], Array] = jnp.asarray,
) -> Float[Array, "..."]:
    r"""Drift of any function of Q under SGD with rewards of 1, for any parametrisation.

    $\frac{\eta^2}{2B} \sum_x Q(x)\, \partial_{s_x}^2 F$, with the trace of the Fisher
    matrix times the Hessian of F: its mean curvature along the scores. Other rewards
    that ignore the text multiply it by $\mathrm{E}[r^2]$.

    Args:
        model: the parameters, a pytree with `probabilities(space)`, all positive.
        space: the texts.
        learning_rate: $\eta$, positive.
        batch_size: B, at least 1.
        of: F, from the distribution, shape (N,), to an array; by default Q itself.

    Returns:
        Expected change of F, in its shape.

    Raises:
        ValueError: a number is out of range, or a text has probability 0.

    Claims: N21.4, N21.7.

    Example:
        >>> from lab.generators import LogitTable
        >>> q, space = np.array([0.9, 0.1]), TextSpace(vocab_size=2, lengths=1)
        >>> fisher_drift(LogitTable.of(q), space, 0.1, 1).round(6).tolist()
        [-0.00013, 0.00013]
    """
    within(learning_rate=learning_rate, low=0, ends="()")
    require_positive(batch_size=batch_size)
    q = model.probabilities(space)
    if not isinstance(q, Tracer) and float(q.min()) == 0:
        raise ValueError(
            "every text must have a positive probability, as scores are slopes of "
            f"log Q; text {int(q.argmin())} has 0"
        )
    parameters, build = ravel_pytree(model)

    def q_of(x):
        return build(x).probabilities(space)

    scores = jax.jacrev(lambda x: jnp.log(q_of(x)))(parameters)

    def curvature(score):
        def along(t):
            return of(q_of(parameters + t * score))

        def slope(t):
            return jax.jvp(along, (t,), (1.0,))[1]

        return jax.jvp(slope, (0.0,), (1.0,))[1]

    curvatures = jax.lax.map(curvature, scores, batch_size=64)
    rate = learning_rate**2 / (2 * batch_size)
    return rate * jnp.tensordot(q, curvatures, 1)


def adam_drift(q: PerText, learning_rate: float, batch_size: int) -> TextArray:
    r"""Drift of the logits in Adam's first step with a constant positive reward.

    The first step has the sign of the gradient, which is that of $r (c_i - B Q_i)$ with
    the count $c_i \sim \mathrm{Bin}(B, Q_i)$. So
    $\mathrm{E}[\Delta \theta_i] = \eta\,(\Pr(c_i > B Q_i) - \Pr(c_i < B Q_i))$, of
    first order in $\eta$: texts of $Q_i < 1 - 2^{-1/B}$ lose logits to a positive
    reward. A negative one changes the sign, and they gain. Q changes by
    $Q_i (\mathrm{E}[\Delta \theta_i] - Q \cdot \mathrm{E}[\Delta \theta])$ to first
    order.

    Args:
        q: the model, shape (N,).
        learning_rate: $\eta$, positive.
        batch_size: B, at least 1.

    Returns:
        Expected change of each logit, shape (N,), up to Adam's epsilon.

    Raises:
        ValueError: `q` is not a distribution, or a number is out of range.

    References:
        Kingma and Ba 2015 for Adam; the drift is derived here.

    Claims: N21.8, N21.9.

    Example:
        >>> q = np.repeat([0.04, 0.001], [20, 200])
        >>> adam_drift(q, 0.01, 64)[np.array([0, -1])].round(6).tolist()
        [-0.000513, -0.008759]
    """
    q = np.asarray(as_distribution(q, "q"))
    within(learning_rate=learning_rate, low=0, ends="()")
    require_positive(batch_size=batch_size)
    # A count of B q exactly moves nothing, but B q itself is rounded.
    expected = batch_size * q
    whole = np.round(expected)
    expected = np.where(np.isclose(expected, whole, rtol=1e-12), whole, expected)
    above = binom.sf(np.floor(expected), batch_size, q)
    below = binom.cdf(np.ceil(expected) - 1, batch_size, q)
    return jnp.asarray(learning_rate * (above - below))


def policy_update(
    state: tuple[AnyModel, Any],
    space: TextSpace,
    texts: Int[Array, " batch"],
    rewards: Float[Array, " batch"],
    optimizer: Optimizer,
) -> tuple[AnyModel, Any]:
    r"""Take REINFORCE's step on one batch: it ascends $\frac1B \sum_b r_b \log Q(x_b)$.

    Args:
        state: the model and the optimiser's state, `optimizer.init(model)` at first.
        space: the texts.
        texts: their indices in the space, drawn from the model, shape (B,).
        rewards: of each text, or what a baseline leaves of them, shape (B,).
        optimizer: from Optax, such as `optax.sgd(0.1)`.

    Returns:
        The new state.

    Raises:
        ValueError: a shape is wrong.

    References:
        Williams 1992.

    """
    if texts.shape != rewards.shape or texts.ndim != 1:
        shapes = f"{texts.shape} and {rewards.shape}"
        raise ValueError(
            f"texts and rewards must be vectors of one length, got shapes {shapes}"
        )
    model, moments = state

    def loss(model):
        return -(rewards * jnp.log(model.probabilities(space)[texts])).mean()

    step, moments = optimizer.update(jax.grad(loss)(model), moments)
    return jax.tree.map(jnp.add, model, step), moments


def expectation(
    function: Callable[[Array, Array], Any],
    q: PerText,
    batch_size: int,
    rewards: Float[ArrayLike, " values"] | None = None,
    reward_probabilities: Float[ArrayLike, " values"] | None = None,
) -> Any:
    """Mean of a function of a batch over all batches, each with its probability.

    Args:
        function: from the indices of the texts and their rewards, each of shape (B,),
            to an array or a pytree of arrays; JAX-traceable.
        q: distribution that texts are drawn from, shape (N,).
        batch_size: B; there are N^B batches, times (number of rewards)^B.
        rewards: their possible values, drawn anew for each text; by default 1.
        reward_probabilities: of these values; by default equal.

    Returns:
        The mean, in the shape of what the function returns.

    Raises:
        ValueError: `q` or the rewards' probabilities are not a distribution, or there
            are too many batches.

    Example:
        >>> q = np.array([0.9, 0.1])
        >>> float(expectation(lambda texts, rewards: texts.sum(), q, 3).round(12))
        0.3
    """
    q = as_distribution(q, "q")
    require_positive(batch_size=batch_size)
    values = jnp.ones(1) if rewards is None else jnp.asarray(rewards, float)
    if reward_probabilities is None:
        reward_probabilities = np.full(values.size, 1 / values.size)
    chances = as_distribution(reward_probabilities, "reward_probabilities", values.size)
    num_batches = (q.size * values.size) ** batch_size
    if num_batches > MAX_BATCHES:
        raise ValueError(
            f"there are {num_batches:,} batches, more than {MAX_BATCHES:,}; take fewer "
            "texts or rewards, smaller batches, or draw batches at random"
        )
    each = product(product(range(q.size), range(values.size)), repeat=batch_size)
    texts, kinds = jnp.moveaxis(jnp.asarray(list(each)), 2, 0)
    weights = (q[texts] * chances[kinds]).prod(axis=1)
    found = jax.lax.map(lambda x: function(*x), (texts, values[kinds]), batch_size=4096)
    return jax.tree.map(lambda x: jnp.tensordot(weights, x, 1), found)
