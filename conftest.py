"""What every test needs: 64-bit JAX, checked types, and a way to switch them off."""

import os
from pathlib import Path

import jax
import jaxtyping
import pytest
from hypothesis import settings

jax.config.update("jax_enable_x64", True)
# One cache a worker: entries are written in place, and a reader beside them warns.
worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
CACHE = {
    "jax_compilation_cache_dir": str(Path(__file__).parent / ".jax_cache" / worker),
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
    # The path of a cache of XLA's own would be part of the key of every entry.
    "jax_persistent_cache_enable_xla_caches": "none",
}
for name, value in CACHE.items():
    jax.config.update(name, value)
    os.environ[name.upper()] = str(value)  # for the processes that tests start
jaxtyping.install_import_hook("qdtheory", "beartype.beartype")

# The first example of a shape compiles, so a deadline would only measure XLA.
# 50 examples in place of 100: with so many properties the whole takes 20 minutes.
settings.register_profile("qdtheory", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("qdtheory")


@pytest.fixture
def as_a_user():
    """Switch the type checks off, so that the library's own errors answer."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_functions():
    """Free what a module compiled; over all of them it is gigabytes."""
    yield
    jax.clear_caches()
