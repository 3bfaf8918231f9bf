"""Write what explorer.md says of a pair by its names: `python docs/named_pairs.py`.

The qualities and diversities of the compatibility matrix, and some more of the
catalogue, each with each, as `qdtheory check` answers. What many answers share stands
once: sentences, and the real distributions of the witnesses.
"""

import json
from itertools import product
from pathlib import Path

import jax
from coverage_page import claims

from qdtheory.theory.named_pairs import check_names, matrix, named

DATA = Path(__file__).parent / "static/named_pairs.js"
COLUMNS = {
    "quality": ("quality", "references"),
    "diversity": ("diversity", "self_references"),
}
MORE = {
    "quality": ["BLEU-4", "2-gram LL", "METEOR", "chrF", "BERTScore", "COMET"],
    "diversity": ["Self-BLEU-4", "2-gram entropy", "EAD", "Div_pair", "MTLD"],
}
LABELS = {
    "LL": "log-likelihood, perplexity",
    "CR": "coverage rate of texts",
    "SE": "entropy of texts",
    "NRR": "negative repetition rate of texts",
    "Distinct-1": "type-token ratio",
    "METEOR": "a score of each text",
}
DIGITS = 3


def metrics(kind):
    """Name and references of each metric in a list, those of the matrix first."""
    rows = [tuple(row[x] for x in COLUMNS[kind]) for row in matrix().values()]
    return [*dict.fromkeys(rows), *((name, "") for name in MORE[kind])]


def entry(kind, name, references):
    """What a list has of a metric: its address, its label, and how it is typed."""
    title = named(kind, name, int(references) if references else None).title
    title = name if name in MORE[kind] and not references else title
    label = f"{title}: {LABELS[name]}" if name in LABELS else title
    options = {"quality": "references", "diversity": "self-references"}[kind]
    typed = name if name.replace("-", "").isalnum() else f'"{name}"'
    number = f" --{options} {references}" * bool(references)
    return {"name": title, "label": label, "typed": f"--{kind} {typed}{number}"}


def index(held, value):
    """The place of a value in a list, at whose end it is put if it is new."""
    if value not in held:
        held.append(value)
    return held.index(value)


def data():
    """Both lists, and the answer to each pair."""
    lists = {kind: metrics(kind) for kind in COLUMNS}
    sentences, worlds, answers, cited = [], [], [], {}
    for (u, r), (v, k) in product(*lists.values()):
        numbers = (int(x) if x else None for x in (r, k))
        counts = dict(zip(("references", "self_references"), numbers, strict=True))
        verdict = check_names(u, v, **counts)
        said = [verdict.reason, *verdict.notes, *verdict.instead]
        answer = [
            ["compatible", "incompatible", "undecided"].index(verdict.status),
            [index(sentences, sentence) for sentence in said],
            [*verdict.claims],
        ]
        cited |= dict.fromkeys(verdict.claims)
        if (beats := verdict.witness) is not None and verdict.texts:
            p = [round(x, 6) for x in beats.p.tolist()]
            gains = beats.quality_gain, beats.diversity_gain
            answer += [
                index(worlds, {"texts": list(verdict.texts), "p": p}),
                [round(x, 6) for x in beats.q.tolist()],
                [float(f"{gain:.{DIGITS}g}") for gain in gains],
            ]
        answers.append(answer)
    return {
        **{kind: [entry(kind, *x) for x in found] for kind, found in lists.items()},
        "sentences": sentences,
        "worlds": worlds,
        "claims": {claim: claims()[claim][0] for claim in cited},
        "answers": answers,
    }


def main():
    """Compute and write; a script rather than JSON, so that a page on disk reads it."""
    jax.config.update("jax_enable_x64", True)
    text = json.dumps(data(), separators=(",", ":"), ensure_ascii=False)
    DATA.write_text(f"const NAMED = {text};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
