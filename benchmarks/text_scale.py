"""Time `evaluate` on synthetic captions: intervals, half a million, ten millions.

    QDTHEORY_DATA=FOLDER python benchmarks/text_scale.py CASE

FOLDER holds coco60/train.txt, one caption a line; the captions here are drawn from its
bigrams.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

CHUNK = 100_000


def draws(size: int, seed: int) -> Iterator[list[str]]:
    """Draw captions from the bigrams of COCO's, in chunks."""
    path = Path(os.environ["QDTHEORY_DATA"], "coco60", "train.txt")
    texts = [line.split() for line in path.read_text("utf-8").splitlines()]
    words = [*dict.fromkeys(word for text in texts for word in text)]
    ids = {word: index for index, word in enumerate(words)}
    end = len(words)  # begins and ends a caption
    rows = np.array(
        [pair for text in texts for t in [[end, *map(ids.get, text), end]] for pair in zip(t, t[1:])]
    )
    pairs, counts = np.unique(rows @ [end + 1, 1], return_counts=True)
    first, second = np.divmod(pairs, end + 1)
    # The u-th share of the bigrams that begin with i stands at i + u.
    totals = np.bincount(first, counts)
    reached = np.cumsum(counts)
    shares = first + (reached - (np.cumsum(totals) - totals)[first]) / totals[first]
    rng = np.random.default_rng(seed)
    for start in range(0, size, CHUNK):
        number = min(CHUNK, size - start)
        current, alive = np.full(number, end), np.arange(number)
        drawn: list[list[str]] = [[] for _ in range(number)]
        while len(alive):
            u = rng.random(len(alive))
            place = np.searchsorted(shares, current + u, side="right")
            current = second[np.minimum(place, len(shares) - 1)]
            going = current != end
            alive, current = alive[going], current[going]
            for caption, word in zip(alive.tolist(), current.tolist()):
                drawn[caption].append(words[word])
        yield [" ".join(caption) for caption in drawn]


def write(path: Path, size: int, seed: int) -> None:
    """Write captions to a file, unless they are there."""
    if path.exists():
        return
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8") as file:
        for captions in draws(size, seed):
            file.writelines(f"{caption}\n" for caption in captions)
    unfinished.rename(path)


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
