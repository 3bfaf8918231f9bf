"""Autoencoders with codes of 1 to 8 dimensions; write code_dimensions.csv.

    python notebooks/data/make_code_dimensions.py FOLDER [--oracles 8]

On a line or a circle a grid makes an autoencoder exact. In more dimensions there is no
grid of use, and codes are drawn: in training, fresh noise around each text's code; in
measuring, from the prior. The probability of every text given a code is still known, so
that the law of a model is a mean over codes, whose standard error is a column. Models
of an oracle see the same draws from the prior.

* Two spaces: 64 texts, 3 tokens of 4, and 729 texts, 6 tokens of 3. Oracles are those
  of notebook 20, random LSTMs of size 32.
* The kinds of `AUTOENCODERS` but ARAE, whose optimal critic sorts a line, from the same
  starts and by the same steps as in generators.csv. A dimension is one of the surface:
  a sphere of dimension d lies in d + 1 coordinates. Noise on it is von Mises and
  Fisher's, with concentration 1 / sigma^2. The optimal discriminator is exact, since
  the mean posterior is a mixture with a part for each text; only its mean is drawn.
* Noise of deviation .1 in each of the paper's 100 dimensions is as long as the sphere's
  radius, and shorter in fewer. Two more kinds, "(noise 1)", have sigma = d^(-1/2).
* "ARAE (default)": the defaults of its authors' code of August 2017, which the paper
  also tests. Codes on a sphere; noise off it, of deviation .2, multiplied by .995 every
  100 of some 46,900 batches, which are 15 epochs of 200,000 sentences; a critic of two
  layers with weights in [-.01, .01], 5 steps for each of the generator's; .01 of its
  slope, scaled to that of the decoder, passed to the encoder. Theirs repeats the steps
  of critic and generator once to four times a batch, 3.4 on average; ours takes them
  once, and rates and slope are 3.4 times as large. There are fewer steps, and rates are
  higher by as much, so that a weight can travel as far. The critic's layers have 64
  units in place of 300, the generator is that of the other ARAE, without normalisation
  of batches; the decoder's part is a mean over all texts, and its steps are Adam's, not
  those of SGD at a rate of 1.
* Rows "grid" are trained and measured exactly (column `trained`, `measured`); "draws"
  either way is by draws. Those trained on a grid and measured by draws are the check.

`greedy_nll` is the reverse cross-entropy of texts decoded greedily; `read_` are those
of texts decoded greedily from their own codes, BLEU-3 and ROUGE-3.

Parts are oracles, of one space and of the other in turn: eight are four of each.
A second table, code_places.csv, has a hundred codes of each of the ten likeliest texts
of the first oracle, for the four kinds that the paper's figure shows: those of two
dimensions as they are, on a sphere by longitude and latitude, those of eight by t-SNE,
with scikit-learn, which the extra `peers` brings. As in the paper some noise is added,
so that equal codes are seen. `nearest` is the text among the ten whose code is nearest,
before this noise and t-SNE.

A part file is written for each, see make_generators.py. All take some 11 minutes of CPU
time, three of them to compile.
"""

from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

jax.config.update("jax_enable_x64", True)
import make_generators as generators
import tables
from lab.generators import AUTOENCODERS, Autoencoder, Elbo, greedy_texts
from lab.generators.autoencoder_objectives import (
    RESOLUTION,
    AutoencoderSetup,
)
from lab.generators.autoencoders import Perceptron, masked_prefixes
from lab.generators.reconstruction import rouge_table

import qdtheory as qd
from qdtheory.kernels import bleu_of_pairs

