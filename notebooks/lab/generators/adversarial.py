r"""Adversarial generators of text as objectives of `train`, with exact expectations.

Each rewards texts, or tokens, and the model ascends
$\sum_x Q(x) \sum_t R_t(x)\,\nabla \log q(x_t \mid x_{<t})$ with the rewards held fixed.
`Sampled` puts the shares of a batch in place of $Q(x)$ and keeps everything else, so
that the noise of the published algorithms can be had too. For objectives that average
over real texts, such as maximum likelihood, the batch is of these.

LeakGAN's generator sees the hidden state of its discriminator, an LSTM that judges
prefixes: the state after $x_{<t}$ is an input to the choice of $x_t$, and a constant to
the generator, whose gradient ends there.
"""

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from lab.generators.discriminators import (
    Discriminator,
    OptimalDiscriminator,
)
from lab.generators.models import (
    completion_values,
    policy_gradient,
    prefix_distribution,
    require_tokens,
    token_policy_gradient,
)
from lab.generators.training import Objective, Step
from qdtheory.distributions import as_distribution, require_positive
from qdtheory.lstm import LSTMLanguageModel, prefix_states
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import (
    STATIC,
    PerText,
    TextArray,
    one_of,
    require,
    within,
)
from qdtheory.support.records import Record

# Nodes of the integral over s in `expected_share`, over log s.
NODES = 256
OPTIMAL = OptimalDiscriminator()
# What the generator sees of its own state and of the discriminator's.
VARIANTS = {"leak": (False, True), "noleak": (True, False), "mixed": (True, True)}
# Of each text in a batch; None for a mean over all texts of the model.
Shares: TypeAlias = Array | None


@dataclass(frozen=True)
class MaximumLikelihood(Objective):
    r"""Ascends $\sum_x P(x) \log Q(x)$.

    Claims: N22.1, N22.3.

    Example:
        >>> from lab.generators import LogitTable
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> table, p = LogitTable(jnp.zeros(2)), jnp.array([0.75, 0.25])
        >>> MaximumLikelihood().ascent((), table, space, p)[0].logits.tolist()
        [0.25, -0.25]
    """

    def ascent(self, state: Any, model: Any, space: TextSpace, p: Array) -> Step:
        """Return the gradient."""
        q, pull = jax.vjp(lambda m: m.probabilities(space), model)
        return pull(jnp.where(p > 0, p / q, 0.0))[0], state


@dataclass(frozen=True)
class Adversarial(Objective):
    """What the objectives below share: a field made of rewards, exact or sampled."""

    def rewards(
        self, state: Any, model: Any, shares: Array, space: TextSpace, p: Array
    ) -> tuple[Array, Any]:
        """Return a reward for each text, or text and position, and the new state.

        `shares` is what texts are averaged over: the model's, or those of a batch.
        """
        raise NotImplementedError

    def ascent(
        self, state: Any, model: Any, space: TextSpace, p: Array, shares: Shares = None
    ) -> Step:
        """Return the mean step over the model's texts, or over those of a batch."""
        q = model.probabilities(space)
        seen = q if shares is None else shares
        rewards, state = self.rewards(state, model, seen, space, p)
        if shares is not None:
            rewards = (rewards.T * (shares / q)).T
        field = policy_gradient if rewards.ndim == 1 else token_policy_gradient
        return field(model, space, rewards), state


@dataclass(frozen=True)
class SeqGAN(Adversarial):
    r"""SeqGAN-reinforce: every token earns the D of its text.

    With the optimal discriminator the step ascends $-\mathrm{KL}(P, M)$, where
    M = (P + Q)/2; so does SeqGAN with roll-outs by the model itself.

    Args:
        discriminator: of texts.
        lag: the share of its old weights that the roll-out model keeps at each step,
            $\theta' \leftarrow \lambda \theta' + (1 - \lambda)\,\theta$, in [0, 1);
            .8 in SeqGAN. None for completions by the model itself.

    Raises:
        ValueError: `lag` is out of range.

    References:
        Yu et al. 2017; Semeniuta et al. 2018, section 3.2.

    Claims: N22.1, N22.2, N22.3, N22.9.
    """

    discriminator: Discriminator = OPTIMAL
    lag: float | None = None

    def __post_init__(self) -> None:
        if self.lag is not None:
            within(lag=self.lag, low=0, high=1, ends="[)")

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Return the discriminator's state and the roll-out model."""
        return self.discriminator.start(space, 1), None if self.lag is None else model

    def rewards(
        self, state: Any, model: Any, shares: Array, space: TextSpace, p: Array
    ) -> tuple[Array, Any]:
        """Judge texts; where roll-outs lag, average over their completions."""
        inner, behind = state
        logits, inner = _of_texts(self.discriminator, inner, model, space, p)
        rewards = jax.nn.sigmoid(logits)
        if (lag := self.lag) is not None:
            behind = jax.tree.map(
                lambda old, new: lag * old + (1 - lag) * new, behind, model
            )
            rewards = completion_values(space, rewards, behind.probabilities(space))
        return rewards, (inner, behind)


