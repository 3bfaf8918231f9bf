"""`qdtheory evaluate`: its numbers are the library's, its errors one line."""

import csv
import gzip
import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import qdtheory as qd
from qdtheory.commands import cli, evaluate
from qdtheory.text import evaluation, files
from qdtheory.world.records import plain

zstd = files._zstd("tests")  # of Python 3.14, or its backport
REFERENCES = "a b c d\n\na b\na b c d\n"
CANDIDATES = "a b c d e\nb c d a\na b c d\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("references.txt").write_text(REFERENCES)
    Path("one.txt").write_text(CANDIDATES)
    Path("two [x].gz").write_bytes(gzip.compress(REFERENCES.encode()))
    Path("bad.txt").write_bytes(b"a b\nc \xff\n")
    Path("single.txt").write_text("a b c d e f\n")
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "80"})


@pytest.mark.parametrize("empty", ["keep", "skip"])
def test_json_holds_the_numbers_of_the_library(folder, empty):
    files = ["one.txt", "two [x].gz"]
    options = "--max-order", "2", "--json", "--empty", empty
    result = call("evaluate", *files, "--references", "references.txt", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    shown = json.loads(result.stdout)
    sizes = {"sentences": 4 - (empty == "skip"), "tokens": 10, "empty_lines": 1}
    assert shown["references"] == {"file": "references.txt"} | sizes
    assert shown["empty"] == empty
    one, two = shown["candidates"]
    assert [one["file"], two["file"]] == files
    assert [one["empty_lines"], two["empty_lines"]] == [0, 1]
    assert [one["sentences"], two["sentences"]] == [3, sizes["sentences"]]
    expected = evaluation.evaluate(files, "references.txt", 2, empty=empty)
    for entry in shown["candidates"]:
        scores = expected.scores[entry["file"]]
        assert list(entry["metrics"]) == list(expected.metrics)
        for key in ("value", "low", "high", "standard_error"):
            values = [metric[key] for metric in entry["metrics"].values()]
            assert values == plain(getattr(scores, key))
    for key in ("methods", "pairs", "warnings"):
        assert shown[key] == plain(getattr(expected, key))


def test_an_empty_line_of_a_model_costs_bleu(folder):
    Path("silent.txt").write_text(CANDIDATES + "\n\n\n")
    shown = json.loads(
        call(
            "evaluate", "silent.txt", "--references", "references.txt", "--json"
        ).stdout
    )
    # By hand 14/15, and three zeros beside the three.
    metrics = shown["candidates"][0]["metrics"]
    assert metrics["BLEU-1"]["value"] == pytest.approx(14 / 30)


def test_tables(folder):
    arguments = (
        *("evaluate", "one.txt", "two [x].gz", "--references", "references.txt"),
        *("--max-order", "2", "--estimator", "plug-in", "--smoothing", "none"),
        *("--empty", "skip"),
    )
    result = call(*arguments)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "references references.txt: 3 sentences, 10 tokens, 1 empty lines skipped"
    )
    assert "candidates two [x].gz: 3 sentences" in result.stdout
    rows = [line.split() for line in lines]
    (head,) = (i for i, row in enumerate(rows) if row == ["one.txt", "two", "[x].gz"])
    cells = [" ".join(row[1:]).split(" ±") for row in rows[head + 1 : head + 15]]
    assert [len(cell) for cell in cells] == [3] * 14
    table = csv.DictReader(io.StringIO(call(*arguments, "--format", "csv").stdout))
    values = [{}, {}]
    for row in table:
        values[row["candidate"] != "one.txt"][row["metric"]] = float(row["value"])
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
    assert "Higher is better, but lower for Self-BLEU and CND; ±: the" in result.stdout
    # Three sentences have no interval, so that none is the best.
    assert {row[2] for row in rows[head + 1 : head + 15]} == {"±?"}
    assert "divergence-compatible" in result.stdout
    assert f"qdtheory {qd.__version__}" in lines[-1]
    rough = "With fewer than 20 sentences the intervals are rough."
    assert rough in lines
    Path("enough.txt").write_text(REFERENCES * 7)
    result = call("evaluate", "enough.txt", "--references", "references.txt")
    assert rough not in result.stdout


