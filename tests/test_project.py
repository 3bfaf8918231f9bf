"""The project's files agree with each other, and the package stands alone."""

import json
import os
import re
import runpy
import shutil
import subprocess
import tomllib
import zipfile
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import address
import api_page
import jupytext
import pytest
import yaml
from jupytext.config import load_jupytext_configuration_file
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from processes import ROOT, python
from quick import git

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
PAGES = ["README.md", "CONTRIBUTING.md"]


# What `make bench` alone installs.
RIVALS = PROJECT["optional-dependencies"]["bench"]


def all_requirements():
    extras = PROJECT["optional-dependencies"].values()
    return {*PROJECT["dependencies"]}.union(*extras).difference(RIVALS)


def tracked_files():
    return [ROOT / name for name in git(ROOT, "ls-files", "-z").split("\0") if name]


# --- requirements -------------------------------------------------------------


def test_environment_yml_holds_the_packages_of_pyproject():
    # conda's syntax for `name>=version` is pip's, so one parser reads both lists.
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    conda, pip = entries[:-1], entries[-1]["pip"]
    assert conda[0] == f"python{PROJECT['requires-python']}"
    assert [Requirement(entry).name for entry in conda[1:7]] == [
        "jupyterlab",
        "numpy",
        "scipy",
        "jax",
        "matplotlib",
        "seaborn",
    ]
    assert conda[-1] == "pip"
    assert pip[-1] == "-e ."
    packages = conda[1:-1] + pip[:-1]
    assert len(packages) == len(set(packages))
    assert set(packages) == all_requirements()
    assert set(conda[1:-1]) >= set(PROJECT["dependencies"])


def test_environment_yml_gives_a_reason_for_each_package_beyond_the_six():
    lines = (ROOT / "environment.yml").read_text().splitlines()
    packages = [line for line in lines if re.match(r"\s+- \w", line)]
    beyond = packages[packages.index("  - seaborn>=0.13") + 1 :]
    assert [line for line in beyond if "  # " not in line] == ["  - pip:"]


def locked():
    """Pinned versions by name; one package may have one for each Python."""
    text = (ROOT / "requirements" / "lock.txt").read_text()
    versions = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE):
        versions.setdefault(canonicalize_name(name), []).append(version)
    return versions


def test_the_lock_satisfies_every_requirement():
    more = (ROOT / "requirements" / "more.in").read_text().splitlines()
    tools = {line for line in more if line and not line.startswith("#")}
    versions = locked()
    for requirement in map(Requirement, all_requirements() | tools):
        found = versions.get(canonicalize_name(requirement.name), [])
        assert found, f"{requirement} is not in the lock: make lock"
        assert all(requirement.specifier.contains(version) for version in found)


