"""Train the generators of the four papers on 100 oracles; write generators.csv.

    python notebooks/data/make_generators.py FOLDER [--oracles 100]

The oracles are those of notebook 20: random LSTMs of size 32 on 4 tokens and texts of
length 3, so that all 64 probabilities are known. Models see the real distribution, or
the shares of 128 texts drawn from it (column `texts`). Rows of an oracle:

* Discrete GANs start from a model trained by maximum likelihood, or from a random one
  (column `pretrained`) with as many steps in all. The generator is an LSTM of 4 hidden
  units, too small for the oracle, so that different divergences have different optima.
  Discriminators are optimal, or read bigrams and take 5 steps for each of the
  generator's ("bigrams" in the name).
* Continuous ones have 16 atoms, whose tokens are read off by argmax or drawn (column
  `decoding`). Their steps and those of the WGAN with Hamming's distance, each a linear
  program, are fewer, and they see the real distribution only.
* Autoencoders are those of `AUTOENCODERS`, decoded from a code of the prior: drawn, or
  greedily. They see the real distribution only.
* MLE at temperatures of tokens from .5 to 1.5, for the sweep.

Random starts and temperatures are for models that see the real distribution.

Metrics are exact: `LL_SE` and `CR_NRR` are the quality that a model lacks at its own
diversity, in nats and in probability; bleu and self_bleu have order 2 and 2 references;
`read_` are those of texts decoded greedily from their own codes: the likelihood and the
accuracy, which BLEU-3 and ROUGE-3 equal for texts of length 3, BLEU-2 and ROUGE-2.

A part file is written for each oracle, so that a run that is killed loses the oracle
under way only, and another takes up where it stands. All take some 13 minutes of CPU
time, two of them to compile.
"""

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
import tables
from lab import generators
from lab.generators import (
    AUTOENCODERS,
    WGAN,
    ContinuousWGAN,
    ConvDeconv,
    ConvLSTM,
    CoT,
    LeakGAN,
    LeakyLSTM,
    LogisticDiscriminator,
    MaliGAN,
    MaximumLikelihood,
    RankGAN,
    SeqGAN,
    SeqGANStep,
    greedy_distribution,
    greedy_texts,
    refined,
    train,
)
from lab.generators.reconstruction import rouge_table

import qdtheory as qd
from qdtheory.bleu import bleu_table, text_bleu

SPACE = qd.TextSpace(vocab_size=4, lengths=3)
NUM_TEXTS, SIZE, SIGMA, NUM_ATOMS = 128, 4, 0.3, 16
STEPS, NUM_PROGRAMS = 300, 40
RATES = {STEPS: 0.02, NUM_PROGRAMS: 0.05}
# Autoencoders are trained on 129 nodes and measured on 1,025, which resolve them.
REFINEMENTS = 3
TEMPERATURES = 0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5
BIGRAMS = LogisticDiscriminator(order=2)
OBJECTIVES: dict[str, Any] = {
    "SeqGAN-reinforce": SeqGAN(),
    "SeqGAN-reinforce, bigrams": SeqGAN(BIGRAMS),
    "SeqGAN-step": SeqGANStep(),
    "SeqGAN-step, bigrams": SeqGANStep(discriminator=BIGRAMS),
    "SeqGAN-rollouts": SeqGAN(lag=0.8),
    "SeqGAN-rollouts, bigrams": SeqGAN(BIGRAMS, lag=0.8),
    "MaliGAN": MaliGAN(),
    "MaliGAN, bigrams": MaliGAN(discriminator=BIGRAMS),
    "MaliGAN, batches of 3": MaliGAN(3),
    "RankGAN": RankGAN(),
    "RankGAN, bounded": RankGAN(bound=1.0),
    "CoT": CoT(),
    "WGAN, prefix": WGAN("prefix"),
    "WGAN-GP, prefix": WGAN("prefix", penalty=10.0),
}
LEAKS = "leak", "noleak", "mixed"
CONTINUOUS = {"Conv-LSTM": ConvLSTM, "Conv-Deconv": ConvDeconv}
KIND = "oracle", "texts", "model", "pretrained", "decoding", "temperature"
METRICS = (
    "oracle_nll",
    "nll",
    "js",
    "entropy",
    "bhattacharyya",
    "cr",
    "nrr",
    "cnd",
    "bleu",
    "self_bleu",
    "LL_SE",
    "CR_NRR",
    "wasserstein",
)
READ = "read_nll", "read_accuracy", "read_bleu", "read_rouge"
COLUMNS = KIND + METRICS + READ
SETTINGS = (
    f"{NUM_TEXTS} texts, LSTM {SIZE}, {NUM_ATOMS} atoms, Adam {RATES[STEPS]}, "
    f"{STEPS} + {STEPS} steps; {NUM_PROGRAMS} linear programs, {RATES[NUM_PROGRAMS]}"
)