SPACES = {3: qd.TextSpace(vocab_size=4, lengths=3), 6: qd.TextSpace(3, lengths=6)}
DIMENSIONS = {3: (1, 2, 4, 8), 6: (8,)}
# Noisy codes of each text in a step of training, and codes to measure a model with.
CODES = {3: 16, 6: 1}
# Texts of P, drawn, whose codes the optimal discriminator sees in a step, if not all.
JUDGED = 128
DRAWS, CHUNK = {3: 2**16, 6: 2**14}, 2**12
STEPS, RATE = 2 * generators.STEPS, generators.RATES[generators.STEPS]
EXACT = "VAE (dw=0.5)", "AAE-gauss", "AE-sph (sigma=0.1)", "AAE-sph (sigma=0.1)"
DEFAULT = "ARAE (default)"
METRICS = "nll", "oracle_nll", "js", "greedy_nll"
READ = "read_nll", "read_accuracy", "read_bleu", "read_rouge"
COLUMNS = (
    *("length", "oracle", "dimension", "model", "trained", "measured"),
    *(f"{m}{end}" for m in METRICS for end in ("", "_error")),
    *READ,
)
SETTINGS = (
    f"dimensions {DIMENSIONS}, Adam {RATE}, 2 x {generators.STEPS} steps, "
    f"codes {CODES}, draws {DRAWS}, {JUDGED} texts for a discriminator"
)
# Of a sphere's noise: points of the table of quantiles.
QUANTILES = 4096
# What the paper's Figure 1 shows, and the deviation of the noise added to see it.
SHOWN = {
    "AAE-gauss-det": "AAE-gauss-det (lambda=10 d=1)",
    "VAE": "VAE (dw=0.5)",
    "AE-sph": "AE-sph (sigma=0.1)",
    "AAE-sph": "AAE-sph (sigma=0.1)",
    "AE-sph, noise 1": "AE-sph (noise 1)",
}
SPREAD = 0.02


# --- Models ---------------------------------------------------------------------------


def kinds(dimension: int) -> dict[str, AutoencoderSetup]:
    """Setups of all models but ARAE, by name."""
    found = {name: s for name, s in AUTOENCODERS.items() if name != "ARAE"}
    for name in ("AE-sph", "AAE-sph"):
        known = AUTOENCODERS[f"{name} (sigma=0.1)"]
        found[f"{name} (noise 1)"] = replace(known, sigma=dimension**-0.5)
    return found


def drawn(
    setup: AutoencoderSetup, space: qd.TextSpace, dimension: int, oracle: int
) -> Autoencoder:
    """The start of `AutoencoderSetup.model`, with codes of more dimensions.

    Its grid says only which surface the codes lie on.
    """
    keys = jax.random.split(jax.random.key(1000 + oracle), 3)
    width = dimension + (setup.grid.rule == "circle")
    codes = jax.random.normal(keys[0], (space.num_texts, width))
    outputs = (len(masked_prefixes(space)) + 1) * space.vocab_size
    decoder = Perceptron.random(keys[1], width, outputs)
    log_sigma = None
    if setup.sigma is not None and setup.grid.rule == "normal":
        log_sigma = jnp.full(codes.shape, jnp.log(setup.sigma))
    moved = Perceptron.random(keys[2], width, width) if setup.learned_prior else None
    return Autoencoder(codes, log_sigma, decoder, moved, setup.grid)


def kind(setup: AutoencoderSetup) -> str:
    """Setups of one kind are trained side by side; only numbers tell them apart."""
    if isinstance(setup.objective, Elbo):
        return "VAE"
    noise = "" if setup.sigma is None else ", noisy"
    return {"normal": "line", "circle": "circle"}[setup.grid.rule] + noise


def numbers(setup: AutoencoderSetup, dimension: int) -> dict[str, Any]:
    """What tells setups of one kind apart."""
    objective = setup.objective
    found = {
        name: float(getattr(objective, name, default))
        for name, default in (("keep", 1), ("bag_weight", 0), ("weight", 0))
    }
    if kind(setup) == "circle, noisy":
        found["kappa"] = setup.sigma**-2
        found["quantiles"], found["log_mean"] = sphere_noise(setup.sigma, dimension)
    return found


