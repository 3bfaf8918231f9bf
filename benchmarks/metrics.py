"""Time Vendi, ROUGE-L and self-repetition of 10,000 texts against their packages.

    python benchmarks/metrics.py FOLDER [NUM_TEXTS]

FOLDER holds the unpacked packages vendi-score 0.0.3, rouge-score 0.1.2 and diversity
0.3.1 (`pip download --no-deps`). What is timed does not need their requirements, such
as PyTorch. Both sides run in one process, one after the other. The texts are IMDB
sentences of 5 to 20 words of letters, for which the tokenizers agree. Where definitions
agree, values are equal to 1e-9. They differ so:

* vendi-score's `score_X` takes order 1 whatever q is, and has no order for `score_dual`
  of eigenvalues below 0, which it keeps.
* rouge-score cuts words at what is no letter or digit, and lower-cases them.
* diversity's ROUGE-L and n-gram diversity are rounded to 3 digits; the former is 1 if
  all pairs have 0, the latter counts n-grams that run from one text into the next; its
  gzip ratio compresses the compressed file again.
"""

import importlib.util
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np

from qdtheory import text


def timed(function, *arguments):
    """Seconds of CPU and value."""
    start = time.process_time()
    value = function(*arguments)
    return time.process_time() - start, value


def module(folder: Path, path: str):
    """Load one file of a package without its `__init__`."""
    (file,) = folder.rglob(path)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def sentences(number: int) -> list[str]:
    corpus = text.prepare(text.imdb(None), min_length=5, max_length=20)
    words = ([w.lower() for w in s if w.isascii() and w.isalpha()] for s in corpus)
    return [" ".join(s) for s in words if len(s) >= 5][:number]


def main() -> None:
    folder, number = Path(sys.argv[1]), int((sys.argv[2:] or [10_000])[0])
    sys.path += [str(p.parent) for p in folder.rglob("rouge_score") if p.is_dir()]
    texts = sentences(number)

    features = np.random.default_rng(0).normal(size=(len(texts), 384)) + 0.3
    ours, value = timed(text.vendi_score, features)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    base, _ = timed(lambda: np.linalg.eigvalsh(unit.T @ unit / len(unit)))
    rival = module(folder, "vendi_score/vendi.py")
    theirs, expected = timed(rival.score_dual, features)
    assert abs(value - expected) < 1e-9 * expected
    print(f"Vendi: {ours:.2f} s, {ours / base:.1f} times a covariance and eigenvalues")
    print(f"       vendi-score {theirs:.2f} s, {theirs / ours:.1f} times ours")

    ours, value = timed(text.self_repetition, texts, 4)
    rival = module(folder, "diversity/self_repetition.py")
    theirs, expected = timed(lambda: rival.self_repetition_score(texts, 4, False))
    assert abs(value - expected) < 1e-9
    print(f"self-repetition: {ours:.2f} s; diversity {theirs / ours:.0f} times that")

    ours, _ = timed(text.pairwise_rouge_l, texts)
    from rouge_score import rouge_scorer

    scorer, few = rouge_scorer.RougeScorer(["rougeL"]), texts[:200]
    pairs = list(combinations(few, 2))
    theirs, found = timed(
        lambda: [scorer.score(a, b)["rougeL"].fmeasure for a, b in pairs]
    )
    assert abs(np.mean(found) - text.pairwise_rouge_l(few)) < 1e-9
    all_pairs = len(texts) * (len(texts) - 1) / 2
    ratio = theirs / len(pairs) * all_pairs / ours
    print(
        f"ROUGE-L of {all_pairs:.3g} pairs: {ours:.1f} s; rouge-score {ratio:.0f} times"
    )

    ours, value = timed(text.distinct_k, texts, 100)
    print(f"distinct_100 of {len(texts)} texts: {value:.2f}, {ours:.3f} s")


if __name__ == "__main__":
    main()