# --- Training, of models that see P and of models that see texts, side by side --------


@partial(jax.jit, static_argnums=(0, 4))
def trained(objective: Any, models: Any, p: Any, seen: Any, steps: int) -> Any:
    """The models after training, one for each distribution that is seen."""
    settings = {"learning_rate": RATES[steps], "every": steps}

    def run(model: Any, training: Any) -> Any:
        found = train(objective, model, SPACE, p, steps, training=training, **settings)
        return found.model

    return jax.vmap(run)(models, seen)


def twice(objective: Any, models: Any, p: Any, seen: Any) -> Any:
    """The models after as many steps as those that start from maximum likelihood."""
    found = trained(objective, models, p, seen, STEPS)
    return trained(objective, found, p, seen, STEPS)


@jax.jit
def laws(models: Any) -> jax.Array:
    """The distributions of models."""
    return jax.vmap(lambda model: model.probabilities(SPACE))(models)


def drawn(draw: Any, oracle: int, times: int = 2) -> Any:
    """The same random model once for each distribution that is seen."""
    model = draw(jax.random.key(1000 + oracle))
    return jax.tree.map(lambda leaf: jnp.stack(times * [leaf]), model)


def lstm(key: Any) -> qd.LSTMLanguageModel:
    """A small random generator."""
    return qd.LSTMLanguageModel.random(key, 4, SIZE, SIZE, SIGMA)


class Found(NamedTuple):
    """A model as trained on P, and maybe as trained on texts."""

    model: str
    q: jax.Array
    pretrained: str = ""
    decoding: str = ""
    temperature: float = 1.0
    read: Any = (("",) * 4, ("",) * 4)

    def kept(self, which: int) -> bool:
        """Sweeps and random starts are for models that see P."""
        swept = self.temperature != 1 or self.pretrained == "no"
        return which == 0 or (len(self.q) == 2 and not swept)

    def cells(self, which: int, values: np.ndarray) -> list:
        """Its row in the table, behind the oracle and what it saw."""
        kind = self.model, self.pretrained, self.decoding, self.temperature
        return [*kind, *values, *self.read[which]]


def discrete(oracle: int, p: Any, seen: Any) -> Iterator[Found]:
    """MLE with its temperatures, and GANs with and without pretraining."""
    fresh, likelihood = drawn(lstm, oracle), MaximumLikelihood()
    start = trained(likelihood, fresh, p, seen, STEPS)
    whole = trained(likelihood, start, p, seen, STEPS)
    yield Found("MLE", laws(whole))
    for temperature in TEMPERATURES:
        cooled = jax.vmap(lambda m, t=temperature: m.probabilities(SPACE, t))(whole)
        yield Found("MLE", cooled, temperature=temperature)
    for name, objective in OBJECTIVES.items():
        found = trained(objective, start, p, seen, STEPS)
        yield Found(name, laws(found), "yes")
        if "," not in name:
            found = twice(objective, fresh, p, seen)
            yield Found(name, laws(found), "no")
    alone = jax.tree.map(lambda leaf: leaf[:1], start)
    found = trained(WGAN("hamming"), alone, p, seen[:1], NUM_PROGRAMS)
    yield Found("WGAN, hamming", laws(found), "yes")
    for variant in LEAKS:
        draw = partial(
            LeakyLSTM.random, vocab_size=4, variant=variant, size=SIZE, sigma=SIGMA
        )
        name, fresh = f"LeakGAN-{variant}", drawn(draw, oracle)
        start = trained(likelihood, fresh, p, seen, STEPS)
        yield Found(name, laws(trained(LeakGAN(), start, p, seen, STEPS)), "yes")
        found = twice(LeakGAN(), fresh, p, seen)
        yield Found(name, laws(found), "no")


def continuous(oracle: int, p: Any, seen: Any) -> Iterator[Found]:
    """Generators of atoms: after argmax, and with tokens drawn from their rows."""
    for name, kind in CONTINUOUS.items():
        draw = partial(kind.random, space=SPACE, num_atoms=NUM_ATOMS)
        found = trained(ContinuousWGAN(), drawn(draw, oracle, 1), p, seen, NUM_PROGRAMS)
        yield Found(name, laws(found), "no", "argmax")
        soft = jax.vmap(lambda model: model.soft_probabilities(SPACE))(found)
        yield Found(name, soft, "no", "drawn")


