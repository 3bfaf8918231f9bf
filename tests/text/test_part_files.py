"""Files of parts: the numbers of the whole, and every fault refused."""

import json
import os
import random
from pathlib import Path

import pytest
from models import MODEL, REAL
from refusals import refused

from qdtheory.text import as_corpus, evaluate, part_files
from qdtheory.text.corpus import fingerprint
from qdtheory.text.evaluation import planned
from qdtheory.text.numbered import number_texts
from qdtheory.text.part_files import (
    count_part,
    job_of,
    merged,
    run_parts,
    work_folder,
    write_part,
)

TEXTS = {"model": MODEL, "half": MODEL[:30]}


def write(folder, num_parts=3, texts=None, real=REAL, parts=None, **options):
    """Write parts, each as if by a process of its own."""
    paths = []
    for part in range(num_parts) if parts is None else parts:
        planning = planned(texts or TEXTS, real, 2, **options)
        job = job_of(*planning, "real.txt", num_parts)
        paths.append(Path(folder, f"{part + 1}.json"))
        write_part(paths[-1], job, count_part(job, number_texts(*planning[1:]), part))
    return paths


@pytest.mark.parametrize(
    ("num_parts", "estimator"), [(1, "pairs"), (5, "plug-in"), (4, "sentence-pairs")]
)
def test_merged_parts_are_the_report_of_the_whole(tmp_path, num_parts, estimator):
    paths = write(tmp_path, num_parts, estimator=estimator)
    whole = evaluate(TEXTS, REAL, 2, estimator=estimator)
    for _ in range(3):
        random.Random(0).shuffle(paths)
        job, found = merged(paths)
        assert found == whole or estimator == "sentence-pairs"
        for name in TEXTS:  # averaged counts agree but for rounding
            assert found.scores[name].value == pytest.approx(
                whole.scores[name].value, rel=1e-12, abs=1e-12
            )
    assert job.references == "real.txt"
    assert job.plan == planned(TEXTS, REAL, 2, estimator=estimator)[0]


def test_finished_parts_are_not_counted_again(tmp_path, monkeypatch):
    plan, ours, real = planned(TEXTS, REAL, 2)
    job = job_of(plan, ours, real, "real.txt", 4)
    counted = []

    def count(job, sides, part):
        if len(counted) == 2:
            counted.clear()
            raise KeyboardInterrupt
        counted.append(part)
        return count_part(job, sides, part)

    monkeypatch.setattr(part_files, "count_part", count)
    with pytest.raises(KeyboardInterrupt):
        run_parts(job, ours, real, tmp_path)
    assert len([*tmp_path.iterdir()]) == 2
    steps = []
    again, found = run_parts(job, ours, real, tmp_path, steps.append)
    assert counted == [2, 3]
    assert again == job
    assert found == evaluate(TEXTS, REAL, 2)
    assert steps == [*(f"Counting part {k} of 4" for k in (1, 2, 3, 4)), "Merging"]


def test_the_folder_of_a_job_is_its_own_and_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan, ours, real = planned(TEXTS, REAL, 2)
    job, other = (job_of(plan, ours, real, "real.txt", k) for k in (2, 3))
    with work_folder(job) as folder:
        with work_folder(other) as another:
            assert folder != another
        with (
            pytest.raises(ValueError, match="the same evaluation is running already"),
            work_folder(job),
        ):
            pass
    assert [*(tmp_path / "qdtheory").iterdir()] == []
    with pytest.raises(ZeroDivisionError), work_folder(job) as folder:
        raise ZeroDivisionError
    assert folder.exists()
    with work_folder(job) as again:
        assert again == folder


def test_fingerprints_tell_texts_apart():
    def of(*texts):
        return fingerprint([*map(as_corpus, texts)])

    known = [
        *(of(MODEL), of(MODEL, REAL), of(REAL, MODEL), of(MODEL[::-1])),
        *(of([*MODEL, []]), of([text[:-1] for text in MODEL])),
        of([[str(token) for token in text] for text in MODEL]),
    ]
    assert len({*known}) == len(known)
    assert of(MODEL) == of([*map(tuple, MODEL)])


# -- faults --------------------------------------------------------------------------


def test_no_part_that_was_cut_short_or_changed_is_taken(tmp_path):
    one, two = write(tmp_path, 2)
    content = two.read_bytes()
    first, *middle, last = content.splitlines(keepends=True)
    changed = [
        [first, *middle[1:], last],
        [first, middle[1], middle[0], *middle[2:], last],
        [first.replace(b'"real.txt"', b'"real.txt" '), *middle, last],
    ]
    sizes = [*range(0, len(content), len(content) // 37), len(content) - 1]
    for bad in [*map(b"".join, changed), *(content[:size] for size in sizes)]:
        two.write_bytes(bad)
        with pytest.raises(ValueError, match=r"2.json: (cut short|expected a part)"):
            merged([one, two])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": {"model": MODEL, "half": MODEL[1:31]}}, "of other texts than"),
        ({"real": REAL[::-1]}, "of other texts than"),
        ({"texts": {"model": MODEL, "other": MODEL[:30]}}, "of other settings than"),
        ({"smoothing": None}, "of other settings than"),
        ({"estimator": "plug-in"}, "of other settings than"),
        ({"num_parts": 4}, "of another number of parts than"),
    ],
)
def test_parts_of_something_else_are_refused(tmp_path, options, message):
    other = tmp_path / "other"
    other.mkdir()
    first = write(tmp_path, parts=[0])
    rest = write(other, parts=[1, 2], **options)
    with pytest.raises(ValueError, match=message):
        merged([*first, *rest])


def test_parts_that_do_not_fit_together_and_other_files(tmp_path, monkeypatch):
    one, two, three = paths = write(tmp_path)
    copied, other = tmp_path / "copied.json", tmp_path / "file"
    copied.write_bytes(two.read_bytes())
    refused(
        ("of 3 parts these are missing: 1, 3", merged, [two]),
        (f"copied.json: part 2 of 3, as is {two};", merged, [one, two, three, copied]),
    )
    for content in ("", "a b c\n", "[]", '{"part of": "a jigsaw"}'):
        other.write_text(content)
        refused(("file: expected a part", merged, [other]))
    monkeypatch.setattr(part_files, "version", lambda package: "9.9")
    with pytest.raises(ValueError, match=r"written by qdtheory \S+, and this is 9.9"):
        merged(paths)


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    plan, ours, real = planned(TEXTS, REAL, 2)
    job = job_of(plan, ours, real, "real.txt", 1)
    part = count_part(job, number_texts(ours, real), 0)
    path = tmp_path / "part.json"
    path.write_text("old")
    dumps, lines = json.dumps, []

    def fail(entry, **options):
        lines.append(entry)
        if len(lines) == 5:
            raise OSError(28, "No space left on device")
        return dumps(entry, **options)

    with monkeypatch.context() as patched:
        patched.setattr(json, "dumps", fail)
        with pytest.raises(OSError, match=r"No space left .*part.json"):
            write_part(path, job, part)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["part.json"]
    write_part(path, job, part)
    assert merged([path])[1] == evaluate(TEXTS, REAL, 2)
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        write_part(Path("/dev/full"), job, part)
