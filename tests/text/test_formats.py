"""One sentence a line, a JSON object or a row; records are not read as prose."""

import csv
import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdtheory.text import read_corpus
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
        ("a.txt", '{"text": "a b"}\n{"text": "c"}\n', "--field text"),
        ("a.txt", '["a", "b"]\n\n["c"]\n', "--field NAME"),
        ("a.txt", "id\ttext\n1\ta b\n", "--column NAME"),
        ("a.csv", "a b\nc d\n", "--column NAME"),
        ("a.csv.gz", "id,text\n1,a\n", "--column NAME"),
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
        (['{"a": "b"}', "b"], {"field": "a"}, "f, line 2: expected a JSON object, got"),
        (['{"a": "b"}', "[1]"], {"field": "a"}, "f, line 2: expected a JSON object"),
        (['{"b": "c"}'], {"field": "a"}, "f, line 1: no field 'a'; there are: b"),
        (['{"a": 1}'], {"field": "a"}, "f, line 1: field 'a' is no string but a int"),
        (["a,b", "1,2"], {"column": "c"}, "f, line 2: no column 'c'; there are: a, b"),
        (["a,b", "1"], {"column": "b"}, "f, line 2: column 'b' is no string"),
        ([], {"field": "a", "column": "b"}, "give a field"),
    ],
)
def test_a_bad_record_names_its_line(lines, options, message):
    with pytest.raises(ValueError, match=message):
        list(sentences(lines, "f", **options))