@dataclass(frozen=True)
class SeqGANStep(Adversarial):
    r"""SeqGAN-step: token t earns $R_t = D(x_{\le t}) + \gamma R_{t+1}$.

    With optimal discriminators and $\gamma = 1$ the step ascends
    $-\sum_l \mathrm{KL}(P_l, M_l)$; with $\gamma < 1$ it is no gradient.

    Args:
        gamma: the discount, in [0, 1].
        discriminator: of prefixes.

    Raises:
        ValueError: `gamma` is out of range.

    References:
        Semeniuta et al. 2018, section 3.2.

    Claims: N22.2.
    """

    gamma: float = 1.0
    discriminator: Discriminator = OPTIMAL

    def __post_init__(self) -> None:
        within(gamma=self.gamma, low=0, high=1)

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Return the discriminator's state."""
        return self.discriminator.start(space, space.max_length)

    def rewards(
        self, state: Any, model: Any, shares: Array, space: TextSpace, p: Array
    ) -> tuple[Array, Any]:
        """Judge prefixes and sum what follows."""
        q = model.probabilities(space)
        q, p = (prefix_distribution(space, x) for x in (q, p))
        logits, state = self.discriminator.logits(state, q, p, space)
        return discounted_returns(jax.nn.sigmoid(logits), self.gamma), state


@dataclass(frozen=True)
class MaliGAN(Adversarial):
    r"""Texts earn D/(1 - D), divided by the sum over their batch.

    In the population, with the optimal discriminator, this is maximum likelihood.

    Args:
        batch_size: m, for the mean over all batches of m texts; None for the
            population. A `Sampled` MaliGAN takes its own batches.
        discriminator: of texts.

    Raises:
        ValueError: `batch_size` is below 1.

    References:
        Che et al. 2017.

    Claims: N22.1, N22.5.
    """

    batch_size: int | None = None
    discriminator: Discriminator = OPTIMAL

    def __post_init__(self) -> None:
        if self.batch_size is not None:
            require_positive(batch_size=self.batch_size)

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Return the discriminator's state."""
        return self.discriminator.start(space, 1)

    def rewards(
        self, state: Any, model: Any, shares: Array, space: TextSpace, p: Array
    ) -> tuple[Array, Any]:
        """Normalise the weights of importance sampling."""
        logits, state = _of_texts(self.discriminator, state, model, space, p)
        weights = jnp.exp(logits)
        if self.batch_size is None:
            total = shares @ weights  # 0 if no text of a batch is real
            return jnp.where(total > 0, weights / total, 0.0), state
        mean = expected_share(weights, shares, self.batch_size - 1)
        return self.batch_size * mean, state


