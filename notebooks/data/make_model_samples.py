"""Score the samples of six models of COCO captions; write model_samples.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_model_samples.py

FOLDER holds model_samples/*.txt and texygen/{image,test}_coco.txt of the repository
geek-ai/Texygen. The models were trained on image_coco.txt. One half of it is the first
set of references, the other half is real text beside the models; test_coco.txt, which
shows other scenes, is the second set of references. All sets are cut to one size. Rows
"noise" are the real text with a share of random sentences.

Captions come with full stops attached, samples with separated ones: one tokenizer reads
both, and its tokens do not depend on spaces beside punctuation.
"""

import re
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
from lab.corpora import add_noise, every_metric, prepare
from tables import corpora, versions, write

from qdtheory import text
from qdtheory.text import Corpus
from qdtheory.text.defaults import NUM_GROUPS
from qdtheory.text.evaluation import KINDS

ORDERS = (1, 2, 3, 4, 5)
MODELS = {
    "MLE": "mle",
    "SeqGAN": "seq",
    "MaliGAN": "maligan",
    "RankGAN": "rank",
    "LeakGAN": "leakgan",
    "TextGAN": "textgan",
}
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6)
# A caption's apostrophe may be a token of its own, as in the samples.
WORD = re.compile(r"\w+|[^\w\s]")
COLUMNS = "references,system,share,length,metric,order,value,low,high"
METRICS = (*KINDS, "CND of pairs")


def tokens(line: str) -> list[str]:
    """Words and single punctuation marks; NLTK's quotation marks as typed ones."""
    return WORD.findall(line.lower().replace("``", '"').replace("''", '"'))


def read(folder: Path, name: str, seed: int) -> Corpus:
    """The sentences of a file, shuffled."""
    return prepare(text.read_corpus(folder / name, tokenizer=tokens), seed=seed)


def read_systems(folder: Path) -> tuple[dict[str, Corpus], dict[str, Corpus]]:
    """Real text and the models' samples; the sets of references; all of one size."""
    train, test = (
        read(folder, f"texygen/{name}_coco.txt", seed=1) for name in ("image", "test")
    )
    size = len(train) // 2
    systems = {"Real": train[size:]} | {
        name: read(folder, f"model_samples/{file}.txt", seed=1)
        for name, file in MODELS.items()
    }
    references = {"train": train, "test": test}
    return tuple({k: v[:size] for k, v in x.items()} for x in (systems, references))


def scores(references: Corpus) -> Callable[[Corpus], np.ndarray]:
    """All metrics of candidates against these references, a row a metric."""
    plug_in = every_metric(references, max(ORDERS), None, "plug-in")
    tables = {n: text.ngram_counts(references, n) for n in ORDERS}

    def of(candidates: Corpus) -> np.ndarray:
        pairs = [text.cnd(candidates, tables[n], n, "pairs") for n in ORDERS]
        return np.vstack([plug_in(candidates), pairs])

    return of


def rows(*values: np.ndarray) -> Iterator[list]:
    """One row for each metric and order: the value, and an interval if there is one."""
    for i, metric in enumerate(METRICS):
        for j, n in enumerate(ORDERS):
            yield [metric, n, *(float(x[i, j]) for x in values)]


def copies(candidates: Corpus, references: Corpus) -> list[list]:
    """How many sentences differ, and which share is found word for word."""
    sentences, originals = list(candidates), set(references)
    copied = sum(sentence in originals for sentence in sentences)
    return [
        ["different sentences", 0, len(set(sentences)), None, None],
        ["copied", 0, copied / len(sentences), None, None],
    ]


def main() -> None:
    """Measure, then write the table in one go."""
    systems, sets = read_systems(corpora())
    table = []
    for name, references in sets.items():
        metric = scores(references)
        for system, candidates in systems.items():
            found = text.jackknife_interval(metric, candidates, num_groups=NUM_GROUPS)
            table += [
                [name, system, 0.0, "", *row]
                for row in rows(found.value, found.low, found.high)
            ]
            table += [
                [name, system, 0.0, "", *row] for row in copies(candidates, references)
            ]
            print(f"{name}, {system}: {candidates}", file=sys.stderr)
        for length, share in product((5, None), SHARES):
            noisy = add_noise(systems["Real"], share, length=length)
            table += [
                [name, "noise", share, length or "same", *row, None, None]
                for row in rows(metric(noisy))
            ]
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_model_samples.py",
        f"{versions('numpy')}; {len(systems['Real'])} sentences in each set; seed 1; "
        f"jackknife of {NUM_GROUPS} groups, level 0.95",
    )
    write("model_samples.csv", comments, COLUMNS.split(","), table)


if __name__ == "__main__":
    main()
