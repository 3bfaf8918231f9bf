"""`qdtheory evaluate`: its numbers are the library's, its errors one line."""

import csv
import gzip
import io
import json
import os
import re
import sys
from pathlib import Path

import pytest
from calls import call, refusal

import qdtheory as qd
from qdtheory.support.records import plain
from qdtheory.text import evaluation, files

zstd = files._zstd("tests")  # of Python 3.14, or its backport
REFERENCES = "a b c d\n\na b\na b c d\n"
CANDIDATES = "a b c d e\nb c d a\na b c d\n"
REAL = "--references", "references.txt", "--max-order", "2"
FILES = "one.txt", "two [x].gz"
METRICS = "evaluate", *FILES, *REAL


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("references.txt").write_text(REFERENCES)
    Path("one.txt").write_text(CANDIDATES)
    Path("two [x].gz").write_bytes(gzip.compress(REFERENCES.encode()))
    Path("bad.txt").write_bytes(b"a b\nc \xff\n")
    Path("single.txt").write_text("a b c d e f\n")
    return tmp_path


@pytest.mark.parametrize("empty", ["keep", "skip"])
def test_json_holds_the_numbers_of_the_library(folder, empty):
    result = call(*METRICS, "--json", "--empty", empty)
    assert (result.exit_code, result.stderr) == (0, "")
    shown = json.loads(result.stdout)
    sizes = {"sentences": 4 - (empty == "skip"), "tokens": 10, "empty_lines": 1}
    assert shown["references"] == {"file": "references.txt"} | sizes
    assert shown["empty"] == empty
    one, two = shown["candidates"]
    assert (one["file"], two["file"]) == FILES
    assert [one["empty_lines"], two["empty_lines"]] == [0, 1]
    assert [one["sentences"], two["sentences"]] == [3, sizes["sentences"]]
    expected = evaluation.evaluate(FILES, "references.txt", 2, empty=empty)
    for entry in (one, two):
        assert entry["metrics"] == plain(expected[entry["file"]])
        assert list(entry["metrics"]) == list(expected.metrics)
    for key in ("methods", "signature", "conclusions", "warnings"):
        assert shown[key] == plain(getattr(expected, key))


def test_tables(folder):
    arguments = *METRICS, "--estimator", "plug-in", "--smoothing", "none"
    arguments = *arguments, "--empty", "skip"
    lines = call(*arguments).stdout.splitlines()
    assert lines[0] == (
        "references references.txt: 3 sentences, 10 tokens, 1 empty lines skipped"
    )
    assert lines[2].startswith("candidates two [x].gz: 3 sentences")
    rows = [line.split() for line in lines]
    (head,) = (i for i, row in enumerate(rows) if row == ["one.txt", "two", "[x].gz"])
    # Three sentences have no interval, so that none is the best.
    assert {row[2] for row in rows[head + 1 : head + 15]} == {"±?"}
    assert f"qdtheory {qd.__version__}" in " ".join(lines[-5:-1])
    assert "|smooth:none|est:plug-in|empty:skip|" in lines[-1]
    rough = "With fewer than 20 sentences the intervals are rough."
    assert rough in lines
    table = csv.DictReader(io.StringIO(call(*arguments, "--format", "csv").stdout))
    values = [{}, {}]
    for row in table:
        values[row["candidate"] != "one.txt"][row["metric"]] = float(row["value"])
    # By hand: unigrams 3 3 3 3 1 of 13 against 3 3 2 2 of 10, "e" in no reference; the
    # second file holds the references.
    by_hand = {"CR-1": 30 / 130, "NRR-1": -37 / 169, "distinct-1": 5 / 13}
    by_hand |= {"BLEU-1": 14 / 15}
    assert {name: values[0][name] for name in by_hand} == pytest.approx(by_hand)
    assert [values[1][f"{name}-2"] for name in ("CND", "BLEU")] == [0, 1]
    Path("enough.txt").write_text(REFERENCES * 7)
    assert rough not in call("evaluate", "enough.txt", *REAL).stdout


