"""Write what explorer.md shows: `python docs/explorer_data.py`.

For each pair the frontier of one real distribution: its models, their weights and both
metrics. Texts are in the order of their real probabilities. Also a small language model
for the decoders, and the spellings, rules and limits of formulas, which thus stand in
one place.
"""

import json
import math
from pathlib import Path

import jax
import numpy as np
from scipy.optimize import brentq

import qdtheory as qd
from qdtheory.formulas import expressions, trees
from qdtheory.formulas.scalar_functions import DIVERSITIES, QUALITIES, formula_of
from qdtheory.generators.decoders import next_token_distributions

DATA = Path(__file__).parent / "static/explorer_data.js"
NUM_STEPS = 60
NUM_LEVELS = 41
METRICS = {
    "LL": "log-likelihood (nats)",
    "CR": "coverage rate",
    "SE": "entropy (nats)",
    "NRR": "negative repetition rate",
    "BLEU": "expected BLEU-2",
    "NSBLEU": "negative Self-BLEU-2",
}


def real():
    """The space of the texts and the real distribution."""
    space = qd.TextSpace(vocab_size=2, lengths=4)
    return space, qd.oracle(space, seed=2, sigma=0.7)


def pairs(space):
    """The pairs, under the names that the page shows."""
    separable = (qd.LL_SE, qd.CR_NRR, qd.LL_NRR, qd.CR_SE)
    return {pair.name: pair for pair in separable} | {
        "BLEU-NSBLEU": qd.BleuPair(
            space, max_order=2, num_references=2, num_self_references=2
        )
    }


def frontier(pair, p):
    """Models and weights, from the most diverse to the best in quality.

    Of a separable pair the model in the middle is as diverse as the real distribution.
    """
    if isinstance(pair, qd.BleuPair):
        found = qd.solvers.search_frontier(pair, p, NUM_LEVELS)
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


def entry(name, pair, space, p):
    """What the page needs of one pair."""
    q, w = frontier(pair, p)
    descending = np.argsort(-np.asarray(p))
    return {
        "name": name,
        "axes": [METRICS[metric] for metric in name.split("-")],
        "real": rounded([pair.quality(p, p), pair.diversity(p)]),
        "found": isinstance(pair, qd.BleuPair),
        "gain": rounded(qd.quality_discrepancy(pair, p).qdisc),
        "w": rounded(w),
        "quality": rounded(jax.vmap(pair.quality, (0, None))(q, p)),
        "diversity": rounded(jax.vmap(pair.diversity)(q)),
        "q": rounded(np.asarray(q)[:, descending]),
    }


def language_model():
    """The law of the next token after each prefix, of a model that decoders change."""
    space = qd.TextSpace(vocab_size=4, lengths=3)
    laws = next_token_distributions(qd.oracle(space, seed=0), space)
    return {"tokens": "abcd", "laws": [law.tolist() for law in laws]}


def grammar():
    """What formulas.js allows, and what it says of the rest: the library's own."""
    tables = QUALITIES | DIVERSITIES
    texts = {name: formula_of(h) for name, h in tables.items()}
    return {
        "allowed": expressions.ALLOWED,
        "functions": trees.FUNCTIONS,
        "spellings": expressions.SPELLINGS,
        "names": {name: h.text for name, h in texts.items() if h is not None},
        "limits": {
            "characters": expressions.MAX_CHARACTERS,
            "nodes": expressions.MAX_NODES,
            "number": expressions.MAX_NUMBER,
            "power": expressions.MAX_POWER,
            "denominator": expressions.MAX_DENOMINATOR,
            "bits": trees.MAX_BITS,
        },
    }


def data():
    """All that the page shows."""
    space, p = real()
    descending = np.argsort(-np.asarray(p))
    return {
        "texts": ["".join("ab"[t] for t in space.tokens[i]) for i in descending],
        "p": rounded(np.asarray(p)[descending]),
        "formulas": grammar(),
        "model": language_model(),
        "pairs": [entry(name, pair, space, p) for name, pair in pairs(space).items()],
    }


def main():
    """Compute and write; a script rather than JSON, so that a page on disk reads it."""
    jax.config.update("jax_enable_x64", True)
    text = json.dumps(data(), separators=(",", ":"))
    DATA.write_text(f"const EXPLORER = {text};\n")


if __name__ == "__main__":
    main()
