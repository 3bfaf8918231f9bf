r"""Training by exact gradients: sums over all texts in place of samples.

A step asks an objective for the exact direction of ascent and hands it to an optimiser.
What an objective remembers between steps, such as the weights of a discriminator, is
its state. Rewards that are functions of the model Q and the real P are the objective
that ascends their policy gradient. Its discriminator may be stale: rewards are computed
anew every `discriminator_steps` steps, so that between them the objective is linear in
Q. `train` is one compiled loop and can be mapped over models or real distributions with
`jax.vmap`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from lab.generators.models import LogitTable, Model, require_model
from lab.generators.rewards import as_positive_everywhere, as_rewarded, optimal_rewards
from qdtheory.distributions import (
    as_distribution,
    entropy,
    require_positive,
)
from qdtheory.divergences import (
    bhattacharyya_distance,
    cross_entropy,
    jensen_shannon_divergence,
)
from qdtheory.ngrams import cnd, coverage_rate, negative_repetition_rate
from qdtheory.rewards import Reward, given_reward
from qdtheory.spaces import TextSpace
from qdtheory.support.numbers import Number, PerText, one_of, within
from qdtheory.support.packages import required
from qdtheory.support.records import Record

# What of a run may be not finite, the cause before its effects.
PARTS = (
    "the state of {}, such as its discriminator or rewards,",
    "the direction of {}",
    "the model",
)
# R(q, p): the reward of each text, given the model and the real distribution.
Rewards = Callable[[Array, Array], Array]
# What `ascent` returns: the direction, a pytree like the model, and the new state.
Step: TypeAlias = tuple[Any, Any]


@runtime_checkable
class Objective(Protocol):
    """What a model is trained for: hashable, as compiled code is found by it.

    Frozen dataclasses of numbers and names implement it; those that inherit from it
    have no state unless they say so.
    """

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        """Return the state before the first step, a pytree; () if there is none.

        Raise here if the model or `p` cannot be trained on.
        """
        return ()

    def ascent(self, state: Any, model: Any, space: TextSpace, p: Array) -> Step:
        """Return the expected direction, a pytree like the model, and the new state."""
        ...


@jax.tree_util.register_dataclass
class History(Record):
    """A training run: metrics of the model at each recorded step, and the last model.

    Attributes:
        step: number of steps taken; the first is 0, shape (records,).
        oracle_nll: -sum Q log P, in nats per text, as all of these; minus LL.
        nll: -sum P log Q, the loss of maximum likelihood.
        js: the Jensen-Shannon divergence of P and Q.
        entropy: that of the model; SE.
        bhattacharyya: the Bhattacharyya distance of P and Q.
        cr: coverage rate, the sum of P Q.
        nrr: negative repetition rate, minus the sum of Q^2.
        cnd: squared distance, the sum of (P - Q)^2.
        model: the model after the last step.
    """

    step: Int[Array, "*runs records"]
    oracle_nll: Float[Array, "*runs records"]
    nll: Float[Array, "*runs records"]
    js: Float[Array, "*runs records"]
    entropy: Float[Array, "*runs records"]
    bhattacharyya: Float[Array, "*runs records"]
    cr: Float[Array, "*runs records"]
    nrr: Float[Array, "*runs records"]
    cnd: Float[Array, "*runs records"]
    model: Any


def train(
    objective: Reward | str | Rewards | Objective,
    model: Model,
    space: TextSpace,
    p: PerText,
    num_steps: int,
    *,
    training: PerText | None = None,
    optimizer: str = "adam",
    learning_rate: Number = 0.01,
    discriminator_steps: int = 1,
    every: int = 1,
) -> History:
    r"""Train a model by exact gradients.

    Args:
        objective: a reward of the optimal discriminator (see `REWARDS`), its name or
            formula; rewards(q, p), which JAX can trace: the reward of each text, given
            the model and the real distribution, shape (N,); or an `Objective`.
        model: any pytree with `probabilities(space)`.
        space: the texts.
        p: the real distribution, positive, shape (num_texts,).
        num_steps: number of steps, a multiple of `every`.
        training: what the objective sees in place of p, such as the shares of the texts
            of a training set, shape (num_texts,). The metrics are against p.
        optimizer: "adam"; "sgd"; or "replicator", steps of the flow
            $\dot Q_i = Q_i (R_i - \sum_j Q_j R_j)$, for a `LogitTable`.
        learning_rate: of the optimiser, or the time step of the flow; positive.
        discriminator_steps: k, the number of steps on the same rewards; an `Objective`
            keeps a state of its own.
        every: number of steps between records.

    Returns:
        The metrics at steps 0, `every`, 2 `every`, ..., and the last model. Runs with
        several seeds are one run of `jax.vmap` over the model or p; mapped or compiled,
        a run that diverges is NaN from there on.

    Raises:
        TypeError: the model has no `probabilities`, or the objective is none.
        ValueError: the model does not fit the space, `p` is not a positive distribution
            over it, `training` is none or lacks a text whose reward is then infinite,
            the reward falls, or a number or the optimiser is out of range.
        FloatingPointError: the run diverged; the message names the step and what was
            not finite first, the objective's state, its direction or the model.
        RuntimeError: the linear program of a critic was not solved.
        ModuleNotFoundError: Optax is missing.

    References:
        Yu et al. 2017 (SeqGAN), with one generator step on a discriminator.

    Claims: N20.9, N20.15.

    Example:
        >>> space = TextSpace(vocab_size=2, lengths=1)
        >>> table, p = LogitTable(jnp.zeros(2)), jnp.array([0.75, 0.25])
        >>> found = train("logit D", table, space, p, 900)
        >>> found.model.probabilities(space).round(6).tolist()
        [0.75, 0.25]
    """
    require_model(model, space)
    p = as_positive_everywhere(p, space.num_texts)
    require_positive(
        num_steps=num_steps, discriminator_steps=discriminator_steps, every=every
    )
    if num_steps % every:
        raise ValueError(
            f"num_steps must be a multiple of every = {every}, got {num_steps}"
        )
    within(learning_rate=learning_rate, low=0, ends="()")
    if optimizer == "replicator" and not isinstance(model, LogitTable):
        raise ValueError(
            "the replicator flow moves each text by itself: take a LogitTable, got a "
            f"{type(model).__name__}"
        )
    name = f"{objective!r:.60}"
    seen = p if training is None else as_distribution(training, "training", p.size)
    if not isinstance(objective, Objective):
        objective = _rewarded(objective, seen, discriminator_steps)
    elif discriminator_steps != 1:
        raise ValueError(
            f"discriminator_steps is for rewards; {objective!r:.60} keeps a state of "
            "its own"
        )
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), model)
    settings = (objective, space, optimizer, num_steps // every, every)
    _optimizer(optimizer)  # an unknown one is refused before anything is compiled
    state = objective.start(model, space, seen)
    try:
        history, failure = _train(settings, model, state, p, seen, learning_rate)
        if not isinstance(failure, Tracer):
            # Read here, as an error inside compiled code comes with the values.
            step, part = np.asarray(failure).tolist()
            _require_finite(step, part, name, learning_rate)
    except jax.errors.JaxRuntimeError as error:
        # The last line of an error that was raised inside compiled code.
        lines = [line for line in str(error).splitlines() if "Error: " in line]
        cause = lines[-1].split("Error: ", 1)[1] if lines else str(error)
        raise RuntimeError(cause) from None
    return history


def _require_finite(step: int, part: int, name: str, learning_rate: Number) -> None:
    """Raise if a part of the run was not finite at some step."""
    if step < 0:
        return
    if step == 0:
        raise FloatingPointError(
            "the model has parameters that are not finite before the first step; its "
            "training diverged, so train it anew at a lower learning rate"
        )
    kept = f"; num_steps={step - 1} keeps the steps before it" if step > 1 else ""
    raise FloatingPointError(
        f"training diverged at step {step}: {PARTS[part].format(name)} is not finite; "
        f"take a learning_rate below {learning_rate:g}{kept}"
    )


@dataclass(frozen=True)
class _Rewarded(Objective):
    """The policy gradient of rewards that are kept for some steps.

    Their number is part of the state, so that one compiled loop serves all.
    """

    rewards: Reward | Rewards
    steps: int = field(compare=False)

    def start(self, model: Any, space: TextSpace, p: Array) -> Any:
        return jnp.array(0), jnp.asarray(self.steps), jnp.zeros_like(p)

    def ascent(self, state: Any, model: Any, space: TextSpace, p: Array) -> Step:
        number, steps, rewards = state
        q, pull = jax.vjp(lambda m: m.probabilities(space), model)
        if isinstance(self.rewards, Reward):
            now = optimal_rewards(self.rewards, q, p)
        else:
            now = self.rewards(q, p)
        rewards = jnp.where(number % steps == 0, now, rewards)
        return pull(rewards)[0], (number + 1, steps, rewards)


def _rewarded(objective: Reward | str | Rewards, p: Array, steps: int) -> Objective:
    """The rewards of each text; of a reward of D, at the optimal discriminator."""
    if isinstance(objective, Reward | str):
        reward = given_reward(objective)
        as_rewarded(reward, p, "training")
        if reward.formula is None:  # code, which each run compiles anew
            return _Rewarded(partial(optimal_rewards, reward), steps)
        return _Rewarded(reward, steps)
    if not callable(objective):
        raise TypeError(
            "expected a reward, its name or a formula of D, rewards(q, p) or an "
            f"Objective; got {objective!r:.60}"
        )
    objective = partial(objective)  # compiled anew, whatever it reads
    shape = jax.eval_shape(objective, p, p).shape
    if shape != p.shape:
        raise ValueError(
            f"rewards(q, p) must have one entry a text, {p.shape}, got shape {shape}"
        )
    return _Rewarded(objective, steps)


def _optimizer(name: str) -> Any:
    """Directions of descent, without the learning rate."""
    with required("training", "train"):
        import optax
    plain = optax.identity
    known = {"adam": optax.scale_by_adam, "sgd": plain, "replicator": plain}
    one_of(known, optimizer=name)
    return known[name]()


@partial(jax.jit, static_argnums=0)
def _train(
    settings: tuple[Objective, TextSpace, str, int, int],
    model: Any,
    state: Any,
    p: Array,
    seen: Array,
    learning_rate: Number,
) -> tuple[History, Array]:
    """The run, and at which step (-1: none) which part was not finite first."""
    objective, space, name, num_records, every = settings
    optimizer = _optimizer(name)

    def step(number: Array, carry: tuple) -> tuple:
        model, moments, state, failure = carry
        ascent, state = objective.ascent(state, model, space, seen)
        if name == "replicator":
            ascent = LogitTable(ascent.logits / model.probabilities(space))
        direction, moments = optimizer.update(ascent, moments)
        move = partial(jax.tree.map, lambda leaf, way: leaf + learning_rate * way)
        model = move(model, direction)
        finite = jnp.stack([_finite(tree) for tree in (state, ascent, model)])
        now = jnp.stack([number + 1, finite.argmin()])  # the first that is not
        failure = jnp.where((failure[0] >= 0) | finite.all(), failure, now)
        return model, moments, state, failure

    def interval(carry: tuple, start: Array) -> tuple[tuple, dict]:
        carry = jax.lax.fori_loop(start, start + every, step, carry)
        return carry, _metrics(carry[0].probabilities(space), p)

    steps = every * jnp.arange(num_records + 1)
    failure = jnp.where(_finite(model), -1, jnp.array([0, 2]))
    carry = model, optimizer.init(model), state, failure
    first = _metrics(model.probabilities(space), p)
    (model, *_, failure), rest = jax.lax.scan(interval, carry, steps[:-1])
    metrics = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)
    return History(step=steps, model=model, **metrics), failure


def _finite(tree: Any) -> Array:
    """Whether all real numbers of a pytree are finite."""
    leaves = [
        jnp.isfinite(leaf).all()
        for leaf in jax.tree.leaves(tree)
        if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)
    ]
    return jnp.stack([*leaves, jnp.bool_(True)]).all()


def _metrics(q: Array, p: Array) -> dict[str, Array]:
    return {
        "oracle_nll": cross_entropy(q, p),
        "nll": cross_entropy(p, q),
        "js": jensen_shannon_divergence(p, q),
        "entropy": entropy(q),
        "bhattacharyya": bhattacharyya_distance(q, p),
        "cr": coverage_rate(q, p),
        "nrr": negative_repetition_rate(q),
        "cnd": cnd(q, p),
    }
