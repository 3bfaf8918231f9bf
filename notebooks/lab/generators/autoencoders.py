r"""Autoencoders as exact distributions: the codes of a grid, mixed by the prior.

An encoder gives each text a code μ(x), with noise or without; a decoder gives each code
z a distribution over texts, $p(x \mid z) = \prod_t p(x_t \mid x_{<t}, z)$; texts are
drawn from $p(x) = \sum_k w_k\,p(x \mid z_k)$. The encoder is a table, the best that any
network could be. Whether this is a VAE, an adversarial or a plain autoencoder is a
matter of the objective, see `autoencoder_objectives`.

A grid stands for the prior p(z): nodes $z_k$ with weights $w_k$. A posterior q(z | x)
is the density of Gaussian noise around a code, renormalised over the nodes; on the
circle that is von Mises', Gaussian noise in the plane that stays on the circle. Sums
over a grid converge to the integrals faster than any power of the number of nodes:
whoever refines a grid twice and sees no change has computed the integral.

The ELBO and its parts are exact too, $\mathrm{ELBO} = \sum_x P(x)\,
(\mathrm{E}_{q(z | x)} \log p(x \mid z) - \mathrm{KL}(q(z | x), p(z)))$. It falls short
of the log-likelihood by the KL of the posteriors from the decoder's own, and its KL
term is the mutual information of texts and codes plus the KL of the mean posterior from
the prior.
"""

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import logsumexp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from lab.generators.models import (
    num_prefixes,
    refuse,
    text_log_probabilities,
)
from qdtheory.distributions import as_distribution
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import (
    STATIC,
    Number,
    PerText,
    TextArray,
    within,
)
from qdtheory.support.records import Record

# Two refinements of a grid may change nothing by more than this.
UNMOVED = 1e-9
# Hidden units of each network.
HIDDEN = 16
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


@jax.tree_util.register_dataclass
class Perceptron(Record):
    """One hidden layer of tanh, and a linear way past it."""

    inner: Float[ArrayLike, "*models inputs hidden"]
    inner_biases: Float[ArrayLike, "*models hidden"]
    # Of the inputs first, then of the hidden units.
    outer: Float[ArrayLike, "*models width outputs"]
    outer_biases: Float[ArrayLike, "*models outputs"]

    @classmethod
    def random(cls, key: PRNGKeyArray, inputs: int, outputs: int) -> "Perceptron":
        """Draw a network whose hidden units bend where a normal prior has its mass."""
        keys = jax.random.split(key, 3)
        inner = 2 * jax.random.normal(keys[0], (inputs, HIDDEN))
        bends = jax.random.uniform(keys[1], (HIDDEN,), minval=-4, maxval=4)
        outer = 0.3 * jax.random.normal(keys[2], (inputs + HIDDEN, outputs))
        return cls(inner, bends, outer, jnp.zeros(outputs))

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """Apply the network to each row."""
        hidden = jnp.tanh(x @ self.inner + self.inner_biases)
        return jnp.concatenate([x, hidden], axis=-1) @ self.outer + self.outer_biases