def test_minus_zero_is_shown_as_zero(folder):
    sentences = [
        *("a cat sat on the mat", "the dog ran"),
        *("a cat ran on the mat", "the dog sat on a mat"),
    ]
    Path("rounded.txt").write_text("\n".join(sentences))
    # No 4-gram is in two sentences.
    assert qd.text.negative_repetition_rate(sentences, 4, "pairs") == 0
    result = call("evaluate", "rounded.txt", "--references", "references.txt")
    lines = result.stdout.splitlines()
    assert ["NRR-4", "0", "±?"] in [line.split() for line in lines]


METRICS = ("evaluate", "one.txt", "two [x].gz", "--references", "references.txt")
ORDERS = ("--max-order", "2")


@pytest.mark.parametrize("columns", ["20", "40", "80", "200"])
def test_no_number_is_cut_in_a_table_of_any_width(folder, columns):
    for name in "abcdefg":
        Path(f"{name}.txt").write_text(CANDIDATES)
    files = [f"{name}.txt" for name in "abcdefg"]
    result = CliRunner().invoke(
        cli.app,
        ["evaluate", *files, "--references", "references.txt", *ORDERS],
        env={"COLUMNS": columns},
    )
    assert result.exit_code == 0
    table = result.stdout.split("\n\nHigher")[0].split("\n\n", 1)[1]
    assert max(map(len, table.splitlines())) <= int(columns)
    expected = evaluation.evaluate(
        {name: qd.text.read_corpus(name) for name in files},
        qd.text.read_corpus("references.txt"),
        2,
    )
    cells = re.findall(r"(\S+)\s+±(\S+)", table)
    assert len(cells) == 7 * len(expected.metrics)
    whole = expected.to_text(10_000).split("\n\nHigher")[0]
    assert sorted(cells) == sorted(re.findall(r"(\S+)\s+±(\S+)", whole))


def test_formats_are_those_of_the_report(folder):
    files = ["one.txt", "two [x].gz"]
    expected = evaluation.evaluate(
        {name: qd.text.read_corpus(name) for name in files},
        qd.text.read_corpus("references.txt"),
        2,
    )
    for form in ("csv", "markdown", "latex"):
        result = call(*METRICS, *ORDERS, "--format", form)
        assert result.exit_code == 0
        assert result.stdout == getattr(expected, f"to_{form}")() + "\n"
        told = [f"qdtheory: {warning}" for warning in expected.warnings]
        assert result.stderr.splitlines() == told
    plain = call(*METRICS, *ORDERS, "--json")
    assert plain.stdout == call(*METRICS, *ORDERS, "--format", "json").stdout
    assert plain.stdout == call(*METRICS, *ORDERS, "--json", "--format", "json").stdout
    assert plain.stderr == ""
    table = call(*METRICS, *ORDERS, "--format", "table")
    assert table.stdout == call(*METRICS, *ORDERS).stdout
    assert expected.to_text(80) in table.stdout


def test_folders_are_left_out_of_a_table_if_the_names_differ(folder):
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "model.txt").write_text(CANDIDATES)
    rest = "--references", "references.txt", *ORDERS
    result = call("evaluate", "one.txt", "a/model.txt", *rest)
    assert re.search(r"^ +one\.txt +model\.txt$", result.stdout, re.M)
    result = call("evaluate", "b/model.txt", "a/model.txt", *rest)
    assert re.search(r"^ +b/model\.txt +a/model\.txt$", result.stdout, re.M)
    shown = call("evaluate", "one.txt", "a/model.txt", *rest, "--format", "csv").stdout
    assert "a/model.txt,BLEU-1," in shown


def test_output_goes_to_a_file(folder):
    shown = call(*METRICS, *ORDERS)
    Path("old.txt").write_text("old")
    Path("old.txt").chmod(0o640)
    Path("link.txt").symlink_to("old.txt")
    before = {*os.listdir()}
    result = call(*METRICS, *ORDERS, "--output", "link.txt")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert Path("old.txt").read_text() == shown.stdout
    assert Path("link.txt").is_symlink()
    assert Path("old.txt").stat().st_mode & 0o777 == 0o640
    call(*METRICS, *ORDERS, "--output", "new.json", "--json")
    assert json.loads(Path("new.json").read_text())["methods"]
    assert {*os.listdir()} == before | {"new.json"}
    assert call(*METRICS, *ORDERS, "--output", "/dev/null").exit_code == 0
    assert not Path("/dev/null").is_file()


