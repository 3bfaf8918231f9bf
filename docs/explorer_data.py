"""Write what explorer.md shows: `python docs/explorer_data.py`.

For some real distributions and each pair the frontier: its models, their weights and
both metrics, all computed here. Texts are in the order of their real probabilities.
"""

import json
import math
from pathlib import Path

import jax
import numpy as np
from scipy.optimize import brentq

import qdtheory as qd

DATA = Path(__file__).parent / "static/explorer_data.js"
NUM_STEPS = 40
METRICS = {
    "LL": "log-likelihood (nats)",
    "CR": "coverage rate",
    "SE": "entropy (nats)",
    "NRR": "negative repetition rate",
    "BLEU": "expected BLEU-2",
    "NSBLEU": "negative Self-BLEU-2",
}
SPACE = qd.TextSpace(vocab_size=2, lengths=4)


def reals():
    """The real distributions, under the names that the page shows."""
    zipf = 1 / np.arange(1, SPACE.num_texts + 1)
    return {
        "an oracle, five texts common": qd.oracle(SPACE, seed=2, sigma=0.7),
        "an oracle, nearly even": qd.oracle(SPACE, seed=2, sigma=0.3),
        "Zipf's law: 1, 1/2, 1/3, ...": zipf / zipf.sum(),
    }


def pairs():
    """The pairs, under the names that the page shows."""
    separable = (qd.LL_SE, qd.CR_NRR, qd.LL_NRR, qd.CR_SE)
    return {pair.name: pair for pair in separable} | {
        "BLEU-NSBLEU": qd.BleuPair(
            SPACE, max_order=2, num_references=2, num_self_references=2
        )
    }


def frontier(pair, p):
    """Models and weights, from the most diverse to the best in quality.

    Of a separable pair the model in the middle is as diverse as the real distribution.
    """
    if isinstance(pair, qd.BleuPair):
        found = qd.search.search_frontier(pair, p, NUM_STEPS + 1)
        return found.q, found.w
    alpha = np.arange(NUM_STEPS) / NUM_STEPS
    w = np.append(alpha / (1 - alpha) * weight_of_real_diversity(pair, p), -np.inf)
    return jax.vmap(lambda w: qd.pareto_optimum(pair, p, w).q)(w), w


def weight_of_real_diversity(pair, p):
    """The weight whose model is as diverse as the real distribution."""

    def excess(w):
        return float(qd.pareto_optimum(pair, p, w).diversity - pair.diversity(p))

    return brentq(excess, -100.0, 0.0, xtol=1e-12)


def rounded(x):
    """Five digits as nested lists; None for infinity, which JSON does not have."""
    if np.ndim(x):
        return [rounded(entry) for entry in np.asarray(x)]
    return float(f"{x:.5g}") + 0.0 if math.isfinite(x) else None  # 0 without a sign


def entry(name, pair, p):
    """What the page needs of one pair."""
    q, w = frontier(pair, p)
    gain = qd.quality_discrepancy(pair, p).qdisc
    return {
        "name": name,
        "axes": [METRICS[metric] for metric in name.split("-")],
        "real": rounded([pair.quality(p, p), pair.diversity(p)]),
        "found": isinstance(pair, qd.BleuPair),
        "gain": rounded(gain) if gain > 1e-12 else 0,
        "w": rounded(w),
        "quality": rounded(jax.vmap(pair.quality, (0, None))(q, p)),
        "diversity": rounded(jax.vmap(pair.diversity)(q)),
        "q": rounded(np.asarray(q)[:, np.argsort(-np.asarray(p))]),
    }


def world(name, p):
    """What the page needs of one real distribution."""
    descending = np.argsort(-np.asarray(p))
    return {
        "name": name,
        "texts": ["".join("ab"[t] for t in SPACE.tokens[i]) for i in descending],
        "p": rounded(np.asarray(p)[descending]),
        "pairs": [entry(name, pair, p) for name, pair in pairs().items()],
    }


def main():
    """Compute and write; a script rather than JSON, so that a page on disk reads it."""
    worlds = [world(name, p) for name, p in reals().items()]
    text = json.dumps(worlds, separators=(",", ":"))
    DATA.write_text(f"const EXPLORER = {text};\n")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