@jax.tree_util.register_dataclass
class Autoencoder(Record):
    r"""An encoder by a table of codes, a decoder by a network, and a prior on a grid.

    Args:
        codes: μ of each text, shape (texts, dim); on the circle its direction counts.
        log_sigma: logarithms of the noise, one for each text and dimension, which
            training learns; one number on the circle, which it keeps; None for codes
            without noise.
        decoder: from codes to the logits of the next token after each prefix, those
            without masked tokens first, and of a bag of words.
        generator: None, or a network that moves the nodes of the grid: the learned
            prior of an ARAE.
        grid: the prior and its nodes.

    References:
        Cífka et al. 2018, section 4.

    Claims: N23.22.
    """

    codes: Float[ArrayLike, "*models texts dim"]
    log_sigma: Float[ArrayLike, "..."] | None  # several shapes, see above
    decoder: Perceptron
    generator: Perceptron | None
    grid: LatentGrid = field(metadata=STATIC)

    @classmethod
    def random(
        cls,
        key: PRNGKeyArray,
        space: TextSpace,
        grid: LatentGrid,
        sigma: Number | None = None,
        *,
        learned_prior: bool = False,
    ) -> "Autoencoder":
        """Draw an autoencoder with random codes.

        Args:
            key: a JAX random key, used once.
            space: texts of one length.
            grid: the latent space with its prior.
            sigma: the noise to start with, which training keeps on the circle and
                learns elsewhere; None: codes without noise.
            learned_prior: whether a network moves the nodes of the grid.

        Returns:
            The model.

        Raises:
            ValueError: the texts have several lengths, or a number is out of range.

        Example:
            >>> from lab.generators import circle_grid
            >>> space = TextSpace(vocab_size=2, lengths=3)
            >>> key, grid = jax.random.key(0), circle_grid(64)
            >>> model = Autoencoder.random(key, space, grid, sigma=0.5)
            >>> float(model.probabilities(space).sum().round(12))
            1.0
        """
        num_rows = len(masked_prefixes(space))
        if sigma is not None:
            within(sigma=sigma, low=0, high=100, ends="()")
        keys, dim = jax.random.split(key, 3), grid.nodes.shape[1]
        codes = jax.random.normal(keys[0], (space.num_texts, dim))
        log_sigma = None
        if sigma is not None:
            shape = () if grid.rule == "circle" else codes.shape
            log_sigma = jnp.full(shape, jnp.log(sigma))
        outputs = (num_rows + 1) * space.vocab_size
        decoder = Perceptron.random(keys[1], dim, outputs)
        moved = Perceptron.random(keys[2], dim, dim)
        return cls(codes, log_sigma, decoder, moved if learned_prior else None, grid)

    def probabilities(self, space: TextSpace) -> TextArray:
        """Probability of every text, one for each code, as a sum over the nodes."""
        log_decoded = self.log_decoded(space, self.prior_codes())
        return jnp.asarray(self.grid.weights) @ jnp.exp(log_decoded)

    def prior_codes(self) -> Float[Array, "nodes dim"]:
        """Codes that texts are generated from, each with the weight of its node."""
        nodes = jnp.asarray(self.grid.nodes)
        return nodes if self.generator is None else self.generator(nodes)

    def text_codes(self) -> Float[Array, "texts dim"]:
        """Codes of the texts without noise, on the circle normalised."""
        return placed(self.grid, self.codes)

    def log_posterior(self, sigma: Number | None = None) -> Float[Array, "texts nodes"]:
        """Log-probabilities of the nodes of the grid given each text, one text a row.

        Args:
            sigma: noise; by default the model's own.

        Raises:
            ValueError: the model's codes have no noise.
        """
        if sigma is not None:
            return log_posterior(self.grid, self.codes, jnp.full((1, 1), sigma))
        if self.log_sigma is None:
            raise ValueError(
                "codes without noise are points, and a grid has no posterior for them; "
                "draw the model with a sigma"
            )
        learned = self.grid.rule != "circle"
        log_sigma = jnp.atleast_2d(jnp.asarray(self.log_sigma, float))
        kept = log_sigma if learned else jax.lax.stop_gradient(log_sigma)
        return log_posterior(self.grid, self.codes, jnp.exp(kept))

    def log_decoded(
        self, space: TextSpace, codes: Float[Array, "codes dim"], keep: float = 1.0
    ) -> Float[Array, "codes texts"]:
        r"""Log-likelihood of each text given each code, with word dropout.

        With word dropout the decoder sees each earlier token with probability `keep`
        and a mask otherwise. The mean of $\log p(x \mid z, \text{masks})$ is exact:
        the term of token t depends on the $2^{t-1}$ choices of masks before it.

        Args:
            space: the texts, as many as there are codes of texts.
            codes: codes to decode.
            keep: probability that a token is seen.

        Returns:
            A row for each code, in nats.

        References:
            Bowman et al. 2016, for word dropout.

        Claims: N23.3.
        """
        masked = keep < 1
        log_next = jax.nn.log_softmax(self.next_token_logits(space, codes, masked))
        if masked:
            log_next = jnp.einsum("pr,crv->cpv", _masking(space, keep), log_next)
        return text_log_probabilities(log_next, space)

    def log_bag(
        self, space: TextSpace, codes: Float[Array, "codes dim"]
    ) -> Float[Array, "codes texts"]:
        r"""Log-likelihood of each text's bag of words, $\sum_t \log p_{bow}(x_t | z)$.

        Returns:
            A row for each code, in nats.

        References:
            Zhao, Zhao and Eskénazi 2017.
        """
        logits = self.decoder(codes)[:, -space.vocab_size :]
        counts = np.eye(space.vocab_size)[space.tokens].sum(axis=1)
        return jax.nn.log_softmax(logits) @ counts.T

    def next_token_logits(
        self, space: TextSpace, codes: Float[Array, "codes dim"], masked: bool = False
    ) -> Float[Array, "codes prefixes vocab"]:
        """Logits of the next token after each prefix, in the order of `PrefixTable`.

        Args:
            space: the texts.
            codes: codes to decode.
            masked: whether prefixes with masked tokens follow, see `masked_prefixes`.

        Returns:
            For each code a row for each prefix.

        Raises:
            ValueError: the texts have several lengths, or are not those of the codes.
        """
        num_rows, size = len(masked_prefixes(space)), space.vocab_size
        shapes = jnp.shape(self.codes)[0], jnp.shape(self.decoder.outer)[1]
        expected = space.num_texts, (num_rows + 1) * size
        if shapes != expected:
            raise ValueError(
                f"the autoencoder has {shapes[0]} codes and {shapes[1]} outputs, the "
                f"space needs {expected[0]} and {expected[1]}; draw a model for it"
            )
        rows = num_rows if masked else sum(num_prefixes(space))
        outer, biases = map(
            jnp.asarray, (self.decoder.outer, self.decoder.outer_biases)
        )
        cut = {"outer": outer[:, : rows * size], "outer_biases": biases[: rows * size]}
        return replace(self.decoder, **cut)(codes).reshape(len(codes), rows, size)


