"""The page of all statements: what each needs, and what needs it.

The column `needs` of theorems.csv names what the statement and its proof use, as in "03
Definition 1;16b Proposition N16.13": the lecture's number, the label up to its
parenthesis, and one of its claims where the lecture has several of that label.
"""

import ast
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache

import parts_page
import theorem_boxes
from coverage_page import DOCS, ids, parts, rows
from lecture_figures import lecture_number
from notebook_cells import cells_of, lecture, source_of, tags_of
from templates import rendered

ROOT = DOCS.parent
CLAIM = r"[TLNE]\d+\.\d+"


@dataclass(eq=False)
class Statement:
    """A statement of a lecture.

    Attributes:
        row: its row of theorems.csv.
        number: "3.2", the second of lecture 03.
        heading: the one above it in its lecture.
        words: its own, as the lecture has them.
        proof: the text of the cells that prove it.
        needs: what it needs, in the order of the row.
        needed_by: what needs it, in the order of the book.
    """

    row: dict[str, str]
    number: str
    heading: str
    words: str
    proof: str
    needs: list["Statement"] = field(default_factory=list)
    needed_by: list["Statement"] = field(default_factory=list)

    @property
    def lecture(self) -> str:
        return self.row["notebook"]

    @property
    def head(self) -> str:
        """Its label without what stands in parentheses: "Theorem 2"."""
        return self.row["label"].partition(" (")[0]

    @property
    def kind(self) -> str:
        return theorem_boxes.kind_and_name(self.row["label"])[0]

    @property
    def anchor(self) -> str:
        """Its place, in its lecture and on this page."""
        return f"{self.kind.lower()}-{self.number.replace('.', '-')}"

    @property
    def title(self) -> str:
        """As its box has it, "Theorem 3.2"."""
        return f"{self.kind} {self.number}"

    @property
    def is_checked(self) -> bool:
        """Whether Coq has checked a proof; a definition has none."""
        return bool(self.row["coq"]) and self.kind not in theorem_boxes.DEFINITIONS

    @property
    def states(self) -> list[str]:
        """What vouches for it, the strongest last."""
        marks = [mark for claim in ids(self.row["claims"]) for mark in tests()[claim]]
        part = self.row["part"] and f" ({self.row['part']})"
        found = ["claimed"]
        found += ["second route"] * any(not mark.recounts for mark in marks)
        return found + [f"machine-checked{part}"] * self.is_checked


def statements(table=None):
    """All statements, in the order of the book, each with what it needs.

    Raises ValueError if a need names no statement, or more than one.
    """
    found, count = [], defaultdict(int)
    for row in rows(theorem_boxes.TABLE) if table is None else table:
        name = row["notebook"]
        heading, words, proof = quoted(name)[count[name]]
        count[name] += 1
        number = f"{lecture_number(name)}.{count[name]}"
        found.append(
            Statement(row, number, heading, "\n".join(words), "\n\n".join(proof))
        )
    for statement in found:
        for need in parts(statement.row["needs"] or ""):
            other = named(need, found)
            statement.needs.append(other)
            other.needed_by.append(statement)
    return found


def named(need, among):
    """The statement that a need names."""
    split = re.fullmatch(rf"(\w+) (.+?)(?: ({CLAIM}))?", need)
    number, head, claim = split.groups() if split else ("", "", "")
    found = [
        one
        for one in among
        if (one.lecture.split("_")[0], one.head) == (number, head)
        and (not claim or claim in ids(one.row["claims"]))
    ]
    if len(found) != 1:
        raise ValueError(
            f"the need {need!r} names {len(found)} statements; expected one, as in"
            " '03 Definition 1' or, with a claim, '16b Proposition N16.13'"
        )
    return found[0]