@lru_cache(maxsize=64)
def sphere_noise(sigma: float, dimension: int) -> tuple[np.ndarray, float]:
    """Quantiles of the cosine to the code, and its log-density's constant.

    Of von Mises and Fisher's law, of density proportional to exp(cos / sigma^2).
    """
    angle = np.linspace(0, np.pi, 200_001)
    cosine, kappa = np.cos(angle), sigma**-2
    surface = np.sin(angle) ** (dimension - 1)
    mass = surface * np.exp(kappa * (cosine - 1))
    below = np.cumsum(mass[1:] + mass[:-1]) / (mass[1:] + mass[:-1]).sum()
    at = (np.arange(QUANTILES) + 0.5) / QUANTILES
    quantiles = np.interp(at, np.concatenate([[0], below]), cosine)
    mean = np.trapezoid(mass) / np.trapezoid(surface)
    return quantiles, kappa + np.log(mean)


@lru_cache(maxsize=4)
def rows_seen(space: qd.TextSpace) -> np.ndarray:
    """The decoder's row for the t-th token of a text whose first tokens are masked.

    Shape (texts, length, masks): a bit of the last axis for each masked token.
    """
    row = {prefix: i for i, prefix in enumerate(masked_prefixes(space))}
    length = space.max_length
    found = np.zeros((space.num_texts, length, 2 ** (length - 1)), int)
    for i, text in enumerate(space.tokens.tolist()):
        for t in range(length):
            for hidden in product((0, 1), repeat=t):
                bits = sum(h << k for k, h in enumerate(hidden))
                found[i, t, bits] = row[
                    tuple(-1 if h else a for a, h in zip(text, hidden))
                ]
    return found


def own_logs(
    model: Autoencoder, space: qd.TextSpace, z: jax.Array, rows: jax.Array
) -> jax.Array:
    """Log-likelihood of each text given its own codes, shape (texts, codes).

    By the decoder's rows that it needs, of shape (texts, codes, length).
    """
    size, decoder = space.vocab_size, model.decoder
    hidden = jnp.tanh(z @ decoder.inner + decoder.inner_biases)
    shown = jnp.concatenate([z, hidden], axis=-1)
    outer = decoder.outer.T.reshape(-1, size, shown.shape[-1])[rows]
    biases = decoder.outer_biases.reshape(-1, size)[rows]
    logits = jnp.einsum("nsw,nslvw->nslv", shown, outer) + biases
    tokens = jnp.asarray(space.tokens)[:, None, :, None]
    logs = jax.nn.log_softmax(logits)
    return jnp.take_along_axis(logs, tokens, axis=-1)[..., 0].sum(axis=-1)


def masked_rows(space: qd.TextSpace, keep: Any, num_codes: int, key: Any) -> jax.Array:
    """Rows of the decoder after word dropout, shape (texts, codes, length)."""
    table, length = jnp.asarray(rows_seen(space)), space.max_length
    hidden = jax.random.bernoulli(
        key, 1 - keep, (space.num_texts, num_codes, length - 1)
    )
    bits = jnp.cumsum(hidden * 2 ** jnp.arange(length - 1), axis=-1)
    bits = jnp.pad(bits, ((0, 0), (0, 0), (1, 0)))
    at = jnp.arange(space.num_texts)[:, None, None], jnp.arange(length), bits
    return table[at]


def noisy(model: Autoencoder, n: dict, which: str, noise: Any, share: Any) -> jax.Array:
    """Codes with noise, shape (texts, codes, width)."""
    mean = model.text_codes()[:, None]
    if which in ("VAE", "line, noisy"):
        return mean + jnp.exp(model.log_sigma)[:, None] * noise
    if which == "line":
        return mean + RESOLUTION * noise
    aside = noise - (noise * mean).sum(axis=-1, keepdims=True) * mean
    aside = aside / jnp.linalg.norm(aside, axis=-1, keepdims=True)
    at = (share * QUANTILES).astype(int)
    cosine = n["quantiles"][at][..., None]
    return cosine * mean + jnp.sqrt(1 - cosine**2) * aside


