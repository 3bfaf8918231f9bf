"""Tune GANs by exact and by sampled metrics; write protocol.csv.

    python notebooks/data/make_protocol.py FOLDER [--oracles 20]

The protocol is that of Semeniuta et al., the oracles and generators are those of
`make_generators.py`; models see 128 texts. A run trains a random LSTM by maximum
likelihood, then as a GAN whose discriminator reads bigrams; or by maximum likelihood
again, the language model. 100 settings are drawn: the rate of the second half, and how
many steps the discriminator takes for each of the generator's. A row is the setting
that one metric selects, with the means of seven runs with fresh seeds; sampled metrics
are of 500 texts from each side. FD is the squared Frechet distance of the tokens at
each place and of their repetitions.

As in `make_generators.py`, a run that is killed loses the oracle under way only, whose
part file is missing from the folder. All take some three minutes of CPU time.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
import tables
from lab import metrics
from lab.generators import (
    LogisticDiscriminator,
    MaximumLikelihood,
    Range,
    SeqGAN,
    SeqGANStep,
    Tuned,
    of_samples,
    random_search,
    train,
)
from make_generators import NUM_TEXTS, SPACE, lstm

import qdtheory as qd

STEPS, RATE, NUM_SAMPLES = 200, 0.02, 500
RANGES = {"rate": Range(1e-5, 0.1), "discriminator_steps": (1, 5)}
MODELS = "MLE", "SeqGAN-reinforce", "SeqGAN-step"
METRICS = "js", "nll", "oracle_nll", "entropy", "fd", "bleu", "self_bleu"
# What selects, and whether its lowest value is the best.
SELECTING = {"js": True, "fd": True, "bleu": False}
COLUMNS = (
    *("oracle", "model", "metric", "sampled", "rate", "discriminator_steps"),
    *("selected_at", "mean", "deviation", *METRICS),
)
SETTINGS = (
    f"{NUM_TEXTS} texts, {STEPS} + {STEPS} steps, {NUM_SAMPLES} samples; 100 trials, "
    "7 seeds"
)
FEATURES = np.eye(SPACE.vocab_size)[SPACE.tokens].reshape(SPACE.num_texts, -1)
FEATURES = np.hstack([FEATURES, (SPACE.tokens[:, 1:] == SPACE.tokens[:, :-1])])


def objective(model: str, discriminator_steps: int) -> Any:
    """What the second half of a run trains for."""
    discriminator = LogisticDiscriminator(2, discriminator_steps)
    return {
        "MLE": MaximumLikelihood(),
        "SeqGAN-reinforce": SeqGAN(discriminator),
        "SeqGAN-step": SeqGANStep(discriminator=discriminator),
    }[model]


@partial(jax.jit, static_argnums=0)
def trained(second: Any, seed: int, p: Any, seen: Any, rate: float) -> jax.Array:
    """The law of a model after both halves."""
    model = lstm(jax.random.key(seed))
    for half, speed in ((MaximumLikelihood(), RATE), (second, rate)):
        settings = {"training": seen, "learning_rate": speed, "every": STEPS}
        model = train(half, model, SPACE, p, STEPS, **settings).model
    return model.probabilities(SPACE)


def measured(q: jax.Array, p: jax.Array) -> dict[str, float]:
    """The metrics of a model, exact if p and q are."""
    values = {name: float(x) for name, x in compiled(q, p).items()}
    fd = metrics.frechet_distance(q, p, FEATURES, squared=True)
    return values | {"fd": float(fd)}


@jax.jit
def compiled(q: jax.Array, p: jax.Array) -> dict[str, jax.Array]:
    """All but FD."""
    return {
        "js": qd.jensen_shannon_divergence(p, q),
        "nll": qd.cross_entropy(p, q),
        "oracle_nll": qd.cross_entropy(q, p),
        "entropy": qd.entropy(q),
        "bleu": qd.expected_bleu(SPACE, q, p)[1],
        "self_bleu": qd.expected_self_bleu(SPACE, q)[1],
    }


def tuned(oracle: int, model: str) -> list[tuple[str, str, Tuned]]:
    """The settings that the metrics select, from the same trials."""
    p = qd.oracle(SPACE, oracle)
    texts = qd.sample(jax.random.key(oracle), p, NUM_TEXTS)
    seen = jnp.bincount(texts, length=SPACE.num_texts) / NUM_TEXTS

    def run(settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        second = objective(model, settings["discriminator_steps"])
        q = trained(second, seed, p, seen, settings["rate"])
        sampled = of_samples(measured, q, p, NUM_SAMPLES, seed)
        return measured(q, p) | {f"{name}, sampled": x for name, x in sampled.items()}

    found, trials = [], None
    for metric, lowest in SELECTING.items():
        for name in (metric, f"{metric}, sampled"):
            best = random_search(
                run,
                RANGES,
                name,
                lowest=lowest,
                seed=1000 * oracle,
                trials=trials,
            )
            trials = best.trials
            found.append((metric, "yes" if "," in name else "no", best))
    return found


def rows(oracle: int) -> list[list]:
    """The settings that were selected on an oracle, and what they give."""
    table = []
    for model in MODELS:
        for metric, sampled, best in tuned(oracle, model):
            row = [oracle, model, metric, sampled, *best.settings.values()]
            name = best.metric
            row += [best.selected_at[name], best.mean[name], best.deviation[name]]
            table.append([*row, *(best.mean[name] for name in METRICS)])
    return table


def main() -> None:
    """Make the parts that are missing, then write the table in one go."""
    packages = "jax", "optax"
    tables.in_parts(__doc__, "protocol", COLUMNS, SETTINGS, packages, rows, 20)


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_protocol

    make_protocol.main()
