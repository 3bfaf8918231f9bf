"""`qdtheory evaluate`: its numbers are the library's, its errors one line.

What is wrong with files and options stands in the transcript, tests/first_contact.txt.
"""

import gzip
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from calls import call, refusal

from qdtheory import text
from qdtheory.support.records import plain
from qdtheory.text import evaluation, files

zstd = files._zstd("tests")  # of Python 3.14, or its backport
REFERENCES = "a b c d\n\na b\na b c d\n"
LINES = ["The cat sat.", "the cat ran, too.", "A dog ran.", "a cat sat, too."] * 2
OWN = """
def same_length(texts, others):
    return [[float(len(x) == len(y)) for y in others] for x in texts]

def distance(texts, others):
    sums = [[sum(map(ord, x)) for x in side] for side in (texts, others)]
    return [[-float((x - y) ** 4) for y in sums[1]] for x in sums[0]]
"""


def prompts(seed):
    """Four answers to each of 40 questions, and a human one."""
    words = np.random.default_rng(seed).choice([*"abcd"], (40, 4, 3)).tolist()
    for c, answers in enumerate(words):
        outputs = [*map(" ".join, answers)]
        yield {"prompt": f"Question {c}?", "outputs": outputs, "references": ["a b c"]}


ROWS = {"near.jsonl": [*prompts(0)], "far.jsonl": [*prompts(1)]}


def jsonl(rows):
    return "\n".join(map(json.dumps, rows))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    gen = [{"gen": x, "target": y} for x, y in zip(LINES, LINES[::-1])]
    table = ["gen,target", *(f'"{x}","{y}"' for x, y in zip(LINES, LINES[::-1]))]
    contents = {
        "references.txt": REFERENCES,
        "one.txt": "a b c d e\nb c d a\na b c d\n",
        "two [x].gz": gzip.compress(REFERENCES.encode()),
        "bad.txt": b"a b\nc \xff\n",
        "single.txt": "a b c d e f\n",
        "a.txt": "\n".join(LINES),
        "b.txt": "\n".join(LINES[::-1] * 2).lower(),
        "r.txt": "\n".join(LINES[:4]),
        "s.txt": "\n".join(LINES[4:] * 2),
        "u.txt": "\n".join(LINES[::-1]),
        "t.jsonl": jsonl({"text": x} for x in LINES),
        "both.jsonl": jsonl(gen),
        "both.csv": "\n".join(table),
        "near.jsonl": jsonl(ROWS["near.jsonl"]),
        "far.jsonl": jsonl(ROWS["far.jsonl"][::-1]),
        "own_kernels.py": OWN,
        "old.txt": "old",
    }
    for name, content in contents.items():
        data = content if isinstance(content, bytes) else content.encode()
        Path(name).write_bytes(data)
    yield
    sys.modules.pop("own_kernels", None)


FILES = "one.txt", "two [x].gz"
REAL = "--references", "references.txt", "--max-order", "2"
METRICS = "evaluate", *FILES, *REAL
BOTH = "evaluate", "a.txt", "b.txt", "-r", "r.txt", "--max-order", "2"


def evaluated(name, *options, references="a.txt", **settings):
    """Metrics of a file against references, and the line for a paper."""
    texts = "evaluate", name, "--references", references, "--max-order", "2"
    answer = call(*texts, "--json", *options, **settings)
    assert answer.exit_code == 0, answer.stderr
    shown = json.loads(answer.stdout)
    return shown["candidates"][0]["metrics"], shown["methods"]


# --- numbers ------------------------------------------------------------------------


@pytest.mark.parametrize("empty", ["keep", "skip"])
def test_json_holds_the_numbers_of_the_library(empty):
    result = call(*METRICS, "--json", "--empty", empty)
    assert (result.exit_code, result.stderr) == (0, "")
    shown = json.loads(result.stdout)
    sizes = {"sentences": 4 - (empty == "skip"), "tokens": 10, "empty_lines": 1}
    assert shown["references"] == {"file": "references.txt"} | sizes
    assert shown["empty"] == empty
    expected = evaluation.evaluate(FILES, "references.txt", 2, empty=empty)
    for name, entry in zip(FILES, shown["candidates"], strict=True):
        own = {"sentences": 3, "tokens": 13, "empty_lines": 0}
        own = own if name == "one.txt" else sizes
        assert entry == {"file": name, "metrics": plain(expected[name])} | own
        assert list(entry["metrics"]) == list(expected.metrics)
    for key in ("methods", "signature", "conclusions", "warnings"):
        assert shown[key] == plain(getattr(expected, key))