def log_ratio(model: Autoencoder, n: dict, which: str, p: Any, z: Any) -> jax.Array:
    """The mean posterior over the prior at codes, whose model is held fixed."""
    mean = jax.lax.stop_gradient(model.text_codes())
    if which == "circle, noisy":
        parts = n["kappa"] * z @ mean.T - n["log_mean"]
        return jax.nn.logsumexp(parts + jnp.log(p), axis=-1)
    sigma = jnp.full(mean.shape, RESOLUTION)
    if which != "line":
        sigma = jax.lax.stop_gradient(jnp.exp(model.log_sigma))
    square = (((z[..., None, :] - mean) / sigma) ** 2).sum(axis=-1)
    parts = jnp.log(p) - square / 2 - jnp.log(sigma).sum(axis=1)
    return jax.nn.logsumexp(parts, axis=-1) + (z**2).sum(axis=-1) / 2


def value(
    model: Autoencoder, n: dict, which: str, length: int, p: Any, key: Any
) -> Any:
    """The objective, from noisy codes of each text."""
    space, num_codes, keys = SPACES[length], CODES[length], jax.random.split(key, 4)
    noise = jax.random.normal(
        keys[0], (space.num_texts, num_codes, model.codes.shape[1])
    )
    share = jax.random.uniform(keys[1], noise.shape[:2])
    z = model.text_codes()[:, None]
    if "noisy" in which or which == "VAE":
        z = noisy(model, n, which, noise, share)
    rows = masked_rows(space, n["keep"], z.shape[1], keys[2])
    gain = p @ own_logs(model, space, z, rows).mean(axis=1)
    if which == "VAE":
        bag = jax.nn.log_softmax(model.decoder(z)[..., -space.vocab_size :])
        counts = np.eye(space.vocab_size)[space.tokens].sum(axis=1)
        bags = (bag * counts[:, None]).sum(axis=-1).mean(axis=1)
        log_sigma = model.log_sigma
        loss = jnp.exp(2 * log_sigma) + model.codes**2 - 1 - 2 * log_sigma
        return gain + p @ (n["bag_weight"] * bags - loss.sum(axis=1) / 2)
    if which == "circle":
        return gain
    if which == "line":
        z = noisy(model, n, which, noise, share)
    shares = p
    if space.num_texts > JUDGED:
        z = z[jax.random.choice(keys[3], space.num_texts, (JUDGED,), p=p)]
        shares = jnp.full(JUDGED, 1 / JUDGED)
    log_d = -jax.nn.softplus(log_ratio(model, n, which, p, z))
    return gain + n["weight"] * shares @ log_d.mean(axis=1)


@partial(jax.jit, static_argnums=(0, 1, 2))
@partial(jax.vmap, in_axes=(None, None, None, 0, 0, None, None))
def trained(
    which: str, length: int, num_steps: int, model: Any, n: dict, p: Any, key: Any
) -> Any:
    """A model after training on noisy codes, by the steps of `generators.twice`."""
    adam = optax.adam(RATE)

    def step(at: tuple, key: Any) -> tuple:
        model, state = at
        slope = jax.grad(lambda m: -value(m, n, which, length, p, key))(model)
        move, state = adam.update(slope, state)
        return (optax.apply_updates(model, move), state), None

    def half(model: Any, keys: Any) -> tuple:
        return jax.lax.scan(step, (model, adam.init(model)), keys)[0][0], None

    keys = jax.random.split(key, num_steps).reshape(2, -1)
    return jax.lax.scan(half, model, keys)[0]


# --- ARAE in its defaults -------------------------------------------------------------

# Noise at the start and what is left of it at the end; clamp; critic's steps; the share
# of its slope that the encoder gets; codes of the generator in a step; hidden units.
NOISE, LEFT = 0.2, 0.995**469
CLAMP, CRITIC_STEPS, SHARE, BATCH, UNITS = 0.01, 5, 0.01, 64, 64
# Theirs go round once in the first of 15 epochs, four times in the last ten.
ROUNDS = (1 + 2 * 2 + 2 * 3 + 10 * 4) / 15
# Theirs are 1e-5 and 5e-5 for some 46,900 batches.
CRITIC_RATE, GENERATOR_RATE = (r * ROUNDS * 46900 / STEPS for r in (1e-5, 5e-5))
ARAE_DEFAULT = AutoencoderSetup(
    AUTOENCODERS["AE-sph (sigma=0.1)"].grid,
    AUTOENCODERS["ARAE"].objective,
    learned_prior=True,
)


