"""`qdtheory evaluate`: its numbers are the library's, its errors one line."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import qdtheory as qd
from qdtheory.commands import cli
from qdtheory.text import report

REFERENCES = "a b c d\n\na b\na b c d\n"
CANDIDATES = "a b c d e\nb c d a\na b c d\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("references.txt").write_text(REFERENCES)
    Path("one.txt").write_text(CANDIDATES)
    Path("two [x].gz").write_bytes(gzip.compress(REFERENCES.encode()))
    Path("bad.txt").write_bytes(b"a b\nc \xff\n")
    Path("empty.txt").touch()
    Path("single.txt").write_text("a b c d e f\n")
    Path("short.txt").write_text("a\nb\nc\n")
    Path("nul.txt").write_bytes(b"a b\nc \0 d\n")
    Path("binary").write_bytes(b"\x7fELF\0\0")
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "80"})


def test_json_holds_the_numbers_of_the_library(folder):
    result = call(
        *("evaluate", "one.txt", "two [x].gz", "--references", "references.txt"),
        *("--max-order", "2", "--json"),
    )
    assert result.exit_code == 0
    assert result.stderr == ""
    shown = json.loads(result.stdout)
    assert shown["empty"] == "keep"
    assert shown["references"] == {
        "file": "references.txt",
        "sentences": 4,
        "tokens": 10,
        "empty_lines": 1,
    }
    files = ["one.txt", "two [x].gz"]
    assert [c["file"] for c in shown["candidates"]] == files
    assert [c["empty_lines"] for c in shown["candidates"]] == [0, 1]
    candidates = {name: qd.text.read_corpus(name) for name in files}
    assert [c["sentences"] for c in shown["candidates"]] == [3, 4]
    expected = report.evaluate(candidates, qd.text.read_corpus("references.txt"), 2)
    for entry in shown["candidates"]:
        scores = expected.scores[entry["file"]]
        assert list(entry["metrics"]) == list(expected.metrics)
        for key in ("value", "low", "high", "standard_error"):
            values = [metric[key] for metric in entry["metrics"].values()]
            assert values == getattr(scores, key).tolist()
    assert shown["methods"] == expected.methods
    assert shown["pairs"] == list(expected.pairs)
    assert shown["warnings"] == list(expected.warnings)
    assert len(shown["warnings"]) == 2  # unequal sizes, and sentences of the references


def test_empty_lines_can_be_skipped(folder):
    arguments = "evaluate", "one.txt", "two [x].gz", "--references", "references.txt"
    result = call(*arguments, "--max-order", "2", "--json", "--empty", "skip")
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert shown["empty"] == "skip"
    assert shown["references"]["sentences"] == 3
    assert [c["sentences"] for c in shown["candidates"]] == [3, 3]
    assert [c["empty_lines"] for c in shown["candidates"]] == [0, 1]
    files = {"one.txt": CANDIDATES, "two [x].gz": REFERENCES}
    lines = {name: [*filter(None, text.split("\n"))] for name, text in files.items()}
    expected = report.evaluate(lines, [*filter(None, REFERENCES.split("\n"))], 2)
    for entry in shown["candidates"]:
        values = [metric["value"] for metric in entry["metrics"].values()]
        assert values == expected.scores[entry["file"]].value.tolist()
    # The sizes agree then; one candidate repeats the references.
    (copies,) = shown["warnings"]
    assert "of the sentences of two [x].gz stand in the references" in copies


def test_an_empty_line_of_a_model_costs_bleu(folder):
    Path("silent.txt").write_text(CANDIDATES + "\n\n\n")
    arguments = "evaluate", "silent.txt", "--references", "references.txt", "--json"
    scores = []
    for empty in ("keep", "skip"):
        shown = json.loads(call(*arguments, "--empty", empty).stdout)
        (entry,) = shown["candidates"]
        assert entry["empty_lines"] == 3
        scores.append(entry["metrics"]["BLEU-1"]["value"])
    # By hand 14/15, and three zeros beside the three.
    assert scores == pytest.approx([14 / 30, 14 / 15])


def test_tables(folder):
    result = call(
        *("evaluate", "one.txt", "two [x].gz", "--references", "references.txt"),
        *("--max-order", "2", "--estimator", "plug-in", "--smoothing", "none"),
        *("--empty", "skip"),
    )
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "references references.txt: 3 sentences, 10 tokens, 1 empty lines skipped"
    )
    assert "candidates two [x].gz: 3 sentences" in result.stdout
    rows = [line.replace("│", " ").split() for line in lines if line.startswith("│")]
    values = [{row[0]: float(row[1]) for row in rows[i : i + 14]} for i in (0, 14)]
    # By hand: unigrams 3 3 3 3 1 of 13 against 3 3 2 2 of 10; the second file holds
    # the references.
    assert values[0]["CR-1"] == pytest.approx(30 / 130, rel=1e-4)
    assert values[0]["NRR-1"] == pytest.approx(-37 / 169, rel=1e-4)
    assert values[0]["distinct-1"] == pytest.approx(5 / 13, rel=1e-4)
    # "e" is in no reference: precisions 4/5, 1 and 1.
    assert values[0]["BLEU-1"] == pytest.approx(14 / 15, rel=1e-4)
    assert [values[1][f"CND-{n}"] for n in (1, 2)] == [0, 0]
    for name in ("BLEU", "MS-Jaccard"):
        assert [values[1][f"{name}-{n}"] for n in (1, 2)] == [1, 1]
    assert "Higher is better, but lower for Self-BLEU and CND." in lines
    assert "With fewer than 20 sentences the intervals are rough." in lines
    assert "divergence-compatible" in result.stdout
    assert f"qdtheory {qd.__version__}" in lines[-1]


def test_what_is_rounding_only_is_shown_as_zero(folder):
    sentences = [
        *("a cat sat on the mat", "the dog ran"),
        *("a cat ran on the mat", "the dog sat on a mat"),
    ]
    Path("rounded.txt").write_text("\n".join(sentences))
    # No 4-gram is in two sentences: NRR-4 is 0, and -1.4e-17 as it is computed.
    computed = qd.text.negative_repetition_rate(sentences, 4, "pairs")
    assert 0 < abs(computed) < 1e-15
    result = call("evaluate", "rounded.txt", "--references", "references.txt")
    assert ["NRR-4", "0", "0", "0"] in [
        line.replace("│", " ").split() for line in result.stdout.splitlines()
    ]


def test_enough_sentences_get_no_word_on_rough_intervals(folder):
    Path("enough.txt").write_text(REFERENCES * 7)
    result = call("evaluate", "enough.txt", "--references", "references.txt")
    assert result.exit_code == 0
    assert "rough" not in result.stdout


def test_sets_of_different_size_are_warned_about(folder):
    Path("four.txt").write_text(CANDIDATES + "c d\n")
    arguments = ("evaluate", "one.txt", "four.txt", "--references", "references.txt")
    result = call(*arguments, "--max-order", "1")
    assert result.exit_code == 0
    assert "compare samples of one size" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.txt"], "none.txt: No such file or directory"),
        (["one.txt", "bad.txt"], "bad.txt, line 2: byte 0xff at position 3 is not UTF"),
        (["empty.txt"], "empty.txt, line 1: the file is empty"),
        (["binary"], "binary, line 1: a NUL byte; expected a text file"),
        (["."], ".: Is a directory"),
        (["one.txt", "--max-order", "5"], "references.txt: no sentence has 5 tokens"),
        (["one.txt", "--max-order", "0"], "Invalid value for '--max-order'"),
        (["one.txt", "one.txt"], "one.txt: given more than once"),
        (["single.txt"], "single.txt: Self-BLEU compares sentences with each other"),
        (["short.txt"], "short.txt: no sentence has 2 tokens: the longest has 1"),
        (["nul.txt"], "nul.txt, line 2: a NUL byte"),
        (["one.txt", "--smoothing", "add"], "Invalid value for '--smoothing'"),
    ],
)
def test_bad_input_gets_one_line(folder, arguments, message):
    result = call("evaluate", *arguments, "--references", "references.txt")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"qdtheory: {message}")
    assert result.stderr.count("\n") == 1


def test_bad_references(folder):
    result = call("evaluate", "one.txt", "--references", "none.txt")
    assert result.exit_code == 1
    assert result.stderr == "qdtheory: none.txt: No such file or directory\n"


@pytest.mark.slow
def test_windows_line_ends_and_one_very_long_line(folder):
    Path("windows.txt").write_bytes(CANDIDATES.replace("\n", "\r\n").encode())
    Path("long.txt").write_text("a b c d " * 250_000 + "\na b c d\na b\n")
    result = call(
        *("evaluate", "one.txt", "windows.txt", "long.txt", "--json"),
        *("--references", "references.txt", "--max-order", "2"),
    )
    assert result.exit_code == 0
    plain, windows, long = json.loads(result.stdout)["candidates"]
    assert plain["metrics"] == windows["metrics"]
    assert long["tokens"] == 1_000_006


def test_installed_command(folder):
    command = Path(sys.executable).with_name("qdtheory")
    done = subprocess.run(
        [command, "evaluate", "bad.txt", "--references", "references.txt"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_json_lines_and_tables_are_read_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["a b c", "b c d", "c d e", "d e, f"]
    Path("t.txt").write_text("\n".join(lines))
    records = [json.dumps({"id": i, "text": line}) for i, line in enumerate(lines)]
    Path("t.jsonl").write_text("\n".join(records))
    Path("t.csv").write_text("text,id\n" + "".join(f'"{x}",1\n' for x in lines))

    def metrics(name, *options):
        call = ["evaluate", name, "--references", name, "--max-order", "2", "--json"]
        answer = CliRunner().invoke(cli.app, [*call, *options])
        assert answer.exit_code == 0, answer.stderr
        return json.loads(answer.stdout)["candidates"][0]["metrics"]

    plain = metrics("t.txt")
    assert metrics("t.jsonl", "--field", "text") == plain
    assert metrics("t.csv", "--column", "text") == plain
    refused = CliRunner().invoke(
        cli.app, ["evaluate", "t.csv", "--references", "t.txt"]
    )
    assert refused.exit_code == 1
    assert "--column NAME" in refused.stderr
