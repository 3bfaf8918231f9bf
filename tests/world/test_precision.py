import subprocess
import sys

import pytest


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_script_needs_a_switch():
    code = """
import numpy as np, qdtheory as qd
p = np.array([0.4, 0.3, 0.2, 0.1])
print(qd.entropy(p).dtype, qd.quality_discrepancy(qd.LL_NRR, p).q.dtype)
"""
    assert run(code) == "float64 float64\n"


# A small network of a user, whose parameters and inputs say that they are float32.
NETWORK = """
import jax, jax.numpy as jnp, numpy as np

def loss(weights, x):
    hidden = jax.nn.relu(x @ weights[0] + 0.5)
    return jnp.square(hidden @ weights[1]).mean() / 3

rng = np.random.default_rng(0)
weights = [jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((4, 8), (8, 1))]
x = jnp.asarray(rng.normal(size=(16, 4)), jnp.float32)

def step():
    value, slopes = jax.jit(jax.value_and_grad(loss))(weights, x)
    return [np.asarray(part) for part in (value, *slopes)]
"""


def test_a_user_s_float32_code_keeps_its_numbers():
    out = run(
        NETWORK
        + """
before = step()
import qdtheory as qd
qd.entropy(np.ones(2) / 2)
assert jax.config.read("jax_enable_x64")
after = step()
print({str(part.dtype) for part in after}, max(
    float(np.abs(a - b).max()) for a, b in zip(before, after)))
"""
    )
    assert out == "{'float32'} 0.0\n"


@pytest.mark.parametrize(
    "use",
    [
        "import qdtheory",
        "from qdtheory.text import evaluate; evaluate({'a': ['x'] * 3}, ['x'] * 3, 1)",
    ],
)
def test_metrics_of_text_leave_jax_as_it_is(use):
    code = f"{use}\nimport jax.numpy as jnp\nprint(jnp.ones(1).dtype)"
    assert run(code) == "float32\n"


def test_a_distribution_is_refused_when_64_bits_were_switched_off_again():
    code = """
import jax, qdtheory as qd
qd.formulas.LL(0.5)
jax.config.update("jax_enable_x64", False)
print(qd.formulas.LL(0.5).dtype)
space = qd.TextSpace(2, 1)
for call in (qd.entropy, qd.normalize, lambda p: qd.LL_SE.quality(p, p),
             lambda p: qd.quality_discrepancy(qd.LL_NRR, p),
             lambda p: qd.pareto_optimum(qd.LL_SE, p, -1.0),
             lambda p: qd.expected_bleu(space, p, p, 1, 2)):
    try:
        print(call([0.5, 0.5]))
    except RuntimeError as error:
        assert "64-bit mode was switched off" in str(error)
"""
    assert run(code) == "float32\n"
