"""Compare the decoders with the logits processors of Hugging Face transformers.

    python benchmarks/decoders_referee.py [NUM_LAWS]

It needs transformers and PyTorch, which the project does not install:
`pip install --no-deps transformers` and a PyTorch for the CPU will do. Times nothing.

Laws of the next token, half of them with ties and zeros, go through each processor and
through compositions in random order, as logits in float64 and again in float32, the
type that models run in. A law on which the two keep different tokens is explained if

* "ties": both keep equal probabilities, of other tokens. Top-p cuts equal tokens by the
  order of a sort, which is stable here and need not be in PyTorch;
* "rounding": our decoder keeps what theirs keeps if the law or the parameter moves by
  1e-12 (1e-5 in float32), as where a sum of probabilities is the mass itself;
* "32 bits": eta's processor keeps its cutoff in float32 whatever the logits are;
* "underflow": a probability below 1e-36 is 0 in float32.

Nothing else may differ.
"""

import sys
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import torch
from lab.generators import (
    Epsilon,
    Eta,
    MinP,
    Temperature,
    TopK,
    TopP,
    Typical,
)
from transformers.generation import logits_process as hf

SIZES = (2, 3, 4, 5, 8, 16, 50, 400)
BATCH = 25  # laws with one parameter
THEIRS = {
    Temperature: hf.TemperatureLogitsWarper,
    TopK: hf.TopKLogitsWarper,
    TopP: hf.TopPLogitsWarper,
    MinP: hf.MinPLogitsWarper,
    Typical: hf.TypicalLogitsWarper,
    Epsilon: hf.EpsilonLogitsWarper,
    Eta: hf.EtaLogitsWarper,
}


def drawn(rng, kind):
    """A decoder with a random parameter, half the time one that sums of laws meet."""
    keep = (
        {} if kind is Temperature else {"min_tokens_to_keep": int(rng.integers(1, 4))}
    )
    if kind is Temperature:
        return kind(float(rng.choice([0.25, 0.5, 2.0, rng.uniform(0.2, 3)])))
    if kind is TopK:
        return kind(int(rng.integers(1, 10)), **keep)
    share = rng.choice([rng.uniform(0.02, 0.98), rng.integers(1, 64) / 64])
    if kind in (Epsilon, Eta):
        share = share**2
    return kind(float(share), **keep)


def laws_of(rng, size):
    """A batch: Dirichlet, or 64ths with ties and zeros."""
    if rng.random() < 0.5:
        return rng.dirichlet(np.full(size, rng.choice([0.1, 0.7, 5.0])), BATCH)
    flat = rng.multinomial(64, np.full(size, 1 / size), BATCH)
    return flat / 64


def processed(decoders, laws, dtype):
    """What transformers makes of the laws, and which tokens it keeps."""
    with np.errstate(divide="ignore"):
        scores = torch.tensor(np.log(laws), dtype=dtype)
    for decoder in decoders:
        kind, *keep = (getattr(decoder, field.name) for field in fields(decoder))
        scores = THEIRS[type(decoder)](kind, **dict(zip(["min_tokens_to_keep"], keep)))(
            None, scores
        )
    return scores.softmax(dim=-1).double().numpy(), torch.isfinite(scores).numpy()


def applied(decoders, laws):
    for decoder in decoders:
        laws = decoder(laws)
    return laws


def moved(rng, decoder, size):
    """The decoder with its parameter moved a little; an integer stays."""
    (name, *_) = (field.name for field in fields(decoder))
    value = getattr(decoder, name)
    if isinstance(value, int):
        return decoder
    value = float(np.clip(value * (1 + rng.uniform(-size, size)), 0, 1 - 1e-16))
    return replace(decoder, **{name: value}) if value else decoder


def explained(rng, decoders, law, theirs, size):
    """Why the tokens differ, or None."""
    ours = applied(decoders, law)
    differ = (ours > 0) != theirs
    if not theirs[differ].any() and ours[differ].max() < 1e-36:
        return "underflow"
    same = np.count_nonzero(ours) == theirs.sum()
    if same and np.allclose(np.sort(law[ours > 0]), np.sort(law[theirs]), atol=size):
        return "ties"
    wide = [
        replace(d, cutoff=float(np.float32(d.cutoff))) if isinstance(d, Eta) else d
        for d in decoders
    ]
    if ((applied(wide, law) > 0) == theirs).all():
        return "32 bits"
    for _ in range(300):
        near = law * (1 + rng.uniform(-size, size, law.size) * rng.choice([0, 1]))
        some = [moved(rng, d, size) if type(d) is not Temperature else d for d in wide]
        found = applied(some, near / near.sum()) > 0
        if (found == theirs).all():
            return "rounding"
        kept = law[found], law[theirs]
        if found.sum() == theirs.sum() and np.allclose(*map(np.sort, kept), atol=size):
            return "rounding"
    return None


def compared(rng, decoders_of, number, dtype, size):
    """Counts of laws by what differs, and the largest difference of the others."""
    counts, off = Counter(), 0.0
    for batch in range(number // BATCH):
        laws, decoders = laws_of(rng, SIZES[batch % len(SIZES)]), decoders_of(rng)
        ours = applied(decoders, laws)
        theirs, kept = processed(decoders, laws, dtype)
        # 0 to a small temperature is 0 in both; theirs drops what underflows.
        alike = ((ours > 0) == (kept & (theirs > 0))).all(axis=1)
        off = max(off, np.abs(ours - theirs)[alike].max(initial=0))
        counts["equal"] += int(alike.sum())
        for law, row in zip(laws[~alike], (kept & (theirs > 0))[~alike]):
            counts[explained(rng, decoders, law, row, size) or "else"] += 1
    return counts, off


def compositions(rng):
    """Two to four decoders in random order."""
    kinds = list(THEIRS)
    order = rng.permutation(len(kinds))[: rng.integers(2, 5)]
    return [drawn(rng, kinds[i]) for i in order]


def main() -> None:
    number = int((sys.argv[1:] or [10_000])[0])
    cases = {k.__name__: lambda rng, k=k: [drawn(rng, k)] for k in THEIRS}
    cases["compositions"] = compositions
    failed = 0
    for place, (name, decoders_of) in enumerate(cases.items()):
        for dtype, size in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
            rng = np.random.default_rng([24, 100, place])
            counts, off = compared(rng, decoders_of, number, dtype, size)
            shown = ", ".join(f"{why} {n}" for why, n in sorted(counts.items()))
            bits = str(dtype).removeprefix("torch.")
            print(f"{name:12} {bits}: {shown}; the equal ones to {off:.1e}", flush=True)
            failed += bool(counts["else"] or off > size)
    sys.exit(failed and "something else differs")


if __name__ == "__main__":
    main()
