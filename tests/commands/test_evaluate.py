"""`qdtheory evaluate`: its numbers are the library's, its errors one line.

What is wrong with files and options stands in the transcript, tests/first_contact.txt.
"""

import gzip
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calls import call, refusal

from qdtheory import text
from qdtheory.support.records import plain
from qdtheory.text import comparison, evaluation

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
    table = ["gen,target", *(f'"{x}","{y}"' for x, y in zip(LINES, LINES[::-1]))]
    contents = {
        "references.txt": REFERENCES,
        "one.txt": "a b c d e\nb c d a\na b c d\n",
        "two [x].gz": gzip.compress(REFERENCES.encode()),
        "bad.txt": b"a b\nc \xff\n",
        "a.txt": "\n".join(LINES),
        "b.txt": "\n".join(LINES[::-1] * 2).lower(),
        "r.txt": "\n".join(LINES[:4]),
        "s.txt": "\n".join(LINES[4:] * 2),
        "u.txt": "\n".join(LINES[::-1]),
        "t.jsonl": jsonl({"text": x} for x in LINES),
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


# --- numbers ------------------------------------------------------------------------


def test_json_holds_the_numbers_of_the_library():
    result = call(*METRICS, "--json", "--all", "--real", "one.txt")
    assert (result.exit_code, result.stderr) == (0, "")
    shown = json.loads(result.stdout)
    sizes = {"sentences": 4, "tokens": 10, "empty_lines": 1}
    assert shown["references"] == {"file": "references.txt"} | sizes
    how = {"metrics": "all", "real": "one.txt"}
    expected = evaluation.evaluate(FILES, "references.txt", 2, **how)
    for name, entry in zip(FILES, shown["candidates"], strict=True):
        own = {"sentences": 3, "tokens": 13, "empty_lines": 0}
        own = own if name == "one.txt" else sizes
        told = {"file": name, "name": name, "metrics": expected.entries(name)}
        assert entry == told | own
        assert list(entry["metrics"]) == list(expected.metrics)
    for key in ("methods", "signature", "conclusions", "warnings", "real", "best"):
        assert shown[key] == plain(getattr(expected, key))


def test_real_text_is_a_candidate_by_its_path_and_by_its_name_if_no_file_has_it():
    os.makedirs("d")
    for name in ("two.txt", "d/two.txt"):
        Path(name).write_text(Path("one.txt").read_text())
    others = "evaluate", "one.txt", "d/two.txt", *REAL, "--json", "--real"
    for real, number in {"two.txt": 3, "d/two.txt": 2}.items():
        found = json.loads(call(*others, real).stdout)
        assert (found["real"], len(found["candidates"])) == ("two.txt", number)
    Path("two.txt").unlink()
    found = json.loads(call(*others, "two.txt").stdout)
    assert (found["real"], len(found["candidates"])) == ("two.txt", 2)
    os.makedirs("e")
    Path("e/two.txt").write_text("a b c d")
    both = "evaluate", "d/two.txt", "e/two.txt", *REAL, "--real", "two.txt"
    assert refusal(*both) == "two.txt: No such file or directory"


FORMS = {"csv": "csv", "markdown": "md", "latex": "tex", "html": "html", "table": "txt"}


def test_a_file_takes_its_form_from_its_name_and_a_line_says_so():
    expected = evaluation.evaluate(FILES, "references.txt", 2, real="one.txt")
    warned = [f"qdtheory: {warning}" for warning in expected.warnings]
    warned.append("qdtheory: with fewer than 20 sentences intervals are rough")
    asked = *METRICS, "--real", "one.txt"
    for form, suffix in FORMS.items():
        result = call(*asked, "-o", f"out.{suffix}")
        assert (result.exit_code, result.stdout) == (0, "")
        told = [f"qdtheory: wrote out.{suffix}", *warned]
        assert result.stderr.splitlines() == told
        written = Path(f"out.{suffix}").read_text("utf-8")
        kind = "text" if form == "table" else form
        assert getattr(expected, f"to_{kind}")("own") + "\n" == written
        assert Path("own").read_text("utf-8") == written
        assert (expected.signature in written) == (form != "csv")
        if form not in ("html", "table"):
            assert call(*asked, "--format", form).stdout == written
    call(*asked, "-o", "out.json")
    assert Path("out.json").read_text("utf-8") == call(*asked, "--json").stdout


def test_the_table_is_short_and_a_single_row_is_three_lines():
    Path("c.txt").write_text("\n".join(LINES[:4] * 2))
    for names in (["a.txt"], ["a.txt", "b.txt", "c.txt"]):
        lines = call("evaluate", *names, "-r", "u.txt").stdout.splitlines()
        assert [x.split()[0] for x in lines[1:9]] == [
            *("BLEU-4", "Self-BLEU-4", "distinct-2", "CR-2", "NRR-2"),
            *("CND-2", "CND-3", "MS-Jaccard-2"),
        ]
        assert len(lines) <= 15
    one = call("evaluate", "a.txt", "-r", "u.txt", "-m", "BLEU-4").stdout
    assert [x.split()[0] for x in one.splitlines()] == ["a.txt", "BLEU-4", "For"]


def test_without_references_the_rows_of_one_sample_say_what_they_cannot():
    shown = call("evaluate", "a.txt", "--max-order", "2").stdout
    _, *rows, said, _ = shown.splitlines()
    expected = evaluation.evaluate({"a.txt": LINES}, LINES[::-1], 2)["a.txt"]
    alone = evaluation.evaluate({"a.txt": LINES}, max_order=2, metrics="all")
    assert [x.split()[0] for x in rows] == ["Self-BLEU-2", "distinct-2", "NRR-2"]
    assert said.startswith("Without references nothing tells how good the texts are")
    assert {*alone.metrics} == {x for x in expected if x.startswith(comparison.ALONE)}
    for name in alone.metrics:
        assert plain(alone[name]["a.txt"]) == plain(expected[name])


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ("a.txt -r u.txt --tokenizer 13a", {"tokenizer": "13a"}),
        ("a.txt -r u.txt --lowercase", {"lowercase": True}),
        ("- -r u.txt", {}),
        ("both.csv -r both.csv --column gen,target", {}),
        # One side may be plain text, and what is read for its fields is none.
        ("t.jsonl -r u.txt --field text", {}),
        ("a.txt -r both.csv --field target", {}),
    ],
)  # fmt: skip
def test_options_are_those_of_the_library(words, settings):
    packed = gzip.compress("\n".join(LINES).encode())
    how = "--max-order", "2", "--json"
    answer = call("evaluate", *words.split(), *how, input=packed)
    assert answer.exit_code == 0, answer.stderr
    told = json.loads(answer.stdout)
    found = evaluation.evaluate({"x": LINES}, LINES[::-1], 2, **settings)
    assert told["candidates"][0]["metrics"] == found.entries("x")
    assert told["methods"] == found.methods


