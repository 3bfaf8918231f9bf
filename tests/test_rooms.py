"""Rooms: a module imports only from those above it, and has its file of tests."""

from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import rooms_figure
from rooms_figure import MODULES, ROOMS, ROOT, WINGS, imported


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_room_imports_only_from_the_rooms_above(module):
    room = module.split(".")[1]
    if room in WINGS:
        return
    allowed = ROOMS[: ROOMS.index(room) + 1]
    for name in imported(MODULES[module]):
        assert name != "qdtheory"
        assert name.split(".")[1] in allowed, f"{module} imports {name}"


# What takes a pair: it asks for its form, and hands arrays and functions on.
DOORS = {
    "qdtheory.solvers.search",  # searches any pair
    "qdtheory.theory.compatibility",
    "qdtheory.theory.frontier",
    "qdtheory.theory.named_pairs",
    "qdtheory.theory.scoring_rules",
    "qdtheory.theory.theorem_1",
    "qdtheory.qdisc.solve",
    "qdtheory.qdisc.certify",
    "qdtheory.qdisc.conditional",
}


def test_judges_solvers_and_bounds_below_the_doors_see_no_pair():
    importing = {
        module
        for module, path in MODULES.items()
        if module.split(".")[1] in ("formulas", "solvers", "theory", "qdisc")
        and any(name.startswith("qdtheory.pairs.") for name in imported(path))
    }
    assert importing == DOORS


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: imported(path) & MODULES.keys() for name, path in MODULES.items()}
    order = list(TopologicalSorter(graph).static_order())
    assert len(order) == len(MODULES) >= 50


def test_every_module_has_its_file_of_tests_and_no_room_another():
    tests = Path(__file__).parent
    of_modules = {
        path.relative_to(ROOT / "qdtheory").with_name(f"test_{path.name}")
        for path in MODULES.values()
        if path.parent.name != "answers"  # each is called by tests of its exercise
    }
    found = {path.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert of_modules - found == set()
    # Beside the rooms stands what is about several of them, or about the project.
    in_rooms = {path for path in found if len(path.parts) > 1}
    assert in_rooms - of_modules == set()


def test_the_figure_is_what_its_script_draws():
    old, new = rooms_figure.FIGURE.read_text(), rooms_figure.draw()
    assert old == new, "run docs/rooms_figure.py"
    assert {name.split(".")[1] for name in MODULES} == {*ROOMS, *WINGS}
