"""No line of what a command prints is wider than the terminal; no letter is lost."""

import json
from pathlib import Path

import numpy as np
import pytest
from calls import call
from rich.cells import cell_len

LONG = f"generations_of_a_model_{'of_many_words_' * 8}.txt"
FOREIGN = "模型甲生成的句子.txt"
WORDS = [*"abcdefghij"]
CELL = {
    "cell_type": "code",
    "source": 'check("03.0", a)\ncheck("03.1", b)',
    "outputs": [
        {"output_type": "stream", "text": "03.0 right\n"},
        {"output_type": "error", "ename": "NameError", "evalue": "no b " * 15},
    ],
}
FILES = "model.txt", LONG, FOREIGN, "--references", "real.txt", "--max-order", "2"
CALLS = {
    "metrics": ["metrics"],
    "a metric": ["metrics", "BLEU"],
    "rewards": ["rewards"],
    "a reward": ["rewards", "--reward", "log(D/(1-D))"],
    "compatible": ["check", "--f", "log(x)", "--g", "-x*log(x)"],
    "incompatible": ["check", "--pair", "LL-NRR"],
    "by names": ["check", "--quality", "ROUGE-L", "--diversity", "distinct-2"],
    "compatible names": ["check", "--quality", "perplexity", "--diversity", "SE"],
    "at P": ["check", "--pair", "LL-NRR", "--p", "p.npy"],
    "qdisc": ["qdisc", "--pair", "LL-NRR", "--seeds", "2"],
    "evaluate": ["evaluate", *FILES],
    "prompts": ["evaluate", "--prompts", "one.jsonl", f"{LONG}.jsonl"],
    "grade": ["grade", "ada.ipynb", f"{LONG}.ipynb"],
}
SLOW = "rewards", "a reward", "qdisc"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(0)
    for name in ("model.txt", LONG, FOREIGN, "real.txt"):
        lines = [" ".join(rng.choice(WORDS, 8)) for _ in range(120)]
        (folder / name).write_text("\n".join(lines))
    for name in ("one.jsonl", f"{LONG}.jsonl"):
        rows = [
            {"prompt": i, "outputs": rng.choice(WORDS, 4).tolist(), "references": ["a"]}
            for i in map(str, range(20))
        ]
        (folder / name).write_text("\n".join(map(json.dumps, rows)))
    for name in ("ada.ipynb", f"{LONG}.ipynb"):
        (folder / name).write_text(json.dumps({"cells": [CELL]}))
    (folder / "table.csv").write_text("system,BLEU-4,BLEU-5\nours of 2026,.31,.35\n")
    np.save(folder / "p.npy", np.float32([0.1, 0.2, 0.7]))
    return folder


def widest(shown):
    """Columns of the widest line, the signature aside: it is to be pasted whole."""
    return max(cell_len(x) for x in shown.splitlines() if "|version:" not in x)


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=pytest.mark.slow if x in SLOW else []) for x in CALLS],
)
def test_every_line_fits_the_terminal(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    said = []
    for columns in (40, 80, 200):
        answer = call(*CALLS[name], columns=columns)
        assert answer.exit_code == 0, answer.stderr
        assert widest(answer.stdout) <= columns
        said.append(set("".join(answer.stdout.split())))
    # Whatever the width, the same is said, but for rules and titles.
    assert said[0] <= said[1] | {*"-"}
    assert said[1] <= said[2] | {*"-"}


def test_what_is_no_terminal_gets_80_columns(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert call(*CALLS["qdisc"], env={}).stdout == call(*CALLS["qdisc"]).stdout
    call(*CALLS["evaluate"], "--output", "table.txt")
    table = Path("table.txt").read_text("utf-8")
    assert widest(table) <= 80
