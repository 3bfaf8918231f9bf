r"""Latent codes on a grid: priors, posteriors and what they know of a text.

A grid stands for a prior p(z): nodes $z_k$ with weights $w_k$, so that integrals over
codes are sums. A posterior q(z | x) is the density of Gaussian noise around a code,
renormalised over the nodes; on the circle that is von Mises', Gaussian noise in
the plane that stays on the circle. Sums over a grid are exact for the model with these
nodes, and converge to the integrals faster than any power of their number: whoever
refines a grid twice and sees no change has computed the integral.
"""

from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

# The normal grid ends at so many standard deviations: beyond lies a mass of 1e-15.
LIMIT = 8.0
# Nodes of a grid at most.
MAX_NODES = 100_000


@dataclass(frozen=True)
class LatentGrid:
    """Nodes and weights of a prior; made by the functions of this module.

    Attributes:
        rule: "normal", "Gauss-Hermite" or "circle".
        size: number of nodes.
    """

    rule: str
    size: int

    @property
    def nodes(self) -> Float[np.ndarray, "nodes dim"]:
        """The codes $z_k$; on the circle points of the plane."""
        return _grid(self)[0]

    @property
    def weights(self) -> Float[np.ndarray, " nodes"]:
        """The prior's probabilities of the nodes, with sum 1."""
        return _grid(self)[1]

    @property
    def log_cells(self) -> Float[np.ndarray, " nodes"]:
        """Logarithms of the weights of a uniform measure, up to a constant."""
        return _grid(self)[2]

    def refined(self) -> "LatentGrid":
        """Return the grid with half the distance between nodes."""
        size = 2 * self.size - (self.rule == "normal")
        return LatentGrid(self.rule, size)


def normal_grid(size: int) -> LatentGrid:
    r"""Equidistant nodes for the prior N(0, 1), the trapezoidal rule on [-8, 8].

    For a posterior of standard deviation $\sigma$ and nodes at distance h the error is
    about $e^{-2 \pi^2 \sigma^2 / h^2}$, so that $h = \sigma$ is enough for 1e-8.

    Args:
        size: number of nodes, at least 2.

    Returns:
        The grid.

    Raises:
        ValueError: the size is out of range.

    References:
        Trefethen and Weideman 2014, for the error of the trapezoidal rule.

    Claims: N23.2.

    Example:
        >>> grid = normal_grid(41)
        >>> float((grid.weights @ grid.nodes[:, 0] ** 4).round(9))
        3.0
    """
    return _checked(LatentGrid("normal", size))


def gauss_hermite_grid(size: int) -> LatentGrid:
    """Gauss-Hermite nodes for the prior N(0, 1), exact for polynomials.

    Its nodes reach beyond twice the square root of their number, so that narrow
    posteriors need more of them than in `normal_grid`.

    Args:
        size: number of nodes, 2 to 350.

    Returns:
        The grid.

    Raises:
        ValueError: the size is out of range.

    Claims: N23.2.

    Example:
        >>> grid = gauss_hermite_grid(3)
        >>> float((grid.weights @ grid.nodes[:, 0] ** 4).round(12))
        3.0
    """
    if size > 350:
        raise ValueError(
            f"Gauss-Hermite weights underflow beyond 350 nodes, got {size}; take "
            "normal_grid"
        )
    return _checked(LatentGrid("Gauss-Hermite", size))


def circle_grid(size: int) -> LatentGrid:
    r"""Equidistant nodes for the uniform prior on the unit circle.

    For a posterior with noise $\sigma$ the error is about $e^{-\sigma^2 K^2 / 2}$
    with K nodes.

    Args:
        size: number of nodes, at least 2.

    Returns:
        The grid.

    Raises:
        ValueError: the size is below 2.

    Claims: N23.2.

    Example:
        >>> circle_grid(4).nodes.round(12).tolist()[1]
        [0.0, 1.0]
    """
    return _checked(LatentGrid("circle", size))


def log_posterior(
    grid: LatentGrid,
    codes: Float[ArrayLike, "texts dim"],
    sigma: Float[ArrayLike, "#texts #dim"],
) -> Float[Array, "texts nodes"]:
    r"""The posterior of each text over the nodes: noise of width sigma around its code.

    $q(z_k \mid x) \propto c_k\,e^{-|(z_k - \mu_x) / \sigma_x|^2 / 2}$ with the cell
    $c_k$ of the node.

    Args:
        grid: the nodes.
        codes: $\mu$ of each text; on the circle their directions count.
        sigma: standard deviations, positive.

    Returns:
        Logarithms of distributions over the nodes, one a row.

    Claims: N23.2.

    Example:
        >>> code, sigma = np.array([[2.0, 0.0]]), np.array([[0.5]])
        >>> print(np.exp(log_posterior(circle_grid(4), code, sigma)).round(3))
        [[0.964 0.018 0.    0.018]]
    """
    precision = jnp.broadcast_to(1 / jnp.asarray(sigma, float), jnp.shape(codes))
    scaled = precision * placed(grid, codes)
    log_density = jnp.asarray(grid.log_cells)
    for axis in range(grid.nodes.shape[1]):
        steps = precision[:, axis, None] * grid.nodes[:, axis] - scaled[:, axis, None]
        log_density = log_density - steps**2 / 2
    return jax.nn.log_softmax(log_density)


def placed(
    grid: LatentGrid, codes: Float[ArrayLike, "texts dim"]
) -> Float[Array, "texts dim"]:
    """Codes where the decoder sees them: on the circle they are normalised."""
    codes = jnp.asarray(codes, float)
    if grid.rule != "circle":
        return codes
    return codes / jnp.linalg.norm(codes, axis=-1, keepdims=True)


def _checked(grid: LatentGrid) -> LatentGrid:
    if not 2 <= grid.size <= MAX_NODES:
        raise ValueError(f"a grid needs 2 to {MAX_NODES:,} nodes, got {grid.size:,}")
    return grid


@lru_cache(maxsize=64)
def _grid(grid: LatentGrid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, the prior's weights and logarithms of cells."""
    if grid.rule == "circle":
        angles = 2 * np.pi * np.arange(grid.size) / grid.size
        nodes = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return nodes, np.full(grid.size, 1 / grid.size), np.zeros(grid.size)
    if grid.rule == "normal":
        x = np.linspace(-LIMIT, LIMIT, grid.size)
        log_cells = np.zeros(grid.size)
    else:
        x, w = np.polynomial.hermite_e.hermegauss(grid.size)
        log_cells = np.log(w) + x**2 / 2
    weights = np.exp(log_cells - x**2 / 2)
    return x[:, None], weights / weights.sum(), log_cells
