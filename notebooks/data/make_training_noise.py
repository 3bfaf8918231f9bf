"""Train each generator exactly and on batches, eight seeds each; training_noise.csv.

    python notebooks/data/make_training_noise.py FOLDER [--oracles 5]

Oracles, generators, objectives and steps are those of `make_generators.py`; all models
see the real distribution. Of a pretrained model the second half, the GAN's, is exact
(no `batch`), or each step averages over a batch of 64 texts: of the model's where the
objective is adversarial, of real ones for maximum likelihood, autoencoders and
continuous generators. Discriminators, critics and codes stay exact. A row has the mean
and the standard deviation of metrics over eight random starts, the same for both; they
are empty where a metric is infinite. Autoencoders are trained and measured on their own
grid, texts are drawn from the decoder.

As there, a run that is killed loses the oracle under way only, whose part file is
missing from the folder. All take some nine minutes of CPU time, most of it to compile.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
import make_generators as table
import tables
from lab.generators import (
    AUTOENCODERS,
    WGAN,
    ContinuousWGAN,
    LeakGAN,
    LeakyLSTM,
    MaximumLikelihood,
    Sampled,
)

import qdtheory as qd

SEEDS, BATCH = 8, 64
METRICS = "js", "nll", "oracle_nll", "entropy", "bhattacharyya"
COLUMNS = "oracle", "model", "batch", *METRICS, *(f"{m} deviation" for m in METRICS)
SETTINGS = f"{SEEDS} seeds, batches of {BATCH}; {table.SETTINGS}"
LIKELIHOOD = MaximumLikelihood()


def models(oracle: int, p: Any) -> Iterator[tuple[str, Any, Any, int]]:
    """Name, objective, the models before it and its number of steps."""
    seen = jnp.stack(SEEDS * [p])

    def drawn(draw: Any) -> Any:
        return jax.vmap(draw)(jax.random.split(jax.random.key(2000 + oracle), SEEDS))

    def pretrained(draw: Any) -> Any:
        return table.trained(LIKELIHOOD, drawn(draw), p, seen, table.STEPS)

    start = pretrained(table.lstm)
    for name, objective in {"MLE": LIKELIHOOD, **table.OBJECTIVES}.items():
        yield name, objective, start, table.STEPS
    yield "WGAN, hamming", WGAN("hamming"), start, table.NUM_PROGRAMS
    for variant in table.LEAKS:
        draw = partial(
            LeakyLSTM.random,
            vocab_size=4,
            variant=variant,
            size=table.SIZE,
            sigma=table.SIGMA,
        )
        yield f"LeakGAN-{variant}", LeakGAN(), pretrained(draw), table.STEPS
    for name, kind in table.CONTINUOUS.items():
        draw = partial(kind.random, space=table.SPACE, num_atoms=table.NUM_ATOMS)
        yield name, ContinuousWGAN(), drawn(draw), table.NUM_PROGRAMS
    for name, setup in AUTOENCODERS.items():
        draw = partial(setup.model, space=table.SPACE)
        yield name, setup.objective, drawn(draw), table.STEPS


@jax.jit
@partial(jax.vmap, in_axes=(0, None))
def measured(model: Any, p: jax.Array) -> list[jax.Array]:
    """The metrics of a model."""
    q = model.probabilities(table.SPACE)
    return [
        qd.jensen_shannon_divergence(p, q),
        qd.cross_entropy(p, q),
        qd.cross_entropy(q, p),
        qd.entropy(q),
        qd.divergences.bhattacharyya_distance(q, p),
    ]


def rows(oracle: int) -> list[list]:
    """Each model of an oracle, trained exactly and on batches."""
    p = qd.oracle(table.SPACE, oracle)
    seen, found_rows = jnp.stack(SEEDS * [p]), []
    for name, objective, before, steps in models(oracle, p):
        for batch in ("", BATCH):
            trained = Sampled(objective, BATCH) if batch else objective
            found = table.trained(trained, before, p, seen, steps)
            values = np.stack(measured(found, p))
            if np.isnan(values).any():
                raise FloatingPointError(f"oracle {oracle}: {name} diverged")
            with np.errstate(invalid="ignore"):  # NaN where a metric is infinite
                spread = values.std(axis=1, ddof=1)
            numbers = [*values.mean(axis=1), *spread]
            cells = [float(x) if np.isfinite(x) else "" for x in numbers]
            found_rows.append([oracle, name, batch, *cells])
    return found_rows


def main() -> None:
    """Make the parts that are missing, then write the table in one go."""
    packages = "jax", "optax", "scipy"
    tables.in_parts(__doc__, "training_noise", COLUMNS, SETTINGS, packages, rows, 5)


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_training_noise

    make_training_noise.main()