def test_formats_are_those_of_the_report():
    expected = evaluation.evaluate(FILES, "references.txt", 2)
    for form in ("csv", "markdown", "latex"):
        result = call(*METRICS, "--format", form)
        assert result.stdout == getattr(expected, f"to_{form}")() + "\n"
        told = [f"qdtheory: {warning}" for warning in expected.warnings]
        assert result.stderr.splitlines() == told
    found = call(*METRICS, "--json")
    assert found.stdout == call(*METRICS, "--format", "json").stdout
    assert found.stderr == ""
    table = call(*METRICS)
    assert table.stdout == call(*METRICS, "--format", "table").stdout
    for cell, _ in (x for cells in expected.cells().values() for x in cells):
        assert cell in table.stdout
    assert table.stdout.splitlines()[-1] == expected.signature


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ([], {}),
        (["--tokenizer", "13a"], {"tokenizer": "13a"}),
        (["--tokenizer", "characters"], {"tokenizer": "characters"}),
        (["--lowercase"], {"lowercase": True}),
        (["--smoothing", "none"], {"smoothing": None}),
        (["--estimator", "plug-in"], {"estimator": "plug-in"}),
        (["--draws", "3"], {"draws": 3}),
    ],
)
def test_options_are_those_of_the_library(options, settings):
    found = evaluation.evaluate({"a.txt": LINES}, LINES, 2, **settings)
    assert evaluated("a.txt", *options) == (plain(found["a.txt"]), found.methods)


def test_standard_input_gives_the_numbers_of_a_file():
    text = "\n".join(LINES).encode()
    for content in (text, gzip.compress(text), zstd.compress(text)):
        assert evaluated("-", input=content) == evaluated("a.txt")


def test_the_sides_have_fields_of_their_own():
    plain_files = evaluated("a.txt", references="u.txt")
    for file, option in (("both.jsonl", "--field"), ("both.csv", "--column")):
        options = option, "gen", "--reference-field", "target"
        assert evaluated(file, *options, references=file) == plain_files
    # One side may be plain text, and what is read for its fields is none.
    for ours, theirs, option in (
        ("t.jsonl", "u.txt", "--field"),
        ("a.txt", "both.csv", "--reference-field"),
    ):
        name = "text" if option[2:] == "field" else "target"
        assert evaluated(ours, option, name, references=theirs) == plain_files


def test_texts_that_seem_to_be_something_else_are_told_on_stderr_or_in_the_report():
    Path("loud.txt").write_text("\n".join(f"'{line.upper()}'" for line in LINES))
    options = "-r", "a.txt", "--max-order", "1", "--tokenizer", "characters"
    for form in ("csv", "json"):
        answer = call("evaluate", "loud.txt", *options, "--format", form)
        told = answer.stderr if form == "csv" else answer.stdout
        assert "100% of the sentences of loud.txt begin with ' and end with '" in told
        assert "(--lowercase)" in told


# --- lists of files and of names ----------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "a.txt b.txt --references r.txt s.txt",
        "a.txt b.txt --references r.txt --references s.txt",
        "a.txt b.txt -r r.txt s.txt --lowercase",
        "a.txt -r r.txt s.txt -i b.txt",
        "-r r.txt s.txt --input a.txt -i b.txt",
        "-r r.txt s.txt --empty keep a.txt b.txt",
        "-r r.txt s.txt -- a.txt b.txt",
        "-m CND BLEU -r r.txt s.txt -i a.txt b.txt",
    ],
)
def test_a_list_takes_all_words_up_to_the_next_option(words):
    found = call("evaluate", "--max-order", "2", "--json", *words.split())
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


def test_one_candidate_may_stand_after_the_references_and_real_text_on_stdin():
    found = call("evaluate", "-r", "r.txt", "a.txt", "--json", "--max-order", "2")
    assert json.loads(found.stdout)["candidates"][0]["file"] == "a.txt"
    some = "\n".join(LINES[:4])
    found = call("evaluate", "a.txt", "-r", "-", "s.txt", "--json", input=some)
    told = json.loads(found.stdout)["references"]
    assert (told["file"], told["sentences"]) == ("-, s.txt", 12)


def test_chosen_metrics_are_shown_alone():
    whole, some = (
        call(*BOTH, "--format", "csv", *more).stdout.splitlines()
        for more in ([], ["-m", "bleu", "CND-2"])
    )
    kept = ("metric", "BLEU-1", "BLEU-2", "CND-2")
    assert some == [line for line in whole if line.split(",")[1] in kept]