@cache
def quoted(name):
    """Of each statement of a lecture: the heading above it, its words, its proof.

    A statement is a paragraph of a quotation that begins in bold, with those below it;
    cells tagged `proof` prove the last one above.
    """
    found, heading, is_open = [], "", False
    for cell in cells_of(lecture(name)):
        if cell["cell_type"] != "markdown":
            continue
        if "proof" in tags_of(cell) and found:
            found[-1][2].append(source_of(cell))
        for line in source_of(cell).splitlines():
            if title := re.match(r"##+ (.+)", line):
                heading = title[1]
            if line.startswith("> **"):
                found.append((heading, [], []))
                is_open = True
            is_open = is_open and line.startswith(">")
            if is_open:
                words = re.sub(r"\((\w+\.ipynb)", r"(../notebooks/\1", line[2:])
                found[-1][1].append(words)
    return found


# --- tests -----------------------------------------------------------------------


@dataclass(frozen=True)
class Test:
    """A test of a claim; one that recounts a committed table is no second route."""

    file: str
    name: str
    recounts: bool


@cache
def tests():
    """The tests of each claim, by their marks."""
    found = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text("utf-8")
        if "mark.claim(" not in text:
            continue
        for node in ast.parse(text).body:
            decorators = getattr(node, "decorator_list", [])
            for mark in decorators:
                if "mark.claim(" in ast.unparse(mark):
                    place = path.relative_to(ROOT).as_posix()
                    test = Test(place, node.name, bool(mark.keywords))
                    for claim in map(ast.literal_eval, mark.args):
                        found[claim].append(test)
    return found


def tests_of(statement):
    """The tests of a statement's claims, each once."""
    found = (test for claim in ids(statement.row["claims"]) for test in tests()[claim])
    return list(dict.fromkeys(found))


# --- the page ---------------------------------------------------------------------


def title(statement):
    """What else it is called, and in a few words what it is about."""
    label, heading = statement.row["label"], statement.heading
    told = re.search(r"\(([^()]*)\)$", label)
    if told and not re.search(r"\d{4}|otebook", told[1]):
        heading = told[1][0].upper() + told[1][1:]
    elif heading == statement.head:
        heading = parts_page.heading(parts_page.source(statement.lecture))
    name = theorem_boxes.kind_and_name(label)[1]
    return ". ".join(dict.fromkeys(filter(None, [name, heading])))


def counted(among):
    """How many there are of each kind."""
    definitions = sum(one.kind in theorem_boxes.DEFINITIONS for one in among)
    checked = sum(one.is_checked for one in among)
    routes = sum("second route" in one.states for one in among)
    return (
        f"{len(among)} statements, {definitions} of them definitions: {routes} have a"
        f" second route, {checked} are machine-checked, whole or in part."
    )


def links(one):
    """What stands below a statement: labels, and addresses with their words."""
    place = f"../notebooks/{one.lecture}.html#{one.anchor}"
    return {
        "Needs": [(f"#{x.anchor}", x.title) for x in one.needs],
        "Needed by": [(f"#{x.anchor}", x.title) for x in one.needed_by],
        "In the lecture": [(place, parts_page.titled(one.lecture))],
        "Second route": [("", one.row["second_route"])],
        "Tests": [("", f"{test.name}, {test.file}") for test in tests_of(one)],
        "In Coq": [
            (f"proofs.html#{name.lower().replace('_', '-')}", name)
            for name in parts(one.row["coq"])
        ],
    }


def texts():
    """What theorem_graph.md has at its comments: how many there are, and all."""
    among, by_part = statements(), defaultdict(list)
    part_of, order = parts_page.part_of, parts_page.parts()
    for one in sorted(among, key=lambda x: order.index(part_of(x.lecture))):
        claims = [x.replace("-", " to ") for x in parts(one.row["claims"])]
        entry = one, title(one), claims, links(one)
        by_part[parts_page.heading(DOCS / f"parts/{part_of(one.lecture)}.md")].append(
            entry
        )
    return {
        "count": counted(among),
        "list": rendered("statements.md", by_part=by_part),
    }
