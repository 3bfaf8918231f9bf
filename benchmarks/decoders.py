"""Time the decoders on all texts, and dynamic programming on texts too long to list.

    python benchmarks/decoders.py

46,656 texts are those of 6 tokens over 6 words. Markov models have 50 words, order 1
and 100 tokens; SE, LL, CR and NRR are exact. CPU times, the least of five rounds.
"""

import numpy as np
from lab import generators as gen
from measure import least

import qdtheory as qd

DECODERS = (
    gen.Temperature(0.7),
    gen.TopK(3),
    gen.TopP(0.9),
    gen.MinP(0.1),
    gen.Typical(0.9),
    gen.Epsilon(0.05),
    gen.Eta(0.05),
    gen.Greedy(),
    gen.Beam(8),
)


def main() -> None:
    space, rng = qd.TextSpace(vocab_size=6, lengths=6), np.random.default_rng(0)
    p = rng.dirichlet(np.ones(space.num_texts))
    decoders = (*DECODERS, gen.BestOf(8, np.log(p)))
    for decoder in decoders:
        spent, _ = least(gen.decode, p, space, decoder, rounds=5)
        name = type(decoder).__name__
        print(f"{name:12} {space.num_texts:,} texts: {1000 * spent:.0f} ms")
    rows = rng.dirichlet(np.full(50, 0.3), 51)
    model = gen.MarkovModel(rows[0], rows[1:])
    for decoder in DECODERS[:7]:
        spent, _ = least(
            lambda d: gen.markov_metrics(gen.decode_markov(model, d), model, 100),
            decoder,
            rounds=5,
        )
        print(f"{type(decoder).__name__:12} 50 words, 100 tokens: {spent:.3f} s")


if __name__ == "__main__":
    main()
