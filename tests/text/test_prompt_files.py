"""Files of prompts: in any order and packing, with one line for each mistake."""

import gzip
import io
import json
from pathlib import Path

import pytest
from refusals import refused

from qdtheory.text.prompt_files import read_prompts

ROWS = [
    {"prompt": "Why?", "outputs": ["a", "b"], "references": ["a"]},
    {"prompt": "How?", "outputs": ["c", "c d", "d"], "references": ["d", "e"]},
    {"prompt": "Who?", "outputs": ["", "e"], "references": ["f"]},
]


def lines(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one.jsonl").write_text(lines(ROWS))


def test_prompts_are_matched_and_in_the_order_of_the_first_file():
    turned = [row | {"outputs": ["x", "y"]} for row in ROWS[::-1]]
    turned[1]["references"] = ["e", "d"]  # in another order, the same
    Path("two.jsonl.gz").write_bytes(gzip.compress(lines(turned).encode()))
    prompts, outputs, references = read_prompts(["one.jsonl", "two.jsonl.gz"])
    assert prompts == ["Why?", "How?", "Who?"]
    assert outputs == {
        "one.jsonl": [row["outputs"] for row in ROWS],
        "two.jsonl.gz": [["x", "y"]] * 3,
    }
    assert references == [row["references"] for row in ROWS]


def test_references_in_a_file_of_their_own_and_other_names_of_fields():
    """Numbers and lists are prompts too, as are the messages of a chat."""
    keys = 7, [{"role": "user", "content": "Why?"}]
    real = [{"id": key, "gold": [f"{i}"], "more": 0} for i, key in enumerate(keys)]
    ours = [{"id": key, "samples": ["a", "b"]} for key in keys[::-1]]
    Path("real.jsonl").write_text(lines(real))
    stream = io.BytesIO(lines(ours).encode())
    fields = "id", "samples", "gold"
    prompts, outputs, references = read_prompts([stream], "real.jsonl", fields)
    assert prompts == [json.dumps(keys[1], sort_keys=True), "7"]
    assert [*outputs.values()] == [[["a", "b"]] * 2]
    assert references == [["1"], ["0"]]
    turned = [{"content": "Why?", "role": "user"}]  # the same message
    Path("other.jsonl").write_text(lines([ours[1], ours[0] | {"id": turned}]))
    stream.seek(0)
    assert len(read_prompts([stream, "other.jsonl"], "real.jsonl", fields)[1]) == 2


def changed(**fields):
    """The file with another second row, as `two.jsonl`."""
    Path("two.jsonl").write_text(lines([ROWS[0], ROWS[1] | fields, ROWS[2]]))
    return ["one.jsonl", "two.jsonl"]


@pytest.mark.usefixtures("as_a_user")
def test_what_is_bad_is_told_with_its_line():
    second = "two.jsonl, line 2"

    def read(*files, **fields):
        return lambda: read_prompts(changed(**fields) if fields else files)

    Path("less.jsonl").write_text(lines(ROWS[1:2]))
    Path("twice.jsonl").write_text(lines([*ROWS, ROWS[0]]))
    Path("bare.jsonl").write_text(lines([{"prompt": "Why?", "outputs": ["a", "b"]}]))
    Path("broken.jsonl").write_text(lines(ROWS) + '{"prompt": "When?"')
    Path("plain.txt").write_text("a sentence\n")
    Path("empty.jsonl").write_text("")
    Path("array.jsonl").write_text(json.dumps(ROWS))
    system = "Answer the question in one short sentence, and be kind. " * 2
    Path("long.jsonl").write_text(
        lines(row | {"prompt": system + row["prompt"]} for row in ROWS)
    )
    missing = "prompts of one.jsonl are missing: 'Why?', 'Who?'"
    refused(
        (f"{second}: outputs: expected 2 or more, got 1", read(outputs=["a"])),
        (f"{second}: outputs: expected 2 or more, got 0", read(outputs=[])),
        (f"{second}: references: expected 1 or more", read(references=[])),
        (f"{second}: other references of 'How?' than one", read(references=["d"])),
        ("two.jsonl: prompts of one.jsonl are missing: 'How?'", read(prompt="Ho?")),
        (f"less.jsonl: {missing}", read("one.jsonl", "less.jsonl")),
        (
            "less.jsonl: prompts of one.jsonl are missing",
            lambda: read_prompts(["one.jsonl"], "less.jsonl"),
        ),
        (
            "twice.jsonl, line 4: prompt 'Why?' again, as in twice.jsonl, line 1",
            read("twice.jsonl"),
        ),
        ("bare.jsonl, line 1: no field 'references'", read("bare.jsonl")),
        ("there are: prompt, outputs", read("bare.jsonl")),
        ("broken.jsonl, line 4: expected a JSON object", read("broken.jsonl")),
        ("write one object a line (jq -c '.[]'", read("array.jsonl")),
        ("be kind. Why?', 'Answer the question", read("long.jsonl", "one.jsonl")),
        ("plain.txt, line 1: expected a JSON object", read("plain.txt")),
        ("empty.jsonl: no prompt; expected a JSON", read("one.jsonl", "empty.jsonl")),
    )
    refused(
        (
            f"{second}: outputs: expected a list of strings, got 'a b'",
            read(outputs="a b"),
        ),
        (
            f"{second}: outputs: expected a list of strings, got [1",
            read(outputs=[1, 2]),
        ),
        (f"{second}: references: expected a list", read(references="d")),
        (
            f"{second}: references: expected a list of strings, got None",
            read(references=None),
        ),
        error=TypeError,
    )
    with pytest.raises(FileNotFoundError):
        read_prompts(["lost.jsonl"])
