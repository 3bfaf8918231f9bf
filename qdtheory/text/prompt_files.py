"""Files of prompts: an object a line with a prompt, its outputs and its references."""

import json
from collections.abc import Sequence
from typing import Any

from qdtheory.text.files import File, lines, name_of, streamed
from qdtheory.text.prompts import checked, short
from qdtheory.text.sources import cell, records

FIELDS = ("prompt", "outputs", "references")


def read_prompts(
    files: Sequence[File],
    references: File | None = None,
    fields: Sequence[str] = FIELDS,
) -> tuple[list[str], dict[str, list[list[str]]], list[list[str]]]:
    """Read candidates' outputs and the references of the same prompts.

    Prompts are matched by their text, and in the order of the first file.

    Args:
        files: JSON Lines of each candidate, plain, gzip or zstd.
        references: JSON Lines of prompts and references; None: those of the first
            candidate. Where another file has references too, they must be the same.
        fields: names of the fields of prompt, outputs and references.

    Returns:
        The prompts, the outputs by the file's name, and the references: for each prompt
        a list of strings.

    Raises:
        OSError: a file cannot be opened.
        TypeError, ValueError: a file is broken, a field is missing or no list of
            strings, or prompts or references are not the same in all files.
    """
    question, answers, human = fields

    def listed(row: Any, field: str, at: str, least: int) -> list[str]:
        return checked(cell(row, field, at, "field"), f"{at}: {field}", least)

    tables = {name_of(file): _by_prompt(file, question) for file in files}
    source, rows = next(iter(tables.items()))
    if references is not None:
        source, rows = name_of(references), _by_prompt(references, question)
    real = {key: listed(row, human, at, 1) for key, (at, row) in rows.items()}
    for name, rows in tables.items():
        _require_all(rows, real, name, source)
        _require_all(real, rows, source, name)
        for key, (at, row) in rows.items():
            given = listed(row, human, at, 1) if human in row else real[key]
            if sorted(given) != sorted(real[key]):
                raise ValueError(f"{at}: other {human} of {short(key)} than {source}")
    prompts = [*next(iter(tables.values()))]
    ours = {
        name: [listed(rows[key][1], answers, rows[key][0], 2) for key in prompts]
        for name, rows in tables.items()
    }
    return prompts, ours, [real[key] for key in prompts]


def _by_prompt(file: File, field: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The records of a file by their prompts, and where each stands."""
    name, found = name_of(file), {}
    with streamed(file, bounded=True) as (_, held):
        for at, record in records(lines(held, name, bounded=True), name):
            prompt = cell(record, field, at, "field")
            key = prompt
            if not isinstance(prompt, str):  # such as the messages of a chat
                key = json.dumps(prompt, ensure_ascii=False, sort_keys=True)
            if key in found:
                raise ValueError(
                    f"{at}: prompt {short(key)} again, as in {found[key][0]}"
                )
            found[key] = at, record
    if not found:
        raise ValueError(f"{name}: no prompt; expected a JSON object on each line")
    return found


def _require_all(ours: Any, others: Any, name: str, other: str) -> None:
    """Raise if a file lacks prompts of another; name some of them."""
    lost = [short(key) for key in others if key not in ours]
    if lost:
        more = f" and {len(lost) - 3:,} more" if len(lost) > 3 else ""
        raise ValueError(
            f"{name}: prompts of {other} are missing: {', '.join(lost[:3])}{more}"
        )
