"""`qdtheory evaluate --prompts`: what it prints, and one line for what is bad."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from calls import call, refusal

from qdtheory import text
from qdtheory.commands.prompts import _file

OWN = """
def same_length(texts, others):
    return [[float(len(x) == len(y)) for y in others] for x in texts]

def distance(texts, others):
    sums = [[sum(map(ord, x)) for x in side] for side in (texts, others)]
    return [[-float((x - y) ** 4) for y in sums[1]] for x in sums[0]]
"""


def drawn(rng, share):
    """A few words, of which the first is the likeliest."""
    return " ".join(rng.choice([*"abcd"], 3, p=[share, *[(1 - share) / 3] * 3]))


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A file as people write, one that repeats itself, and kernels."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    rng = np.random.default_rng(0)
    shares = {"near": 0.4, "far": 0.9}
    rows = {name: [] for name in shares}
    for c in range(40):
        real = [drawn(rng, 0.4)]
        for name, share in shares.items():
            outputs = [drawn(rng, share) for _ in range(4)]
            row = {"prompt": f"Question {c}?", "outputs": outputs, "references": real}
            rows[name].append(row)
    for name, found in rows.items():
        order = found if name == "near" else found[::-1]
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, order)))
    Path("own_kernels.py").write_text(OWN)
    yield rows
    sys.modules.pop("own_kernels", None)


FILES = "near.jsonl", "far.jsonl"


def expected(rows, *arguments, **settings):
    given = {
        f"{name}.jsonl": [x["outputs"] for x in found] for name, found in rows.items()
    }
    real = [row["references"] for row in rows["near"]]
    return text.evaluate_prompts(given, real, *arguments, **settings)


def test_the_table_is_that_of_the_library(files):
    answer = call("evaluate", *FILES, "--prompts")
    assert answer.exit_code == 0, answer.stderr
    found = expected(files)
    assert answer.stdout == f"{found.to_text(80)}\n\n{found.signature}\n"
    said = " ".join(answer.stdout.split())
    assert "near.jsonl is closer than far.jsonl to what people write by 1-grams" in said
    assert "near.jsonl, far.jsonl: 2-grams" in said


def test_kernels_tokens_and_formats(files):
    options = "--kernel", "own_kernels:same_length", "--kernel", "1-grams"
    more = "--tokenizer", "characters", "--lowercase"
    answer = call("evaluate", *FILES, "--prompts", *options, *more, "--json")
    assert answer.exit_code == 0, answer.stderr
    import own_kernels

    kernels = [own_kernels.same_length, "1-grams"]
    found = expected(files, kernels, tokenizer="characters", lowercase=True)
    assert json.loads(answer.stdout) == json.loads(found.to_json())
    for form in ("csv", "markdown", "latex"):
        form_of = "--format", form, "--output", f"table.{form}"
        answer = call("evaluate", *FILES, "--prompts", *options, *more, *form_of)
        assert (answer.exit_code, answer.stdout) == (0, "")
        written = Path(f"table.{form}").read_text("utf-8")
        assert written == f"{getattr(found, f'to_{form}')()}\n"


def test_references_of_their_own_other_fields_and_standard_input(files):
    ours = [{"q": x["prompt"], "y": x["outputs"]} for x in files["near"]]
    real = [{"q": x["prompt"], "z": x["references"]} for x in files["near"]]
    Path("real.jsonl").write_text("\n".join(map(json.dumps, real)))
    given = "\n".join(map(json.dumps, ours))
    options = "--references", "real.jsonl", "--fields", "q,y,z", "--format", "csv"
    answer = call("evaluate", "-", "--prompts", *options, input=given)
    assert answer.exit_code == 0, answer.stderr
    alone = expected({"near": files["near"]})
    expected_rows, rows = (
        [line.split(",", 1)[1] for line in table.splitlines()]
        for table in (alone.to_csv(), answer.stdout)
    )
    assert rows == expected_rows
    nested = [{"q": x["prompt"], "a": {"y": x["outputs"]}} for x in files["near"]]
    given = "\n".join(map(json.dumps, nested))
    options = "-r", "real.jsonl", "--fields", "q,a.y,z", "--format", "csv"
    assert call("evaluate", "-", "--prompts", *options, input=given).stdout == (
        answer.stdout
    )
    kernels = "--kernel", "1-grams", "2-grams", "--lowercase"
    told = call("evaluate", *FILES, "--prompts", *kernels, "--json").stdout
    settings = {"lowercase": True}
    assert json.loads(told)["signature"] == (
        expected(files, ["1-grams", "2-grams"], **settings).signature
    )


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("--max-order has no effect with --prompts", ["--max-order", "2"]),
        ("--field has no effect with --prompts", ["--field", "text"]),
        ("--plot has no effect with --prompts", ["--plot", "a.svg"]),
        ("--html has no effect with --prompts", ["--html", "a.html"]),
        ("--scheduler has no effect with --prompts", ["--scheduler", "2"]),
        ("--estimator has no effect with --prompts", ["--estimator", "pairs"]),
        ("--fields: expected three names", ["--fields", "prompt,outputs"]),
        (
            "no field 'answers'; there are: prompt",
            ["--fields", "prompt,answers,references"],
        ),
        ("BLEU-2 is indefinite", ["--kernel", "BLEU-2"]),
        ("ROUGE-L is indefinite", ["--kernel", "ROUGE-L"]),
        ("--kernel: colour is not known", ["--kernel", "colour"]),
        ("own_kernels has no function lost", ["--kernel", "own_kernels:lost"]),
        (
            "near.jsonl, prompt 'Question 0?': kernel distance is indefinite",
            ["--kernel", "own_kernels:distance"],
        ),
        ("lost.jsonl: No such file", ["--references", "lost.jsonl"]),
        ("--prompts: expected one file of references, got 2", ["-r", "a", "b"]),
        ("--metrics has no effect with --prompts", ["--metrics", "CND"]),
        ("--compare has no effect with --prompts", ["--compare", "a", "b"]),
        ("near.jsonl is a file that is read", ["--output", "near.jsonl"]),
        (
            "--kernel: expected some, each once, got 1-grams, 1-grams",
            ["--kernel", "1-grams"] * 2,
        ),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(said, arguments):
    assert said in refusal("evaluate", "near.jsonl", "--prompts", *arguments)


def test_options_of_prompts_need_them():
    files = "near.jsonl", "--references", "far.jsonl"
    said = refusal("evaluate", *files, "--kernel", "1-grams")
    assert said == "--kernel has no effect without --prompts; leave it out"
    said = refusal("evaluate", *files, "--fields", "a,b,c")
    assert said == "--fields has no effect without --prompts; leave it out"
    said = refusal("evaluate", "near.jsonl")
    assert said == "Missing option '--references'; see qdtheory evaluate --help"
    said = refusal("evaluate", "near.jsonl", "near.jsonl", "--prompts")
    assert said == "near.jsonl: given more than once"


def test_without_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(typer.Exit):
        _file("-")


def test_bad_files_are_told_in_one_line(files):
    rows = files["far"]
    Path("far.jsonl").write_text("\n".join(map(json.dumps, rows[5:])))
    said = refusal("evaluate", *FILES, "--prompts")
    shown = "'Question 0?', 'Question 1?', 'Question 2?' and 2 more"
    assert said == f"far.jsonl: prompts of near.jsonl are missing: {shown}"
    Path("far.jsonl").write_text(json.dumps(rows[0]))
    assert "expected two prompts or more" in refusal(
        "evaluate", "far.jsonl", "--prompts"
    )
    Path("far.jsonl").write_text("a sentence\n")
    said = refusal("evaluate", "far.jsonl", "--prompts")
    assert said.startswith("far.jsonl, line 1: expected a JSON object on each line")
