"""What is released agrees with itself: versions, names, packages, addresses, wheel."""

import importlib
import inspect
import json
import re
import zipfile
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import address
import api_page
import pytest
import yaml
from coverage_page import claims
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from processes import ROOT, python
from quick import git

import qdtheory as qd

PROJECT = address.PROJECT["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
RECIPE = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
NAMES = Path(__file__).with_name("public_names.txt")


def tracked_files():
    names = git(ROOT, "ls-files", "-z").split("\0")
    return [path for name in names if (path := ROOT / name).is_file()]


# --- versions and names ---------------------------------------------------------


def test_every_file_names_the_same_version_day_and_paper():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest, day = re.findall(r"^## (\S+) \((.+)\)$", changelog, re.MULTILINE)[0]
    meta = json.loads((ROOT / "codemeta.json").read_text())
    zenodo = json.loads((ROOT / ".zenodo.json").read_text())
    told = [CITATION, RECIPE["context"], meta, zenodo]
    assert {newest, *(one["version"] for one in told)} == {PROJECT["version"]}
    assert str(CITATION["date-released"]) == day == meta["datePublished"]
    assert meta["license"].endswith(f"/{CITATION['license']}")
    (paper,), said = CITATION["references"], meta["referencePublication"]
    names = [one["family-names"] for one in paper["authors"]]
    assert [one["familyName"] for one in said["author"]] == names
    assert said["name"] == paper["title"]


def public_names():
    """The names at the top, all of them, and those of modules that are listed."""
    names = [line.partition("(")[0] for line in NAMES.read_text().splitlines()]
    flat = {path.stem for path in (ROOT / "qdtheory").iterdir()}
    top = sorted({*dir(qd)} - flat - {"__version__"})
    listed = [name for name in names if name.count(".") > 1]
    for name in (*(f"qdtheory.{name}" for name in top), *listed):
        module, _, last = name.rpartition(".")
        value = getattr(importlib.import_module(module), last)
        assert inspect.getdoc(value), name
        # A warning has one message, and nobody makes a protocol.
        is_class = inspect.isclass(value) and not issubclass(value, Warning)
        called = inspect.isfunction(value) or is_class
        if called and not getattr(value, "_is_protocol", False):
            name += f"({', '.join(inspect.signature(value).parameters)})"
        yield name


def test_no_public_name_or_parameter_is_lost_unnoticed():
    # A stable name that goes was deprecated first: docs/stability.md. Write the file
    # anew with `python tests/test_release.py`.
    assert [*public_names()] == NAMES.read_text().splitlines()


def test_the_reference_has_a_page_for_what_is_public_and_for_nothing_else():
    pages = api_page.public()
    private = {"support.numbers", "support.layout", "formulas.trees"}
    assert {f"qdtheory.{name}" for name in private}.isdisjoint(pages)
    assert pages["qdtheory.divergences"]["kl_divergence"] == "qd.kl_divergence(a, b)"


def test_the_papers_cite_what_they_list_and_name_claims_that_exist():
    paper, course = ((ROOT / f"paper/{n}.md").read_text() for n in ("paper", "jose"))
    listed = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper/paper.bib").read_text(), re.M)
    assert {*re.findall(r"@(\w+\d{4})", paper)} == {*listed}
    assert {*re.findall(r"@(\w+\d{4})", course)} <= {*listed}
    named = {*re.findall(r"\b[TLNE]\d+\.\d+\b", paper + course)}
    assert len(named) > 8
    assert named <= claims().keys()
    assert "Thirty-seven" in paper
    assert len([*ROOT.glob("notebooks/*.ipynb")]) == 37


# --- packages -------------------------------------------------------------------


def all_requirements():
    """What the project asks for, but for what `make bench` alone installs."""
    extras = PROJECT["optional-dependencies"]
    found = {*PROJECT["dependencies"]}.union(*extras.values())
    return found.difference(extras["bench"])


def test_environment_yml_and_the_recipe_hold_the_packages_of_pyproject():
    # conda's syntax for `name>=version` is pip's, so one parser reads both lists.
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (python_, *conda, pip), others = entries[:-1], entries[-1]["pip"]
    assert python_ == f"python{PROJECT['requires-python']}"
    assert (pip, others[-1]) == ("pip", "-e .")
    assert sorted([*conda, *others[:-1]]) == sorted(all_requirements())
    # The channel has had it under another name.
    assert {*PROJECT["dependencies"]} - {*conda} == {"lazy-loader>=0.6"}
    _, *run = RECIPE["requirements"]["run"]
    wanted = {str(Requirement(entry)) for entry in PROJECT["dependencies"]}
    assert {str(Requirement(entry)) for entry in run} == wanted
    (script,) = RECIPE["build"]["python"]["entry_points"]
    assert script.split(" = ") == [*next(iter(PROJECT["scripts"].items()))]


def test_the_lock_satisfies_every_requirement_and_every_package_has_a_hash():
    more = (ROOT / "requirements/more.in").read_text().splitlines()
    tools = {line for line in more if line and not line.startswith("#")}
    versions = {}  # one package may have one for each Python
    for name in ("lock", "bench"):
        text = (ROOT / f"requirements/{name}.txt").read_text()
        for entry in re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]:
            package, version = re.match(r"([\w.-]+)==([^\s;]+)", entry).groups()
            assert "--hash=sha256:" in entry, package
            if name == "lock":
                versions.setdefault(canonicalize_name(package), []).append(version)
    for requirement in map(Requirement, all_requirements() | tools):
        found = versions.get(canonicalize_name(requirement.name), [])
        assert found, f"{requirement} is not in the lock: make lock"
        assert all(requirement.specifier.contains(version) for version in found)
    named = re.search(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert {*named[1].split(), "bench"} == {*PROJECT["optional-dependencies"]}


FOREIGN = re.compile(
    rb"\b(pypi|pythonhosted|anaconda|npmjs)[.](org|com)"
    rb"|--(extra-)?index-url|--find-?links|(?<!\w)/(home|root|Users)/\w"
)


def test_no_tracked_file_names_a_registry_or_a_home_folder():
    found = {path: FOREIGN.search(path.read_bytes()) for path in tracked_files()}
    assert {str(path): hit[0] for path, hit in found.items() if hit} == {}


# --- the address ----------------------------------------------------------------

MADE_UP = "https://github.com/made-up/somewhere"


def test_the_files_say_what_the_one_line_does():
    known = r"(https://github\.com/[\w-]+/[\w.-]*[\w-])?"
    assert re.fullmatch(known, address.REPOSITORY)
    # `.venv/bin/python docs/address.py` writes them anew.
    for name, text in address.files(address.REPOSITORY, address.RELEASED).items():
        assert (ROOT / name).read_text() == text, name


def test_the_readme_takes_a_made_up_address_and_gives_it_back():
    filled = address.files(MADE_UP, False)["README.md"]
    assert f"]({MADE_UP}/issues" in filled
    assert address.readme(filled, "", False) == address.files("", False)["README.md"]


# Who reads a message of the library has the package, and pip adds what an extra names.
APART = ("qdtheory/", "tests/")
BY_NAME = re.compile(r"""pip install (?:-\S+ )*\\?["']?qdtheory(?![\w-])""")


def test_only_after_a_release_pages_say_to_install_it_by_name():
    files = {path.relative_to(ROOT).as_posix(): path for path in tracked_files()}
    found = {n for n, path in files.items() if BY_NAME.search(path.read_text("latin"))}
    told = {name for name in found if not name.startswith(APART)}
    assert address.RELEASED or told == {"docs/address.py"}  # which decides


def test_code_and_text_have_licences_that_are_there():
    recipe = RECIPE["about"]
    assert recipe["license"] == PROJECT["license"] == "Apache-2.0 AND CC-BY-4.0"
    assert recipe["license_file"] == PROJECT["license-files"]
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])