@jax.tree_util.register_dataclass
class LatentReport(Record):
    r"""What an autoencoder's codes hold, in nats, as means over the real distribution.

    Attributes:
        log_likelihood: $\sum_x P(x) \log p(x)$, minus the forward cross-entropy.
        elbo: the reconstruction less the KL term.
        reconstruction: $\sum_x P(x) \sum_k q(z_k | x) \log p(x | z_k)$.
        kl: the KL term, that of the posteriors from the prior.
        mutual_information: $I_q(x; z)$, what a code tells about its text.
        marginal_kl: KL(q(z), p(z)), that of the mean posterior from the prior.
        gap: the KL of the posteriors from the decoder's own, $p(z | x)$.
    """

    log_likelihood: Float[Array, "*models"]
    elbo: Float[Array, "*models"]
    reconstruction: Float[Array, "*models"]
    kl: Float[Array, "*models"]
    mutual_information: Float[Array, "*models"]
    marginal_kl: Float[Array, "*models"]
    gap: Float[Array, "*models"]


def latent_report(model: Autoencoder, space: TextSpace, p: PerText) -> LatentReport:
    """Compute the ELBO and its parts, on a grid that two refinements do not move.

    Args:
        model: an autoencoder with noisy codes and a fixed prior.
        space: the texts.
        p: the real distribution, shape (num_texts,).

    Returns:
        The parts, each computed from its own definition. Under a JAX transformation
        the grid is taken as it is.

    Raises:
        ValueError: the model does not fit the space, has no posteriors on the grid of
            its prior or holds NaN, or the grid is too coarse: the message names what a
            refinement changed.

    References:
        Kingma and Welling 2014.

    Claims: N23.1, N23.2, N23.5, N23.11.

    Example:
        >>> from lab.generators import circle_grid
        >>> space, p = TextSpace(vocab_size=2, lengths=2), np.full(4, 0.25)
        >>> model = Autoencoder.random(jax.random.key(0), space, circle_grid(128), 0.5)
        >>> found = latent_report(model, space, p)
        >>> float(abs(found.elbo + found.gap - found.log_likelihood).round(12))
        0.0
    """
    p = as_distribution(p, "p", space.num_texts)
    if model.generator is not None:
        raise ValueError(
            "the KL term needs the posteriors and the prior on one grid; the prior of "
            "an ARAE is learned"
        )
    found, q = before = _report(model, space, p)
    if isinstance(found.elbo, Tracer):
        return found
    refuse_nan(np.append(q, found.elbo))
    for _ in range(2):
        size, model = model.grid.size, refined(model)
        after = _report(model, space, p)
        worst, change = _largest_change(before, after)
        if not change <= UNMOVED:
            raise ValueError(
                f"the grid is too coarse: {worst} changes by {change:.1e}, more than "
                f"{UNMOVED:.0e}, when {size} nodes become {model.grid.size}; take more"
            )
        before = after
    return found