def autoencoders(oracle: int, p: Any, seen: Any) -> Iterator[Found]:
    """Autoencoders, with the reconstruction of texts."""
    for name, setup in AUTOENCODERS.items():
        first = drawn(partial(setup.model, space=SPACE), oracle, 1)
        found = twice(setup.objective, first, p, seen)
        for _ in range(REFINEMENTS):
            found = refined(found)
        read = np.stack(reading(found, p, pair_scores()), axis=1)
        yield Found(name, laws(found), "no", "drawn", read=read)
        yield Found(name, greedy(found), "no", "greedy", read=read)


@lru_cache(maxsize=1)
def pair_scores() -> tuple[jax.Array, jax.Array]:
    """BLEU-2 and ROUGE-2 of each text as reference with each as candidate."""
    table, each = bleu_table(SPACE, 2, None), jnp.eye(SPACE.num_texts)
    bleu = jnp.stack([text_bleu(table, reference, 1) for reference in each])
    return bleu, jnp.asarray(rouge_table(SPACE, 2))


@jax.jit
@partial(jax.vmap, in_axes=(0, None, None))
def reading(model: Any, p: jax.Array, scores: tuple) -> list[jax.Array]:
    """How well a model decodes texts greedily from their own codes."""
    codes, texts = model.text_codes(), jnp.arange(SPACE.num_texts)
    log_decoded = jnp.diagonal(model.log_decoded(SPACE, codes))
    decoded = greedy_texts(model, SPACE, codes)
    paired = [p @ score[texts, decoded] for score in scores]
    return [-p @ log_decoded, p @ (decoded == texts), *paired]


@jax.jit
@jax.vmap
def greedy(model: Any) -> jax.Array:
    """The law of texts that are decoded greedily from codes of the prior."""
    return greedy_distribution(model, SPACE)[0]


# --- Metrics ----------------------------------------------------------------------


@jax.jit
@partial(jax.vmap, in_axes=(0, None))
def measured(q: jax.Array, p: jax.Array) -> list[jax.Array]:
    """All metrics of a model."""
    return [
        qd.cross_entropy(q, p),
        qd.cross_entropy(p, q),
        qd.jensen_shannon_divergence(p, q),
        qd.entropy(q),
        qd.divergences.bhattacharyya_distance(q, p),
        qd.coverage_rate(q, p),
        qd.negative_repetition_rate(q),
        qd.cnd(q, p),
        qd.expected_bleu(SPACE, q, p)[1],
        qd.expected_self_bleu(SPACE, q)[1],
        lacking(qd.LL_SE, q, p),
        lacking(qd.CR_NRR, q, p),
        generators.wasserstein_distance(q, p, SPACE, "prefix"),
    ]


def lacking(pair: Any, q: jax.Array, p: jax.Array) -> jax.Array:
    """How far the frontier's quality exceeds a model's at the same diversity."""
    diversity = pair.diversity(q)

    def halve(_: int, ends: tuple) -> tuple:
        low, high = ends
        middle = (low + high) / 2
        more = qd.pareto_optimum(pair, p, -jnp.exp(middle)).diversity > diversity
        return jnp.where(more, middle, low), jnp.where(more, high, middle)

    low, high = jax.lax.fori_loop(0, 60, halve, (-20.0, 20.0))
    best = qd.pareto_optimum(pair, p, -jnp.exp((low + high) / 2)).quality
    return best - pair.quality(q, p)


# --- The table --------------------------------------------------------------------


def rows(oracle: int) -> list[list]:
    """All models of one oracle, both those that saw P and those that saw texts."""
    p = qd.oracle(SPACE, oracle)
    texts = qd.sample(jax.random.key(oracle), p, NUM_TEXTS)
    shares = jnp.bincount(texts, length=SPACE.num_texts) / NUM_TEXTS
    seen = jnp.stack([p, shares])
    found = [
        Found("real data", jnp.stack([p, p])),
        *discrete(oracle, p, seen),
        *continuous(oracle, p, seen[:1]),
        *autoencoders(oracle, p, seen[:1]),
    ]
    q = jnp.concatenate([each.q for each in found])
    error = float(abs(q.sum(axis=1) - 1).max())
    if not error < 1e-12:
        raise FloatingPointError(f"oracle {oracle}: a law sums to 1 up to {error}")
    ends = np.cumsum([len(each.q) for each in found])
    values = np.split(np.stack(measured(q, p), axis=1), ends[:-1])
    return [
        [oracle, number, *each.cells(which, of[which])]
        for which, number in enumerate(("", NUM_TEXTS))
        for each, of in zip(found, values)
        if each.kept(which)
    ]


def main() -> None:
    """Make the parts that are missing, then write the table in one go."""
    packages = "jax", "optax", "scipy"
    tables.in_parts(__doc__, "generators", COLUMNS, SETTINGS, packages, rows, 100)


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_generators

    make_generators.main()