# --- the package alone ----------------------------------------------------------


def closure_of(requirements):
    """Distributions that these install, with their own needs."""
    closure, pending = set(), [*map(Requirement, requirements)]
    while pending:
        one = pending.pop()
        name = canonicalize_name(one.name)
        if name not in closure:
            closure.add(name)
            for needed in map(Requirement, requires(name) or []):
                marks = ({"extra": extra} for extra in ("", *one.extras))
                if not needed.marker or any(map(needed.marker.evaluate, marks)):
                    pending.append(needed)
    return closure


# Stands before code that may import what some requirements install, and no more.
BLOCKER = """
import sys
class Blocker:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is not installed", name=name)
sys.meta_path.insert(0, Blocker)
"""


def only_with(requirements, code):
    """Code that finds no module but those that these requirements install."""
    allowed = closure_of(requirements) | {"qdtheory"}
    blocked = sorted(
        module
        for module, owners in packages_distributions().items()
        if allowed.isdisjoint(map(canonicalize_name, owners))
    )
    return f"BLOCKED = {blocked!r}\n{BLOCKER}{code}"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The wheel, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    python("-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


@pytest.mark.slow
def test_the_wheel_holds_the_package_its_licences_and_a_description(unpacked):
    names = {path.name for path in unpacked.iterdir() if path.is_dir()}
    assert names == {"qdtheory", f"qdtheory-{PROJECT['version']}.dist-info"}
    held = {path.name for path in unpacked.glob("*.dist-info/licenses/*")}
    assert held == set(PROJECT["license-files"])
    # Type checkers read the annotations of a package that holds this file only.
    assert (unpacked / "qdtheory/py.typed").is_file()
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    description = metadata.read_text(encoding="utf-8").partition("\n\n")[2]
    assert address.install(address.REPOSITORY, address.RELEASED) in description
    targets = re.findall(r"\]\(([^)]*)\)", description)
    assert targets
    assert all(target.startswith("https://") for target in targets)


@pytest.mark.slow
def test_the_wheel_alone_computes_and_runs_its_command(unpacked):
    def alone(code):
        program = only_with(PROJECT["dependencies"], code)
        return python("-c", program, cwd=unpacked, PYTHONPATH=str(unpacked))

    with pytest.raises(AssertionError, match="matplotlib is not installed"):
        alone("import matplotlib")
    path, entropy = alone(
        "import jax; import qdtheory as qd\n"
        "assert all(hasattr(qd, name) for name in {*dir(qd)} - {'plotting'})\n"
        "print(qd.__file__); print(float(qd.entropy(jax.numpy.ones(4) / 4)))"
    ).splitlines()
    assert Path(path).is_relative_to(unpacked)
    assert float(entropy) == pytest.approx(1.3862943611198906, rel=1e-15)
    (unpacked / "real.txt").write_text("a b c d\na b d c\na b c d\n")
    arguments = ["evaluate", "real.txt", "--references", "real.txt"]
    assert "BLEU-4" in alone(f"from qdtheory.commands.cli import app\napp({arguments})")


def test_importing_the_exact_wing_loads_nothing_that_costs_time(tmp_path):
    heavy = ["matplotlib", "seaborn", "sympy", "cvxpy", "scipy.optimize", "pandas"]
    code = (
        "import sys, qdtheory as qd\n"
        "assert 'jax' not in sys.modules\n"
        "for name in {*dir(qd)} - {'plotting', 'text', 'evaluate', 'doctor'}:\n"
        "    getattr(qd, name)\n"
        f"print([m for m in {[*heavy, 'qdtheory.text']!r} if m in sys.modules])"
    )
    assert python("-c", code, cwd=tmp_path) == "[]\n"


if __name__ == "__main__":
    lines = [f"{name}\n" for name in public_names()]
    NAMES.write_text("".join(lines))
