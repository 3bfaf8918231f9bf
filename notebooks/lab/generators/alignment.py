r"""Alignment: what a model becomes when its texts are rewarded, in closed form.

$Q_0$ is the model before, r the reward of each text. Maximising
$E_Q r - \beta\,KL(Q \Vert Q_0)$ gives $Q \propto Q_0 e^{r/\beta}$, the LL-SE frontier
of the score $r + \beta \log Q_0$. Other penalties, the best of n texts, preferences of
pairs, and training on one's own texts give other curves in the plane of quality and
diversity.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from lab.generators.models import refuse
from qdtheory.distributions import (
    as_distribution,
    as_distributions,
    as_vector,
    require_positive,
)
from qdtheory.support.numbers import (
    Number,
    PerText,
    Scalar,
    TextArray,
    TextMatrix,
    TextVector,
    within,
)
from qdtheory.support.records import Record


def kl_optimum(q0: PerText, rewards: PerText, beta: Number) -> TextArray:
    r"""The maximiser of $E_Q r - \beta\,KL(Q \Vert Q_0)$: $Q \propto Q_0 e^{r/\beta}$.

    A reward $r + a \log Q_0$, from judges who like what is typical, gives
    $Q \propto Q_0^{1 + a/\beta} e^{r/\beta}$.

    Args:
        q0: the model before, shape (N,).
        rewards: r of each text, finite, shape (N,).
        beta: the penalty, positive, in units of reward per nat.

    Returns:
        The optimum, shape (N,).

    Raises:
        ValueError: `q0` is not a distribution, the rewards are not one finite number a
            text, or beta is not positive.

    References:
        Ziegler et al. 2019; Zhang et al. 2025 for the typicality bias.

    Claims: N24.12, N24.14.

    Example:
        >>> kl_optimum(np.array([0.5, 0.5]), np.log([3.0, 1.0]), 1.0).round(6).tolist()
        [0.75, 0.25]
    """
    q0, rewards = _checked(q0, rewards, beta)
    return jax.nn.softmax(_log(q0) + rewards / beta)


def diversity_price(q0: PerText, rewards: PerText, beta: Number) -> Scalar:
    r"""Nats of entropy that one more unit of reward costs, along `kl_optimum`.

    $-\frac{d\,SE}{d\,E[r]} = \frac{Cov_Q(\log Q, r)}{Var_Q(r)} = \frac1\beta +
    \frac{Cov_Q(\log Q_0, r)}{Var_Q(r)}$ at the optimum Q. It is negative where the
    reward prefers texts that are rare enough under $Q_0$.

    Args:
        q0: the model before, shape (N,).
        rewards: r of each text, finite, shape (N,).
        beta: the penalty, positive.

    Returns:
        Nats per unit of reward; NaN if all texts have one reward.

    Raises:
        ValueError: as for `kl_optimum`.

    Claims: N24.12.

    Example:
        >>> q0 = np.array([0.5, 0.25, 0.25])
        >>> float(diversity_price(q0, np.log(q0), 2.0).round(6))
        1.5
    """
    q0, rewards = _checked(q0, rewards, beta)
    q = kl_optimum(q0, rewards, beta)
    above = rewards - q @ rewards
    log_q0 = jnp.where(q0 > 0, _log(q0), 0.0)
    return 1 / beta + (q * above) @ log_q0 / ((q * above) @ above)


def forward_kl_optimum(q0: PerText, rewards: PerText, beta: float) -> TextVector:
    r"""The maximiser of $E_Q r - \beta\,KL(Q_0 \Vert Q)$.

    $Q = \beta Q_0/(\Lambda - r)$, where $\Lambda > \max r$ makes the sum 1. Every text
    keeps at least the share $\beta / (\beta + \max r - \min r)$ of its probability.

    Args:
        q0: the model before, shape (N,). Q is sought among models of its support.
        rewards: r of each text, finite, shape (N,).
        beta: the penalty, positive, in units of reward per nat.

    Returns:
        The optimum, shape (N,).

    Raises:
        ValueError: as for `kl_optimum`.

    References:
        Ouyang et al. 2022, whose pretraining mix is such a penalty.

    Claims: N24.14.

    Example:
        >>> q0, rewards = np.array([0.5, 0.5]), np.array([1.0, 0.0])
        >>> forward_kl_optimum(q0, rewards, 1.5).round(6).tolist()
        [0.651388, 0.348612]
    """
    from scipy.optimize import brentq

    q0, rewards = map(np.asarray, _checked(q0, rewards, beta))
    below = rewards[q0 > 0].max() - rewards
    best = q0[below == 0].sum()

    def excess(s: float) -> float:
        """The sum minus 1 at Lambda = max r + s, which falls in s."""
        return float(q0 @ (beta / (s + below))) - 1

    # At the left end the best texts alone have the sum 1.
    left, right = beta * best * (1 - 1e-12), beta * (1 + 1e-12)
    found = q0 / (brentq(excess, left, right, xtol=1e-300) + below)
    return found / found.sum()


def best_of_n(q0: PerText, scores: PerText, n: int) -> TextVector:
    r"""The distribution of the best of n texts: $\sum_{ties} Q = F^n - F_<^n$.

    F is the chance that a text scores as much or less, $F_<$ less. Texts that tie
    share in proportion to $Q_0$, as when the first or a random one is taken.

    Args:
        q0: the model that writes the n texts, shape (N,).
        scores: of each text; only their order counts, shape (N,).
        n: number of texts, at least 1.

    Returns:
        The distribution, shape (N,). $KL(Q \Vert Q_0) \le \log n - (n - 1)/n$.

    Raises:
        ValueError: `q0` is not a distribution, a score is NaN, or n is below 1.

    References:
        Beirami et al. 2024, who prove the bound.

    Claims: N24.13.

    Example:
        >>> q = best_of_n(np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 1.0]), 2)
        >>> q.round(6).tolist()
        [0.25, 0.45, 0.3]
    """
    q0 = np.asarray(as_distribution(q0, "q0"))
    scores = np.asarray(as_vector(scores, "scores", q0.size))
    refuse(np.isnan(scores), "scores must not be NaN")
    require_positive(n=n)
    rank = np.unique(scores, return_inverse=True)[1]
    mass = np.bincount(rank, q0)
    upto = mass.cumsum() / mass.sum()
    # F^n - (F - mass)^n without cancellation, where the mass is small.
    share = np.divide(mass, upto, out=np.zeros_like(mass), where=mass > 0)
    with np.errstate(divide="ignore"):
        taken = upto**n * -np.expm1(n * np.log1p(-np.minimum(share, 1)))
    found = q0 * np.divide(taken, mass, out=np.zeros_like(mass), where=mass > 0)[rank]
    return found / found.sum()


def bradley_terry(rewards: PerText) -> Float[Array, "texts texts"]:
    r"""How often text i is preferred to j: $1 / (1 + e^{r_j - r_i})$.

    Args:
        rewards: r of each text, shape (N,).

    Returns:
        Chances, shape (N, N); 1/2 on the diagonal.

    References:
        Bradley & Terry 1952.

    Example:
        >>> bradley_terry(np.log([3.0, 1.0])).round(6).tolist()
        [[0.5, 0.75], [0.25, 0.5]]
    """
    rewards = as_vector(rewards, "rewards")
    return jax.nn.sigmoid(rewards[:, None] - rewards)


def dpo_loss(q: PerText, q0: PerText, preferences: TextMatrix, beta: Number) -> Scalar:
    r"""The expected loss of direct preference optimisation, on pairs drawn from $Q_0$.

    $-2 \sum_{ij} Q_{0i} Q_{0j}\,P_{ij} \log \sigma(h_i - h_j)$ with
    $h = \beta \log(Q / Q_0)$: either of the two may be the preferred one.

    Args:
        q: the model, positive, shape (N,).
        q0: the model before, positive, shape (N,).
        preferences: how often i is preferred to j, shape (N, N).
        beta: the penalty, positive.

    Returns:
        Nats per pair.

    Raises:
        ValueError: two distributions of different size, or preferences of another
            shape.

    References:
        Rafailov et al. 2023, equation 7.

    Example:
        >>> half = np.array([0.5, 0.5])
        >>> float(dpo_loss(half, half, np.full((2, 2), 0.5), 1.0).round(6))
        0.693147
    """
    q, q0 = as_distributions(q=q, q0=q0)
    chances = _as_preferences(preferences, q0.size)
    h = beta * (jnp.log(q) - jnp.log(q0))
    loss = -chances * jax.nn.log_sigmoid(h[:, None] - h)
    return 2 * q0 @ loss @ q0


def dpo_optimum(q0: PerText, preferences: TextMatrix, beta: float) -> TextArray:
    """The minimiser of `dpo_loss`: `kl_optimum` of the rewards that fit best.

    Preferences of the form `bradley_terry` give back their rewards, up to a constant.

    Args:
        q0: the model before, positive, shape (N,).
        preferences: how often i is preferred to j, with the reverse summing to 1,
            shape (N, N).
        beta: the penalty, positive.

    Returns:
        The optimum, shape (N,).

    Raises:
        ValueError: as for `fitted_rewards`.

    References:
        Rafailov et al. 2023; Azar et al. 2024 for preferences that are certain.

    Claims: N24.15.

    Example:
        >>> q0, rewards = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 2.0])
        >>> q = dpo_optimum(q0, bradley_terry(rewards), 0.5)
        >>> bool(np.allclose(q, kl_optimum(q0, rewards, 0.5)))
        True
    """
    return kl_optimum(q0, fitted_rewards(q0, preferences), beta)


def fitted_rewards(q0: PerText, preferences: TextMatrix) -> TextVector:
    r"""The rewards whose Bradley-Terry model fits preferences best, on pairs of $Q_0$.

    They minimise the logistic loss $-\sum Q_{0i} Q_{0j} P_{ij} \log \sigma(r_i - r_j)$.

    Args:
        q0: weight of each text, positive, shape (N,).
        preferences: how often i is preferred to j, with the reverse summing to 1,
            shape (N, N).

    Returns:
        Rewards of mean 0 under `q0`, shape (N,).

    Raises:
        ValueError: `q0` is not a positive distribution, preferences are no chances
            that fit together, or some texts always win against all others, so that
            the loss has no minimum.

    References:
        Bradley & Terry 1952; Ford 1957 for when a minimum exists.

    Claims: N24.15.

    Example:
        >>> circle = np.array([[0.5, 0.9, 0.1], [0.1, 0.5, 0.9], [0.9, 0.1, 0.5]])
        >>> np.abs(fitted_rewards(np.full(3, 1 / 3), circle)).max().round(9).tolist()
        0.0
    """
    from scipy.optimize import root
    from scipy.sparse.csgraph import connected_components
    from scipy.special import expit

    q0 = np.asarray(as_distribution(q0, "q0"))
    chances = np.asarray(_as_preferences(preferences, q0.size))
    refuse(q0 == 0, "q0 must be positive: other texts occur in no pair")
    if connected_components(chances > 0, connection="strong")[0] > 1:
        raise ValueError(
            "some texts always win against all others, so the loss has no minimum: it "
            "falls as their share goes to 1, whatever beta is"
        )
    pairs = np.outer(q0, q0)

    def slope(r: np.ndarray) -> np.ndarray:
        # A constant changes no chance; the last term fixes it.
        return (pairs * (expit(r[:, None] - r) - chances)).sum(axis=1) + pairs @ r

    def hessian(r: np.ndarray) -> np.ndarray:
        fitted = expit(r[:, None] - r)
        weights = pairs * fitted * (1 - fitted)
        return np.diag(weights.sum(axis=1)) - weights + pairs

    # A root of the slope: the loss itself is too flat to be told near its minimum.
    rewards = root(slope, np.zeros(q0.size), jac=hessian, method="lm", tol=1e-15).x
    return rewards - q0 @ rewards


class SelfTraining(Record):
    """Expected metrics of a model trained on its own texts, from generation 0 on."""

    cr: Float[np.ndarray, " generations"]
    nrr: Float[np.ndarray, " generations"]
    cnd: Float[np.ndarray, " generations"]
    nrr_limit: float  # after infinitely many generations


def self_training(
    q: PerText,
    p: PerText,
    num_texts: int,
    num_generations: int,
    real_share: float = 0.0,
) -> SelfTraining:
    r"""Replace a model by the frequencies of S texts that it writes, again and again.

    Each text is real with probability $\rho$, so S texts are drawn from
    $(1 - \rho) Q + \rho P$. That is the Wright-Fisher model of genetic drift, with
    immigration from P. Without real texts $E(1 + NRR)$ falls by $(1 - 1/S)$ a
    generation, and $E\,Q$ stays. With them it tends to
    $\frac{(1 - 1/S)(1 - a)}{1 - (1 - 1/S)\,a}$ of that of P, $a = (1 - \rho)^2$.

    Args:
        q: the model of generation 0, shape (N,).
        p: the real distribution, shape (N,).
        num_texts: S, the size of each training set.
        num_generations: number of generations, at least 1.
        real_share: $\rho$, in [0, 1].

    Returns:
        Expected metrics, exactly.

    Raises:
        ValueError: `q` and `p` are not distributions of one size, or a number is out
            of range.

    References:
        Wright 1931; Shumailov et al. 2024 (model collapse).

    Claims: N24.17, N24.18.

    Example:
        >>> p = np.array([0.5, 0.5])
        >>> self_training(p, p, num_texts=10, num_generations=2).nrr.round(6).tolist()
        [-0.5, -0.55, -0.595]
    """
    q, p = map(np.asarray, as_distributions(q=q, p=p))
    require_positive(num_texts=num_texts, num_generations=num_generations)
    within(real_share=real_share, low=0, high=1)
    kept, real = 1 - real_share, float(p @ p)
    cr, repeated = [float(p @ q)], [float(q @ q)]
    for _ in range(num_generations):
        mixed = kept**2 * repeated[-1] + 2 * kept * real_share * cr[-1]
        mixed += real_share**2 * real
        repeated.append(mixed + (1 - mixed) / num_texts)
        cr.append(kept * cr[-1] + real_share * real)
    alike = (1 - 1 / num_texts) * (1 - kept**2)
    lost = 1 - (1 - 1 / num_texts) * kept**2
    limit = (1 - real) * alike / lost if real_share else 0.0
    cr, repeated = np.array(cr), np.array(repeated)
    return SelfTraining(cr, -repeated, real - 2 * cr + repeated, limit - 1)


def _checked(q0: ArrayLike, rewards: ArrayLike, beta: Number) -> tuple[Array, Array]:
    q0 = as_distribution(q0, "q0")
    rewards = as_vector(rewards, "rewards", q0.size)
    refuse(~jnp.isfinite(rewards), "rewards must be finite, one number a text")
    within(beta=beta, low=0, ends="()")
    return q0, rewards


def _log(q: Array) -> Array:
    return jnp.where(q > 0, jnp.log(jnp.where(q > 0, q, 1.0)), -jnp.inf)


def _as_preferences(preferences: ArrayLike, size: int) -> Array:
    chances = jnp.asarray(preferences, float)
    if chances.shape != (size, size):
        raise ValueError(
            f"preferences must have shape {(size, size)}, got {chances.shape}"
        )
    fit = (chances >= 0) & (jnp.abs(chances + chances.T - 1) <= 1e-10)
    refuse(~fit, "preferences must be chances, with the reverse summing to 1")
    return chances
