"""Measure the planes of Li et al. 2020's Figure 2 on captions; write noise_plane.csv.

    QDTHEORY_DATA=FOLDER python notebooks/data/make_noise_plane.py

FOLDER holds coco60/train.txt and coco60/test.txt, of the repository
Danial-Alh/FastBLEU. The parts are those of the first split of make_table2.py, the noise
has the paper's shares and its five words a sentence. It takes ten seconds.
"""

import numpy as np
from lab.corpora import noise_family
from make_table2 import metrics, read
from tables import corpora, versions, write

ORDER, SHARES = 3, (0.0, 0.2, 0.4, 0.6)


def main() -> None:
    """Measure, then write the table."""
    sentences, rng = read(corpora(), "COCO"), np.random.default_rng(0)
    size = len(sentences) // 3
    order, again = rng.permutation(len(sentences)), rng.integers(size, size=size)
    real, references = (sentences[order[k * size : (k + 1) * size]] for k in (0, 1))
    family = noise_family(references[again], shares=SHARES, length=5)
    shown = {"real": real, **dict(zip(SHARES, family.corpora, strict=True))}
    table = []
    for pair in ("BS", "CN"):
        quality, diversity = metrics(pair, references)(ORDER)
        for share, corpus in shown.items():
            table.append([pair, share, quality(corpus, None), diversity(corpus)])
    comments = (
        "QDTHEORY_DATA=FOLDER python notebooks/data/make_noise_plane.py",
        f"{versions('numpy')}; order {ORDER}, {size} captions a side, seed 0",
    )
    write("noise_plane.csv", comments, ["pair", "share", "quality", "diversity"], table)


if __name__ == "__main__":
    main()