@dataclass(frozen=True)
class RankGAN(Adversarial):
    r"""Texts earn their chance to rank first among rivals, $w_i / (w_i + \sum_j w_j)$.

    The best ranker of one real text among rivals by the model has $w = P / Q$. With a
    cosine for its score, $w \in [e^{-\gamma}, e^\gamma]$: the best one in this range is
    found by Hunter's iteration, cut off there.

    Args:
        bound: $\gamma$, positive; None for scores without a bound.
        num_rivals: texts by the model that each one is compared with, at least 1.
        num_steps: of the iteration, from the last weights on.

    Raises:
        ValueError: a number is out of range.

    References:
        Lin et al. 2017; Hunter 2004, *MM algorithms for generalized Bradley-Terry
        models*.

    Claims: N22.5.
    """

    bound: float | None = None
    num_rivals: int = 1
    num_steps: int = 20

    def __post_init__(self) -> None:
        require_positive(num_rivals=self.num_rivals, num_steps=self.num_steps)
        if self.bound is not None:
            within(bound=self.bound, low=0, ends="()")

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Return weights of 1: no text is better than another."""
        return jnp.ones_like(p)

    def rewards(
        self, state: Any, model: Any, shares: Array, space: TextSpace, p: Array
    ) -> tuple[Array, Any]:
        """Train the ranker, then rank texts among rivals."""
        q = model.probabilities(space)
        weights = p / q
        if self.bound is not None:
            weights = _bounded_ranks(state, q, p, self.bound, self.num_steps)
        return expected_share(weights, shares, self.num_rivals), weights


@dataclass(frozen=True)
class CoT(Adversarial):
    r"""Token t earns the gain in likelihood by a mediator M, which knows P and Q.

    That is $\log M(x_t \mid x_{<t}) - \log q(x_t \mid x_{<t})$; the best mediator is
    (P + Q)/2. With the gains of later tokens the step ascends $-2\,\mathrm{JS}(P, Q)$;
    CoT leaves them out.

    Args:
        future: whether a token earns what it leads to.

    References:
        Lu et al. 2019.

    Claims: N22.2.
    """

    future: bool = False

    def rewards(
        self, state: Any, model: Any, shares: Array, space: TextSpace, p: Array
    ) -> tuple[Array, Any]:
        """Compare the mediator with the model, token by token."""
        q = model.probabilities(space)
        pair = (p + q) / 2, q
        mediator, own = (prefix_distribution(space, x) for x in pair)
        gain = jnp.diff(jnp.log(mediator / own), axis=1, prepend=0.0)
        return (discounted_returns(gain, 1.0) if self.future else gain), state


@jax.tree_util.register_dataclass
class LeakyLSTM(Record):
    r"""A generator that sees a discriminator's hidden state, its own, or both.

    The next token has the logits $W \tanh(A s + a) + b$, s the states that are seen; W
    and b are the generator's output layer. The discriminator's logit of the prefix
    $x_{\le t}$ is its output for $x_t$ after $x_{<t}$.

    Args:
        generator: an LSTM over words.
        discriminator: another over the same words.
        mixing_weights: A, shape (states seen, hidden).
        mixing_biases: a, shape (hidden,).
        variant: "leak", the discriminator's state alone; "noleak", the generator's
            alone; "mixed", both.

    Raises:
        ValueError: the variant is another one.

    References:
        Semeniuta et al. 2018, section 3.2; Guo et al. 2018.

    Claims: N22.8.

    Example:
        >>> model = LeakyLSTM.random(jax.random.key(0), 4, "mixed")
        >>> q = model.probabilities(TextSpace(vocab_size=4, lengths=3))
        >>> q.shape, float(q.sum().round(12))
        ((64,), 1.0)
    """

    generator: LSTMLanguageModel
    discriminator: LSTMLanguageModel
    mixing_weights: Float[Array, "*models seen hidden"]
    mixing_biases: Float[Array, "*models hidden"]
    variant: str = field(default="mixed", metadata=STATIC)

    def __post_init__(self) -> None:
        one_of(VARIANTS, variant=self.variant)

    @classmethod
    def random(
        cls,
        key: PRNGKeyArray,
        vocab_size: int,
        variant: str = "mixed",
        size: int = 32,
        sigma: float = 1.0,
    ) -> "LeakyLSTM":
        r"""Draw all parameters from $N(0, \sigma^2)$.

        Args:
            key: a JAX random key, used once.
            vocab_size: number of words.
            variant: see above.
            size: width of embeddings and hidden states, of both networks.
            sigma: standard deviation, positive.

        Returns:
            The model.

        Raises:
            ValueError: a number is out of range, or the variant is another one.
        """
        one_of(VARIANTS, variant=variant)
        keys = jax.random.split(key, 4)
        generator, discriminator = (
            LSTMLanguageModel.random(k, vocab_size, size, size, sigma) for k in keys[:2]
        )
        shapes = (size * sum(VARIANTS[variant]), size), (size,)
        weights, biases = (
            sigma * jax.random.normal(k, shape) for k, shape in zip(keys[2:], shapes)
        )
        return cls(generator, discriminator, weights, biases, variant)

    def probabilities(self, space: TextSpace) -> TextArray:
        """Probability of every text, for texts of one length over the model's words."""
        require_tokens(space, "a LeakyLSTM", self.generator.num_words)
        own, leaked = (
            list(prefix_states(network, space.max_length))
            for network in (self.generator, jax.lax.stop_gradient(self.discriminator))
        )
        log_prefix = jnp.zeros(1)
        for states in zip(own, leaked):
            seen = [s for s, used in zip(states, VARIANTS[self.variant]) if used]
            mixed = jnp.concatenate(seen, axis=1) @ self.mixing_weights
            hidden = jnp.tanh(mixed + self.mixing_biases)
            output = self.generator.output_weights, self.generator.output_biases
            log_next = jax.nn.log_softmax(hidden @ output[0] + output[1])
            log_prefix = (log_prefix[:, None] + log_next).ravel()
        return jnp.exp(log_prefix)


