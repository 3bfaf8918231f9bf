"""The script that trains the generators of the four papers, and its table."""

import csv
import os
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab.generators import greedy_distribution, reconstruct
from scipy.optimize import brentq
from scripts import TABLES, script

import qdtheory as qd

# The script with rows that take a while and need no training.
SLOW = """
import sys, time
sys.path.insert(0, sys.argv.pop(1))
import make_generators as script

def rows(oracle):
    time.sleep(0.2)
    return [[oracle, *range(len(script.COLUMNS) - 2), 1 / (oracle + 3)]]

script.rows = rows
script.tables.write = lambda *table: print(len(table[-1]), table[-1][-1][-1])
script.main()
"""


@pytest.fixture(scope="module")
def generators():
    return script("make_generators")


def test_a_killed_run_loses_the_oracle_under_way_only(tmp_path):
    command = [sys.executable, "-c", SLOW, str(TABLES), str(tmp_path)]
    run = subprocess.Popen([*command, "--oracles", "500"], stderr=subprocess.DEVNULL)
    try:
        while len(list(tmp_path.glob("*.csv"))) < 3:
            assert run.poll() is None
            time.sleep(0.02)
    finally:
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    done = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.csv")}
    whole = ["--oracles", str(len(done) + 2)]
    again = subprocess.run(
        [*command, *whole], capture_output=True, text=True, check=True
    )
    assert again.stdout.split() == [str(len(done) + 2), f"{1 / (len(done) + 4):.5g}"]
    for path in tmp_path.iterdir():
        assert path.suffix == ".csv"
        assert done.get(path.name, path.stat().st_mtime_ns) == path.stat().st_mtime_ns
        with path.open() as file:
            assert len(list(csv.reader(file))) == 2


def test_parts_of_other_settings_are_refused(generators, tmp_path, monkeypatch):
    (tmp_path / "generators_000.csv").write_text('"9 texts"\n0,1\n')
    monkeypatch.setattr(sys, "argv", ["make_generators.py", str(tmp_path)])
    with pytest.raises(SystemExit, match="was made with 9 texts; this script has 128"):
        generators.main()


def metrics_of(generators, q, p):
    found = generators.measured(jnp.asarray(q)[None], jnp.asarray(p))
    return dict(zip(generators.METRICS, (float(x[0]) for x in found)))


@pytest.mark.parametrize("seed", range(3))
def test_what_a_model_lacks_is_the_frontier_at_its_diversity(generators, seed):
    p = np.asarray(qd.oracle(generators.SPACE, 3))
    q = np.random.default_rng(seed).dirichlet(np.full(64, 0.3))
    found = metrics_of(generators, q, p)
    power = brentq(lambda b: qd.entropy(qd.temper(p, b)) - qd.entropy(q), 0, 99)
    gap = qd.cross_entropy(q, p) - qd.cross_entropy(qd.temper(p, power), p)
    assert found["LL_SE"] == pytest.approx(float(gap), abs=1e-9)

    def water(level):
        return np.maximum(p - level, 0) / np.maximum(p - level, 0).sum()

    level = brentq(lambda t: (water(t) ** 2).sum() - q @ q, -1e3, p.max() - 1e-9)
    assert found["CR_NRR"] == pytest.approx(p @ water(level) - p @ q, abs=1e-7)
    divergence = float(qd.jensen_shannon_divergence(p, q))
    assert found["js"] == pytest.approx(divergence, abs=1e-14)


def test_the_real_distribution_lacks_nothing(generators):
    p = qd.oracle(generators.SPACE, 3)
    found = metrics_of(generators, p, p)
    for name in ("LL_SE", "CR_NRR", "js", "cnd", "wasserstein"):
        assert abs(found[name]) < 1e-9


@pytest.mark.parametrize("name", ["VAE (dw=0.5)", "ARAE"])
def test_reconstructions_and_greedy_laws_are_those_of_the_library(generators, name):
    space = generators.SPACE
    p = qd.oracle(space, 1)
    model = generators.AUTOENCODERS[name].model(jax.random.key(0), space)
    twice = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), model)
    read = generators.reading(twice, p, generators.pair_scores())
    found = reconstruct(model, space, p)
    expected = found.nll, found.accuracy, found.bleu[1], found.rouge[1]
    for values, value in zip(read, expected, strict=True):
        np.testing.assert_allclose(values, value, atol=1e-12)
    assert float(found.bleu[2]) == float(found.rouge[2]) == float(found.accuracy)
    law, _ = greedy_distribution(model, space)
    np.testing.assert_allclose(generators.greedy(twice)[1], law, atol=1e-12)
