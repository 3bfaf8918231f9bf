"""Tune and stop every GAN of Semeniuta et al. on held-out texts; tuned_generators.csv.

    python notebooks/data/make_tuned_generators.py FOLDER [--oracles 100]

Oracles, generators and training texts are those of `make_generators.py`: the models see
128 texts, never P; 128 others are held out. For each model 16 learning rates are drawn
as the book's random search draws them, from 1e-5 to .1, evenly in the logarithm. Each
run of 600 steps is looked at 30 times, and the best checkpoint of all runs is the row's
model. What is best (column `selected`) is said by one of two criteria:

* `held-out`: the likelihood of the held-out texts. The laws of continuous generators
  have zeros, so for them it is the Wasserstein distance of their atoms to these texts.
* `FD`: the Fréchet distance of `make_protocol.py` between 500 texts by the model and
  the held-out ones, as in the paper.

Rows of an oracle:

* MLE, an LSTM of 4 hidden units. Six discrete GANs, which start from a model trained
  by maximum likelihood, its rate and its end chosen by the likelihood of the held-out
  texts, or from a random one (column `pretrained`) with 1,200 steps. The
  discriminators of SeqGANs read bigrams and take 5 steps for each of the generator's,
  or are optimal. LeakGAN's learns along, at a rate of its own, which is drawn too
  (column `second_rate`). gamma is 1.
* Two continuous GANs that are not pretrained, with 16, 64 or 256 atoms (column
  `atoms`), and their texts by argmax. Each step has the optimal critic ("exact"). As
  each text and each atom is a multiple of the same mass, the plan is an assignment. Or
  the critic ("penalised") is a convolution of two tokens over embedded texts, which
  learns along for 3,000 steps at a rate of its own; the penalty, of weight 10, is on
  its slope at 64 random points a step. "Free atoms" have parameters of their own in
  place of a network. They take most of the time, so that they are trained on every
  tenth oracle only, with 256 atoms on every fiftieth.

`moved` is the Jensen-Shannon divergence from the model before the adversarial steps;
the other metrics are exact. A row's model is the selected run itself, not the mean of
seven fresh seeds.

As in `make_generators.py`, a run that is killed loses the oracle under way only. All
take some 20 minutes of CPU time, two of them to compile.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
# Else a callback may wait for ever for its arguments, where there is one core.
jax.config.update("jax_cpu_enable_async_dispatch", False)
import optax
import tables
from lab.generators import (
    AtomTable,
    ContinuousWGAN,
    LeakGAN,
    LeakyLSTM,
    MaximumLikelihood,
    Range,
    SeqGAN,
    SeqGANStep,
)
from lab.generators.training import Objective
from make_generators import BIGRAMS, CONTINUOUS, LEAKS, NUM_TEXTS, SIZE, SPACE, lstm
from make_generators import SIGMA as SCALE
from make_protocol import FEATURES, METRICS, NUM_SAMPLES, measured
from scipy.optimize import linear_sum_assignment

import qdtheory as qd
from qdtheory.support.records import Record

STEPS, CHECKPOINTS, TRIALS, RATES = 600, 30, 16, Range(1e-5, 0.1)
FRESH, LEARNING = 2 * STEPS, 5 * STEPS
# Atoms of continuous generators, and on which share of the oracles they have so many.
ATOMS, PENALISED = {16: 10, 64: 10, 256: 50}, 64
EMBEDDING, UNITS, PENALTY, NUM_POINTS = 4, 16, 10.0, 64
CRITERIA = "held-out", "FD"
SEQGANS = {
    "SeqGAN-reinforce": (SeqGAN(BIGRAMS), SeqGAN()),
    "SeqGAN-step": (SeqGANStep(discriminator=BIGRAMS), SeqGANStep()),
    "SeqGAN-rollouts": (SeqGAN(BIGRAMS, lag=0.8), SeqGAN(lag=0.8)),
}
KIND = "model", "discriminator", "pretrained", "atoms"
COLUMNS = (
    *("oracle", *KIND, "selected", "rate", "second_rate", "step", "criterion"),
    *("moved", *METRICS),
)
SETTINGS = (
    f"{NUM_TEXTS} texts, {NUM_TEXTS} held out, LSTM {SIZE}, {TRIALS} rates, {STEPS} "
    f"steps, {CHECKPOINTS} checkpoints; FD of {NUM_SAMPLES} texts; "
    "continuous GANs on every 10th oracle, with 256 atoms on every 50th"
)


# --- Continuous generators ------------------------------------------------------------


@dataclass(frozen=True)
class Assigned(ContinuousWGAN):
    """`ContinuousWGAN` for the shares of texts: assignments are quicker."""

    def ascent(self, state: Any, model: Any, space: Any, p: Any) -> Any:
        """Move each atom towards the texts that are assigned to it."""
        descent = jax.grad(lambda model: distance(model, p))(model)
        return jax.tree.map(jnp.negative, descent), state


def distance(model: Any, shares: jax.Array) -> jax.Array:
    """W1 between a model's atoms and texts, whose shares are multiples of 1/128."""
    atoms, texts = model.atoms(SPACE), jax.nn.one_hot(SPACE.tokens, 4)
    squares = ((atoms[:, None] - texts) ** 2).sum(axis=(-2, -1))
    cost = jnp.sqrt(jnp.maximum(squares, 1e-18))
    shape = jax.ShapeDtypeStruct(cost.shape, float)
    fixed = jax.lax.stop_gradient(cost)
    # The plans of all trials in one call.
    plan = jax.pure_callback(plans, shape, fixed, shares, vmap_method="broadcast_all")
    return (plan * cost).sum()