@dataclass(frozen=True)
class LeakGAN(Adversarial):
    """SeqGAN-step for a `LeakyLSTM`, whose discriminator learns at the same time.

    Both move by the gradients of their objectives at each step of `train`: the
    discriminator by that of the log-likelihood of its judgements of all prefixes.

    Args:
        gamma: the discount, in [0, 1].

    Raises:
        ValueError: `gamma` is out of range.

    References:
        Semeniuta et al. 2018, section 3.2, for these simpler variants of LeakGAN.

    Claims: N22.8.
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        within(gamma=self.gamma, low=0, high=1)

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Refuse other models; return an empty state."""
        kind = "a LeakyLSTM (train others with SeqGANStep)"
        require(kind, LeakyLSTM, model=model)
        return ()

    def rewards(
        self, state: Any, model: Any, shares: Array, space: TextSpace, p: Array
    ) -> tuple[Array, Any]:
        """Judge prefixes and sum what follows."""
        logits = prefix_scores(model.discriminator, space)
        return discounted_returns(jax.nn.sigmoid(logits), self.gamma), state

    def ascent(
        self, state: Any, model: Any, space: TextSpace, p: Array, shares: Shares = None
    ) -> Step:
        """Return both directions as one."""
        ascent, state = super().ascent(state, model, space, p, shares)
        q = model.probabilities(space)

        def likelihood(discriminator: LSTMLanguageModel) -> Array:
            logits = prefix_scores(discriminator, space)
            real, fake = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
            return (p @ real + q @ fake).sum()

        learned = jax.grad(likelihood)(model.discriminator)
        return replace(ascent, discriminator=learned), state


