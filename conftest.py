"""What every test needs: 64-bit JAX, checked types, and a way to switch them off."""

import gc
import os
import re
from collections import Counter
from pathlib import Path

import build
import freshness
import pytest
from hypothesis import settings

# One cache a worker: entries are written in place, and a reader beside them warns.
# In the environment, the processes that tests start share it.
worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
os.environ |= build.jax_environment(Path(__file__).parent / ".jax_cache" / worker)
import jax
import jaxtyping

gc.set_threshold(build.NEW_OBJECTS)


def jaxtyped_if_public(*, typechecker):
    """Check public functions and classes alone: pyright reads the others.

    Around an inner function the check is made anew in each call of the outer one, and
    around a private one it takes longer than the work.
    """
    check = jaxtyped(typechecker=typechecker)
    return lambda of: of if re.search(r"(^|\.)[_<]", of.__qualname__) else check(of)


jaxtyped, jaxtyping.jaxtyped = jaxtyping.jaxtyped, jaxtyped_if_public
jaxtyping.install_import_hook(["qdtheory", "lab"], "beartype.beartype")
import lab.corpora
import lab.generators
import lab.metrics

import qdtheory
import qdtheory.text

# A module whose doctests come first would else be there twice, with classes of its own.
for package in (qdtheory, qdtheory.text, lab.corpora, lab.generators, lab.metrics):
    for name in dir(package):
        getattr(package, name)


def pytest_addoption(parser):
    """Let `pytest --all` leave nothing out and `--claim T2.1` show one claim."""
    parser.addoption(
        "--all", action="store_true", help="run slow tests too, and all examples"
    )
    parser.addoption("--claim", metavar="ID", help="run the tests of this claim alone")
    parser.addoption(
        "--cost", action="store_true", help="show the CPU seconds of folders and files"
    )


def pytest_configure(config):
    """Leave out what is slow, but for `--all` and for those who choose by name."""
    chosen = config.option.claim or any("::" in path for path in config.args)
    config.whole = config.args == config.getini("testpaths") and not (
        chosen or config.option.markexpr or config.option.keyword
    )
    if config.option.all:
        settings.load_profile("all")
    elif not (chosen or config.option.markexpr):
        config.option.markexpr = "not slow"
    if hasattr(config, "workerinput"):
        config.changed = config.workerinput["changed"]
        return
    digest = digest_by_record() if config.whole else None
    config.changed = None if digest == RECORD.read_text().strip() else digest


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell a worker what changed, rather than let it read all files again."""
    node.workerinput["changed"] = node.config.changed


def pytest_ignore_collect(collection_path, config):
    """Leave out files that do not name the claim, and what passed as it is here."""
    claim = config.getoption("claim")
    if claim and collection_path.suffix == ".py":
        return f'"{claim}"' not in collection_path.read_text() or None
    if config.whole and not (config.changed or config.option.all):
        inside = {collection_path, *collection_path.parents}
        return bool(inside & {*BY_RECORD}) or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Keep the tests that carry the claim's marker; pages in a browser are slow."""
    for item in items:
        if PAGES.intersection(item.fixturenames):
            item.add_marker("slow")
    claim = config.getoption("claim")
    if not claim:
        return
    kept = [i for i in items if any(claim in m.args for m in i.iter_markers("claim"))]
    if not kept:
        raise pytest.UsageError(
            f"no test collected shows a claim {claim}; docs/coverage.csv has the ids"
        )
    config.hook.pytest_deselected(items=[i for i in items if i not in kept])
    items[:] = kept


# --- tests that run when something that they read has changed -----------------------

ROOT = Path(__file__).parent
RECORD = ROOT / "tests/passed.txt"
HARD = "bounds", "catalogue", "claims", "formulas", "lab", "proofs"
HARD += "test_build.py", "test_compatibility.py", "test_discrepancy.py", "test_lstm.py"
BY_RECORD = [*(ROOT / "tests" / name for name in HARD), ROOT / "notebooks/lab"]
PAGES = {"site", "browser", "explorer"}  # fixtures that build the site or open it


def digest_by_record():
    """One digest of all code and tables that the tests by record read."""
    read = {*ROOT.glob("notebooks/*.py"), *ROOT.glob("tests/*.py")}
    kinds = ".py", ".csv", ".toml", ".npy", ".txt"
    for folder in ("qdtheory", "notebooks/lab", "notebooks/data", "tests/*"):
        read |= {x for x in ROOT.glob(f"{folder}/**/*.*") if x.suffix in kinds}
    return freshness.together(
        {
            path.relative_to(ROOT).as_posix(): freshness.digest(path)
            for path in sorted({*read, ROOT / "requirements/lock.txt"})
            if path.parent.name not in ("commands", "course")
            if {*BY_RECORD} & {path, *path.parents} or not path.match("test_*.py")
        }
    )


def pytest_sessionfinish(session, exitstatus):
    """Record what the tests by record read when they passed."""
    config = session.config
    if config.changed and not exitstatus and not hasattr(config, "workerinput"):
        RECORD.write_text(f"{config.changed}\n")


# The first example of a shape compiles, so a deadline would only measure XLA.
settings.register_profile("all", deadline=None, derandomize=True, max_examples=75)
for name, examples in {"some": 30, "quick": 10}.items():
    settings.register_profile(name, settings.get_profile("all"), max_examples=examples)
settings.load_profile("some")


@pytest.fixture
def as_a_user():
    """Switch the type checks off, so that the library's own errors answer."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


# --- memory and time ------------------------------------------------------------

PROGRAMS = 1000  # of 1.5 MB each, so that two workers and Pyright fit 8 GB


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_functions():
    """Free what was compiled once it is much, for what comes compiles some again.

    Memory that was freed stays with the process, so the programs are counted.
    """
    yield
    if len(jax.devices()[0].client.live_executables()) > PROGRAMS:
        jax.clear_caches()


spent = 0.0
costs = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Note the CPU seconds of a test, of its fixtures and of ended processes."""
    global spent
    report = yield
    before, spent = spent, sum(os.times()[:4])
    report.cost = spent - before
    return report


def pytest_collection_finish():
    """Begin to count."""
    global spent
    spent = sum(os.times()[:4])


def pytest_runtest_logreport(report):
    """Add the cost to that of its file; where workers run, they sent it."""
    costs[report.nodeid.partition("::")[0]] += getattr(report, "cost", 0)


def pytest_terminal_summary(terminalreporter, config):
    """Say what was left out; show where the time went, as `--cost` asks."""
    if config.whole and not config.option.all:
        names = ", ".join(str(path.relative_to(ROOT)) for path in BY_RECORD)
        names = f", and {names}, as nothing that they read has changed"
        more = "" if config.changed else names
        terminalreporter.line(f"Left out, for make test-all: slow tests, pages{more}.")
    if not config.option.cost:
        return
    rooms = Counter()
    for file, cost in costs.items():
        parts = Path(file).parts
        rooms["/".join(parts[: min(2, len(parts) - 1)])] += cost
    terminalreporter.section("CPU seconds")
    for name, cost in [*rooms.most_common(), ("in all", rooms.total())]:
        terminalreporter.line(f"{cost:7.1f}  {name}")
    terminalreporter.line("The most costly files:")
    for name, cost in costs.most_common(30):
        terminalreporter.line(f"{cost:7.1f}  {name}")
