"""Parts of an evaluation as files, and the report of all of them.

A file holds one JSON object a line: what all parts share and this part's totals, then a
line for each group of each candidate's sentences, and at last the hash of all before,
which tells a file that was cut short. Parts are merged a group at a time.
"""

import base64
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import reduce
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import IO, Any, get_args, get_origin, get_type_hints

import numpy as np

from qdtheory.text.corpus import Corpus, fingerprint
from qdtheory.text.evaluation import Plan, reported
from qdtheory.text.files import replacing, shown
from qdtheory.text.numbered import NumberedText, number_texts
from qdtheory.text.partial_sums import (
    CorpusSums,
    GroupMatches,
    PartialSums,
    count,
    merge_blocks,
    merge_totals,
)
from qdtheory.text.report import Report
from qdtheory.world.records import Record, plain

# What is said of parts whose jobs differ in these.
OTHERWISE = {"inputs": "other texts", "num_parts": "another number of parts"}
START = b'{"part of": "qdtheory evaluate", '


class Job(Record):
    """What all parts of an evaluation share, in their files."""

    plan: Plan
    references: str  # their name
    inputs: str  # hash of all texts
    num_parts: int
    version: str


def job_of(
    plan: Plan,
    candidates: Mapping[str, Corpus],
    references: Corpus,
    name: str,
    num_parts: int,
) -> Job:
    """Describe the parts of an evaluation."""
    inputs = fingerprint([*candidates.values(), references])
    return Job(plan, name, inputs, num_parts, version("qdtheory"))


def write_part(path: Path, job: Job, part: PartialSums) -> None:
    """Write a part to a file, whole or not at all."""
    head = {
        "part of": "qdtheory evaluate",
        "version": job.version,
        "job": plain(job),
        "totals": part.totals,
    }
    found = hashlib.sha256()
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        for entry in chain([head], *part.blocks.values()):
            line = f"{json.dumps(entry, default=_packed)}\n".encode()
            found.update(line)
            file.write(line)
        file.write(_last_line(found.hexdigest()))


def merged(paths: Sequence[Path]) -> tuple[Job, Report]:
    """Merge the files of all parts, a group of sentences at a time."""
    files = [_entries(path) for path in paths]
    heads = [_head(path, file) for path, file in zip(paths, files)]
    job = _common_job(paths, heads)
    totals = [_built(CorpusSums, head["totals"]) for head in heads]
    _refuse_incomplete(paths, totals)
    whole = reduce(merge_totals, totals)

    def blocks(name: str) -> Iterator[GroupMatches]:
        for _ in whole.lengths[name].times:
            yield reduce(merge_blocks, (GroupMatches(**next(x)) for x in files))

    found = reported(
        job.plan, whole, {name: blocks(name) for name in job.plan.candidates}
    )
    return job, found


def run_parts(
    job: Job,
    candidates: Mapping[str, Corpus],
    references: Corpus,
    folder: Path,
    step: Callable[[str], None] = lambda text: None,
) -> tuple[Job, Report]:
    """Count the parts that have no file yet, each to a file, and merge them."""
    paths, sides = [], number_texts(candidates, references)
    for part in range(job.num_parts):
        step(f"Counting part {part + 1} of {job.num_parts}")
        paths.append(folder / f"{part + 1}-of-{job.num_parts}.json")
        if not paths[-1].exists():
            write_part(paths[-1], job, count_part(job, sides, part))
    step("Merging")
    return merged(paths)


def count_part(job: Job, sides: Mapping[str, NumberedText], part: int) -> PartialSums:
    """Count one part of a job."""
    plan = job.plan
    return count(sides, plan.max_order, plan.averaged, part, job.num_parts)