def judged(critic: list, z: jax.Array) -> jax.Array:
    """The critic of two hidden layers, at codes."""
    for weights, biases in critic[:-1]:
        z = jax.nn.leaky_relu(z @ weights + biases, 0.2)
    weights, biases = critic[-1]
    return (z @ weights + biases)[..., 0]


@partial(jax.jit, static_argnums=(0, 1))
def trained_arae(length: int, num_steps: int, model: Any, p: Any, key: Any) -> Any:
    """An ARAE after training as its authors do."""
    space, width = SPACES[length], model.codes.shape[1]
    sizes = width, UNITS, UNITS, 1
    start, key = jax.random.split(key)
    critic = [
        (0.02 * jax.random.normal(k, shape), jnp.zeros(shape[1]))
        for k, shape in zip(jax.random.split(start, 3), pairwise(sizes))
    ]
    rates = RATE, CRITIC_RATE, GENERATOR_RATE
    adam, of_critic, of_generator = map(optax.adam, rates)
    rows = jnp.asarray(rows_seen(space))[:, None, :, 0]

    def read(decoder: Any, z: jax.Array) -> jax.Array:
        coder = Autoencoder(model.codes, None, decoder, None, model.grid)
        return own_logs(coder, space, z[:, None], rows)[:, 0]

    def judge(at: tuple, key: Any) -> tuple:
        critic, state, generator, codes = at
        made = generator(jax.random.normal(key, (BATCH, width)))
        slope = jax.grad(lambda c: p @ judged(c, codes) - judged(c, made).mean())(
            critic
        )
        move, state = of_critic.update(slope, state)
        critic = optax.apply_updates(critic, move)
        critic = jax.tree.map(lambda a: jnp.clip(a, -CLAMP, CLAMP), critic)
        return (critic, state, generator, codes), None

    def step(at: tuple, ahead: tuple) -> tuple:
        (i, key), (coder, critic, generator, states) = ahead, at
        keys, radius = jax.random.split(key, 3), NOISE * LEFT ** (i / num_steps)
        noise = radius * jax.random.normal(keys[0], model.codes.shape)
        codes, back = jax.vjp(
            lambda c: c / jnp.linalg.norm(c, axis=1, keepdims=True), coder[0]
        )
        gain = jax.vjp(read, coder[1], codes + noise)[1]
        of_decoder, pull = gain(p)
        inner = (critic, states[1], generator, codes)
        (critic, judge_state, *_), _ = jax.lax.scan(
            judge, inner, jax.random.split(keys[1], CRITIC_STEPS)
        )
        # For each text alike, then weighted by P as the decoder's part is.
        push = jax.grad(lambda z: judged(critic, z).sum())(codes)
        length_of = [p @ jnp.linalg.norm(a, axis=1) for a in (pull / p[:, None], push)]
        push = push * length_of[0] / jnp.maximum(length_of[1], 1e-300)
        total = pull + ROUNDS * CRITIC_STEPS * SHARE * p[:, None] * push
        slope = jax.tree.map(jnp.negative, (back(total)[0], of_decoder))
        move, state = adam.update(slope, states[0])
        coder = optax.apply_updates(coder, move)
        fresh = jax.random.normal(keys[2], (BATCH, width))
        slope = jax.grad(lambda g: judged(critic, g(fresh)).mean())(generator)
        move, made_state = of_generator.update(slope, states[2])
        generator = optax.apply_updates(generator, move)
        return (coder, critic, generator, (state, judge_state, made_state)), None

    coder = model.codes, model.decoder
    states = (
        adam.init(coder),
        of_critic.init(critic),
        of_generator.init(model.generator),
    )
    at = coder, critic, model.generator, states
    ahead = jnp.arange(num_steps), jax.random.split(key, num_steps)
    ((codes, decoder), _, generator, _), _ = jax.lax.scan(step, at, ahead)
    return Autoencoder(codes, None, decoder, generator, model.grid)


# --- Metrics --------------------------------------------------------------------------


