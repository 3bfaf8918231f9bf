"""Files of prompts: an object a line with a prompt, its outputs and its references."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from qdtheory.text.files import File, lines, name_of, streamed
from qdtheory.text.prompts import checked
from qdtheory.text.sources import cell, records

FIELDS = ("prompt", "outputs", "references")


def read_prompts(
    candidates: Mapping[str, File],
    references: File | None = None,
    fields: Sequence[str] = FIELDS,
) -> tuple[list[str], dict[str, list[list[str]]], list[list[str]]]:
    """Read candidates' outputs and the references of the same prompts.

    Prompts are matched by their text, and in the order of the first candidate.

    Args:
        candidates: JSON Lines by name, plain, gzip or zstd.
        references: JSON Lines with prompts and references; None: those of the first
            candidate. Where another file has references too, they must be the same.
        fields: names of the fields of prompt, outputs and references.

    Returns:
        The prompts, the outputs by candidate, and the references: for each prompt a
        list of strings.

    Raises:
        OSError: a file cannot be opened.
        TypeError, ValueError: a file is broken, a field is missing or no list of
            strings, or prompts or references are not the same in all files.
    """
    question, answers, human = fields

    def texts(record: Any, field: str, at: str, least: int) -> list[str]:
        return checked(cell(record, field, at, "field"), f"{at}: {field}", least)

    real, source = {}, None
    if references is not None:
        source, rows = name_of(references), _by_prompt(references, question)
        real = {key: texts(row, human, at, 1) for key, (at, row) in rows.items()}
    found: dict[str, dict[str, list[str]]] = {}
    for name, file in candidates.items():
        rows = _by_prompt(file, question)
        found[name] = {
            key: texts(row, answers, at, 2) for key, (at, row) in rows.items()
        }
        given = {
            key: texts(row, human, at, 1)
            for key, (at, row) in rows.items()
            if source is None or human in row
        }
        real = given if source is None else real
        source = source or name_of(file)
        _require_all(found[name], real, name_of(file), source)
        _require_all(real, found[name], source, name_of(file))
        for key, own in given.items():
            if sorted(own) != sorted(real[key]):
                raise ValueError(
                    f"{rows[key][0]}: other {human} of {key!r:.60} than in {source}"
                )
    prompts = [*next(iter(found.values()))]
    outputs = {name: [ours[key] for key in prompts] for name, ours in found.items()}
    return prompts, outputs, [real[key] for key in prompts]


def _by_prompt(file: File, field: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The records of a file by their prompts, and where each stands."""
    name, found = name_of(file), {}
    with streamed(file, bounded=True) as (_, held):
        for at, record in records(lines(held, name, bounded=True), name):
            prompt = cell(record, field, at, "field")
            if prompt is None:
                raise ValueError(f"{at}: {field}: expected a prompt, got null")
            key = prompt if isinstance(prompt, str) else json.dumps(prompt)
            if key in found:
                raise ValueError(
                    f"{at}: the prompt {key!r:.60} was there before, in "
                    f"{found[key][0].rpartition(', ')[2]}; put all its outputs in one"
                )
            found[key] = at, record
    if len(found) < 2:
        raise ValueError(f"{name}: expected at least 2 prompts, got {len(found)}")
    return found


def _require_all(ours: Any, others: Any, name: str, other: str) -> None:
    """Raise if a file lacks prompts of another; name some of them."""
    lost = [repr(key)[:60] for key in others if key not in ours]
    if lost:
        more = f" and {len(lost) - 3:,} more" if len(lost) > 3 else ""
        raise ValueError(
            f"{name}: prompts of {other} are missing: {', '.join(lost[:3])}{more}"
        )