@contextmanager
def work_folder(job: Job) -> Iterator[Path]:
    """Keep the parts of a job in a folder of the user's cache until all are merged."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256(job.to_json().encode()).hexdigest()[:16]
    folder = cache / "qdtheory" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        if not _locked(lock):
            raise ValueError(
                f"memory: the same evaluation is running already, in {folder}; wait "
                "for it"
            )
        yield folder
        shutil.rmtree(folder)


def _locked(file: IO) -> bool:
    """Lock a file until it is closed, or its process ends, where there are locks."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# --- Writing ------------------------------------------------------------------------


def _packed(value: Any) -> dict[str, Any]:
    """What JSON has not: a record by its fields, an array as text."""
    if isinstance(value, Record):
        return {x.name: getattr(value, x.name) for x in fields(value)}
    array = np.ascontiguousarray(value)
    array = array.astype(array.dtype.newbyteorder("<"))
    packed = base64.b64encode(zlib.compress(array.data, 1)).decode()
    return {"type": array.dtype.str, "shape": array.shape, "data": packed}


def _unpacked(entry: dict[str, Any]) -> Any:
    """The array that an object of JSON holds, or the object."""
    if not isinstance(entry.get("data"), str):  # it may be a candidate's name
        return entry
    data = zlib.decompress(base64.b64decode(entry["data"]))
    return np.frombuffer(data, entry["type"]).reshape(entry["shape"])


def _built(kind: Any, value: Any) -> Any:
    """A value of JSON as its annotation says: the records in it, and tuples."""
    if isinstance(kind, type) and issubclass(kind, Record):
        kinds = get_type_hints(kind)
        return kind(**{name: _built(kinds[name], x) for name, x in value.items()})
    if get_origin(kind) is dict:
        return {key: _built(get_args(kind)[1], x) for key, x in value.items()}
    return tuple(value) if get_origin(kind) is tuple else value


# --- Reading ------------------------------------------------------------------------


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file but the last."""
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line, object_hook=_unpacked)


def _refuse_broken(path: Path) -> None:
    """Raise unless the last line of a part is the hash of all others."""
    found, last = hashlib.sha256(), b""
    with path.open("rb") as file:
        if file.read(len(START)) != START:
            raise ValueError(
                f"{shown(path)}: expected a part, as evaluate writes with --part"
            )
        file.seek(0)
        for line in file:
            found.update(last)
            last = line
    if last != _last_line(found.hexdigest()):
        raise ValueError(f"{shown(path)}: cut short, or changed; write this part again")


def _last_line(sha256: str) -> bytes:
    return f'{{"sha256": "{sha256:64}"}}\n'.encode()


def _head(path: Path, file: Iterator[dict[str, Any]]) -> dict[str, Any]:
    _refuse_broken(path)
    head = next(file)
    ours = version("qdtheory")
    if head["version"] != ours:
        raise ValueError(
            f"{shown(path)}: written by qdtheory {head['version']}, and this is "
            f"{ours}; write all parts by one version"
        )
    return head


def _common_job(paths: Sequence[Path], heads: list[dict[str, Any]]) -> Job:
    first = heads[0]["job"]
    for path, head in zip(paths, heads):
        for name in ("inputs", "num_parts", "plan", "references"):
            if head["job"][name] != first[name]:
                what = OTHERWISE.get(name, "other settings")
                raise ValueError(
                    f"{shown(path)}: a part of an evaluation of {what} than that of "
                    f"{shown(paths[0])}"
                )
    return _built(Job, first)


def _refuse_incomplete(paths: Sequence[Path], totals: list[CorpusSums]) -> None:
    known: dict[int, Path] = {}
    size = totals[0].num_parts
    for path, total in zip(paths, totals):
        for part in total.parts:
            if part in known:
                raise ValueError(
                    f"{shown(path)}: part {part + 1} of {size}, as is "
                    f"{shown(known[part])}; give each part once"
                )
            known[part] = path
    missing = [part + 1 for part in range(size) if part not in known]
    if missing:
        some = ", ".join(map(str, missing[:10])) + ", ..." * (len(missing) > 10)
        raise ValueError(f"of {size} parts these are missing: {some}")