def prior_codes(model: Autoencoder, normal: jax.Array) -> jax.Array:
    """Codes of the prior from common normal draws, of at least as many columns."""
    z = normal[:, : model.codes.shape[1]]
    if model.generator is not None:
        return model.generator(z)
    if model.grid.rule == "circle":
        return z / jnp.linalg.norm(z, axis=1, keepdims=True)
    return z


@partial(jax.jit, static_argnums=0)
def by_draws(length: int, model: Autoencoder, p: Any, normal: jax.Array) -> tuple:
    """The law of a model as a mean over codes, its metrics, and standard errors.

    An error is that of the mean of a metric's slope over codes.
    """
    space, chunks = SPACES[length], normal.reshape(-1, CHUNK, normal.shape[1])

    def laws(chunk: jax.Array) -> jax.Array:
        return jnp.exp(model.log_decoded(space, prior_codes(model, chunk)))

    def metrics(q: jax.Array) -> jax.Array:
        js = qd.jensen_shannon_divergence(p, q)
        return jnp.stack([qd.cross_entropy(p, q), qd.cross_entropy(q, p), js])

    q = jax.lax.map(lambda chunk: laws(chunk).mean(axis=0), chunks).mean(axis=0)
    slopes = jax.jacobian(metrics)(q)

    def spread(chunk: jax.Array) -> tuple:
        greedy = -jnp.log(p)[greedy_texts(model, space, prior_codes(model, chunk))]
        each = jnp.concatenate([laws(chunk) @ slopes.T, greedy[:, None]], axis=1)
        return each.mean(axis=0), (each**2).mean(axis=0)

    mean, square = (a.mean(axis=0) for a in jax.lax.map(spread, chunks))
    errors = jnp.sqrt(jnp.maximum(square - mean**2, 0) / len(normal))
    return q, jnp.append(metrics(q), mean[3]), errors


@lru_cache(maxsize=2)
def pair_scores(length: int) -> tuple[jax.Array, jax.Array]:
    """BLEU-3 and ROUGE-3 of each text as reference with each as candidate."""
    space = SPACES[length]
    return bleu_of_pairs(space, 3), jnp.asarray(rouge_table(space, 3))


@partial(jax.jit, static_argnums=0)
def reading(length: int, model: Autoencoder, p: Any, scores: tuple) -> list:
    """How well a model decodes texts greedily from their own codes."""
    space, codes = SPACES[length], model.text_codes()
    texts, decoded = jnp.arange(space.num_texts), greedy_texts(model, space, codes)
    own = jnp.diagonal(model.log_decoded(space, codes))
    paired = [p @ score[texts, decoded] for score in scores]
    return [-p @ own, p @ (decoded == texts), *paired]


def normal_draws(length: int, oracle: int) -> jax.Array:
    """Common draws of a prior, for all models of an oracle."""
    widest = max(DIMENSIONS[length]) + 1
    return jax.random.normal(jax.random.key(3000 + oracle), (DRAWS[length], widest))


# --- The table ------------------------------------------------------------------------


def of_dimension(length: int, dimension: int, oracle: int, p: Any) -> dict[str, Any]:
    """All models of an oracle, trained on draws; those of one kind side by side."""
    space, found, every = SPACES[length], {}, kinds(dimension)
    key = jax.random.key(2000 + oracle)
    for which in dict.fromkeys(map(kind, every.values())):
        names = [name for name, setup in every.items() if kind(setup) == which]
        setups = [every[name] for name in names]
        starts = [drawn(setup, space, dimension, oracle) for setup in setups]
        settings = [numbers(setup, dimension) for setup in setups]
        stack = partial(jax.tree.map, lambda *leaves: jnp.stack(leaves))
        models = trained(which, length, STEPS, stack(*starts), stack(*settings), p, key)
        for i, name in enumerate(names):
            found[name] = jax.tree.map(lambda leaf, i=i: leaf[i], models)
    start = drawn(ARAE_DEFAULT, space, dimension, oracle)
    found[DEFAULT] = trained_arae(length, STEPS, start, p, key)
    return found