def test_the_makefile_locks_every_extra():
    named = re.search(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert {*named[1].split(), "bench"} == set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("name", ["lock.txt", "bench.txt"])
def test_every_locked_package_has_a_hash(name):
    text = (ROOT / "requirements" / name).read_text()
    for entry in re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in entry, entry.splitlines()[0]


# --- tracked files ------------------------------------------------------------

FOREIGN = re.compile(
    rb"\b(pypi|pythonhosted|anaconda|npmjs)[.](org|com)"
    rb"|--(extra-)?index-url|--find-?links|(?<!\w)/(home|root|Users)/\w"
)


def test_no_tracked_file_names_a_registry_or_a_home_folder():
    assert {
        f"{path.relative_to(ROOT)}: {found[0].decode()}"
        for path in tracked_files()
        if path.exists() and (found := FOREIGN.search(path.read_bytes()))
    } == set()


def test_no_lock_that_holds_addresses_is_tracked():
    names = {path.name for path in tracked_files()}
    assert names.isdisjoint({"uv.lock", "pylock.toml", "poetry.lock", "Pipfile.lock"})


def test_formatting_the_notebooks_sources_changes_none():
    # The other half of `make format`, ruff's, is checked on the executed notebooks.
    config = load_jupytext_configuration_file(str(ROOT / "pyproject.toml"))
    for path in (ROOT / "notebooks" / "src").glob("*.md"):
        text = path.read_text()
        book = jupytext.reads(text, fmt="md:myst")
        assert jupytext.writes(book, fmt="md:myst", config=config) == text, path.name


# --- what make sets up ----------------------------------------------------------

# Stands for every Python: makes no environment but a copy of itself, installs
# nothing, notes what it was asked to run, and fails where FAILING says.
STUB = """#!/bin/sh
case "$*" in
    "-m venv "*) rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
esac
case "$*" in "-m "*) echo "$2 $3 $4" >> "$CALLS" ;; esac
case "$*" in *"$FAILING"*) exit 1 ;; esac
"""
MAKE_VENV = "venv --clear .venv"
INSTALL_PACKAGES = ["pip install --quiet", "uv pip sync"]
INSTALL_PROJECT = "uv pip install"
OPEN_LAB = "jupyterlab --notebook-dir notebooks"
FROM_NOTHING = [MAKE_VENV, *INSTALL_PACKAGES, INSTALL_PROJECT, OPEN_LAB]


class Checkout:
    """A folder with what set-up reads, and a stub as the only Python."""

    def __init__(self, folder):
        self.folder, self.tools = folder / "a checkout", folder / "tools"
        self.calls = folder / "calls"
        (self.folder / "requirements").mkdir(parents=True)
        self.tools.mkdir()
        python = self.tools / "python3"
        python.write_text(STUB)
        python.chmod(0o755)
        shutil.copy(ROOT / "Makefile", self.folder)
        for name in ("pyproject.toml", "requirements/lock.txt"):
            self.write(name, "first")

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def lab(self, failing="nothing"):
        """What `make lab` ran, and what it printed."""
        self.calls.write_text("")
        ours = {"CALLS": str(self.calls), "FAILING": failing}
        path = os.pathsep.join([str(self.tools), os.environ["PATH"]])
        outer = {k: v for k, v in os.environ.items() if "MAKE" not in k}
        result = subprocess.run(
            ["make", "lab"],
            cwd=self.folder,
            env={**outer, **ours, "PATH": path},
            capture_output=True,
            text=True,
        )
        assert (result.returncode == 0) is (failing == "nothing"), result.stderr
        # Later writes are newer by more than a clock tick.
        for made in [self.folder / ".venv" / "ready", *self.inputs()]:
            if made.exists():
                os.utime(made, (made.stat().st_mtime - 10,) * 2)
        return self.calls.read_text().splitlines(), result.stdout + result.stderr

    def inputs(self):
        return [self.folder / "pyproject.toml", self.folder / "requirements/lock.txt"]


@pytest.fixture
def checkout(tmp_path):
    checkout = Checkout(tmp_path)
    calls, printed = checkout.lab()
    assert calls == FROM_NOTHING
    assert printed.splitlines() == [
        "Making the virtual environment .venv",
        "Installing the packages of requirements/lock.txt into .venv",
    ]
    return checkout


def test_a_second_run_sets_nothing_up_and_prints_nothing(checkout):
    assert checkout.lab() == ([OPEN_LAB], "")


@pytest.mark.parametrize(
    ("changed", "calls"),
    [
        ("requirements/lock.txt", [*INSTALL_PACKAGES, INSTALL_PROJECT, OPEN_LAB]),
        ("pyproject.toml", [INSTALL_PROJECT, OPEN_LAB]),
    ],
)
def test_a_changed_requirement_is_installed_once(checkout, changed, calls):
    checkout.write(changed, "second")
    assert checkout.lab()[0] == calls
    assert checkout.lab() == ([OPEN_LAB], "")


def test_a_moved_folder_is_set_up_anew(checkout):
    checkout.folder = checkout.folder.rename(checkout.folder.parent / "moved")
    assert checkout.lab()[0] == FROM_NOTHING
    assert checkout.lab() == ([OPEN_LAB], "")


def test_an_environment_whose_python_is_gone_is_made_anew(checkout):
    (checkout.folder / ".venv" / "bin" / "python").unlink()
    assert checkout.lab()[0] == FROM_NOTHING


@pytest.mark.parametrize("failing", ["-m venv", "pip install", "pip sync", "-e ."])
def test_an_environment_half_made_is_made_anew(tmp_path, failing):
    checkout = Checkout(tmp_path)
    calls, _ = checkout.lab(failing)
    assert OPEN_LAB not in calls
    assert checkout.lab()[0] == FROM_NOTHING


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ("sys.version_info", "qdtheory needs Python 3.11 or newer"),
        ("import ensurepip", "python3 has no venv module"),
    ],
)
def test_a_python_that_will_not_do_is_refused(tmp_path, failing, message):
    calls, printed = Checkout(tmp_path).lab(failing)
    assert calls == []
    assert message in printed


# --- the pages a newcomer reads -----------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_links_and_commands_of_the_pages_exist(page):
    whole = (ROOT / page).read_text()
    text = re.sub(r"`.*?`", "", whole, flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = re.findall(r"^make ([\w-]+)|`make ([\w-]+)`", whole, re.MULTILINE)
    assert {"".join(names) for names in commands} <= set(targets)


def test_the_reference_has_a_page_for_what_is_public_and_for_nothing_else():
    pages = api_page.public()
    private = {"support.numbers", "support.layout", "formulas.trees"}
    assert {f"qdtheory.{name}" for name in private}.isdisjoint(pages)
    assert pages["qdtheory.divergences"]["kl_divergence"] == "qd.kl_divergence(a, b)"
    for module, names in pages.items():
        assert api_page.import_line(module)
        for name in names:
            assert f"<{module}.{name}>`" in api_page.table(module)


# --- the package alone ----------------------------------------------------------


def closure_of(requirements):
    """Distributions that these install, with their own needs."""
    closure, pending = set(), [Requirement(text) for text in requirements]
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        if name in closure:
            continue
        closure.add(name)
        for text in requires(name) or []:
            needed = Requirement(text)
            extras = ["", *requirement.extras]
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in extras
            ):
                pending.append(needed)
    return closure


