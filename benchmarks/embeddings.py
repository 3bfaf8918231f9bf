"""Time MiniLM's sentence embeddings against sentence-transformers.

    QDTHEORY_DATA=FOLDER python benchmarks/embeddings.py [PYTHON]

FOLDER holds coco60/train.txt, one caption a line; 1,000 are embedded. PYTHON is an
interpreter with sentence-transformers and PyTorch, which the project does not install;
without it only our side is timed. Both sides use the same weights and one core, in
turns, and are compared by their CPU time.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
from lab.corpora import embed
from lab.corpora.embeddings import _path
from measure import CAPTIONS, captions, peak, seconds

ROUNDS = 3
SIZE = 1000
RIVAL = f"""
import sys, time, numpy, torch
from sentence_transformers import SentenceTransformer
torch.set_num_threads(1)
model = SentenceTransformer(sys.argv[1], device="cpu")
captions = open(sys.argv[2], encoding="utf-8").read().splitlines()[:{SIZE}]
model.encode(captions[:100])
start = time.process_time()
numpy.save(sys.argv[3], model.encode(captions))
print(time.process_time() - start)
"""


def rival(python: str) -> tuple[float, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        stored = Path(folder, "rows.npy")
        spent = subprocess.check_output(
            [python, "-c", RIVAL, _path(), CAPTIONS, stored], text=True
        )
        return float(spent), np.load(stored)


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # inherited by threads
    texts = captions(0, SIZE)
    first, _ = seconds(embed, texts, clock=process_time)
    spent, other = [], []
    for _ in range(ROUNDS):
        spent.append(seconds(embed, texts, clock=process_time)[0])
        if len(sys.argv) > 1:
            time_of_rival, rows = rival(sys.argv[1])
            np.testing.assert_allclose(embed(texts), rows, rtol=0, atol=2e-6)
            other.append(time_of_rival)
    line = (
        f"MiniLM, {SIZE:,} captions: {min(spent):.2f} s, first call {first:.1f} s, "
        f"peak {peak():.0f} MB"
    )
    if not other:
        print(f"{line}; no interpreter with sentence-transformers: no ratio")
        return
    print(
        f"{line}; sentence-transformers {min(other):.2f} s, "
        f"ratio {min(other) / min(spent):.1f}"
    )


if __name__ == "__main__":
    main()