def test_formats_are_those_of_the_report(folder):
    expected = evaluation.evaluate(FILES, "references.txt", 2)
    for form in ("csv", "markdown", "latex"):
        result = call(*METRICS, "--format", form)
        assert result.stdout == getattr(expected, f"to_{form}")() + "\n"
        told = [f"qdtheory: {warning}" for warning in expected.warnings]
        assert result.stderr.splitlines() == told
    found = call(*METRICS, "--json")
    assert found.stdout == call(*METRICS, "--format", "json").stdout
    assert found.stdout == call(*METRICS, "--json", "--format", "json").stdout
    assert found.stderr == ""
    assert call(*METRICS, "--format", "table").stdout == call(*METRICS).stdout
    for columns in (20, 40, 80, 200):
        assert expected.to_text(columns) in call(*METRICS, columns=columns).stdout


def test_folders_are_left_out_of_a_table_if_the_names_differ(folder):
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "model.txt").write_text(CANDIDATES)
    shown = call("evaluate", "one.txt", "a/model.txt", *REAL).stdout
    assert re.search(r"^ +one\.txt +model\.txt$", shown, re.M)
    shown = call("evaluate", "b/model.txt", "a/model.txt", *REAL).stdout
    assert re.search(r"^ +b/model\.txt +a/model\.txt$", shown, re.M)
    shown = call("evaluate", "one.txt", "a/model.txt", *REAL, "--format", "csv").stdout
    assert "a/model.txt,BLEU-1," in shown


# --- files that are written -------------------------------------------------------


def test_output_goes_to_a_file(folder):
    shown = call(*METRICS)
    Path("old.txt").write_text("old")
    Path("old.txt").chmod(0o640)
    Path("link.txt").symlink_to("old.txt")
    before = {*os.listdir()}
    result = call(*METRICS, "--output", "link.txt")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert Path("old.txt").read_text() == shown.stdout
    assert Path("link.txt").is_symlink()
    assert Path("old.txt").stat().st_mode & 0o777 == 0o640
    call(*METRICS, "--output", "new.json", "--json")
    assert json.loads(Path("new.json").read_text())["methods"]
    assert {*os.listdir()} == before | {"new.json"}
    assert call(*METRICS, "--output", "/dev/null").exit_code == 0
    assert not Path("/dev/null").is_file()


def test_planes_and_page_go_to_files_beside_the_table(folder):
    shown = call(*METRICS)
    result = call(*METRICS, "--plot", "x.SVG", "--html", "x.html")
    assert (result.exit_code, result.stdout) == (0, shown.stdout)
    assert "<svg" in Path("x.SVG").read_text()
    page = Path("x.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<svg") == 1
    assert "one.txt: 3 sentences, 0 empty" in page
    assert call(*METRICS, "--plot", "x.png").exit_code == 0
    assert Path("x.png").read_bytes()[:4] == b"\x89PNG"


