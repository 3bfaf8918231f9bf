"""Problems on two local workers have the results of one process, whatever dies."""

import os
import signal
import sys
from functools import partial
from operator import truediv

import numpy as np
import pytest

import qdtheory as qd
from qdtheory.world.cluster import as_solved, connected, num_threads

# What distributed itself leaves behind when it ends.
pytestmark = pytest.mark.filterwarnings("ignore")
ORACLES = np.random.default_rng(0).dirichlet(np.ones(6), 5)


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed")
    with connected(2) as client:
        yield client


def alone(signals):
    """Die once; solved again, give the argument back."""
    path, value = signals
    if path and not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return value


@pytest.mark.slow
@pytest.mark.parametrize("pair", [qd.LL_NRR, qd.CR_SE])
def test_two_workers_find_what_one_process_finds(client, pair):
    solve = partial(qd.quality_discrepancy, pair)
    assert num_threads(client) == 2
    found = dict(as_solved(solve, ORACLES, client=client))
    assert sorted(found) == [0, 1, 2, 3, 4]
    for place, here in as_solved(solve, ORACLES):
        assert found[place].qdisc == here.qdisc
        assert np.asarray(found[place].q).tolist() == np.asarray(here.q).tolist()


@pytest.mark.slow
def test_what_a_killed_worker_had_is_solved_again(client, tmp_path):
    problems = [("", k) for k in range(8)] + [(str(tmp_path / "died"), 8)]
    # By value: workers cannot import a module of the tests.
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    assert dict(as_solved(alone, problems, client=client)) == dict(enumerate(range(9)))
    assert (tmp_path / "died").exists()


def test_without_a_client_problems_are_solved_in_turn():
    assert [*as_solved(abs, [-3, 2])] == [(0, 3), (1, 2)]
    later = as_solved(partial(truediv, 1), [1, 0])
    assert next(later) == (0, 1)
    with pytest.raises(ZeroDivisionError):
        next(later)


# -- bad input -----------------------------------------------------------------------


@pytest.mark.slow
def test_what_a_problem_raises_is_raised_here(client):
    with pytest.raises(ZeroDivisionError):
        dict(as_solved(partial(truediv, 1), [1, 0], client=client))


@pytest.mark.usefixtures("as_a_user")
def test_something_else_is_no_client():
    pytest.importorskip("distributed")
    with pytest.raises(TypeError, match=r"expected a distributed.Client, got str"):
        dict(as_solved(abs, [1], client="tcp://127.0.0.1:1"))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://127.0.0.1", "no:way"])
def test_an_address_where_no_scheduler_is_is_named_in_one_line(address, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("qdtheory.world.cluster.SECONDS", 0.5)
    with pytest.raises(ConnectionError) as error, connected(address):
        pass
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"{address}: ")
    assert line.endswith("; is dask scheduler up?")


@pytest.mark.slow
def test_a_cluster_without_workers_is_refused():
    pytest.importorskip("distributed")
    with (
        connected(0) as client,
        pytest.raises(ValueError, match="the cluster has no worker; start one"),
    ):
        dict(as_solved(abs, [1], client=client))


def test_without_the_package_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .qdtheory\[scale\]"):
        dict(as_solved(abs, [1], client=object()))
