"""Rooms: a module imports only from those above it, and has its file of tests."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    *("world", "metrics", "pairs", "solvers", "theory", "discrepancy"),
    "certificates",
)
# What stands on all rooms: the sample wing and what readers call.
TOP = ("text", "plotting", "exercises", "commands")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in (ROOT / "qdtheory").rglob("*.py")
    if path.stem != "__init__"
}


def imported(path):
    """The package's modules that a file imports, late imports and names included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                whole = {f"{module}.{alias.name}" for alias in names}
                found |= {module, *whole}
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
    return {name for name in found if name.split(".")[0] == "qdtheory"}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_room_imports_only_from_the_rooms_above(module):
    room = module.split(".")[1]
    if room in TOP:
        return
    allowed = ROOMS[: ROOMS.index(room) + 1]
    for name in imported(MODULES[module]):
        assert name != "qdtheory"
        assert name.split(".")[1] in allowed, f"{module} imports {name}"


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: imported(path) & MODULES.keys() for name, path in MODULES.items()}
    order = list(TopologicalSorter(graph).static_order())
    assert len(order) == len(MODULES) >= 50


def test_every_module_has_its_file_of_tests_and_no_room_another():
    tests = Path(__file__).parent
    of_modules = {
        path.relative_to(ROOT / "qdtheory").with_name(f"test_{path.name}")
        for path in MODULES.values()
    }
    found = {path.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert of_modules - found == set()
    # Beside the rooms stands what is about several of them, or about the project.
    in_rooms = {path for path in found if len(path.parts) > 1}
    assert in_rooms - of_modules == set()