def test_without_matplotlib_a_figure_is_refused_before_the_work(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = refusal(*METRICS, "--html", "x.html")
    assert said.startswith("--plot and --html need")
    assert "qdtheory[plot]" in said


def full(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("arguments", "message", "patch"),
    [
        (["one.txt", "--output", "one.txt"], "--output: one.txt is a file that is", ()),
        (["bad.txt", "--output", "old.txt"], "bad.txt, line 2: byte 0xff", ()),
        (["single.txt", "--output", "old.txt"], "single.txt: Self-BLEU compares", ()),
        (
            ["one.txt", "--output", "new.txt"],
            "--output: new.txt: no permission to write to ",
            (os, "access", lambda path, mode: mode != os.W_OK),
        ),
        (
            ["one.txt", "--output", "old.txt"],
            r"--output: \S+/old.txt: No space left on device",
            (Path, "replace", full),
        ),
    ],
)
def test_a_run_that_fails_leaves_files_as_they_were(
    folder, monkeypatch, arguments, message, patch
):
    Path("old.txt").write_text("old")
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    with monkeypatch.context() as patched:
        if patch:
            patched.setattr(*patch)
        assert re.match(message, refusal("evaluate", *arguments, *REAL))
    assert before == {name: Path(name).read_bytes() for name in os.listdir()}


# --- what is read, and how --------------------------------------------------------

LINES = ["The cat sat.", "the cat ran, too.", "A dog ran.", "a cat sat, too."] * 2


def evaluated(name, *options, references="t.txt", **settings):
    """Metrics of a file against references, and the line for a paper."""
    texts = "evaluate", name, "--references", references, "--max-order", "2"
    answer = call(*texts, "--json", *options, **settings)
    assert answer.exit_code == 0, answer.stderr
    shown = json.loads(answer.stdout)
    return shown["candidates"][0]["metrics"], shown["methods"]


def test_standard_input_gives_the_numbers_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(LINES).encode()
    Path("t.txt").write_bytes(text)
    for content in (text, gzip.compress(text), zstd.compress(text)):
        assert evaluated("-", input=content) == evaluated("t.txt")


@pytest.mark.parametrize(
    ("options", "tokenizer", "settings"),
    [
        ([], "white space", {}),
        (["--tokenizer", "13a"], "13a", {"tokenizer": "13a"}),
        (["--tokenizer", "characters"], "characters", {"tokenizer": "characters"}),
        (["--lowercase"], "white space, lower-cased", {"lowercase": True}),
    ],
)
def test_tokenizers(tmp_path, monkeypatch, options, tokenizer, settings):
    monkeypatch.chdir(tmp_path)
    Path("t.txt").write_text("\n".join(LINES))
    metrics, methods = evaluated("t.txt", *options)
    assert f"; tokens by {tokenizer};" in methods
    found = evaluation.evaluate({"t.txt": LINES}, LINES, 2, **settings)
    assert found.methods == methods
    values = found.scores["t.txt"].value.tolist()
    assert [metric["value"] for metric in metrics.values()] == values


def test_what_cannot_be_printed_of_a_name_is_quoted(folder):
    Path("a\nb").write_text("a\n" * 3)
    said = refusal("evaluate", "a\nb", *REAL)
    assert said.startswith("'a\\nb': no sentence has 2 tokens: the")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_texts_that_seem_to_be_something_else_are_told_in_a_line_each(form):
    lines = ["the cat sat .", "a dog ran - on", "the bird sang - ."] * 3
    Path("real.txt").write_text("\n".join(lines))
    Path("loud.txt").write_text("\n".join(f"'{line.upper()}'" for line in lines))
    options = "--references", "real.txt", "--max-order", "2", "--format", form
    answer = call("evaluate", "loud.txt", *options)
    assert answer.exit_code == 0
    quoted = "100% of the sentences of loud.txt begin with ' and end with ', which c"
    assert quoted in answer.stdout + answer.stderr
    # Two more lines say which metrics have no interval; elsewhere the report has all.
    assert answer.stderr.count("\n") == 4 * (form == "csv")
    assert "(--lowercase)" in answer.stdout + answer.stderr
    better = call("evaluate", "loud.txt", *options, "--lowercase")
    assert "capitals" not in better.stdout + better.stderr


# --- lists of files and of names ----------------------------------------------------


@pytest.fixture
def texts(folder):
    Path("a.txt").write_text("\n".join(LINES))
    Path("b.txt").write_text("\n".join(LINES[::-1] * 2).lower())
    Path("r.txt").write_text("\n".join(LINES[:4]))
    Path("s.txt").write_text("\n".join(LINES[4:] * 2))


ASKED = ("--max-order", "2", "--json")


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize(
    "words",
    [
        "a.txt b.txt --references r.txt s.txt",
        "a.txt b.txt --references r.txt --references s.txt",
        "a.txt b.txt --references=r.txt s.txt",
        "a.txt b.txt -r r.txt -r s.txt",
        "a.txt b.txt -r r.txt s.txt --lowercase",
        "a.txt -r r.txt s.txt -i b.txt",
        "-r r.txt s.txt -i a.txt b.txt",
        "-r r.txt s.txt --input a.txt -i b.txt",
        "-i a.txt b.txt -r r.txt s.txt",
        "-r r.txt s.txt --empty keep a.txt b.txt",
        "-r r.txt s.txt -- a.txt b.txt",
        "-m CND BLEU -r r.txt s.txt -i a.txt b.txt",
    ],
)
def test_a_list_takes_all_words_up_to_the_next_option(words):
    found = call("evaluate", *ASKED, *words.split())
    assert (found.exit_code, found.stderr) == (0, "")
    given = {name: Path(name).read_text().splitlines() for name in ("a.txt", "b.txt")}
    settings = {"lowercase": "--lowercase" in words}
    expected = evaluation.evaluate(given, [*LINES, *LINES[4:]], 2, **settings)
    told = json.loads(found.stdout)
    assert told["references"]["file"] == "r.txt, s.txt"
    assert [entry["file"] for entry in told["candidates"]] == ["a.txt", "b.txt"]
    for entry in told["candidates"]:
        kept = {x: plain(expected[entry["file"]][x]) for x in entry["metrics"]}
        assert entry["metrics"] == kept
        assert len(kept) == (4 if "-m" in words else len(expected.metrics))


@pytest.mark.usefixtures("texts")
def test_one_candidate_may_stand_after_the_references_two_may_not():
    found = call("evaluate", "--references", "r.txt", "a.txt", "--json", *ASKED[:2])
    assert json.loads(found.stdout)["candidates"][0]["file"] == "a.txt"
    said = "write the candidates first, or after -i; see qdtheory evaluate --help"
    for words in ("-r r.txt a.txt b.txt", "-r r.txt s.txt -m CND BLEU"):
        assert refusal("evaluate", *words.split(), prog_name="qdtheory").endswith(said)
    assert refusal("evaluate", "a.txt", "-r", "r.txt", "./r.txt") == (
        "r.txt: given more than once"
    )
    assert "nothing.txt: No such file" in refusal(
        "evaluate", "a.txt", "-r", "nothing.txt"
    )
    found = call("evaluate", "a.txt", "-r", "-", "s.txt", input="\n".join(LINES[:4]))
    assert found.stdout.startswith("references -, s.txt: 12 sentences")


BOTH = "evaluate", "a.txt", "b.txt", "-r", "r.txt", "--max-order", "2"


@pytest.mark.usefixtures("texts")
def test_chosen_metrics_are_shown_alone(monkeypatch):
    whole, some = (
        call(*BOTH, "--format", "csv", *more).stdout.splitlines()
        for more in ([], ["-m", "bleu", "CND-2"])
    )
    kept = ("metric", "BLEU-1", "BLEU-2", "CND-2")
    assert some == [line for line in whole if line.split(",")[1] in kept]
    shown = call(
        *BOTH, "--metrics", "NRR", "--plot", "x.svg", "--html", "x.html"
    ).stdout
    assert [x.split()[0] for x in shown.splitlines() if re.match(r"[A-Z]+-\d", x)] == [
        "NRR-1",
        "NRR-2",
    ]
    assert "CR-2" in Path("x.html").read_text()
    monkeypatch.setattr(evaluation, "counted", None)  # told before anything is counted
    said = refusal(*BOTH, "--metrics", "BLEU", "CDN")
    assert said.startswith("--metrics: no metric is called 'CDN'; there are BLEU, ")


@pytest.mark.usefixtures("texts")
def test_two_candidates_are_compared():
    whole = evaluation.evaluate([Path("a.txt"), Path("b.txt")], Path("r.txt"), 2)
    expected = whole.compare("b.txt", "a.txt")
    for more in ([], ["-m", "BLEU"]):
        told = call(*BOTH, "--compare", "b.txt", "a.txt", *more, "--json").stdout
        assert json.loads(told)["comparison"] == plain(expected)
        shown = call(*BOTH, "--compare", "b.txt", "a.txt", *more).stdout
        assert " ".join(str(expected).split()) in " ".join(shown.split())
    assert "comparison" not in json.loads(call(*BOTH, "--json").stdout)
    two = "--compare: expected two of the candidates a.txt, b.txt"
    for names in (["a.txt", "c.txt"], ["a.txt", "a.txt"]):
        assert refusal(*BOTH, "--compare", *names) == two
    idle = "--compare has no effect with --format csv; leave it out"
    assert refusal(*BOTH, "--compare", "a.txt", "b.txt", "--format", "csv") == idle
    assert "requires 2 arguments" in refusal(*BOTH, "--compare", "a.txt")


@pytest.mark.usefixtures("texts")
def test_short_options():
    expected = call(*BOTH, "--metrics", "CND", "--output", "long.txt")
    assert (expected.exit_code, expected.stdout) == (0, "")
    call("evaluate", "-i", *BOTH[1:], "-m", "CND", "-o", "short.txt")
    assert Path("short.txt").read_text() == Path("long.txt").read_text()
    assert call("-V").stdout == call("--version").stdout


@pytest.mark.usefixtures("folder")
def test_the_sides_have_fields_of_their_own():
    Path("t.txt").write_text("\n".join(LINES))
    Path("u.txt").write_text("\n".join(LINES[::-1]))
    pairs = zip(LINES, LINES[::-1])
    rows = [{"meta": {"gen": x}, "target": y} for x, y in pairs]
    Path("both.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("both.csv").write_text(
        "gen,target\n" + "".join(f'"{x}","{y}"\n' for x, y in zip(LINES, LINES[::-1]))
    )
    Path("strings.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    plain_files = evaluated("t.txt", references="u.txt")
    fields = "--field", "meta.gen", "--reference-field", "target"
    assert evaluated("both.jsonl", *fields, references="both.jsonl") == plain_files
    columns = "--column", "gen", "--reference-field", "target"
    assert evaluated("both.csv", *columns, references="both.csv") == plain_files
    assert evaluated("both.jsonl", *fields, references="both.csv") == plain_files
    found = evaluated("strings.jsonl", "--field", ".", references="u.txt")
    assert found == plain_files
    said = refusal("evaluate", "strings.jsonl", "--references", "u.txt")
    assert said.endswith("whose quotes would count as text: decode them (--field .)")


@pytest.mark.usefixtures("folder")
def test_a_field_of_plain_text_is_refused_where_no_file_has_fields():
    Path("t.txt").write_text("\n".join(LINES))
    Path("t.jsonl").write_text("\n".join(json.dumps({"text": x}) for x in LINES))
    Path("t").write_text("\n".join(["text", *(f'"{x}"' for x in LINES)]))
    idle = "has no effect where a line is a sentence, as in t.txt; leave it out"
    both = "evaluate", "t.txt", "--references", "t.txt"
    for option in ("--field", "--column", "--reference-field"):
        assert refusal(*both, option, "text").endswith(f"{option} {idle}")
    of_records = "evaluate", "t.jsonl", "--references", "t.txt", "--field", "text"
    said = refusal(*of_records, "--reference-field", "text")
    assert said.endswith(f"--reference-field {idle}")
    names = "--quality", "BLEU-2", "--diversity", "NRR-2"
    assert refusal("doctor", "t.txt", *names, "--field", "x").endswith(
        f"--field {idle}"
    )
    # One side may be plain text, and what is read for its fields is none.
    expected = evaluated("t.txt", references="t.txt")
    for ours, theirs, option in (
        ("t.jsonl", "t.txt", "--field"),
        ("t.txt", "t.jsonl", "--field"),
        ("t", "t.txt", "--column"),
        ("t.txt", "t", "--reference-field"),
    ):
        assert evaluated(ours, option, "text", references=theirs) == expected


CHANGES = [
    ["--max-order", "1"],
    ["--smoothing", "none"],
    ["--estimator", "plug-in"],
    ["--empty", "skip"],
    ["--tokenizer", "characters"],
    ["--lowercase"],
    ["--draws", "3"],
]


@pytest.mark.usefixtures("texts")
def test_the_signature_tells_the_choices_of_the_command():
    def signature(*more):
        answer = call("evaluate", "a.txt", "-r", "a.txt", *more)
        assert answer.exit_code == 0, answer.stderr
        return answer.stdout.splitlines()[-1]

    found = [signature(), *(signature(*more) for more in CHANGES)]
    assert len({*found}) == len(found)
    assert all(re.fullmatch(r"(\w+:[^|\s]+\|)*\w+:[^|\s]+", line) for line in found)
    assert signature("-m", "CND") == found[0]


@pytest.mark.slow
@pytest.mark.usefixtures("texts")
def test_workers_of_its_own_give_the_same_report():
    pytest.importorskip("distributed")
    assert call(*BOTH, "--scheduler", "2").stdout == call(*BOTH).stdout


@pytest.mark.usefixtures("texts")
def test_a_scheduler_that_is_not_there_is_told_in_one_line():
    pytest.importorskip("distributed")
    said = refusal(*BOTH, "--scheduler", "no:way")
    assert said.startswith("--scheduler: no:way: ")
    assert said.endswith("is dask scheduler up?")
