"""Sweep an LSTM trained on film reviews over temperatures; write temperature_sweep.csv.

    python notebooks/data/make_temperature_sweep.py [--full] [--checkpoint FILE]

With --full it is the experiment of Li et al. 2020, section 6.2: embedding and hidden
size 128, 30 epochs, 50,000 candidates at each temperature, 50,000 references, the other
sentences for training. The table in this folder is that run. It took five minutes on an
H100 and 16 cores; by the time of 100 steps, two cores alone would need about eight and
a half hours. Without --full it is the same on a vocabulary and samples small enough for
about seven minutes on one core, and its table replaces the other. A training with
--checkpoint that was killed goes on where FILE stands.
"""

import argparse
import os
import sys
from collections.abc import Iterator

# Otherwise sums on a GPU come in any order, and another run finds other numbers.
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")
import jax
import numpy as np
from tables import versions, write

jax.config.update("jax_enable_x64", True)
from qdtheory import text
from qdtheory.text import Corpus
from qdtheory.text.training import from_table, train

# Montahaei et al. 2019's rule for IMDB, with a lower and a higher count.
RULE = {"rare": "unk", "max_unknown": 4, "min_length": 5, "max_length": 40}
SIZES = {
    True: {"min_count": 50, "sentences": 50_000, "epochs": 30},
    False: {"min_count": 2_000, "sentences": 5_000, "epochs": 4},
}
NEAR = np.array([-1, -0.5, 0, 0.5, 1])
EXPONENTS = np.union1d(np.arange(-3, 5), NEAR)
ORDERS = (1, 2, 3, 4)
NUM_GROUPS = 20
SEED = 11
COLUMNS = (
    "temperature,n,left_out,sentences,mean_length,"
    "coverage_rate,negative_repetition_rate,nrr_pairs,cnd,cnd_pairs,bleu,self_bleu"
)


def rows(
    temperature: float | str, candidates: Corpus, references: Corpus, num_groups: int
) -> Iterator[list]:
    """All metrics of one temperature; CR and NRR again without a group of sentences."""
    top = max(ORDERS)
    bleu = text.bleu(candidates, references, top, smoothing=None)
    self_bleu = text.self_bleu(candidates, top, smoothing=None)
    for n in ORDERS:
        ours, theirs = (text.ngram_counts(x, n) for x in (candidates, references))
        yield [
            *(temperature, n, "", len(candidates), candidates.lengths.mean()),
            text.coverage_rate(ours, theirs, n),
            text.negative_repetition_rate(ours, n, "plug-in"),
            text.negative_repetition_rate(ours, n, "pairs"),
            text.cnd(ours, theirs, n, "plug-in"),
            text.cnd(ours, theirs, n, "pairs"),
            *(bleu[n - 1], self_bleu[n - 1]),
        ]
    # Row i of the references goes with row i of the candidates.
    group = np.arange(len(candidates)) % NUM_GROUPS
    for left_out in range(num_groups):
        kept = [x[group != left_out] for x in (candidates, references)]
        for n in ORDERS:
            ours, theirs = (text.ngram_counts(x, n) for x in kept)
            cr = text.coverage_rate(ours, theirs, n)
            nrr = text.negative_repetition_rate(ours, n, "pairs")
            start = [temperature, n, left_out, len(kept[0]), ""]
            yield [*start, cr, "", nrr, "", "", "", ""]


def main() -> None:
    """Train, sweep, then write the table in one go."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the paper's size")
    parser.add_argument("--checkpoint", metavar="FILE", help="to resume from")
    options = parser.parse_args()
    size = SIZES[options.full]
    corpus = text.prepare(
        text.imdb(None), min_count=size["min_count"], **RULE, seed=SEED
    )
    num = size["sentences"]
    real, references, rest = corpus[:num], corpus[num : 2 * num], corpus[2 * num :]
    words = corpus.vocab_size
    size_line = (
        f"{num} candidates a temperature, {num} references, {len(rest)} sentences for "
        f"training, {words} words, {size['epochs']} epochs"
    )
    print(size_line, file=sys.stderr)
    model = train(
        rest,
        real[:1000],
        epochs=size["epochs"],
        checkpoint=options.checkpoint,
        every=1000,
        report=lambda progress: print(progress, file=sys.stderr),
    )
    longest = int(rest.lengths.max())
    fitted = text.FittedModel(
        model, corpus.vocabulary, longest, size["epochs"], held_out=np.nan
    )
    # What was learnt by heart shows as a difference.
    held_out, seen = (
        text.cross_entropy_of(part[:5000], fitted).per_token.value
        for part in (real, rest)
    )
    nll_line = (
        f"{held_out:.4f} nats a token on held-out text, {seen:.4f} on that trained on"
    )
    print(nll_line, file=sys.stderr)
    table = list(rows("real", real, references, 0))
    keys = jax.random.split(jax.random.key(SEED), len(EXPONENTS))
    for key, exponent in zip(keys, EXPONENTS, strict=True):
        temperature = 1.5**exponent
        drawn = model.sample(key, num, longest, temperature)
        groups = NUM_GROUPS if exponent in NEAR else 0
        sampled = from_table(drawn, corpus.vocabulary)
        table += rows(temperature, sampled, references, groups)
        print(f"temperature {temperature:.3f}", file=sys.stderr)
    command = "python notebooks/data/make_temperature_sweep.py"
    device = jax.devices()[0].device_kind  # "cpu", or the name of a GPU
    comments = (
        f"{command}{' --full' if options.full else ''}",
        size_line,
        nll_line,
        f"{versions('jax', 'numpy', 'optax')}, on {device}; seed {SEED}",
    )
    write("temperature_sweep.csv", comments, COLUMNS.split(","), table)


if __name__ == "__main__":
    main()