def test_two_candidates_are_compared():
    whole = evaluation.evaluate([Path("a.txt"), Path("b.txt")], Path("r.txt"), 2)
    expected = whole.compare("b.txt", "a.txt")
    for more in ([], ["-m", "BLEU"]):
        told = call(*BOTH, "--compare", "b.txt", "a.txt", *more, "--json").stdout
        assert json.loads(told)["comparison"] == plain(expected)
        shown = call(*BOTH, "--compare", "b.txt", "a.txt", *more).stdout
        assert " ".join(str(expected).split()) in " ".join(shown.split())
    assert "comparison" not in json.loads(call(*BOTH, "--json").stdout)


@pytest.mark.slow
def test_workers_of_its_own_give_the_same_report():
    pytest.importorskip("distributed")
    assert call(*BOTH, "--scheduler", "2").stdout == call(*BOTH).stdout


# --- files that are written -------------------------------------------------------


def test_output_goes_to_a_file():
    shown = call(*METRICS)
    Path("old.txt").chmod(0o640)
    Path("link.txt").symlink_to("old.txt")
    before = {*os.listdir()}
    result = call(*METRICS, "--output", "link.txt")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert Path("old.txt").read_text() == shown.stdout
    assert Path("link.txt").is_symlink()
    assert Path("old.txt").stat().st_mode & 0o777 == 0o640
    call("evaluate", "-i", *METRICS[1:], "-o", "new.json", "--json")
    assert json.loads(Path("new.json").read_text())["methods"]
    assert {*os.listdir()} == before | {"new.json"}
    assert call(*METRICS, "--output", "/dev/null").exit_code == 0
    assert not Path("/dev/null").is_file()


def test_planes_and_page_go_to_files_beside_the_table():
    chosen = *METRICS, "-m", "NRR"
    result = call(*chosen, "--plot", "x.SVG", "--html", "x.html")
    assert (result.exit_code, result.stdout) == (0, call(*chosen).stdout)
    assert "<svg" in Path("x.SVG").read_text()
    page = Path("x.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<svg") == 1
    assert "CR-2" in page  # all metrics
    assert call(*METRICS, "--plot", "x.png").exit_code == 0
    assert Path("x.png").read_bytes()[:4] == b"\x89PNG"


def full(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("words", "message", "patch"),
    [
        ("one.txt -o one.txt", "--output: one.txt is a file that is", ()),
        ("bad.txt -o old.txt", "bad.txt, line 2: byte 0xff", ()),
        ("single.txt -o old.txt", "single.txt: Self-BLEU compares", ()),
        ("one.txt -o new.txt", "--output: new.txt: no permission to write to ",
         (os, "access", lambda path, mode: mode != os.W_OK)),
        ("one.txt -o old.txt", r"--output: \S+/old.txt: No space left on device",
         (Path, "replace", full)),
        ("one.txt --html x.html", r'--plot and --html needs matplotlib: .*\[plot\]',
         (sys.modules, "matplotlib", None)),
    ],
)  # fmt: skip
def test_a_run_that_fails_leaves_files_as_they_were(monkeypatch, words, message, patch):
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    with monkeypatch.context() as patched:
        if patch:
            table = patch[0] is sys.modules
            (patched.setitem if table else patched.setattr)(*patch)
        assert re.match(message, refusal("evaluate", *words.split(), *REAL))
    assert before == {name: Path(name).read_bytes() for name in os.listdir()}


# --- several outputs for each prompt ------------------------------------------------

PROMPTS = "evaluate", "near.jsonl", "far.jsonl", "--prompts"


def expected_prompts(*arguments, **settings):
    given = {name: [row["outputs"] for row in rows] for name, rows in ROWS.items()}
    real = [row["references"] for row in ROWS["near.jsonl"]]
    return text.evaluate_prompts(given, real, *arguments, **settings)


def test_formats_of_prompts_are_those_of_the_library():
    shown, found = call(*PROMPTS).stdout, expected_prompts()
    assert shown == f"{found.to_text(80)}\n\n{found.signature}\n"
    options = "--kernel", "own_kernels:same_length", "--kernel", "1-grams"
    options = *PROMPTS, *options, "--tokenizer", "characters", "--lowercase"
    answer = call(*options, "--json")
    assert answer.exit_code == 0, answer.stderr
    import own_kernels

    kernels = [own_kernels.same_length, "1-grams"]
    found = expected_prompts(kernels, tokenizer="characters", lowercase=True)
    assert json.loads(answer.stdout) == json.loads(found.to_json())
    for form in ("csv", "markdown", "latex"):
        answer = call(*options, "--format", form, "--output", "table")
        assert (answer.exit_code, answer.stdout) == (0, "")
        written = Path("table").read_text("utf-8")
        assert written == f"{getattr(found, f'to_{form}')()}\n"


