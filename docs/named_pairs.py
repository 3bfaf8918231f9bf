"""Write what explorer.md says of a pair by its names: `python docs/named_pairs.py`.

The qualities and diversities of the compatibility matrix, and some more of the
catalogue, each with each, as `qdtheory check` answers. What many answers share stands
once: sentences, and the real distributions of the witnesses.
"""

import json
import re
from itertools import product
from math import isnan
from pathlib import Path

import jax
from claim_links import ID
from coverage_page import claims

from qdtheory.catalogue.names import check_names, matrix, parsed, read_metric, rules

DATA = Path(__file__).parent / "static/named_pairs.js"
COLUMNS = {
    "quality": ("quality", "references"),
    "diversity": ("diversity", "self_references"),
}
MORE = {
    "quality": [
        *("2-gram LL", "METEOR", "chrF", "BERTScore", "COMET", "CIDEr"),
        *("F1", "accuracy", "reward", "perplexity"),
    ],
    "diversity": ["2-gram entropy", "EAD", "Div_pair", "MTLD", "Self-BLEU-4"],
}
LABELS = {
    "LL": "log-likelihood under P",
    "perplexity": "under another model",
    "CR": "coverage rate of texts",
    "SE": "entropy of texts",
    "NRR": "negative repetition rate of texts",
    "Distinct-1": "type-token ratio",
    "METEOR": "as any score of each text",
}
STATUSES = ["compatible", "incompatible", "undecided", "conditional"]


def metrics(kind):
    """The names in a list, each with its references, in the order of the alphabet."""
    rows = {tuple(row[x] for x in COLUMNS[kind]) for row in matrix().values()}
    names = [
        f"{name} of {number} references" if number else name for name, number in rows
    ]
    titles = {read_metric(name).title for name in (*names, *MORE[kind])}
    return sorted(titles, key=lambda title: tuple(numbered(title.lower())))


def numbered(title):
    """A name in parts that sort as numbers where they are: 2 before 10."""
    for part in re.split("([0-9]+)", title):
        yield part.zfill(4) if part.isdecimal() else part


def entry(kind, name):
    """What a list has of a metric: its name, what it shows, and how it is typed."""
    stem, number = parsed(name)
    option = {"quality": "references", "diversity": "self-references"}[kind]
    typed = stem if " " not in stem else f'"{stem}"'
    return {
        "name": name,
        "label": f"{name}: {LABELS[name]}" if name in LABELS else name,
        "typed": f"--{kind} {typed}" + f" --{option} {number}" * bool(number),
    }


def index(held, value):
    """The place of a value in a list, at whose end it is put if it is new."""
    if value not in held:
        held.append(value)
    return held.index(value)


def data():
    """Both lists, and the answer to each pair."""
    lists = {kind: metrics(kind) for kind in COLUMNS}
    sentences, worlds, answers, cited = [], [], [], {}
    for names in product(*lists.values()):
        verdict = check_names(names[0], names[1])
        told = [verdict.reason, *verdict.notes], verdict.instead
        places = [[index(sentences, x) for x in said] for said in told]
        answer = [STATUSES.index(verdict.status), *places]
        cited |= dict.fromkeys(re.findall(ID, verdict.reason))
        if (beats := verdict.witness) is not None and verdict.texts:
            p = [round(x, 6) for x in beats.p.tolist()]
            gains = beats.quality_gain, beats.diversity_gain
            answer += [
                index(worlds, {"texts": list(verdict.texts), "p": p}),
                [round(x, 6) for x in beats.q.tolist()],
                None if isnan(gains[0]) else [float(f"{gain:.3g}") for gain in gains],
            ]
        answers.append(answer)
    return {
        **{kind: [entry(kind, x) for x in found] for kind, found in lists.items()},
        "headlines": [f"{rules()[0][x].format('PAIR')}." for x in STATUSES],
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