def modules_outside(requirements):
    """Modules of this environment that these requirements do not install."""
    allowed = closure_of(requirements) | {"qdtheory"}
    return sorted(
        module
        for module, owners in packages_distributions().items()
        if allowed.isdisjoint(map(canonicalize_name, owners))
    )


BLOCKER = """
import sys

class Blocker:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is not installed", name=name)

sys.meta_path.insert(0, Blocker)
"""


@pytest.fixture(scope="module")
def wheel_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    python("-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def run_wheel(folder, code):
    blocked = f"BLOCKED = {modules_outside(PROJECT['dependencies'])!r}\n"
    program = blocked + BLOCKER + code
    return python("-c", program, cwd=folder, PYTHONPATH=str(folder))


@pytest.mark.slow
def test_the_blocker_blocks_what_only_an_extra_installs(wheel_folder):
    with pytest.raises(AssertionError, match="matplotlib is not installed"):
        run_wheel(wheel_folder, "import matplotlib")


@pytest.mark.slow
def test_the_description_needs_no_file_beside_it(wheel_folder):
    (metadata,) = wheel_folder.glob("*.dist-info/METADATA")
    description = metadata.read_text(encoding="utf-8").partition("\n\n")[2]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert description.splitlines()[0] == readme.splitlines()[0]
    assert address.install(address.REPOSITORY, address.RELEASED) in description
    targets = re.findall(r"\]\(([^)]*)\)", description)
    assert targets
    assert all(target.startswith("https://") for target in targets)


def test_links_of_the_description_lead_to_the_repository():
    hook = runpy.run_path(ROOT / "hatch_build.py")
    text = "![A\nplot](docs/a.svg) [b *c*](d.md) [e](https://f.org/g)"
    assert hook["standalone"](text, "https://h.org/i") == (
        "![A\nplot](https://h.org/i/raw/HEAD/docs/a.svg) "
        "[b *c*](https://h.org/i/blob/HEAD/d.md) [e](https://f.org/g)"
    )
    assert hook["standalone"](text, "") == " b *c* [e](https://f.org/g)"


@pytest.mark.slow
def test_the_wheel_alone_computes(wheel_folder):
    code = (
        "import jax; import qdtheory as qd\n"
        "assert all(hasattr(qd, name) for name in {*dir(qd)} - {'plotting'})\n"
        "print(qd.__file__); print(float(qd.entropy(jax.numpy.ones(4) / 4)))"
    )
    path, entropy = run_wheel(wheel_folder, code).splitlines()
    assert Path(path).is_relative_to(wheel_folder)
    assert float(entropy) == pytest.approx(1.3862943611198906, rel=1e-15)


@pytest.mark.slow
def test_the_wheel_alone_runs_its_command(wheel_folder):
    def command(*arguments):
        code = f"from qdtheory.commands.cli import app\napp({list(arguments)!r})"
        return run_wheel(wheel_folder, code)

    assert "evaluate" in command("--help")
    (wheel_folder / "real.txt").write_text("a b c d\na b d c\na b c d\n")
    found = command("evaluate", "real.txt", "--references", "real.txt", "--json")
    (metrics,) = (c["metrics"] for c in json.loads(found)["candidates"])
    assert metrics["BLEU-1"]["value"] == pytest.approx(1, abs=1e-15)


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_licences_only(wheel_folder):
    names = {path.name for path in wheel_folder.iterdir() if path.is_dir()}
    assert names == {"qdtheory", f"qdtheory-{PROJECT['version']}.dist-info"}
    held = {path.name for path in wheel_folder.glob("*.dist-info/licenses/*")}
    assert held == set(PROJECT["license-files"])
    # Type checkers read the annotations of a package that holds this file only.
    assert (wheel_folder / "qdtheory" / "py.typed").is_file()


def test_importing_the_exact_wing_loads_nothing_that_costs_time(tmp_path):
    heavy = ["matplotlib", "seaborn", "sympy", "cvxpy", "scipy.optimize", "pandas"]
    code = (
        "import sys, qdtheory as qd\n"
        "assert 'jax' not in sys.modules\n"
        "for name in {*dir(qd)} - {'plotting', 'text'}:\n"
        "    getattr(qd, name)\n"
        f"print([m for m in {[*heavy, 'qdtheory.text']!r} if m in sys.modules])"
    )
    assert python("-c", code, cwd=tmp_path) == "[]\n"