def test_references_of_their_own_other_fields_and_standard_input():
    near = ROWS["near.jsonl"]
    real = [{"q": x["prompt"], "z": x["references"]} for x in near]
    Path("real.jsonl").write_text(jsonl(real))
    expected = call("evaluate", "near.jsonl", "--prompts", "--format", "csv").stdout
    for field, outputs in (
        ("y", [{"y": x["outputs"]} for x in near]),
        ("a.y", [{"a": {"y": x["outputs"]}} for x in near]),
    ):
        given = jsonl({"q": x["prompt"]} | y for x, y in zip(near, outputs))
        options = "-r", "real.jsonl", "--fields", f"q,{field},z", "--format", "csv"
        found = call("evaluate", "-", "--prompts", *options, input=given).stdout
        assert found == expected.replace("near.jsonl", "standard input")


# --- one line for what is bad -------------------------------------------------------

AFTER = "write the candidates first, or after -i; see qdtheory evaluate --help"
TWO = "--compare: expected two of the candidates a.txt, b.txt"
PLAIN_LINES = "has no effect where a line is a sentence, as in a.txt; leave it out"
OF_A = "evaluate a.txt -r a.txt"
OF_TWO = "evaluate a.txt b.txt -r r.txt"
NEAR = "evaluate near.jsonl --prompts"
NO_EFFECT = [
    *("--max-order 2", "--field text", "--plot a.svg", "--html a.html"),
    *("--scheduler 2", "--estimator pairs", "--metrics CND", "--compare a b"),
]
BAD = [
    ("evaluate -r r.txt s.txt -m CND BLEU", AFTER),
    ("evaluate a.txt -r r.txt ./r.txt", "r.txt: given more than once"),
    (f"{OF_TWO} --compare a.txt a.txt", TWO),
    (f"{OF_TWO} --compare a.txt b.txt --format csv",
     "--compare has no effect with --format csv; leave it out"),
    *((f"{OF_A} {x} text", f"{x} {PLAIN_LINES}")
      for x in ("--column", "--reference-field")),
    ("evaluate t.jsonl -r a.txt --field text --reference-field text",
     f"--reference-field {PLAIN_LINES}"),
    ("doctor a.txt --quality BLEU-2 --diversity NRR-2 --field x",
     f"--field {PLAIN_LINES}"),
    (f"{OF_A} --kernel 1-grams", "--kernel has no effect without --prompts; leave it"),
    (f"{OF_A} --fields a,b,c", "--fields has no effect without --prompts; leave it"),
    *((f"{NEAR} {x}", f"{x.split()[0]} has no effect with --prompts")
      for x in NO_EFFECT),
    (f"{NEAR} --fields prompt,outputs", "--fields: expected three names"),
    (f"{NEAR} --fields prompt,answers,references", "no field 'answers'; there are: pr"),
    (f"{NEAR} --kernel BLEU-2", "--kernel: BLEU-2 is indefinite"),
    (f"{NEAR} --kernel own_kernels:distance",
     "near.jsonl, prompt 'Question 0?': kernel distance is indefinite"),
    (f"{NEAR} --kernel 1-grams --kernel 1-grams",
     "--kernel: expected some, each once, got 1-grams, 1-grams"),
    (f"{NEAR} -r a b", "--prompts: expected one file of references, got 2"),
    (f"{NEAR} -i near.jsonl", "near.jsonl: given more than once"),
    ("evaluate a.txt --prompts", "a.txt, line 1: expected a JSON object on each line"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "words"), BAD)
def test_what_does_not_fit_is_told_in_one_line(line, words):
    assert words in refusal(*line.split(), prog_name="qdtheory")


def test_a_scheduler_that_is_not_there_is_told_in_one_line():
    pytest.importorskip("distributed")
    said = refusal(*BOTH, "--scheduler", "no:way")
    assert said.startswith("--scheduler: no:way: ")
    assert said.endswith("is dask scheduler up?")


def test_an_unknown_metric_is_told_before_anything_is_counted(monkeypatch):
    monkeypatch.setattr(evaluation, "counted", None)
    assert "no metric is called 'CDN'" in refusal(*BOTH, "--metrics", "BLEU", "CDN")
