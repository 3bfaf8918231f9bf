"""`qdtheory merge`: one run, parts, little memory and a cluster give one report."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from calls import call, refusal
from models import MODEL, REAL
from stored import parquet, saved

from qdtheory.commands.evaluate import _bytes

TEXTS = {"model": MODEL, "half": [[], *MODEL[:30], []], "real": REAL}
LINES = {name: [" ".join(map(str, x)) for x in TEXTS[name]] for name in TEXTS}
EVALUATE = "evaluate", "model.txt", "half.txt", "--references", "real.txt"
MERGE = "merge", "1.json", "2.json", "3.json"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, lines in LINES.items():
        Path(f"{name}.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def write_parts(*evaluate):
    for k in (1, 2, 3):
        found = call(*evaluate, "--part", f"{k}/3", "--out", f"{k}.json")
        assert (found.exit_code, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.claim("N12.31")
@pytest.mark.parametrize("form", ["table", "csv", "markdown", "latex", "json"])
def test_parts_give_the_report_of_one_run(folder, form):
    whole = call(*EVALUATE, "--format", form)
    write_parts(*EVALUATE)
    for order in (MERGE, (MERGE[0], *MERGE[:0:-1])):
        found = call(*order, "--format", form)
        assert (found.exit_code, found.stdout) == (0, whole.stdout)
        assert found.stderr == whole.stderr
    if form in ("table", "json"):
        choices = "-m", "CND", "bleu-2", "--compare", "half.txt", "model.txt"
        one, merged = (call(*x, *choices, "--format", form) for x in (EVALUATE, MERGE))
        assert (merged.exit_code, merged.stdout) == (0, one.stdout)
        assert not re.search('"CR-1": {|^CR-1', one.stdout, re.M)
    call(*MERGE, "--format", form, "--out", "report", "--html", "page")
    assert Path("report").read_text() == whole.stdout
    assert "half.txt: 32 sentences" in Path("page").read_text()


@pytest.fixture(params=["lines", "parquet", "saved"])
def evaluate(folder, request):
    """A call, with the samples in files or as folders of two files each."""
    if request.param == "lines":
        return EVALUATE
    for name, lines in LINES.items():
        # The references are a dataset in both cases.
        write = saved if request.param == "saved" or name == "real" else parquet
        write(Path(name), [lines[:20], lines[20:]])
    # Plain text beside datasets is read as it is.
    return (
        "evaluate",
        "model",
        "half.txt",
        *("--references", "real", "--column", "text"),
    )


OPTIONS = (
    *("--max-order", "2", "--smoothing", "none", "--empty", "skip"),
    "--draws",
    "2",
)


@pytest.mark.parametrize("options", [(), OPTIONS])
def test_every_way_to_run_gives_the_numbers_of_one(evaluate, options):
    def numbers(*arguments):
        found = call(*arguments, "--json")
        assert found.exit_code == 0, found.stderr
        shown = json.loads(found.stdout)
        methods = shown["methods"].replace(
            ".txt", ""
        )  # it names texts with empty lines
        return [x["metrics"] for x in shown["candidates"]], methods

    expected = numbers(*EVALUATE, *options)
    assert ("distinct_2-2" in expected[0][0]) == bool(options)
    assert numbers(*evaluate, *options) == expected
    assert numbers(*evaluate, *options, "--memory", "81MB") == expected
    assert [*Path("cache/qdtheory").iterdir()] == []
    write_parts(*evaluate, *options)
    assert numbers(*MERGE) == expected


def test_sizes_are_read():
    sizes = {"2GB": 2 * 10**9, "1.5 KiB": 1536, "7T": 7 * 10**12}
    assert {text: _bytes(text) for text in sizes} == sizes


SLOW = """
import os, sys, time
from qdtheory.commands import process
from qdtheory.text import part_files, partial_sums

partial_sums.parts_for = lambda *arguments: 4
write = part_files.write_part

def slow(path, *arguments):
    write(path, *arguments)
    print(path.name, flush=True)
    if len([*path.parent.glob("*.json")]) == int(os.environ["LAST"]):
        time.sleep(60)

part_files.write_part = slow
process.main()
"""


def start(last):
    Path("slow.py").write_text(SLOW)
    return subprocess.Popen(
        [sys.executable, "slow.py", *EVALUATE, "--memory", "1GB"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"LAST": str(last)},
    )


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(folder):
    killed = start(2)
    first = [killed.stdout.readline() for _ in range(2)]
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    again = start(99)
    output, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    lines = output.splitlines(keepends=True)
    assert first + lines[:2] == [f"{k}-of-4.json\n" for k in (1, 2, 3, 4)]
    assert "".join(lines[2:]).rstrip() == call(*EVALUATE).stdout.rstrip()


@pytest.mark.slow
def test_two_runs_of_one_evaluation(folder):
    one = start(1)
    assert one.stdout.readline() == "1-of-4.json\n"
    other = start(99)
    output, errors = other.communicate(timeout=120)
    assert (other.returncode, output) == (1, "")
    assert errors.startswith("qdtheory: --memory: the same evaluation is running")
    one.kill()
    one.communicate()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_told(folder):
    said = refusal(*EVALUATE, "--part", "1/3", "--out", "/dev/full")
    assert said == "/dev/full: No space left on device"


@pytest.mark.filterwarnings("ignore")  # what distributed leaves behind
def test_a_cluster_needs_a_package_and_a_scheduler(folder, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("qdtheory.text.cluster.SECONDS", 0.5)
    call_ = *EVALUATE, "--scheduler", "tcp://127.0.0.1:1"
    assert refusal(*call_).startswith("--scheduler: tcp://127.0.0.1:1: ")
    monkeypatch.setitem(sys.modules, "distributed", None)
    needed = 'a cluster needs distributed: pip install "qdtheory[scale]"'
    assert refusal(*call_) == f"--scheduler: {needed}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_report_of_one_process(folder):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        found = call(*EVALUATE, "--scheduler", cluster.scheduler_address)
    assert found.stdout == call(*EVALUATE).stdout