def on_grids(oracle: int, p: Any) -> dict[str, Any]:
    """Models of generators.csv, trained on a grid."""
    found = {}
    for name in EXACT:
        setup = AUTOENCODERS[name]
        first = generators.drawn(
            partial(setup.model, space=generators.SPACE), oracle, 1
        )
        last = generators.twice(setup.objective, first, p, p[None])
        found[name] = jax.tree.map(lambda leaf: leaf[0], last)
    return found


def rows(place: int) -> list[list]:
    """All models of one oracle of one space."""
    oracle, which = divmod(place, len(SPACES))
    length = list(SPACES)[which]
    p, table = qd.oracle(SPACES[length], oracle), []
    normal = normal_draws(length, oracle)

    def add(dimension: int, models: dict, how: str) -> None:
        for name, model in models.items():
            _, values, errors = by_draws(length, model, p, normal)
            pairs = np.stack([values, errors], axis=1).ravel().tolist()
            if not np.isfinite(pairs).all():
                raise FloatingPointError(
                    f"oracle {oracle}, {dimension}: {name} diverged"
                )
            read = reading(length, model, p, pair_scores(length))
            first = length, oracle, dimension, name, how, "draws"
            table.append([*first, *pairs, *map(float, read)])

    if length == generators.SPACE.max_length:
        add(1, on_grids(oracle, p), "grid")
    for dimension in DIMENSIONS[length]:
        add(dimension, of_dimension(length, dimension, oracle, p), "draws")
    return table


def on_paper(z: np.ndarray, dimension: int) -> np.ndarray:
    """Where codes are drawn, shape (codes, 2)."""
    if dimension != 2:
        # Only this function needs it.
        from sklearn.manifold import TSNE

        return TSNE(init="pca", random_state=0).fit_transform(z)
    if z.shape[1] == 2:
        return z
    latitude = np.arctan2(z[:, 2], np.hypot(z[:, 0], z[:, 1]))
    return np.stack([np.arctan2(z[:, 1], z[:, 0]), latitude], axis=1)


def places() -> list[list]:
    """A hundred codes of each of the ten likeliest texts of the first oracle."""
    space, p, table = SPACES[3], qd.oracle(SPACES[3], 0), []
    likely, rng = np.argsort(-np.asarray(p))[:10], np.random.default_rng(4000)
    for dimension in (2, 8):
        models = of_dimension(3, dimension, 0, p)
        for short, name in SHOWN.items():
            model, setup = models[name], kinds(dimension)[name]
            mean, which = np.asarray(model.text_codes()), kind(setup)
            noise = rng.normal(size=(space.num_texts, 100, mean.shape[1]))
            z = np.broadcast_to(mean[:, None], noise.shape)
            if setup.sigma is not None:
                share = rng.uniform(size=noise.shape[:2])
                drawn_codes = noisy(
                    model, numbers(setup, dimension), which, noise, share
                )
                z = np.asarray(drawn_codes)
            gaps = np.linalg.norm(z[likely][:, :, None] - mean[likely], axis=-1)
            nearest = gaps.argmin(axis=-1).ravel().tolist()
            seen = z[likely].reshape(1000, -1)
            x, y = on_paper(seen + SPREAD * rng.normal(size=seen.shape), dimension).T
            for i in range(1000):
                place = f"{x[i]:.3g}", f"{y[i]:.3g}", nearest[i]
                table.append([dimension, short, i // 100, *place])
    return table


def main() -> None:
    """Make the parts that are missing, then write the tables."""
    packages = "jax", "optax", "scipy"
    tables.in_parts(__doc__, "code_dimensions", COLUMNS, SETTINGS, packages, rows, 8)
    columns = "dimension", "model", "text", "x", "y", "nearest"
    comment = "python notebooks/data/make_code_dimensions.py FOLDER"
    found = tables.versions(*packages, "scikit-learn")
    provenance = f"{found}; oracle 0, 64 texts; spread {SPREAD}; {SETTINGS}"
    tables.write("code_places.csv", [comment, provenance], columns, places())


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_code_dimensions

    make_code_dimensions.main()