def plans(costs: Any, shares: Any) -> np.ndarray:
    """Optimal plans between atoms and texts, each cut into pieces of the same mass."""
    costs, shares = np.asarray(costs), np.asarray(shares)
    found = np.zeros_like(costs)
    for place in np.ndindex(costs.shape[:-2]):
        cost = costs[place]
        size = max(len(cost), NUM_TEXTS)
        counts = np.rint(size * shares[place]).astype(int)
        rows = np.repeat(np.arange(len(cost)), size // len(cost))
        columns = np.repeat(np.arange(len(counts)), counts)
        if np.isfinite(cost).all():
            _, chosen = linear_sum_assignment(cost[rows][:, columns])
            np.add.at(found[place], (rows, columns[chosen]), 1 / size)
        else:  # a run that diverged goes on with NaN
            found[place] = np.nan
    return found


@jax.tree_util.register_dataclass
class Critic(Record):
    """A convolution over embedded tokens, rectified, and a sum."""

    embeddings: jax.Array
    kernel: jax.Array
    biases: jax.Array
    output: jax.Array

    def __call__(self, texts: jax.Array) -> jax.Array:
        """Judge texts whose tokens are rows of probabilities, (..., length, vocab)."""
        embedded = texts @ self.embeddings
        windows = jnp.stack([embedded[..., :-1, :], embedded[..., 1:, :]], axis=-2)
        units = jnp.einsum("...lwe,weu->...lu", windows, self.kernel) + self.biases
        return (jax.nn.relu(units) * self.output).sum(axis=(-2, -1))


@jax.tree_util.register_dataclass
class Rivals(Record):
    """A continuous generator with its critic."""

    generator: Any
    discriminator: Critic

    @classmethod
    def random(cls, key: Any, draw: Any) -> "Rivals":
        """Draw both."""
        first, *keys = jax.random.split(key, 4)
        shapes = (4, EMBEDDING), (2, EMBEDDING, UNITS), (SPACE.max_length - 1, UNITS)
        e, k, o = (jax.random.normal(*x) / 2 for x in zip(keys, shapes))
        return cls(draw(first), Critic(e, k, jnp.zeros(UNITS), o))

    def atoms(self, space: Any) -> jax.Array:
        """Those of the generator."""
        return self.generator.atoms(space)

    def probabilities(self, space: Any) -> jax.Array:
        """The law of the generator."""
        return self.generator.probabilities(space)


@dataclass(frozen=True)
class Penalised(Objective):
    """Equation 1 of the paper, its two means over texts exact."""

    def start(self, model: Any, space: Any, p: Any) -> Any:
        """A key for the points of the penalty."""
        return jax.random.key(0)

    def ascent(self, state: Any, model: Any, space: Any, p: Any) -> Any:
        """Both directions as one."""
        state, *keys = jax.random.split(state, 4)
        texts, atoms = jax.nn.one_hot(space.tokens, 4), model.atoms(space)
        shape = (NUM_POINTS,)
        real = texts[jax.random.categorical(keys[0], jnp.log(p), shape=shape)]
        fake = atoms[jax.random.randint(keys[1], shape, 0, len(atoms))]
        shares = jax.random.uniform(keys[2], (NUM_POINTS, 1, 1))
        between = real + shares * (fake - real)

        def gained(critic: Critic) -> jax.Array:
            slopes = jax.vmap(jax.grad(critic))(between)
            lengths = jnp.sqrt((slopes**2).sum(axis=(1, 2)) + 1e-12)
            apart = p @ critic(texts) - critic(atoms).mean()
            return apart - PENALTY * ((lengths - 1) ** 2).mean()

        def pleased(generator: Any) -> jax.Array:
            return model.discriminator(generator.atoms(space)).mean()

        pair = jax.grad(pleased)(model.generator), jax.grad(gained)(model.discriminator)
        return Rivals(*pair), state


# --- Search ---------------------------------------------------------------------------


def drawn_rates(oracle: int, model: int) -> jax.Array:
    """Rates of the generator and of what learns along, a row a trial."""
    shares = np.random.default_rng([oracle, model]).random((TRIALS, 2))
    return jnp.array([[RATES.at(share) for share in row] for row in shares])


def criteria(model: Any, held: jax.Array, key: Any) -> jax.Array:
    """What selects; less is better."""
    q = model.probabilities(SPACE)
    if hasattr(model, "atoms"):
        first = distance(model, held)
    else:
        first = qd.cross_entropy(held, q)
    drawn = jnp.searchsorted(jnp.cumsum(q), jax.random.uniform(key, (NUM_SAMPLES,)))
    shares = jnp.bincount(drawn, length=SPACE.num_texts) / NUM_SAMPLES
    return jnp.stack([first, frechet(shares, held)])


def frechet(q: jax.Array, p: jax.Array) -> jax.Array:
    """The squared Fréchet distance, which the library's function does not trace."""
    means, roots = [], []
    for law in (q, p):
        means.append(law @ FEATURES)
        apart = FEATURES - means[-1]
        values, vectors = jnp.linalg.eigh((law * apart.T) @ apart)
        roots.append(vectors * jnp.sqrt(values.clip(0)) @ vectors.T)
    a, b = roots
    common = jnp.linalg.svd(a @ b, compute_uv=False).sum()
    shift = means[0] - means[1]
    return shift @ shift + (a**2).sum() + (b**2).sum() - 2 * common


@jax.tree_util.register_dataclass
class Best(Record):
    """The best checkpoint by each criterion."""

    loss: jax.Array
    step: jax.Array
    rates: jax.Array
    model: Any


@partial(jax.jit, static_argnums=(0, 1))
def searched(
    objective: Any, steps: int, model: Any, texts: Any, rates: Any, key: Any
) -> Best:
    """The best checkpoint of all trials, which differ in their rates."""
    adam, every, (seen, held) = optax.scale_by_adam(), steps // CHECKPOINTS, texts

    def trial(rates: jax.Array, key: Any) -> Best:
        speeds = jax.tree.map(lambda _: rates[0], model)
        if hasattr(model, "discriminator"):
            second = jax.tree.map(lambda _: rates[1], model.discriminator)
            speeds = replace(speeds, discriminator=second)

        def step(_: int, at: tuple) -> tuple:
            model, moments, state = at
            ascent, state = objective.ascent(state, model, SPACE, seen)
            way, moments = adam.update(ascent, moments)
            model = jax.tree.map(lambda x, s, w: x + s * w, model, speeds, way)
            return model, moments, state

        def interval(carry: tuple, number: jax.Array) -> tuple:
            at, best = carry
            at = jax.lax.fori_loop(0, every, step, at)
            found = criteria(at[0], held, jax.random.fold_in(key, number))
            now = Best(found, jnp.full(2, every * number), best.rates, twice(at[0]))
            return (at, picked(found < best.loss, now, best)), None

        state = objective.start(model, SPACE, seen)
        first = Best(
            jnp.full(2, jnp.inf), jnp.zeros(2, int), twice(rates), twice(model)
        )
        start = (model, adam.init(model), state), first
        numbers = 1 + jnp.arange(CHECKPOINTS)
        return jax.lax.scan(interval, start, numbers)[0][1]

    found = jax.vmap(trial)(rates, jax.random.split(key, len(rates)))
    which = found.loss.argmin(axis=0)
    return jax.tree.map(lambda leaf: leaf[which, jnp.arange(2)], found)


def twice(tree: Any) -> Any:
    """One for each criterion."""
    return jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), tree)


