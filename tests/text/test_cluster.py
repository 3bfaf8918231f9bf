"""Evaluation on workers: the numbers of one process, whatever dies."""

import gzip
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from models import MODEL, REAL
from refusals import refused

from qdtheory.text import as_corpus, cluster, evaluate
from qdtheory.text.cluster import connected, num_threads, on_workers
from qdtheory.text.files import Files

TEXTS = {"model": MODEL, "half": MODEL[:30]}
LINES = ["", *(" ".join(map(str, x)) for x in MODEL), ""]
HOW = {"tokenizer": "whitespace", "lowercase": False, "empty": "keep"}
HOW |= {"field": None}
# What distributed itself leaves behind when it ends.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("files")]


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    distributed = pytest.importorskip("distributed")
    here = {"processes": False, "dashboard_address": None}
    with distributed.Client(n_workers=2, threads_per_worker=1, **here) as client:
        yield client


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of some kinds, of which there are many slices and parts."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"BLOCK": 90, "SLICE": 60, "PART": 50}.items():
        monkeypatch.setattr(cluster, name, value)
    text = "".join(f"{line}\n" for line in LINES)
    Path("lines.txt").write_text(text)
    Path("packed.gz").write_bytes(gzip.compress(text.encode()))
    rows = [json.dumps({"text": line}) for line in LINES]
    Path("rows.jsonl").write_text("\n".join(rows))
    Path("table.csv").write_text("n,text\n" + "".join(f'1,"{x}"\n' for x in LINES))
    Path("real.txt").write_text("\n".join(" ".join(map(str, x)) for x in REAL))


@pytest.mark.claim("N12.26")
@pytest.mark.parametrize("estimator", ["pairs", "sentence-pairs"])
def test_workers_give_the_report_of_one_process(client, estimator):
    texts = {"lines": "lines.txt", "packed": "packed.gz", "memory": LINES[:50]}
    both, steps, how = (texts, "real.txt", 3), [], {"estimator": estimator}
    whole = evaluate(*both, **how)
    found = evaluate(*both, **how, scheduler=client, step=steps.append)
    assert steps[:3] == [f"Reading {x}" for x in ("real.txt", "lines.txt", "packed.gz")]
    assert steps[-1] == "Counted {0} of {0} parts".format(steps[-1].split()[1])
    assert (found == whole) or estimator == "sentence-pairs"
    for name in texts:
        for part in ("value", "low", "high"):
            one, other = (getattr(x.scores[name], part) for x in (found, whole))
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("empty", ["keep", "skip"])
@pytest.mark.parametrize(
    "where", ["lines.txt", "packed.gz", "rows.jsonl field", "table.csv field"]
)
def test_slices_are_the_corpus(client, where, empty):
    path, *names = where.split()
    how = HOW | {"empty": empty} | dict.fromkeys(names, "text")
    found, whole = on_workers(client, Path(path), **how), as_corpus(LINES, empty)
    assert (len(found.slices) > 1) == (path[0] not in "pt")
    assert found.lengths.tolist() == whole.lengths.tolist()
    for part in ("vocabulary", "num_tokens", "num_empty", "empty_lines", "tokenizer"):
        assert getattr(found, part) == getattr(whole, part)
    some = np.array([0, 3, 4, 40])
    assert [*found[some]] == [*whole[some]]


def test_several_files_streams_and_lines_longer_than_a_slice(client, monkeypatch):
    with open("lines.txt", "rb") as stream:
        both = Files((Path("lines.txt"), stream))
        found = on_workers(client, both, **HOW)
    assert found.lengths.tolist() == as_corpus([*LINES, *LINES]).lengths.tolist()
    monkeypatch.setattr(cluster, "BLOCK", 3)
    Path("few.txt").write_text("a b c\nb\nc a b a b\na")
    both = {"x": "few.txt"}, ["a b", "b a"], 1
    assert evaluate(*both, scheduler=client) == evaluate(*both)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing_but_time():
    pytest.importorskip("distributed")
    killed, texts = [], {"x": "lines.txt", "y": LINES[:40]}
    with connected(2) as client:
        (first, *_) = client.run(os.getpid).values()

        def kill(text):
            if text.startswith("Counted") and not killed:
                killed.append(first)
                os.kill(first, signal.SIGKILL)

        found = evaluate(texts, "real.txt", 3, scheduler=client, step=kill)
    assert killed
    assert found == evaluate(texts, "real.txt", 3)


# -- bad input -----------------------------------------------------------------------


def test_errors_of_workers_are_those_of_one_process(client):
    Path("bad.txt").write_bytes(b"a b c\n" * 40 + b"a \xff\n" + b"a b c\n" * 40)
    Path("empty.txt").write_text("")

    def of(path, **options):
        return lambda: evaluate({"x": path}, "real.txt", scheduler=client, **options)

    refused(
        ("bad.txt, from byte 180, line 10: byte 0xff", of("bad.txt")),
        ("empty.txt, line 1: the file is empty", of("empty.txt")),
        ("references: no sentence has 99 tokens", of("lines.txt", max_order=99)),
    )
    refused(("lost.txt", of("lost.txt")), error=FileNotFoundError)


@pytest.mark.slow
def test_a_cluster_without_workers_is_refused():
    pytest.importorskip("distributed")
    with connected(0) as client:
        refused(("the cluster has no worker; start one", num_threads, client))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "no:way"])
def test_an_address_where_no_scheduler_is_is_named_in_one_line(address, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "SECONDS", 0.5)
    with pytest.raises(ConnectionError) as error:
        evaluate(TEXTS, REAL, 2, scheduler=address)
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"{address}: ")
    assert line.endswith("; is dask scheduler up?")