@dataclass(frozen=True)
class Sampled:
    """The step of another objective on a batch of texts.

    A batch of the model's texts stands for Q in adversarial objectives, a batch of real
    ones for P in the others. Discriminators, critics and codes stay exact: the noise is
    the generator's.

    Args:
        objective: one of this module or of autoencoders, `WGAN` or `ContinuousWGAN`.
        batch_size: texts in a batch, at least 1.
        seed: of the batches. Models mapped by `jax.vmap` draw different ones.

    Raises:
        TypeError: the objective is none.
        ValueError: `batch_size` is below 1.

    Claims: N22.20.

    Example:
        >>> from lab.generators import LogitTable
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> table, p = LogitTable(jnp.zeros(2)), jnp.array([0.75, 0.25])
        >>> batches = Sampled(MaximumLikelihood(), 2)
        >>> step, _ = batches.ascent(batches.start(table, space, p), table, space, p)
        >>> [-0.5, 0.0, 0.5].count(float(step.logits[0]))
        1
    """

    objective: Objective
    batch_size: int
    seed: int = 0

    def __post_init__(self) -> None:
        require_positive(batch_size=self.batch_size)
        kind = "an Objective, such as SeqGAN() or MaximumLikelihood()"
        require(kind, Objective, objective=self.objective)

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Return a random key, made of the seed and the model, and the inner state."""
        total = sum((leaf**2).sum() for leaf in jax.tree.leaves(model))
        # Rounding, which differs between machines, must not decide on the batches.
        name = jnp.round(2**20 * jnp.asarray(total, float)).astype(int)
        key = jax.random.fold_in(jax.random.key(self.seed), name)
        return key, self.objective.start(model, space, p)

    def ascent(self, state: Any, model: Any, space: TextSpace, p: Array) -> Step:
        """Draw a batch and take its step."""
        key, inner = state
        key, now = jax.random.split(key)
        by_model = isinstance(self.objective, Adversarial)
        drawn = model.probabilities(space) if by_model else p
        texts = jax.random.categorical(now, jnp.log(drawn), shape=(self.batch_size,))
        shares = jnp.bincount(texts, length=space.num_texts) / self.batch_size
        seen = (p, shares) if by_model else (shares,)
        ascent, inner = self.objective.ascent(inner, model, space, *seen)
        return ascent, (key, inner)


def expected_share(weights: PerText, q: PerText, num_rivals: int) -> TextArray:
    r"""Mean of $w_i / (w_i + w_{j_1} + \dots + w_{j_c})$ over rivals drawn from q.

    Since $1/S = \int_0^\infty e^{-sS}\,ds$, it is
    $\int_0^\infty w_i e^{-s w_i} (\sum_j q_j e^{-s w_j})^c\,ds$: for any number of
    rivals a sum over nodes of log s.

    Args:
        weights: w of each text, nonnegative, shape (N,).
        q: distribution that rivals are drawn from, shape (N,).
        num_rivals: c, at least 0.

    Returns:
        Means, shape (N,), to about 1e-12 if positive weights differ by factors of at
        most $10^{20}$. Of weight 0 the mean is 0.

    Raises:
        ValueError: `q` is not a distribution, or a weight or the number is negative.

    Example:
        >>> expected_share(jnp.array([2.0, 1.0]), jnp.array([0.5, 0.5]), 1).round(12)
        Array([0.58333333, 0.41666667], dtype=float64)
    """
    q = as_distribution(q, "q")
    within(num_rivals=num_rivals, low=0)
    weights = jnp.asarray(weights, float)
    logs = jnp.log(weights)
    lightest = jnp.where(weights > 0, logs, jnp.inf).min()
    # The integrand falls like s below the first and like exp(-e^4) above the second.
    first, last = -logs.max() - 36, 4 - lightest
    t = jnp.linspace(first, last, NODES)
    fading = jnp.exp(-jnp.exp(t)[:, None] * weights)
    behind = ((fading @ q) ** num_rivals)[:, None]
    integrand = jnp.exp(t)[:, None] * weights * fading * behind
    return integrand.sum(axis=0) * (last - first) / (NODES - 1)


def discounted_returns(
    rewards: Float[ArrayLike, "texts positions"], gamma: float
) -> Float[Array, "texts positions"]:
    r"""Sum what a token and those after it earn, $R_t = r_t + \gamma R_{t+1}$.

    Args:
        rewards: r of each text and position.
        gamma: the discount, in [0, 1].

    Returns:
        R of each text and position.

    Raises:
        ValueError: `gamma` is out of range.

    Example:
        >>> discounted_returns(jnp.array([[1.0, 2.0, 4.0]]), 0.5).tolist()
        [[3.0, 4.0, 4.0]]
    """
    within(gamma=gamma, low=0, high=1)
    rewards = jnp.asarray(rewards, float)
    gaps = jnp.arange(rewards.shape[1]) - jnp.arange(rewards.shape[1])[:, None]
    later = jnp.where(gaps >= 0, jnp.asarray(gamma, float) ** jnp.maximum(gaps, 0), 0)
    return rewards @ later.T


def prefix_scores(
    network: LSTMLanguageModel, space: TextSpace
) -> Float[Array, "texts max_length"]:
    """Scores of the prefixes of each text: an LSTM's output for their last token."""
    require_tokens(space, "a discriminator", network.num_words)
    columns = []
    for h in prefix_states(network, space.max_length):
        scores = (h @ network.output_weights + network.output_biases).ravel()
        columns.append(jnp.repeat(scores, space.num_texts // scores.size))
    return jnp.stack(columns, axis=1)


def _of_texts(
    discriminator: Discriminator, state: Any, model: Any, space: TextSpace, p: Array
) -> tuple[Array, Any]:
    """Judge whole texts."""
    q = model.probabilities(space)
    logits, state = discriminator.logits(state, q[:, None], p[:, None], space)
    return logits[:, 0], state


def _bounded_ranks(
    weights: Array, q: Array, p: Array, bound: float, num_steps: int
) -> Array:
    """Raise the likelihood of real texts beating rivals, within a box."""
    pairs = p[:, None] * q + q[:, None] * p

    def step(_: Array, weights: Array) -> Array:
        losses = (pairs / (weights[:, None] + weights)).sum(axis=1)
        return jnp.clip(p / losses, jnp.exp(-bound), jnp.exp(bound))

    return jax.lax.fori_loop(0, num_steps, step, weights)