def picked(better: jax.Array, new: Any, old: Any) -> Any:
    """For each criterion the better of two."""

    def choose(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(better.reshape(2, *(old.ndim - 1) * [1]), new, old)

    return jax.tree.map(choose, new, old)


# --- The table ------------------------------------------------------------------------


def models(oracle: int, search: Any) -> Iterator[tuple]:
    """What a row begins with, the best models, and the one before adversarial steps."""
    key, likelihood = jax.random.key(1000 + oracle), MaximumLikelihood()
    fresh = lstm(key)
    found = search(likelihood, fresh)
    yield ("MLE", "", "", ""), found, None
    start = jax.tree.map(lambda leaf: leaf[0], found.model)
    for name, pair in SEQGANS.items():
        for kind, objective in zip(("bigrams", "optimal"), pair):
            yield (name, kind, "yes", ""), search(objective, start), start
        yield (name, "bigrams", "no", ""), search(pair[0], fresh, FRESH), fresh
    for variant in LEAKS:
        name = f"LeakGAN-{variant}", "learning"
        fresh = LeakyLSTM.random(key, 4, variant, SIZE, SCALE)
        found = search(likelihood, fresh)
        start = jax.tree.map(lambda leaf: leaf[0], found.model)
        yield (f"MLE, {variant}", "", "", ""), found, None
        yield (*name, "yes", ""), search(LeakGAN(), start), start
        yield (*name, "no", ""), search(LeakGAN(), fresh, FRESH), fresh
    for size in (size for size, every in ATOMS.items() if oracle % every == 0):
        free = AtomTable(jax.random.normal(key, (size, SPACE.max_length, 4)))
        yield ("Free atoms", "exact", "no", size), search(Assigned(), free), free
        for name, kind in CONTINUOUS.items():
            draw = partial(kind.random, space=SPACE, num_atoms=size)
            fresh = draw(key)
            yield (name, "exact", "no", size), search(Assigned(), fresh), fresh
            if size == PENALISED:
                pair = Rivals.random(key, draw)
                found = search(Penalised(), pair, LEARNING)
                yield (name, "penalised", "no", size), found, pair


def searches(oracle: int) -> tuple[jax.Array, Any]:
    """P, and a search on texts of it: its number, if not the next, draws its rates."""
    p = qd.oracle(SPACE, oracle)
    shares = []
    # The first are those of the other tables.
    for key in (jax.random.key(oracle), jax.random.key(10_000 + oracle)):
        texts = qd.sample(key, p, NUM_TEXTS)
        shares.append(jnp.bincount(texts, length=SPACE.num_texts) / NUM_TEXTS)
    count = iter(range(100))

    def search(
        objective: Any, model: Any, steps: int = STEPS, number: int | None = None
    ) -> Best:
        number = next(count) if number is None else number
        key = jax.random.fold_in(jax.random.key(20_000 + oracle), number)
        rates = drawn_rates(oracle, number)
        return searched(objective, steps, model, shares, rates, key)

    return p, search


def rows(oracle: int) -> list[list]:
    """All models of an oracle, as each criterion selects them."""
    p, search = searches(oracle)
    table = []
    for kind, found, before in models(oracle, search):
        for k, name in enumerate(CRITERIA):
            best = jax.tree.map(lambda leaf, k=k: leaf[k], found)
            q = best.model.probabilities(SPACE)
            moved, second = "", ""
            if before is not None:
                start = before.probabilities(SPACE)
                moved = float(qd.jensen_shannon_divergence(start, q))
            if kind[1] in ("learning", "penalised"):
                second = float(best.rates[1])
            chosen = float(best.rates[0]), second, int(best.step), float(best.loss)
            values = measured(q, p)
            exact = [values[x] if np.isfinite(values[x]) else "" for x in METRICS]
            table.append([oracle, *kind, name, *chosen, moved, *exact])
    return table


def main() -> None:
    """Make the parts that are missing, then write the table in one go."""
    packages = "jax", "optax", "scipy"
    tables.in_parts(__doc__, "tuned_generators", COLUMNS, SETTINGS, packages, rows, 100)


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_tuned_generators

    make_tuned_generators.main()
