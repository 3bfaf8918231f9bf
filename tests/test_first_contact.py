"""What strangers type, and what they read: the transcript in first_contact.txt.

A line with a dollar is a call, the line below it the exit status and the answer: all of
stderr for status 1, else the first line of the output. Three dots end what is compared.
Where more lines follow, they are the whole output: the journeys at the top.
"""

import gzip
import json
import random
import re
import shlex
import sys
import tomllib
from pathlib import Path

import fuzz
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from calls import call, samples

from qdtheory.text import files

zstd = files._zstd("tests")  # of Python 3.14, or its backport
HERE = Path(__file__).parent
TRANSCRIPT = HERE.joinpath("first_contact.txt").read_text("utf-8")
CALLS = re.findall(r"^\$ qdtheory (.*)\n((?:(?!\$ ).*\n)+)", TRANSCRIPT, re.M)

SENTENCES = ["the cat sat on the mat", "a dog sat on a log", "the dog ate the cat"] * 4
OTHERS = ["the cat ate a dog on the mat", "a dog sat on the log", "the mat sat"] * 4
STOPPED = {
    "cell_type": "code",
    "source": 'check("03.0", a)\ncheck("03.1", b)',
    "outputs": [
        {"output_type": "stream", "text": "03.0 right\n"},
        {"output_type": "error", "ename": "NameError", "evalue": "no b " * 15},
    ],
}


def lines(*values):
    return "\n".join(values)


def records(*values):
    return lines(*map(json.dumps, values))


GOOD = lines(*SENTENCES)
ZSTD = zstd.compress(GOOD.encode())
NESTED = [
    {"meta": {"output": x}, "target": y, "samples": ["a", "b"]}
    for x, y in zip(SENTENCES, OTHERS)
]
TEXTS = tomllib.loads(HERE.joinpath("first_contact.toml").read_text("utf-8"))
FILES = (
    samples()
    | TEXTS
    | {
        "good.txt": GOOD,
        "other.txt": lines(*OTHERS),
        "loud.txt": GOOD.upper(),
        "records.jsonl": records(*({"id": 1, "text": text} for text in SENTENCES)),
        "strings.jsonl": records(*SENTENCES),
        "nested.jsonl": records(*NESTED),
        "array.json": json.dumps(SENTENCES),
        "table.csv": lines("id,text", *(f'1,"{text}"' for text in SENTENCES)),
        "table.tsv": lines("id\ttext", *(f"1\t{text}" for text in SENTENCES)),
        "crlf.txt": "\r\n".join(SENTENCES),
        "long.txt": "a " * 10**7,
        "answers.ipynb": json.dumps({"cells": [STOPPED]}),
        "utf16.txt": ".5\n.5\n".encode("utf-16"),
        "latin.txt": b".5 \xe9\n",
        "good.txt.gz": gzip.compress(GOOD.encode()),
        "broken.gz": gzip.compress(GOOD.encode())[:-9],
        "good.txt.zst": ZSTD,
        "broken.zst": ZSTD[:-9],
        "packed.zip": b"PK\3\4" + bytes(40),
        "matrix.npy": np.eye(2),
        "objects.npy": np.array([1, None]),
        "text.npy": np.array(["a", "b"]),
        "single.npy": np.full(4, 0.25, np.float32),
        "ints.npy": np.array([5, 3, 2]),
        "thirds.npy": np.array([0.5, 0.3, 0.2], np.float32),
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        if isinstance(content, np.ndarray):
            np.save(folder / name, content)
        else:
            is_text = isinstance(content, str)
            content = content.encode() if is_text else content
            (folder / name).write_bytes(content)
    table = pa.table({"id": range(12), "text": SENTENCES})
    pyarrow.parquet.write_table(table, folder / "table.parquet")
    (folder / "nothing").mkdir()
    return folder


@pytest.fixture
def here(folder, monkeypatch, as_a_user):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for module in ("own", "leaving", "unwritten"):
        sys.modules.pop(module, None)


def answer(line: str, whole: bool) -> str:
    """Exit status and answer to a call of the transcript, or only its first line."""
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
    if whole:  # the warnings first, as they are printed
        return f"{result.exit_code} {result.stderr}{result.stdout}".rstrip()
    return f"{result.exit_code} {said.partition(chr(10))[0]}".rstrip()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("line", "expected"), CALLS)
def test_a_call_of_the_transcript_is_answered_so(line, expected):
    expected = expected.rstrip("\n")
    found = answer(line, "\n" in expected)
    if expected.endswith("..."):
        assert found.startswith(expected.removesuffix("..."))
    else:
        assert found == expected


# --- random input: a small part of benchmarks/fuzz.py ---------------------------


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("calls", [fuzz.calls_with_formulas, fuzz.calls_with_files])
def test_random_input_gets_an_answer(tmp_path, calls):
    wrong = {
        " ".join(arguments): fault
        for arguments in calls(random.Random(1), 80, tmp_path)
        if (fault := fuzz.fault_of(arguments))
    }
    assert not wrong
