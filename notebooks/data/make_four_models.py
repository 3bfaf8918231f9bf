"""Train MLE, SeqGAN, MaliGAN and RankGAN on 30 oracles; write four_models.csv.

    python notebooks/data/make_four_models.py FOLDER [--oracles 30]

The experiment of Montahaei et al. 2019, Figures 1d and 3 and Table 4, over texts that
can be listed: oracles are random LSTMs of size 32 on 4 tokens and texts of length 4, so
that all 256 probabilities are known; the paper's has 5,000 words and texts of 20.
Models see the shares of 128 or of 1,024 texts (column `texts`), and half as many more
are for validation; the paper has 50,000 and 25,000. Generators are LSTMs of 4 units,
too small for the oracle.

As the paper's section 4.2.1 says of oracles, all models stop at the best Oracle-NLL,
each within a number of steps. GANs start from the MLE of the best NLL of the texts for
validation; the paper does not say where its own start. Column `stopped` has other rules
too: "nll", which is the paper's for MLE on real text, "oracle_nll" and "last".

* SeqGAN has roll-outs and a discriminator that reads bigrams and takes 5 steps for each
  of the generator's; so has MaliGAN.
* RankGAN's ranker is the best of all, or the best whose score is bounded by 1 as a
  cosine is ("RankGAN, bounded").
* Steps are expectations (column `batch` empty), MaliGAN's over all batches of 64 texts,
  or those of one batch of 64 texts after another, those of MLE before them too (64).

Metrics are exact: BLEU, Self-BLEU and MS-Jaccard have order 2, the first two 2
references. The models of the paper's rule, and the oracle, are also measured at ten
temperatures of tokens from 1.5^-3 to 1.5^4. Of these models the columns "below" say how
their sweeps in the plane of Oracle-NLL and minus entropy lie to those of the others: on
which share of the Oracle-NLLs that both have, over 57 temperatures, theirs has more
entropy.

There is a part file for each oracle. All take some 3 minutes of CPU time, one of them
to compile.
"""

from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

jax.config.update("jax_enable_x64", True)
import tables
from lab.generators import (
    LogisticDiscriminator,
    MaliGAN,
    MaximumLikelihood,
    RankGAN,
    Sampled,
    SeqGAN,
)

import qdtheory as qd

SPACE = qd.TextSpace(vocab_size=4, lengths=4)
TRAINING_SIZES = 128, 1024
SIZE, SIGMA = 4, 0.3
BATCH, RATE = 64, 0.02
MLE_STEPS, STEPS = 600, 300
EXPONENTS = -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4
FINE = np.linspace(-3, 4, 57)
BIGRAMS = LogisticDiscriminator(order=2)
RULES = "nll", "oracle_nll", "last"
SEQGAN, LIKELIHOOD = SeqGAN(BIGRAMS, lag=0.8), MaximumLikelihood()
RANKGANS = {"RankGAN": RankGAN(), "RankGAN, bounded": RankGAN(bound=1.0)}
GANS: dict[str, Any] = {
    "": {"SeqGAN": SEQGAN, "MaliGAN": MaliGAN(BATCH, BIGRAMS), **RANKGANS},
    # Of a batch, MaliGAN's weights are shares of the batch itself.
    str(BATCH): {
        name: Sampled(objective, BATCH)
        for name, objective in {
            "SeqGAN": SEQGAN,
            "MaliGAN": MaliGAN(discriminator=BIGRAMS),
            **RANKGANS,
        }.items()
    },
}
METRICS = (
    *("oracle_nll", "nll", "entropy", "bhattacharyya", "js"),
    *("bleu", "self_bleu", "ms_jaccard", "cnd"),
)
KIND = "oracle", "texts", "batch", "model", "stopped", "steps", "exponent"
SWEPT = "real", "MLE", "MLE by NLL", *GANS[""]
NOWHERE = len(SWEPT) * [""]
COLUMNS = (*KIND, *METRICS, *(f"below {name}" for name in SWEPT))
SETTINGS = (
    f"{SPACE.num_texts} texts, LSTM {SIZE}, Adam {RATE}, at most {MLE_STEPS} steps of "
    f"MLE, then {STEPS} of a GAN, batches of {BATCH}"
)


@partial(jax.jit, static_argnums=(0, 1))
def trained(objective: Any, num_steps: int, model: Any, p: Any, seen: Any) -> Any:
    """The steps at which each rule stops, and the models there.

    `seen` has the shares of the texts for training and of those for validation.
    """
    training, validation = seen
    optimizer = optax.scale_by_adam()

    def step(carry: tuple, number: Any) -> tuple:
        model, moments, state, least, kept = carry
        ascent, state = objective.ascent(state, model, SPACE, training)
        direction, moments = optimizer.update(ascent, moments)
        model = jax.tree.map(lambda leaf, way: leaf + RATE * way, model, direction)
        q = model.probabilities(SPACE)
        nlls = qd.cross_entropy(validation, q), qd.cross_entropy(q, p)
        scores = jnp.stack([*nlls, -number.astype(float)])
        better = scores < least

        def replaced(new: Any, old: Any) -> Any:
            return jnp.where(jnp.reshape(better, (-1, *jnp.ndim(new) * [1])), new, old)

        kept = jax.tree.map(replaced, (number, model), kept)
        return (model, moments, state, jnp.minimum(scores, least), kept), None

    kept = jax.tree.map(lambda leaf: jnp.stack(len(RULES) * [leaf]), (0, model))
    state = objective.start(model, SPACE, training)
    least = jnp.full(len(RULES), jnp.inf)
    start = model, optimizer.init(model), state, least, kept
    return jax.lax.scan(step, start, 1 + jnp.arange(num_steps))[0][-1]


