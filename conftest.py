"""What every test needs: 64-bit JAX, checked types, and a way to switch them off."""

import gc
import os
import re
from pathlib import Path

import build
import pytest
from hypothesis import settings

# One cache a worker: entries are written in place, and a reader beside them warns.
# In the environment, the processes that tests start share it.
worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
os.environ |= build.jax_environment(Path(__file__).parent / ".jax_cache" / worker)
import jax
import jaxtyping

jax.config.update("jax_enable_x64", True)
gc.set_threshold(build.NEW_OBJECTS)


def jaxtyped_if_public(*, typechecker):
    """Check public functions and classes alone: pyright reads the others.

    Around an inner function the check is made anew in each call of the outer one, and
    around a private one it takes longer than the work.
    """
    check = jaxtyped(typechecker=typechecker)
    return lambda of: of if re.search(r"(^|\.)[_<]", of.__qualname__) else check(of)


jaxtyped, jaxtyping.jaxtyped = jaxtyping.jaxtyped, jaxtyped_if_public
jaxtyping.install_import_hook("qdtheory", "beartype.beartype")
import qdtheory
import qdtheory.text

# A module whose doctests come first would else be there twice, with classes of its own.
for package in (qdtheory, qdtheory.text):
    for name in dir(package):
        getattr(package, name)

# The first example of a shape compiles, so a deadline would only measure XLA.
settings.register_profile("qdtheory", deadline=None, derandomize=True, max_examples=100)
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