def test_planes_and_page_go_to_files_beside_the_table(folder):
    shown = call(*METRICS, *ORDERS)
    result = call(*METRICS, *ORDERS, "--plot", "x.SVG", "--html", "x.html")
    assert (result.exit_code, result.stdout) == (0, shown.stdout)
    assert "<svg" in Path("x.SVG").read_text()
    page = Path("x.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<svg") == 1
    assert "one.txt: 3 sentences, 0 empty" in page
    assert call(*METRICS, *ORDERS, "--plot", "x.png").exit_code == 0
    assert Path("x.png").read_bytes()[:4] == b"\x89PNG"


def test_paired_metrics_on_request(folder):
    options = *METRICS[:2], "--references", "one.txt", "--max-order", "2", "--json"
    found = json.loads(call(*options, "--paired").stdout)
    metrics = found["candidates"][0]["metrics"]
    assert [*metrics][-4:] == ["paired BLEU-1", "paired BLEU-2", "ROUGE-1", "ROUGE-2"]
    result = call(*options, "--paired", "--memory", "1GB")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "qdtheory: --paired: needs all texts at once, in memory\n"


def test_bhattacharyya_from_files_of_log_probabilities(folder):
    rng = np.random.default_rng(0)
    real, own = -rng.random((2, 4)), -rng.random((2, 3))
    arrays = dict(zip(evaluate.LOGS, (*real, *own)))
    np.savez("x.npz", **arrays)
    options = *METRICS[:2], "--references", "references.txt", *ORDERS, "--json"
    found = json.loads(call(*options, "--log-probabilities", "x.npz").stdout)
    ours = found["candidates"][0]["metrics"]["Bhattacharyya"]
    direct = qd.text.estimate_bhattacharyya(*real, *own)
    assert ours["value"] == direct.value
    assert (ours["low"], ours["high"]) == (direct.low, direct.high)