@jax.jit
@partial(jax.vmap, in_axes=(0, None))
def measured(q: jax.Array, p: jax.Array) -> list[jax.Array]:
    """All metrics of a model."""
    return [
        qd.cross_entropy(q, p),
        qd.cross_entropy(p, q),
        qd.entropy(q),
        qd.divergences.bhattacharyya_distance(q, p),
        qd.jensen_shannon_divergence(p, q),
        qd.expected_bleu(SPACE, q, p)[1],
        qd.expected_self_bleu(SPACE, q)[1],
        qd.ms_jaccard(SPACE, q, p, 2)[1],
        qd.cnd(q, p),
    ]


@jax.jit
def sweep(model: Any, exponents: jax.Array) -> jax.Array:
    """The laws of a model at some temperatures."""
    return jax.lax.map(lambda k: model.probabilities(SPACE, 1.5**k), exponents)


def plane_point(q: jax.Array, p: jax.Array) -> jax.Array:
    """Oracle-NLL and minus entropy."""
    return jnp.stack([qd.cross_entropy(q, p), -qd.entropy(q)])


@jax.jit
def plane(model: Any, p: jax.Array) -> jax.Array:
    """The points along a model's sweep."""
    laws = sweep(model, jnp.asarray(FINE))
    return jax.lax.map(lambda q: plane_point(q, p), laws).T


def below(one: np.ndarray, other: np.ndarray) -> float:
    """Share of the Oracle-NLLs that both sweeps have where the first is below."""
    one, other = (curve[:, curve[0].argsort()] for curve in (one, other))
    ends = max(one[0, 0], other[0, 0]), min(one[0, -1], other[0, -1])
    x = np.linspace(*ends, 1001)
    return float(np.mean(np.interp(x, *one) < np.interp(x, *other)))


def draws(oracle: int, size: int, p: jax.Array) -> jax.Array:
    """The shares of the texts for training, and of half as many for validation."""
    texts = qd.sample(jax.random.key(oracle), p, size + size // 2)
    parts = texts[:size], texts[size:]
    return jnp.stack([jnp.bincount(x, length=p.size) / x.size for x in parts])


def at(tree: Any, rule: str) -> Any:
    """What is kept by one rule."""
    return jax.tree.map(lambda leaf: leaf[RULES.index(rule)], tree)


def fitted(oracle: int, size: int, batch: str, p: jax.Array) -> dict[str, Any]:
    """For each model its steps and itself, by each rule."""
    seen = draws(oracle, size, p)
    fresh = qd.LSTMLanguageModel.random(
        jax.random.key(1000 + oracle), SPACE.vocab_size, SIZE, SIZE, SIGMA
    )
    likelihood = Sampled(LIKELIHOOD, BATCH) if batch else LIKELIHOOD
    mle = trained(likelihood, MLE_STEPS, fresh, p, seen)
    start = at(mle, "nll")[1]
    gans = {
        name: trained(objective, STEPS, start, p, seen)
        for name, objective in GANS[batch].items()
    }
    return {"MLE": mle, **gans}


def sweep_name(model: str, rule: str) -> str:
    """By the paper's rule that of the model; empty if it is not swept."""
    if (model, rule) == ("MLE", "nll"):
        return "MLE by NLL"
    return model if rule == "oracle_nll" else ""


def rows(oracle: int) -> list[list]:
    """All models of one oracle."""
    key, words = jax.random.key(oracle), SPACE.vocab_size
    real = qd.LSTMLanguageModel.random(key, words, 32, 32)  # as qd.oracle has it
    p, at_ten = qd.oracle(SPACE, oracle), jnp.asarray(EXPONENTS, float)
    kinds: list[list] = [["", "", "real", "", "", k] for k in EXPONENTS]
    laws, places = [sweep(real, at_ten)], len(EXPONENTS) * [NOWHERE]
    for size, batch in product(TRAINING_SIZES, GANS):
        found = fitted(oracle, size, batch, p)
        each = [
            (name, rule, *at(x, rule)) for name, x in found.items() for rule in RULES
        ]
        named = [(sweep_name(name, rule), model) for name, rule, _, model in each]
        curves = {x: np.asarray(plane(m, p)) for x, m in [("real", real), *named] if x}
        for name, rule, steps, model in each:
            swept = sweep_name(name, rule)
            at_these = EXPONENTS if swept else (0,)
            laws.append(sweep(model, jnp.asarray(at_these, float)))
            kinds += [[size, batch, name, rule, int(steps), k] for k in at_these]
            where = [
                below(curves[swept], curves[x]) if swept not in ("", x) else ""
                for x in SWEPT
            ]
            places += [NOWHERE if k else where for k in at_these]
    q = jnp.concatenate(laws)
    error = float(abs(q.sum(axis=1) - 1).max())
    if not error < 1e-12:
        raise FloatingPointError(f"oracle {oracle}: a law sums to 1 up to {error}")
    values = np.stack(measured(q, p), axis=1)
    parts = zip(kinds, values, places, strict=True)
    return [[oracle, *kind, *cells, *place] for kind, cells, place in parts]


def main() -> None:
    """Make the parts that are missing, then write the table in one go."""
    tables.in_parts(
        __doc__, "four_models", COLUMNS, SETTINGS, ("jax", "optax"), rows, 30
    )


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_four_models

    make_four_models.main()
