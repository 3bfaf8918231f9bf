"""Sweep an LSTM trained on reviews or captions over temperatures; write a table.

    python notebooks/data/make_temperature_sweep.py [--full] [--checkpoint FILE]
    QDTHEORY_DATA=FOLDER python notebooks/data/make_temperature_sweep.py --captions \\
        --checkpoint FILE [--epochs 30] [--candidates 50000]

The experiment of Li et al. 2020, section 6.2: embedding and hidden size 128, 30 epochs,
50,000 candidates at each temperature.

With --full it is done on film reviews, with 50,000 references and the other sentences
for training. The table temperature_sweep.csv is that run. It took five minutes on an
H100 and 16 cores; by the time of 100 steps, two cores alone would need about eight and
a half hours. Without --full it is the same on a vocabulary and samples small enough for
about seven minutes on one core, and its table replaces the other.

With --captions it is done on captions as in the paper, and written to
caption_sweep.csv; FOLDER holds coco60/train.txt and test.txt of the repository
Danial-Alh/FastBLEU. Words seen fewer than four times are removed with their captions,
which leaves 5,650 words; the paper has 5,473, of 530,093 captions. 50,000 captions are
for training, where it has 200,000, and half of the rest are references. 30 epochs and
the candidates took an hour and a half of one core.

With --checkpoint a training writes FILE after each epoch, and each temperature a file
beside it. A run that was killed goes on from there, and so does one with more epochs.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

# Otherwise sums on a GPU come in any order, and another run finds other numbers.
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")
import jax
import numpy as np
from tables import cells, corpora, part, versions, write

jax.config.update("jax_enable_x64", True)
from lab.corpora import imdb, prepare
from lab.corpora.training import (
    Progress,
    from_table,
    num_predicted,
    to_table,
    train,
)

from qdtheory import text
from qdtheory.text import Corpus

# Montahaei et al. 2019's rule for IMDB, with a lower and a higher count.
RULE = {"rare": "unk", "max_unknown": 4, "min_length": 5, "max_length": 40}
SIZES = {
    " --full": {"min_count": 50, "candidates": 50_000, "epochs": 30},
    "": {"min_count": 2_000, "candidates": 5_000, "epochs": 4},
    # Li et al. 2020's rule for COCO, with a count for fewer captions.
    " --captions": {"min_count": 4, "candidates": 50_000, "epochs": 30},
}
NUM_TRAINING, BATCH_SIZE = 50_000, 64
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
    # Of equally many, row i of the references goes with row i of the candidates.
    for left_out in range(num_groups):
        kept = [
            x[np.arange(len(x)) % NUM_GROUPS != left_out]
            for x in (candidates, references)
        ]
        for n in ORDERS:
            ours, theirs = (text.ngram_counts(x, n) for x in kept)
            cr = text.coverage_rate(ours, theirs, n)
            nrr = text.negative_repetition_rate(ours, n, "pairs")
            start = [temperature, n, left_out, len(kept[0]), ""]
            yield [*start, cr, "", nrr, "", "", "", ""]


def captions(min_count: int) -> Corpus:
    """The captions of both files, shuffled."""
    lines = [
        line.split()
        for name in ("train", "test")
        for line in (corpora() / f"coco60/{name}.txt").read_text("utf-8").splitlines()
    ]
    return prepare(lines, min_count=min_count, max_length=32, seed=SEED)


def main() -> None:
    """Train, sweep, then write the table in one go."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--full", action="store_true", help="reviews, the paper's size")
    kind.add_argument("--captions", action="store_true", help="captions instead")
    parser.add_argument("--epochs", type=int, help="instead of the setting's")
    parser.add_argument("--candidates", type=int, help="likewise, a temperature")
    parser.add_argument("--checkpoint", metavar="FILE", help="to resume from")
    options = parser.parse_args()
    flag = " --captions" if options.captions else " --full" if options.full else ""
    size = SIZES[flag]
    num = size["candidates"]
    num_candidates = options.candidates or num
    epochs = options.epochs or size["epochs"]
    if options.captions:
        corpus = captions(size["min_count"])
        num = (len(corpus) - NUM_TRAINING) // 2
    else:
        corpus = prepare(imdb(None), min_count=size["min_count"], **RULE, seed=SEED)
    real, references, rest = corpus[:num], corpus[num : 2 * num], corpus[2 * num :]
    words = corpus.vocab_size
    size_line = (
        f"{num_candidates} candidates a temperature, {num} references, {len(rest)} "
        f"sentences for training, {words} words, {epochs} epochs"
    )
    print(size_line, file=sys.stderr)
    clock = [time.process_time()]

    def report(progress: Progress) -> None:
        clock.append(time.process_time())
        print(f"{clock[-1] - clock[-2]:.0f} s of CPU; {progress}", file=sys.stderr)

    model = train(
        rest,
        real[:1000],
        epochs=epochs,
        batch_size=BATCH_SIZE,
        checkpoint=options.checkpoint,
        every=len(rest) // BATCH_SIZE,
        report=report,
    )
    longest = int(rest.lengths.max())

    def nll(side: Corpus) -> float:
        """Nats a token, of the first sentences."""
        side = side[:5000]
        log_q = model.log_probability(to_table(side, longest))
        return -float(log_q.sum()) / int(num_predicted(side, longest).sum())

    # What was learnt by heart shows as a difference.
    held_out, seen = nll(real), nll(rest)
    nll_line = (
        f"{held_out:.4f} nats a token on held-out text, {seen:.4f} on that trained on"
    )
    print(nll_line, file=sys.stderr)
    keys = jax.random.split(jax.random.key(SEED), len(EXPONENTS))

    def at(key: jax.Array, exponent: float) -> Iterator[list]:
        drawn = model.sample(key, num_candidates, longest, 1.5**exponent)
        groups = NUM_GROUPS if exponent in NEAR else 0
        sampled = from_table(drawn, corpus.vocabulary)
        return map(cells, rows(1.5**exponent, sampled, references, groups))

    table = list(rows("real", real, references, 0))
    for key, exponent in zip(keys, EXPONENTS, strict=True):
        if options.checkpoint:
            path = Path(f"{options.checkpoint}.{exponent:+.1f}.csv")
            table += part(path, f"{size_line}; {nll_line}", partial(at, key, exponent))
        else:
            table += at(key, exponent)
        print(f"temperature {1.5**exponent:.3f}", file=sys.stderr)
    folder = "QDTHEORY_DATA=FOLDER " if options.captions else ""
    device = jax.devices()[0].device_kind  # "cpu", or the name of a GPU
    comments = (
        f"{folder}python notebooks/data/make_temperature_sweep.py{flag}",
        size_line,
        nll_line,
        f"{versions('jax', 'numpy', 'optax')}, on {device}; seed {SEED}",
    )
    name = "caption_sweep.csv" if options.captions else "temperature_sweep.csv"
    write(name, comments, COLUMNS.split(","), table)


if __name__ == "__main__":
    main()