def test_a_warning_names_the_option_that_helps():
    Path("loud.txt").write_text("\n".join(map(str.upper, LINES)))
    loud = "evaluate", "loud.txt", "-r", "a.txt", "--max-order", "1"
    answer = call(*loud, "--tokenizer", "characters", "--format", "csv")
    assert "lower-case both (--lowercase)" in answer.stderr


# --- lists of files and of names ----------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "a.txt b.txt --references r.txt --references s.txt",
        "a.txt b.txt -r r.txt s.txt --lowercase",
        "-r r.txt s.txt -- a.txt b.txt",
        "a.txt b.txt -m CND BLEU -r r.txt s.txt",
    ],
)
def test_a_list_takes_all_words_up_to_the_next_option(words):
    found = call("evaluate", "--json", "--max-order", "2", *words.split())
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
        assert len(kept) == (4 if "-m" in words else len(expected.rows))


def test_part_of_the_real_text_may_come_from_standard_input():
    some = "\n".join(LINES[:4])
    found = call("evaluate", "a.txt", "-r", "-", "s.txt", "--json", input=some)
    told = json.loads(found.stdout)["references"]
    assert (told["file"], told["sentences"]) == ("-, s.txt", 12)


def test_two_candidates_are_compared():
    whole = evaluation.evaluate([Path("a.txt"), Path("b.txt")], Path("r.txt"), 2)
    expected = whole.compare("b.txt", "a.txt")
    for more in ([], ["-m", "BLEU"]):
        told = call(*BOTH, "--compare", "b.txt", "a.txt", *more, "--json").stdout
        assert json.loads(told)["comparison"] == plain(expected)
        assert str(expected) in call(*BOTH, "--compare", "b.txt", "a.txt", *more).stdout


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
    assert (result.exit_code, result.stdout) == (0, "")
    assert Path("old.txt").read_text().startswith(shown.stdout[:200])
    assert Path("link.txt").is_symlink()
    assert Path("old.txt").stat().st_mode & 0o777 == 0o640
    assert {*os.listdir()} == before
    assert call(*METRICS, "--output", "/dev/null", "--json").exit_code == 0
    assert not Path("/dev/null").is_file()


def test_planes_and_page_go_to_files_beside_the_table():
    chosen = *METRICS, "-m", "NRR"
    result = call(*chosen, "--plot", "x.SVG", "--html", "x.html")
    assert (result.exit_code, result.stdout) == (0, call(*chosen).stdout)
    assert "<svg" in Path("x.SVG").read_text()
    assert "CR-2" in Path("x.html").read_text()  # the planes have it


