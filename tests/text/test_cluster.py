"""Evaluation on two local workers: the numbers of one process, whatever dies."""

import os
import signal
import sys

import pytest
from models import MODEL, REAL

from qdtheory.text import as_corpus, evaluate
from qdtheory.text.cluster import connected, num_parts_on, sums_on
from qdtheory.text.numbered import number_texts
from qdtheory.text.partial_sums import partial_sums

TEXTS = {"model": MODEL, "half": MODEL[:30]}
# What distributed itself leaves behind when it ends.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed")
    with connected(2) as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["pairs", "plug-in", "sentence-pairs"])
def test_two_workers_give_the_report_of_one_process(client, estimator):
    assert num_parts_on(client) == 4
    steps = []
    found = evaluate(
        TEXTS, REAL, 3, estimator=estimator, client=client, step=steps.append
    )
    whole = evaluate(TEXTS, REAL, 3, estimator=estimator)
    assert steps == [f"Counted {k} of 4 parts" for k in (1, 2, 3, 4)]
    if estimator != "sentence-pairs":
        assert found == whole
    for name in TEXTS:
        assert found.scores[name].value == pytest.approx(
            whole.scores[name].value, rel=1e-12, abs=1e-12
        )


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing_but_time(client):
    texts, real = {"x": as_corpus(MODEL)}, as_corpus(REAL)
    sides = number_texts(texts, real)
    workers = [*client.run(os.getpid).values()]
    killed = []

    def kill(text):
        if not killed:
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    found = sums_on(client, sides, 3, False, 30, kill)
    whole = partial_sums(texts, real, 3)
    assert killed
    assert found.totals.parts == tuple(range(30))
    assert found.totals.sums == whole.totals.sums
    assert found.blocks == whole.blocks


# -- bad input -----------------------------------------------------------------------


@pytest.mark.usefixtures("as_a_user")
def test_something_else_is_refused():
    pytest.importorskip("distributed")
    with pytest.raises(TypeError, match=r"expected a distributed.Client, got str"):
        evaluate(TEXTS, REAL, 2, client="tcp://127.0.0.1:8786")


@pytest.mark.usefixtures("as_a_user")
def test_without_the_package_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .qdtheory\[scale\]"):
        evaluate(TEXTS, REAL, 2, client=object())


@pytest.mark.slow
def test_a_cluster_without_workers_is_refused():
    pytest.importorskip("distributed")
    with (
        connected(0) as client,
        pytest.raises(ValueError, match="the cluster has no worker; start one"),
    ):
        evaluate(TEXTS, REAL, 2, client=client)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://127.0.0.1", "no:way"])
def test_an_address_where_no_scheduler_is_is_named_in_one_line(address, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("qdtheory.text.cluster.SECONDS", 0.5)
    with pytest.raises(ConnectionError) as error, connected(address):
        pass
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"{address}: ")
    assert line.endswith("; is dask scheduler up?")