def refined(model: Autoencoder) -> Autoencoder:
    """Return a model with the same parameters on a grid of twice as many nodes."""
    return replace(model, grid=model.grid.refined())


@lru_cache(maxsize=16)
def masked_prefixes(space: TextSpace) -> tuple[tuple[int, ...], ...]:
    """List the prefixes that a decoder may see, those without masks (-1) first.

    Example:
        >>> masked_prefixes(TextSpace(vocab_size=2, lengths=2))
        ((), (0,), (1,), (-1,))
    """
    space.only_length("an autoencoder")
    space.refuse_beyond_memory(
        8 * space.max_length * (space.vocab_size + 1) ** (space.max_length - 1),
        "table of prefixes with masks",
    )
    tokens = (*range(space.vocab_size), -1)
    lengths = range(space.max_length)
    every = [s for length in lengths for s in product(tokens, repeat=length)]
    return tuple(sorted(every, key=lambda s: -1 in s))


def _checked(grid: LatentGrid) -> LatentGrid:
    within(size=grid.size, low=2, high=MAX_NODES)
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


@lru_cache(maxsize=16)
def _masking(space: TextSpace, keep: float) -> Float[np.ndarray, "prefixes seen"]:
    """Probability that a prefix is seen with each choice of masks."""
    prefixes = masked_prefixes(space)
    column = {prefix: i for i, prefix in enumerate(prefixes)}
    chances = np.zeros((sum(num_prefixes(space)), len(prefixes)))
    for row, prefix in enumerate(prefixes[: len(chances)]):
        for seen in product((True, False), repeat=len(prefix)):
            masked = tuple(a if see else -1 for a, see in zip(prefix, seen))
            odds = keep ** sum(seen), (1 - keep) ** seen.count(False)
            chances[row, column[masked]] = odds[0] * odds[1]
    return chances


def refuse_nan(values: ArrayLike) -> None:
    """Raise if what a model gives holds NaN, as it does once training diverged."""
    refuse(
        np.isnan(values),
        "the model holds NaN: its training diverged; train it anew at a lower learning "
        "rate",
    )


def _largest_change(before: tuple, after: tuple) -> tuple[str, float]:
    """What changed most, NaN above all, and by how much."""
    (old, q_old), (new, q_new) = before, after
    changes = {"the probability of a text": float(np.abs(q_new - q_old).max())}
    for part in fields(LatentReport):
        name = f"the {part.name.replace('_', ' ')}"
        changes[name] = abs(float(getattr(new, part.name) - getattr(old, part.name)))
    worst = max(changes, key=lambda name: (np.isnan(changes[name]), changes[name]))
    return worst, changes[worst]


@partial(jax.jit, static_argnums=1)
def _report(
    model: Autoencoder, space: TextSpace, p: Array
) -> tuple[LatentReport, Array]:
    """The parts on the grid as it is, and the probabilities of the texts."""
    log_w, log_q = jnp.log(model.grid.weights), model.log_posterior()
    log_decoded = model.log_decoded(space, model.prior_codes()).T
    log_joint = log_w + log_decoded
    log_text = logsumexp(log_joint, axis=1)
    log_marginal = logsumexp(log_q, axis=0, b=p[:, None])

    def mean(values: Array) -> Array:
        return p @ (jnp.exp(log_q) * values).sum(axis=1)

    reconstruction, kl = mean(log_decoded), mean(log_q - log_w)
    parts = LatentReport(
        log_likelihood=p @ log_text,
        elbo=reconstruction - kl,
        reconstruction=reconstruction,
        kl=kl,
        mutual_information=mean(log_q - log_marginal),
        marginal_kl=(jnp.exp(log_marginal) * (log_marginal - log_w)).sum(),
        gap=mean(log_q - (log_joint - log_text[:, None])),
    )
    return parts, jnp.exp(log_text)