def full(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("words", "message", "patch"),
    [
        ("bad.txt -o old.txt", "bad.txt, line 2: byte 0xff", ()),
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
    shown, found = call(*PROMPTS, "--html", "page.html").stdout, expected_prompts()
    assert shown == f"{found.to_text(80, False)}\n\n{found.signature}\n"
    assert Path("page.html").read_text("utf-8") == f"{found.to_html()}\n"
    assert max(map(len, shown.splitlines()[:-1])) <= 80
    pair = "far.jsonl", "near.jsonl"
    options = "--kernel", "own_kernels:same_length", "1-grams", "--compare", *pair
    options = *PROMPTS, *options, "--tokenizer", "characters", "--lowercase"
    answer = call(*options, "--json")
    assert answer.exit_code == 0, answer.stderr
    import own_kernels

    kernels = [own_kernels.same_length, "1-grams"]
    found = expected_prompts(kernels, tokenizer="characters", lowercase=True)
    found = replace(found, pairs=(pair,))
    assert json.loads(answer.stdout) == json.loads(found.to_json())
    answer = call(*options, "--format", "csv", "--output", "table")
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert Path("table").read_text("utf-8") == f"{found.to_csv()}\n"


def test_references_of_their_own_other_fields_and_standard_input():
    near = ROWS["near.jsonl"]
    real = [{"q": x["prompt"], "z": x["references"]} for x in near]
    Path("real.jsonl").write_text(jsonl(real))
    expected = call("evaluate", "near.jsonl", "--prompts", "--format", "csv").stdout
    given = jsonl({"q": x["prompt"], "a": {"y": x["outputs"]}} for x in near)
    options = "-r", "real.jsonl", "--field", "q,a.y,z", "--format", "csv"
    found = call("evaluate", "-", "--prompts", *options, input=given).stdout
    assert found == expected.replace("near.jsonl", "standard input")


# --- one line for what is bad -------------------------------------------------------

OF_TWO = "evaluate a.txt b.txt -r r.txt"
NEAR = "evaluate near.jsonl --prompts"
NO_EFFECT = "--max-order 2|--plot a.svg|--real near.jsonl"
BAD = [
    (f"{OF_TWO} --compare a.txt a.txt", "--compare: expected two of the candidates a"),
    (f"{OF_TWO} --compare a.txt b.txt --format csv",
     "--compare has no effect with --format csv; leave it out"),
    (f"{OF_TWO} --estimator pairs", "--estimator is gone; in Python: qd.evaluate("),
    (f"{OF_TWO} -i a.txt", "-i is gone; write the candidates first; see qdtheory ev"),
    (f"{OF_TWO} -o x.doc", "x.doc: expected a name that ends in .csv, .md, .tex, .j"),
    (f"{OF_TWO} -o x.csv --json", "x.csv is csv by its name, and --format is json"),
    (f"{OF_TWO} --real ./r.txt", "--real: ./r.txt is among the references; give held"),
    (f"{OF_TWO} --all -m CND", "--all and --metrics name the rows; give one of them"),
    ("evaluate a.txt -m CND", "no metric is called 'CND' without references; there"),
    ("evaluate a.txt --plot a.svg", "--plot has no effect without --references"),
    (f"{OF_TWO} --field x,y,z", "--field x,y,z: expected names between commas, at m"),
    (f"{NEAR} --compare far.jsonl near.jsonl", "no candidate is called 'far.jsonl'"),
    *((f"{NEAR} {x}", f"{x.split()[0]} has no effect with --prompts")
      for x in NO_EFFECT.split("|")),
    (f"{NEAR} --fields a,b,c,d", "--field a,b,c,d: expected names between com"),
    (f"{NEAR} -m CND", "kernel: CND is not known; take exact match, 1-grams"),
    (f"{NEAR} --kernel own_kernels:distance",
     "near.jsonl, prompt 'Question 0?': kernel distance is indefinite"),
    (f"{NEAR} -r a b", "--prompts: expected one file of references, got 2"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "words"), BAD)
def test_what_does_not_fit_is_told_in_one_line(line, words):
    assert words in refusal(*line.split(), prog_name="qdtheory")


def test_a_scheduler_that_is_not_there_is_told_in_one_line():
    pytest.importorskip("distributed")
    assert refusal(*BOTH, "--scheduler", "no:way").startswith("--scheduler: no:way: ")


def test_an_unknown_metric_is_told_before_anything_is_counted(monkeypatch):
    monkeypatch.setattr(evaluation, "counted", None)
    assert "no metric is called 'CDN'" in refusal(*BOTH, "--metrics", "BLEU", "CDN")
