"""One sentence a line, a JSON object or a row; records are not read as prose."""

import csv
import gzip
import io
import json
import random
import sys
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdtheory.text import formats, read_corpus
from qdtheory.text.formats import sentences

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(st.lists(TEXT, min_size=1))
def test_json_lines_give_their_field(texts):
    lines = [json.dumps({"id": i, "text": text}) for i, text in enumerate(texts)]
    assert list(sentences(lines, "f", field="text")) == texts


@pytest.mark.parametrize("delimiter", [",", "\t"])
@given(texts=st.lists(TEXT, min_size=1))
def test_tables_give_their_column(texts, delimiter):
    file = io.StringIO()
    rows = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    rows.writerows([("id", "text"), *enumerate(texts)])
    lines = file.getvalue().removesuffix("\n").split("\n")
    assert list(sentences(lines, "f", column="text")) == texts


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", '{"text": "a b"}\n{"text": "c"}\n', "field=text"),
        ("a.txt", '["a", "b"]\n\n["c"]\n', "field=NAME"),
        ("a.txt", "id\ttext\n1\ta b\n", "column=NAME"),
        ("a.csv", "a b\nc d\n", "column=NAME"),
        ("a.csv.gz", "id,text\n1,a\n", "column=NAME"),
    ],
)
def test_records_are_not_read_as_prose(tmp_path, name, content, message):
    path = tmp_path / name
    pack = gzip.compress if name.endswith(".gz") else bytes
    path.write_bytes(pack(content.encode()))
    with pytest.raises(ValueError, match=message) as refused:
        read_corpus(path)
    assert str(refused.value).startswith(f"{path}, line 1: ")


@pytest.mark.parametrize(
    "content",
    ["[ applause ]\na b\n", "{ a }\n", "1 2\n3\n", "a\tb\nc\n", "one, two\nthree, a\n"],
)
def test_prose_stays_prose(tmp_path, content):
    path = tmp_path / "a.txt"
    path.write_text(content)
    assert len(read_corpus(path)) == content.count("\n")


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (
            ['{"a": "b"}', "b"],
            {"field": "a"},
            "f, line 2: .* on each line, got b; wr",
        ),
        (
            ['{"a": "b"}', "[1]"],
            {"field": "a"},
            "f, line 2: .* object on each line, got .1",
        ),
        (['{"b": "c"}'], {"field": "a"}, "f, line 1: no field 'a'; there are: b"),
        (
            ['{"a": 1}'],
            {"field": "a"},
            "line 1: field 'a': expected a string, got 1",
        ),
        (["a,b", "1,2"], {"column": "c"}, "f, line 2: no column 'c'; there are: a, b"),
        (
            ["a,b", "1"],
            {"column": "b"},
            "line 2: column 'b': .* string, got None",
        ),
        ([], {"field": "a", "column": "b"}, "field is for JSON Lines and column for"),
    ],
)
def test_a_bad_record_names_its_line(lines, options, message):
    with pytest.raises(ValueError, match=message):
        list(sentences(lines, "f", **options))


# -- Parquet ---------------------------------------------------------------------------


def written(tmp_path, **columns):
    path = tmp_path / "texts.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=2)
    return path


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
)
def test_parquet_gives_its_column(tmp_path, kind):
    texts = ["a b", "", "c, d\ne", "a b", "f"]
    path = written(tmp_path, id=range(5), text=pa.array(texts).cast(kind))
    corpus = read_corpus(path, column="text")
    assert list(corpus) == [tuple(text.split()) for text in texts]
    assert read_corpus(path, column="text", tokenizer="characters").num_tokens == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"a Parquet file; name the column .*\(column=NAME\); there are: id, text"),
        ({"column": "x"}, "no column 'x'; name the column .* there are: id, text"),
        ({"column": "id"}, "row 1: column 'id': expected a string, got 1"),
        ({"column": "text"}, "row 3: column 'text': expected a string, got None"),
        ({"field": "text"}, r"a Parquet file; name the column .*column=NAME"),
        ({"field": "a", "column": "b"}, "field is for JSON Lines and column for CSV"),
    ],
)
def test_a_bad_column_of_parquet_is_told(tmp_path, options, message):
    path = written(tmp_path, id=[1, 2, 3], text=["a", "b", None])
    with pytest.raises(ValueError, match=message):
        read_corpus(path, **options)


def test_a_broken_parquet_file_is_told(tmp_path):
    path = written(tmp_path, text=["a b", "c"] * 99)
    content = path.read_bytes()
    rng = random.Random(0)
    for _ in range(300):
        broken = bytearray(content)
        broken[rng.randrange(4, len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken[: rng.choice([len(content), rng.randrange(4, 900)])])
        with suppress(ValueError):
            read_corpus(path, column="text")
    path.write_bytes(content[:-9])
    with pytest.raises(ValueError, match="parquet: the Parquet file is broken: "):
        read_corpus(path, column="text")


def test_parquet_is_read_within_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "texts.parquet"
    pyarrow.parquet.write_table(pa.table({"text": ["a" * 1000] * 5000}), path)
    assert path.stat().st_size < 10**6
    monkeypatch.setattr(formats, "MAX_BYTES", 10**6)
    with pytest.raises(ValueError, match="parquet: more than 1 GiB of text"):
        read_corpus(path, column="text")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = written(tmp_path, text=["a b"])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ModuleNotFoundError, match=r'"qdtheory\[parquet\]"'):
        read_corpus(path, column="text")


# -- one document ----------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 1])
def test_a_json_document_is_not_read_as_lines(tmp_path, indent):
    path = tmp_path / "texts.json"
    path.write_text(json.dumps([{"text": "a b"}, {"text": "c"}] * 30, indent=indent))
    for options in ({}, {"field": "text"}):
        with pytest.raises(ValueError, match=r"json, line 1: .*JSON"):
            read_corpus(path, **options)


def test_a_quote_left_open_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text\n"a b\n' + "c d\n" * 50_000)
    with pytest.raises(ValueError, match=r"a.csv, line \d+: .*; is a quote left open"):
        read_corpus(path, column="text")


def test_plain_text_beside_records_is_read_as_text():
    texts = ["a b", "", "c"]
    assert list(sentences(texts, "a.txt", field="text")) == texts
    for number, lines in ((2, ['{"text": "a"}', "b"]), (1, ["# a", '{"text": "a"}'])):
        with pytest.raises(ValueError, match=f"line {number}: expected a JSON object"):
            list(sentences(lines, "a.txt", field="text"))
