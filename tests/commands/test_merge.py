"""`qdtheory merge` and the parts that `evaluate` writes, and how each can fail."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from models import MODEL, REAL
from typer.testing import CliRunner

from qdtheory.commands import cli
from qdtheory.commands.evaluate import _bytes

EVALUATE = "evaluate", "model.txt", "half.txt", "--references", "real.txt"
MERGE = "merge", "1.json", "2.json", "3.json"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, texts in {"model": MODEL, "half": MODEL[:30], "real": REAL}.items():
        lines = [" ".join(map(str, text)) for text in texts]
        Path(f"{name}.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "80"})


def parts(*options, out="", num_parts=3):
    for k in range(1, num_parts + 1):
        some = "--part", f"{k}/{num_parts}", "--out", f"{out}{k}.json"
        found = call(*EVALUATE, *options, *some)
        assert (found.exit_code, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.claim("N12.31")
@pytest.mark.parametrize("form", ["table", "csv", "markdown", "latex", "json"])
def test_parts_give_the_report_of_one_run(folder, form):
    whole = call(*EVALUATE, "--format", form)
    parts()
    for order in (MERGE, (MERGE[0], *MERGE[:0:-1])):
        found = call(*order, "--format", form)
        assert (found.exit_code, found.stdout) == (0, whole.stdout)
        assert found.stderr == whole.stderr
    call(*MERGE, "--format", form, "--out", "report")
    assert Path("report").read_text() == whole.stdout


def test_options_reach_the_parts(folder):
    options = "--max-order", "2", "--smoothing", "none", "--empty", "skip"
    options = *options, "--draws", "2"
    Path("half.txt").write_text("\n\n1 2 3\n2 1\n1 2\n")
    whole = call(*EVALUATE, *options, "--json")
    assert "distinct_2-2" in whole.stdout
    parts(*options)
    assert call(*MERGE, "--json").stdout == whole.stdout
    assert call(*EVALUATE, *options, "--memory", "1GB", "--json").stdout == whole.stdout


def test_memory_changes_nothing(folder):
    whole = call(*EVALUATE)
    found = call(*EVALUATE, "--memory", "81MB")
    assert (found.exit_code, found.stdout) == (0, whole.stdout)
    assert [*Path("cache/qdtheory").iterdir()] == []


@pytest.fixture(params=["parquet", "saved"])
def folders(folder, request):
    """The same samples as folders, the references as a dataset in both cases."""
    for name in ("model", "half", "real"):
        lines = Path(f"{name}.txt").read_text().splitlines()
        Path(name).mkdir()
        saved = request.param == "saved" or name == "real"
        files = []
        for k, some in enumerate((lines[:20], lines[20:])):
            table = pa.table({"id": range(len(some)), "text": some})
            if not saved:
                pyarrow.parquet.write_table(table, f"{name}/part-{k}.parquet")
                continue
            files.append({"filename": f"data-{k}.arrow"})
            with pa.ipc.new_stream(f"{name}/data-{k}.arrow", table.schema) as stream:
                stream.write_table(table)
        if saved:
            Path(name, "state.json").write_text(json.dumps({"_data_files": files}))
    return folder


FOLDERS = "evaluate", "model", "half", "--references", "real", "--column", "text"


def test_folders_are_samples_in_every_way_to_run(folders):
    def numbers(*call_):
        found = call(*call_)
        assert found.exit_code == 0, found.stderr
        shown = json.loads(found.stdout)
        return [x["metrics"] for x in shown["candidates"]], shown["methods"]

    expected = numbers(*EVALUATE, "--json")
    assert numbers(*FOLDERS, "--json") == expected
    assert numbers(*FOLDERS, "--json", "--memory", "81MB") == expected
    for k in (1, 2, 3):
        some = "--part", f"{k}/3", "--out", f"{k}.json"
        assert call(*FOLDERS, *some).exit_code == 0
    assert numbers(*MERGE, "--json") == expected
    # Plain text beside a dataset is read as it is.
    assert numbers("evaluate", "model.txt", *FOLDERS[2:], "--json")[0] == expected[0]


@pytest.mark.slow
def test_pictures_and_pages_of_folders_and_parts(folders):
    some = "--plot", "x.svg", "--html", "x.html"
    for k in (1, 2, 3):
        call(*FOLDERS, "--part", f"{k}/3", "--out", f"{k}.json")
    for run in (FOLDERS, (*FOLDERS, "--memory", "1GB"), MERGE):
        assert call(*run, *some).exit_code == 0
        assert "<svg" in Path("x.svg").read_text()
        page = Path("x.html").read_text()
        assert "half: 30 sentences" in page
        assert "model: 60 sentences" in page
        Path("x.svg").unlink()
        Path("x.html").unlink()


def test_sizes_are_read():
    assert _bytes("2GB") == 2 * 10**9
    assert _bytes("1.5 KiB") == 1536
    assert _bytes("7T") == 7 * 10**12


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
    killed.wait()
    killed.stdout.close()
    killed.stderr.close()
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
    found = call(*EVALUATE, "--part", "1/3", "--out", "/dev/full")
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr == "qdtheory: /dev/full: No space left on device\n"


# -- bad input -----------------------------------------------------------------------


def test_a_cluster_needs_a_package_and_an_address(folder, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "distributed", None)
        found = call(*EVALUATE, "--scheduler", "tcp://127.0.0.1:1")
    needed = '--scheduler: a cluster needs distributed: pip install "qdtheory[scale]"'
    assert (found.exit_code, found.stderr) == (1, f"qdtheory: {needed}\n")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "x://y"])
def test_an_address_where_nothing_answers(folder, address):
    pytest.importorskip("distributed")
    command = [sys.executable, "-m", "qdtheory", *EVALUATE, "--scheduler", address]
    found = subprocess.run(command, capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.startswith(f"qdtheory: --scheduler: {address}: ")
    assert found.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_report_of_one_process(folder):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        found = call(*EVALUATE, "--scheduler", cluster.scheduler_address)
    assert found.stdout == call(*EVALUATE).stdout


def test_bad_parts(folder):
    parts()
    Path("cut.json").write_bytes(Path("3.json").read_bytes()[:-100])
    for bad, message in {
        ("1.json",): "of 3 parts these are missing: 2, 3",
        (
            *MERGE[1:],
            "2.json",
        ): "2.json: part 2 of 3, as is 2.json; give each part once",
        (
            *MERGE[1:3],
            "cut.json",
        ): "cut.json: cut short, or changed; write this part ag",
    }.items():
        found = call("merge", *bad)
        assert (found.exit_code, found.stdout) == (1, "")
        assert found.stderr.startswith(f"qdtheory: {message}")
        assert found.stderr.count("\n") == 1
