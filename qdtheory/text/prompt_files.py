"""Files of prompts: rows with a prompt, its outputs or one of them, and references."""

import json
from collections.abc import Collection, Sequence
from typing import Any

from qdtheory.text import sources
from qdtheory.text.files import File, name_of
from qdtheory.text.prompts import checked, short
from qdtheory.text.sources import cell, holds, listed, require_filter, tell

FIELDS = ("prompt", "outputs", "references")
# What logs call them, of which the first that is there is read. Of instructions with an
# input both are the prompt, and of choices with an index those that it names.
CALLED = (
    "prompt question query instruction+input instruction input problem doc.question "
    "doc.query doc instance.input.text messages doc_id custom_id task_id id",
    "outputs output completions completion generations generation responses "
    "predictions prediction samples resps response.body.choices response "
    "model_response result.completions generated_text candidates text choices",
    "references reference targets target answers answer golds gold labels label "
    "ground_truth expected ideal instance.references doc.choices+doc.gold_index",
)


def read_prompts(
    files: Sequence[File], references: File | None = None, fields: Sequence[str] = ()
) -> tuple[list[str], dict[str, list[list[str]]], list[list[str]] | None]:
    """Read candidates' outputs and the references of the same prompts.

    Prompts are matched by their text, and in the order of the first file. A row holds
    all outputs of a prompt, or one of them. Of lists and objects, such as the choices
    of OpenAI, the texts are read.

    Args:
        files: of each candidate, in any form with fields that `read_corpus` reads.
        references: a file of prompts and references; None: those of the first
            candidate. Where another file has references too, they must be the same.
        fields: names of the fields of prompt, outputs and references, or of the first
            of these; the rest are guessed, which a `FieldWarning` says.

    Returns:
        The prompts, the outputs by the file's name, and the references: for each prompt
        a list of strings; None if there are none.

    Raises:
        OSError: a file cannot be opened.
        TypeError, ValueError: a file is broken, a field is missing or holds no strings,
            or prompts or references are not the same in all files.
    """
    named = references is None and len(fields) == len(FIELDS)
    tables: dict[str, Any] = {}
    for file in files:
        roles = FIELDS[: 3 if named and not tables else 2]
        tables[name_of(file)] = _by_prompt(file, fields, roles)
    source, rows = next(iter(tables.items()))
    prompts = [*rows]
    if references is not None:
        source = name_of(references)
        rows = _by_prompt(references, fields, FIELDS[::2])
    real = {key: human for key, (_, _, human) in rows.items()}
    for name, rows in tables.items():
        _require_all(rows, real, name, source)
        _require_all(real, rows, source, name)
        for key, (at, ours, human) in rows.items():
            checked(ours, f"{at}: outputs", 2)
            if human and sorted(human) != sorted(real[key]):
                what = f"other references of {short(key)}"
                raise ValueError(f"{at}: {what} than {source}")
    ours = {name: [rows[key][1] for key in prompts] for name, rows in tables.items()}
    return prompts, ours, [real[x] for x in prompts] if any(real.values()) else None


def _by_prompt(
    file: File, fields: Sequence[str], needed: Collection[str]
) -> dict[str, tuple[str, list[str], list[str]]]:
    """The place of each prompt in a file, its outputs and its references."""
    name, names = name_of(file), ()
    found: dict[str, Any] = {}
    with sources.opened_rows(file) as (form, rows):
        for at, row in () if form == "sentences" else rows:
            names = names or _names(row, name, fields, needed)
            question, *sides = names
            for x in () if sides[1] else CALLED[2].split():
                if row.get(x):
                    raise ValueError(f"{at}: references, {x!r}, but none in row 1")
            parts = [cell(row, x, at) for x in question.split("+")]
            key = parts[0] if len(parts) == 1 else parts
            if not isinstance(key, str):  # such as the messages of a chat
                key = json.dumps(key, ensure_ascii=False, sort_keys=True, default=str)
            each = [
                checked(_texts(row, x, at), f"{at}: {role}", 1) if x else []
                for x, role in zip(sides, FIELDS[1:])
            ]
            by = row.get("filter")
            first, *before, other = found.setdefault(key, (at, *each, by))
            if first == at:
                continue
            again = f"{at}: prompt {short(key)} again, as in {first}"
            require_filter(again, by, other)
            # A row has one output of the prompt; or one reference, if no outputs.
            (grown, more), same = [*zip(before, each)][:: 1 if sides[0] else -1]
            if len(more) > 1 or same[0] != same[1]:
                raise ValueError(
                    f"{again}; expected all {FIELDS[1]} in one row, or one in each "
                    f"with the same {FIELDS[2]}"
                )
            grown += more
    if not found:
        raise ValueError(
            f"{name}: no prompt; expected a JSON object on each line, or a table, of "
            "prompts and outputs"
        )
    return {key: known[:3] for key, known in found.items()}


def _texts(row: dict, name: str, at: str) -> list[Any]:
    """The texts in a field; of choices with an index, those that it names."""
    held, *gold = (cell(row, x, at) for x in name.split("+"))
    for index in gold:
        some = index if isinstance(index, list) else [index]
        held = [x for place, x in enumerate(held) if place in some]
    return sources.texts_of(held)


def _names(row: Any, name: str, fields: Sequence[str], needed: Collection[str]) -> Any:
    """The fields of prompt, outputs and references, None where a file has none."""
    if not isinstance(row, dict):
        raise ValueError(f"{name}: expected objects with a prompt, got {row!r:.40}")
    found: list[str | None] = []
    for role, called in enumerate(CALLED):
        asked = fields[role : role + 1] or called.split()
        there = [x for x in asked if all(holds(row, y) for y in x.split("+"))]
        if not there and FIELDS[role] in needed:
            raise ValueError(
                f"{name}: no field of {FIELDS[role]}, such as {asked[0]!r}; name them "
                f"(field={','.join(FIELDS)}); there are: {listed(row)}"
            )
        found.append(there[0] if there else None)
    guessed = [x for x in found[len(fields) :] if x]
    if not {*guessed} <= {*FIELDS}:
        said = ", ".join(f"{x} from {y!r}" for x, y in zip(FIELDS, found) if y)
        given = [x or y for x, y in zip(found, FIELDS)][: 3 if found[-1] else 2]
        tell(f"{name}: {said} (field={','.join(given)})")
    return (*found,)


def _require_all(ours: Any, others: Any, name: str, other: str) -> None:
    """Raise if a file lacks prompts of another; name some of them."""
    lost = [short(key) for key in others if key not in ours]
    if lost:
        more = f" and {len(lost) - 3:,} more" if len(lost) > 3 else ""
        said = f"prompts of {other} are missing: {', '.join(lost[:3])}{more}"
        raise ValueError(f"{name}: {said}")
