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
from html import escape

import parts_page
import theorem_boxes
from course_pages import statements as quotations
from coverage_page import DOCS, ids, parts, rows
from lecture_figures import lecture_number
from notebook_cells import cells_of, lecture, source_of, tags_of

ROOT = DOCS.parent
CLAIM = r"[TLNE]\d+\.\d+"


@dataclass(eq=False)
class Statement:
    """A statement of a lecture.

    Attributes:
        row: its row of theorems.csv.
        number: "3.2", the second of lecture 03.
        needs: what it needs, in the order of the row.
        needed_by: what needs it, in the order of the book.
    """

    row: dict[str, str]
    number: str
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
        count[row["notebook"]] += 1
        number = f"{lecture_number(row['notebook'])}.{count[row['notebook']]}"
        found.append(Statement(row, number))
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
            f"the need {need!r} names {len(found)} statements instead of one; expected"
            " the lecture's number, the label up to its parenthesis and, where the"
            " lecture has several of that label, a claim: '16b Proposition N16.13'"
        )
    return found[0]


def above(statement):
    """What a statement needs, and what that needs, and so on.

    Raises ValueError if the statement is there too.
    """
    found, left = [], [*statement.needs]
    while left:
        one = left.pop()
        if one is statement:
            raise ValueError(f"{statement.title} needs itself")
        if one not in found:
            found.append(one)
            left += one.needs
    return found


# --- texts and tests -------------------------------------------------------------


def texts(statement, among):
    """The statement's own words, as the lecture has them."""
    place = [one for one in among if one.lecture == statement.lecture].index(statement)
    said = []
    for block in quotations(lecture(statement.lecture)):
        lines = re.sub(r"^> ?", "", block, flags=re.MULTILINE)
        said += re.split(r"\n\n(?=\*\*)", lines)
    words = re.sub(r"\((\w+\.ipynb)", r"(../notebooks/\1", said[place])
    return words.strip()


@cache
def subjects(name):
    """For each statement of a lecture the heading above it."""
    found, heading = [], ""
    for cell in cells_of(lecture(name)):
        if cell["cell_type"] == "markdown":
            for line in source_of(cell).splitlines():
                if title := re.match(r"##+ (.+)", line):
                    heading = title[1]
                found += [heading] * bool(re.match(r"> \*\*", line))
    return found


def subject(statement, among):
    """In a few words what it is about: its name, or the heading above it."""
    told = re.search(r"\(([^()]*)\)$", statement.row["label"])
    if told and not re.search(r"\d{4}|otebook", told[1]):
        return told[1][0].upper() + told[1][1:]
    same = [one for one in among if one.lecture == statement.lecture]
    heading = subjects(statement.lecture)[same.index(statement)]
    if heading == statement.head:
        return parts_page.heading(parts_page.source(statement.lecture))
    return heading


def proof(statement, among):
    """The cells that prove a statement: those tagged `proof`, up to the next one."""
    same = [one for one in among if one.lecture == statement.lecture]
    place, seen, found = same.index(statement) + 1, 0, []
    for cell in cells_of(lecture(statement.lecture)):
        if cell["cell_type"] == "markdown":
            if "proof" in tags_of(cell) and seen == place:
                found.append(source_of(cell))
            seen += len(re.findall(r"^> \*\*", source_of(cell), re.MULTILINE))
    return "\n\n".join(found)


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


# --- the list ---------------------------------------------------------------------


def link(address, words):
    return f'<a href="{address}">{escape(words)}</a>'


def listed(label, links):
    """A line of an entry, if there is something to list."""
    return f"<li>{label}: {', '.join(links)}</li>" if links else ""


def entry(statement, among):
    """One statement, folded."""
    name = theorem_boxes.kind_and_name(statement.row["label"])[1]
    about = subject(statement, among)
    told = ". ".join(dict.fromkeys(filter(None, [name, about])))
    chips = "".join(
        f'<span class="state">{escape(state)}</span>' for state in statement.states
    )
    here = f"../notebooks/{statement.lecture}.html#{statement.anchor}"
    coq = [
        link(f"proofs.html#{one.lower().replace('_', '-')}", one)
        for one in parts(statement.row["coq"])
    ]
    links = [
        listed("Needs", [link(f"#{x.anchor}", x.title) for x in statement.needs]),
        listed(
            "Needed by", [link(f"#{x.anchor}", x.title) for x in statement.needed_by]
        ),
        listed("In the lecture", [link(here, parts_page.titled(statement.lecture))]),
        listed("Second route", [escape(statement.row["second_route"])]),
        listed("Tests", [f"{escape(x.name)}, {x.file}" for x in tests_of(statement)]),
        listed("In Coq", coq),
    ]
    shown = ", ".join(x.replace("-", " to ") for x in parts(statement.row["claims"]))
    return "\n".join(
        [
            f'<details class="folded theorem" id="{statement.anchor}">',
            f"<summary><b>{statement.title}</b> {escape(told)} {chips}</summary>",
            "",
            texts(statement, among),
            "",
            f"Claims: {shown}.",
            "",
            f"<ul>{''.join(links)}</ul>",
            "</details>",
            "",
        ]
    )


def entries(among):
    """All statements by parts."""
    lines = []
    for part in parts_page.parts():
        lines += [f"### {parts_page.heading(DOCS / f'parts/{part}.md')}", ""]
        lines += [
            entry(one, among)
            for one in among
            if parts_page.part_of(one.lecture) == part
        ]
    return "\n".join(lines)


def counted(among):
    """How many there are of each kind."""
    proved = [one for one in among if one.kind not in theorem_boxes.DEFINITIONS]
    checked = sum(one.is_checked for one in among)
    routes = sum("second route" in one.states for one in among)
    return (
        f"{len(among)} statements, {len(among) - len(proved)} of them definitions:"
        f" {routes} have a second route, {checked} are machine-checked, whole or in"
        " part."
    )


def fill(app, document, source):
    """Put all in the places of their comments."""
    if document != "docs/theorem_graph":
        return
    among = statements()
    for name, text in (("count", counted(among)), ("list", entries(among))):
        source[0] = source[0].replace(f"<!-- {name} -->", text)
    files = {test.file for found in tests().values() for test in found}
    lectures = {lecture(one.lecture) for one in among}
    for path in (theorem_boxes.TABLE, *lectures, *(ROOT / file for file in files)):
        app.env.note_dependency(str(path))


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
