"""What strangers type, and what they read: the transcript in first_contact.txt.

A line with a dollar is a call, the line below it the exit status and the answer: all of
stderr for status 1, else the first line of the output. Three dots end what is compared.
"""

import gzip
import json
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from calls import call
from stored import parquet, saved

from qdtheory.text import files

zstd = files._zstd("tests")  # of Python 3.14, or its backport
LINES = Path(__file__).with_name("first_contact.txt").read_text("utf-8").splitlines()
CALLS = list(zip(LINES[::2], LINES[1::2], strict=True))

METRICS = """
import jax, jax.numpy as jnp, numpy as np

number = 3

def quality(q, p):
    return q @ p

def likelihood(q, p):
    return jnp.log(p) @ q

def diversity(q):
    return -(q @ q)

def words(q):
    return len({float(x) for x in q})

def raising(q):
    raise KeyError("a\\nb")

def vector(q):
    return q

def not_a_number(q):
    return 0 * q.sum() + jnp.nan

def steps(q):
    return jnp.round(q * 10).sum()

def constant(q):
    return 0 * q.sum() + 1

def sizes(q):
    return q.size

def numpy_only(q):
    return -np.sum(np.square(q))

def uniform_only(q):
    if not isinstance(q, jax.core.Tracer) and q[0] != q[1]:
        raise KeyError("uniform")
    return -(q @ q)
"""
SENTENCES = ["the cat sat on the mat", "a dog sat on a log", "the dog ate the cat"] * 4
OTHERS = ["the cat ate a dog on the mat", "a dog sat on the log", "the mat sat"] * 4
STOPPED = {
    "cell_type": "code",
    "source": 'check("03.0", a)\ncheck("03.1", b)',
    "outputs": [
        {"output_type": "stream", "text": "03.0 right\n"},
        {"output_type": "error", "ename": "NameError", "evalue": "b"},
    ],
}
TEXTS = {
    "p4.txt": ".4\n.3\n.2\n.1\n",
    "two.txt": "1\n2\n",
    "words.txt": ".5\nhalf\n",
    "weights.txt": "5\n3\n2\n",
    "negative.txt": ".5\n.6\n-.1\n",
    "nan.txt": ".5\nnan\n.2\n.3\n",
    "zero.txt": ".5\n.5\n0\n",
    "commas.txt": ".5,.3,.2\n",
    "bom.txt": "\ufeff.5\n.3\n.2\n",
    "own.py": METRICS,
    "leaving.py": "raise SystemExit('stop')",
    "unwritten.py": "def f(:",
    "few.txt": "the cat sat on\na dog\n",
    "empty.txt": "",
    "blank.txt": "\n\n\n",
    "one.txt": "the cat sat on the mat\n",
    "good.txt": "\n".join(SENTENCES),
    "other.txt": "\n".join(OTHERS),
    "foreign.txt": "ein hund bellt laut\n" * 4,
    "loud.txt": "\n".join(SENTENCES).upper(),
    "ids.txt": "12 5 7 9\n5 12 9 7\n7 9 12\n",
    "japanese.txt": "猫が座った\n犬が食べた\n鳥が飛んだ\n魚が泳いだ\n",
    "short.txt": "the cat\na dog\nthe mat\n",
    "records.jsonl": "\n".join(
        json.dumps({"id": 1, "text": text}) for text in SENTENCES
    ),
    "strings.jsonl": "\n".join(map(json.dumps, SENTENCES)),
    "nested.jsonl": "\n".join(
        json.dumps({"meta": {"output": x}, "target": y, "samples": ["a", "b"]})
        for x, y in zip(SENTENCES, OTHERS)
    ),
    "array.json": json.dumps(SENTENCES),
    "table.csv": "\n".join(["id,text", *(f'1,"{text}"' for text in SENTENCES)]),
    "table.tsv": "\n".join(["id\ttext", *(f"1\t{text}" for text in SENTENCES)]),
    "nul.txt": "a b\0c\n" * 4,
    "crlf.txt": "\r\n".join(SENTENCES),
    "long.txt": "a " * 10**7,
    "answers.ipynb": json.dumps({"cells": [STOPPED]}),
}
PACKED = gzip.compress(TEXTS["good.txt"].encode())
BYTES = {
    "utf16.txt": ".5\n.5\n".encode("utf-16"),
    "latin.txt": b".5 \xe9\n",
    "bad.npy": b"no array",
    "good.txt.gz": PACKED,
    "broken.gz": PACKED[:-9],
    "good.txt.zst": zstd.compress(TEXTS["good.txt"].encode()),
    "broken.zst": zstd.compress(TEXTS["good.txt"].encode())[:-9],
    "packed.zip": b"PK\3\4" + bytes(40),
}
ARRAYS = {
    "matrix.npy": np.eye(2),
    "objects.npy": np.array([1, None]),
    "text.npy": np.array(["a", "b"]),
    "single.npy": np.full(4, 0.25, np.float32),
    "ints.npy": np.array([5, 3, 2]),
    "thirds.npy": np.array([0.5, 0.3, 0.2], np.float32),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf-8", newline="")
    for name, data in BYTES.items():
        (folder / name).write_bytes(data)
    for name, array in ARRAYS.items():
        np.save(folder / name, array)
    for name, columns in (
        ("shards", ("text", "text")),
        ("mixed", ("text", "sentence")),
    ):
        for shard, column in zip("ab", columns):
            parquet(folder / name, [SENTENCES], f"{shard}.parquet", column)
    shutil.copy(folder / "shards" / "a.parquet", folder / "table.parquet")
    for split in ("test", "train"):
        parquet(folder / "splits", [SENTENCES], f"{split}-00000-of-00001.parquet")
    (folder / "nothing").mkdir()
    saved(folder / "saved", [SENTENCES])
    saved(folder / "nulls", [[*SENTENCES, None]])
    return folder


@pytest.fixture
def here(folder, monkeypatch, as_a_user):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for module in ("own", "leaving", "unwritten"):
        sys.modules.pop(module, None)


def answer(line: str) -> str:
    """Exit status and answer to a call of the transcript."""
    arguments = [word.replace("\\n", "\n") for word in shlex.split(line)]
    result = call(*arguments, columns=100, prog_name="qdtheory")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if result.exit_code == 1:
        assert result.stdout == ""
        said = result.stderr.removeprefix("qdtheory: ")
        assert said != result.stderr
        assert said.count("\n") == 1
    else:
        warnings = result.stderr.splitlines()
        assert all(line.startswith("qdtheory: ") for line in warnings)
        said = result.stdout.lstrip()
    return f"{result.exit_code} {said.splitlines()[0] if said else ''}".rstrip()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("line", "expected"), CALLS)
def test_call(line, expected):
    found = answer(line.removeprefix("$ qdtheory "))
    if expected.endswith("..."):
        assert found.startswith(expected.removesuffix("..."))
    else:
        assert found == expected


def test_there_are_many_calls():
    assert len(CALLS) >= 150
    assert len(dict(CALLS)) == len(CALLS)