def test_without_matplotlib_a_figure_is_refused_before_the_work(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = call(*METRICS, *ORDERS, "--html", "x.html")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("qdtheory: --plot and --html need")
    assert "qdtheory[plot]" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one.txt", "--output", "one.txt"], "--output: one.txt is a file that is"),
        (["one.txt", "--plot", "old.txt", "--html", "old.txt"], "--plot and --html na"),
        (["bad.txt", "--output", "old.txt"], "bad.txt, line 2: byte 0xff"),
        (["single.txt", "--output", "old.txt"], "single.txt: Self-BLEU compares"),
    ],
)
def test_a_run_that_fails_leaves_files_as_they_were(folder, arguments, message):
    Path("old.txt").write_text("old")
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    result = call("evaluate", *arguments, "--references", "references.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"qdtheory: {message}")
    assert before == {name: Path(name).read_bytes() for name in os.listdir()}


def test_a_file_that_cannot_be_finished_leaves_the_old_one(folder, monkeypatch):
    Path("old.txt").write_text("old")

    def full(self, *arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    before = {*os.listdir()}
    result = call(*METRICS, *ORDERS, "--output", "old.txt")
    assert result.exit_code == 1
    assert result.stderr.startswith("qdtheory: --output: ")
    assert result.stderr.endswith("old.txt: No space left on device\n")
    assert Path("old.txt").read_text() == "old"
    assert {*os.listdir()} == before


def test_a_folder_without_permission_is_told_before_the_work(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    result = call(*METRICS, *ORDERS, "--output", "new.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("qdtheory: --output: new.txt: no permission to")
    assert not Path("new.txt").exists()


LINES = ["The cat sat.", "the cat ran, too.", "A dog ran.", "a cat sat, too."] * 2


def evaluated(name, *options, references="t.txt", **settings):
    """Metrics of a file against references, and the line for a paper."""
    call = ["evaluate", name, "--references", references, "--max-order", "2", "--json"]
    answer = CliRunner().invoke(cli.app, [*call, *options], **settings)
    assert answer.exit_code == 0, answer.stderr
    shown = json.loads(answer.stdout)
    return shown["candidates"][0]["metrics"], shown["methods"]


def test_files_of_every_kind_and_standard_input_give_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(LINES).encode()
    Path("t.txt").write_bytes(text)
    Path("t.gz").write_bytes(gzip.compress(text))
    Path("t.zst").write_bytes(zstd.compress(text))
    records = [json.dumps({"id": 1, "text": line}) for line in LINES]
    Path("t.jsonl").write_text("\n".join(records))
    Path("t.csv").write_text("text,id\n" + "".join(f'"{x}",1\n' for x in LINES))
    pyarrow.parquet.write_table(pyarrow.table({"text": LINES}), "t.parquet")
    expected = evaluated("t.txt")
    assert evaluated("t.gz") == evaluated("t.zst") == expected
    assert evaluated("t.jsonl", "--field", "text") == expected
    column = "--column", "text"
    assert evaluated("t.csv", *column) == expected
    assert evaluated("t.parquet", *column, references="t.parquet") == expected
    for content in (text, gzip.compress(text)):
        assert evaluated("-", input=content) == expected


@pytest.mark.parametrize(
    ("options", "tokenizer", "tokens"),
    [
        ([], "white space", ["The", "cat", "sat."]),
        (["--tokenizer", "13a"], "13a", ["The", "cat", "sat", "."]),
        (["--tokenizer", "characters"], "characters", [*"Thecatsat."]),
        (["--lowercase"], "white space, lower-cased", ["the", "cat", "sat."]),
    ],
)
def test_tokenizers(tmp_path, monkeypatch, options, tokenizer, tokens):
    monkeypatch.chdir(tmp_path)
    Path("t.txt").write_text("\n".join(LINES))
    metrics, methods = evaluated("t.txt", *options)
    assert f"; tokens by {tokenizer};" in methods
    settings = {"tokenizer": options[1]} if len(options) > 1 else {}
    settings["lowercase"] = options == ["--lowercase"]
    assert list(qd.text.as_corpus(LINES, **settings)[0]) == tokens
    found = evaluation.evaluate({"t.txt": LINES}, LINES, 2, **settings)
    assert found.methods == methods
    values = found.scores["t.txt"].value.tolist()
    assert [metric["value"] for metric in metrics.values()] == values


def test_what_cannot_be_printed_of_a_name_is_quoted(folder):
    Path("a\nb").write_text("a\n" * 3)
    result = call("evaluate", "a\nb", "--references", "references.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("qdtheory: 'a\\nb': no sentence has 4 tokens: the")
    assert result.stderr.count("\n") == 1


JAPANESE = ["猫がマットの上に座った。", "犬が公園を走った。", "猫と犬が遊んだ。"]


def test_text_without_spaces_is_warned_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.txt").write_text("\n".join(JAPANESE * 3))
    arguments = "evaluate", "t.txt", "--references", "t.txt", "--max-order"
    result = call(*arguments, "1")
    assert result.exit_code == 0
    hint = "split text without spaces between words with --tokenizer characters"
    for name in ("t.txt", "the references"):
        warning = f"nearly every sentence of {name} is one token; {hint}"
        assert warning in result.stdout
    assert hint not in call(*arguments, "4", "--tokenizer", "characters").stdout


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_texts_that_seem_to_be_something_else_are_told_in_a_line_each(form):
    lines = ["the cat sat .", "a dog ran - on", "the bird sang - ."] * 3
    Path("real.txt").write_text("\n".join(lines))
    Path("loud.txt").write_text("\n".join(f'"{line.upper()}"' for line in lines))
    options = "--references", "real.txt", "--max-order", "2", "--format", form
    answer = call("evaluate", "loud.txt", *options)
    assert answer.exit_code == 0
    quoted = "100% of the sentences of loud.txt are JSON strings, whose quotes count"
    assert quoted in answer.stdout + answer.stderr
    # Two more lines say which metrics have no interval; elsewhere the report has all.
    assert answer.stderr.count("\n") == 4 * (form == "csv")
    assert "(--lowercase)" in answer.stdout + answer.stderr
    better = call("evaluate", "loud.txt", *options, "--lowercase")
    assert "capitals" not in better.stdout + better.stderr
