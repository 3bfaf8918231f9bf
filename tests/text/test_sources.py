"""Lines, records, columns, folders and datasets: a corpus, or one clear error."""

import csv
import gzip
import io
import json
import random
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored import parquet, saved

from qdtheory.text import as_corpus, read_corpus, sources
from qdtheory.text.files import Files
from qdtheory.text.sources import sentences

# -- lines ---------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(st.lists(WORDS, min_size=1))
def test_records_and_tables_give_what_was_written(texts):
    records = [json.dumps({"id": i, "text": text}) for i, text in enumerate(texts)]
    assert list(sentences(records, "f", field="text")) == texts
    for delimiter in ",\t":
        file = io.StringIO()
        rows = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        rows.writerows([("id", "text"), *enumerate(texts)])
        lines = file.getvalue().removesuffix("\n").split("\n")
        assert list(sentences(lines, "f", column="text")) == texts


DOCUMENT = [{"text": "a b"}, {"text": "c"}] * 30


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.txt", '["a", "b"]\n\n["c"]\n', {}, "line 1: .*field=NAME"),
        ("a.txt", "id\ttext\n1\ta b\n", {}, "line 1: .*column=NAME"),
        ("a.csv", "a b\nc d\n", {}, "line 1: .*column=NAME"),
        ("a.csv.gz", "id,text\n1,a\n", {}, "line 1: .*column=NAME"),
        ("a.json", json.dumps(DOCUMENT), {"field": "text"}, "line 1: .*JSON"),
        ("a.json", json.dumps(DOCUMENT, indent=1), {}, "line 1: .*JSON"),
        ("a.json", json.dumps(DOCUMENT, indent=1), {"field": "a"}, "line 1: .*JSON"),
        ("f", '{"a": "b"}\nb', {"field": "a"}, "line 2: .*, got b; mend or rem"),
        ("f", '{"a": "b"}\n{"a": "', {"field": "a"}, "line 2: .*which is no JSON$"),
        ("f", '{\n"a": "b"}', {"field": "a"}, "line 1: .* got {; write one object"),
        ("f", '# a\n{"a": "b"}', {"field": "a"}, "line 1: expected a JSON object"),
        ("f", '{"a": "b"}\n[1]', {"field": "a"}, "line 2: .* on each line, got .1"),
        ("f", "a,b\n1", {"column": "b"}, "line 2: column 'b': .* string, got None"),
        ("f", 'a\n"a\n' + "c\n" * 99_999, {"column": "a"}, r"line .*quote left open"),
    ],
)
def test_records_are_not_read_as_prose(tmp_path, name, content, options, message):
    path = tmp_path / name
    pack = gzip.compress if name.endswith(".gz") else bytes
    path.write_bytes(pack(content.encode()))
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}, {message}"):
        read_corpus(path, **options)


NESTED = {"meta": {"text": "a b", "x.y": {"z": "c d"}}, "meta.text": "e f", "n": None}


@pytest.mark.parametrize(
    ("field", "found"),
    [("meta.text", "e f"), ("meta.x.y.z", "c d")],
)
def test_a_path_leads_into_a_record_and_a_key_with_dots_wins(field, found):
    assert [*sentences([json.dumps(NESTED)], "f", field=field)] == [found]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("meta.lost", "f, line 1, meta: no field 'lost'; there are: text, x.y"),
        ("lost.text", "f, line 1: no field 'lost.text'; there are: meta, meta.text"),
        ("n.text", "f, line 1: no field 'n.text'; there are"),
        ("meta", "f, line 1: field 'meta': expected a string, got {'text'"),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(field, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        [*sentences([json.dumps(NESTED)], "f", field=field)]


def test_lists_of_outputs_are_sent_to_the_evaluation_of_prompts():
    lines = [json.dumps({"prompt": "a b", "outputs": ["a b", "c"]})] * 3
    for options in ({}, {"field": "outputs"}):
        with pytest.raises(ValueError, match=r"line 1: .* prompt are for --prompts"):
            [*sentences(lines, "f", **options)]
    assert [*sentences(lines, "f", field="prompt")] == ["a b"] * 3


STRINGS = ["", "a b", 'he said "so"\t', "é"]


def test_lines_that_are_json_strings_are_refused_or_decoded_never_read(tmp_path):
    path = tmp_path / "f"
    path.write_text("\n".join(["", *map(json.dumps, STRINGS * 9), ""]))
    for options in ({}, {"field": "text"}):
        with pytest.raises(ValueError, match=r'line 1: JSON strings.*\(field="."\)'):
            read_corpus(path, **options)
    assert [*read_corpus(path, field=".")] == [*as_corpus(STRINGS * 9)]
    path.write_text(path.read_text() + '"a" b\n')
    with pytest.raises(
        ValueError, match=r'line 38: expected a JSON string on each line, got "a" b'
    ):
        read_corpus(path, field=".")
    path.write_text('"a b," he said\n"c d"\n')  # quotes of the text itself
    assert next(iter(read_corpus(path))) == ('"a', 'b,"', "he", "said")
    assert [*read_corpus(path, field=".")] == [*read_corpus(path)]
    table = tmp_path / "f.csv"
    table.write_text('"text"\n"a b"\n"c"\n')
    assert [*read_corpus(table, column="text")] == [*as_corpus(["a b", "c"])]


def test_several_files_are_one_sample(tmp_path):
    plain, records = tmp_path / "a.txt", tmp_path / "b.jsonl"
    plain.write_text("a b\n\nc")
    records.write_text("\n".join(json.dumps({"text": x}) for x in TEXTS))
    files = Files((plain, records, io.BytesIO(gzip.compress(b"d e\n"))))
    found = read_corpus(files, field="text")
    assert [*found] == [*as_corpus(["a b", "", "c", *TEXTS, "d e"])]
    with pytest.raises(ValueError, match=r"b\.jsonl, line 1: no field 'body'"):
        read_corpus(Files((plain, records)), field="body")
    with pytest.raises(FileNotFoundError, match=r"lost\.txt"):
        read_corpus(Files((plain, tmp_path / "lost.txt")))
    plain.write_text("\n")
    with pytest.raises(
        ValueError, match=r"a\.txt, .*a\.txt, line 1: no line has a token"
    ):
        read_corpus(Files((plain, plain)))


@pytest.mark.parametrize(
    "content",
    ["[ applause ]\na b\n", "{ a }\n", "1 2\n3\n", "a\tb\nc\n", "one, two\nthree, a\n"],
)
@pytest.mark.parametrize("options", [{}, {"field": "text"}])
def test_prose_stays_prose(tmp_path, content, options):
    path = tmp_path / "a.txt"
    path.write_text(content)
    if options and content.startswith(("[", "{")):  # a record is asked for
        with pytest.raises(ValueError, match="line 1: expected a JSON object"):
            read_corpus(path, **options)
    else:
        assert len(read_corpus(path, **options)) == content.count("\n")


# -- columns -------------------------------------------------------------------------

TEXTS = ["a b c", "", "b c\nd", "é c", "a a"]


def one_file(path, kind=None, **columns):
    """A Parquet file of some texts, or of these columns."""
    columns = columns or {"id": range(5), "text": pa.array(TEXTS, kind)}
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=2)
    return path


class Rows:
    """What `datasets.Dataset` and `IterableDataset` of Hugging Face have."""

    def __init__(self, texts, names=("id", "text")):
        self.texts, self.names = texts, names

    @property
    def column_names(self):
        return self.names

    def __iter__(self) -> Iterator[dict]:
        return iter({"id": i, "text": text} for i, text in enumerate(self.texts))


@pytest.mark.parametrize(
    "make",
    [
        one_file,
        lambda path: one_file(path, pa.large_string()),
        lambda path: one_file(path, text=pa.array(TEXTS).dictionary_encode()),
        lambda path: io.BytesIO(one_file(path).read_bytes()),
        lambda path: io.BytesIO(gzip.compress(one_file(path).read_bytes())),
        lambda path: parquet(path, [TEXTS[:3], TEXTS[3:4], TEXTS[4:]]),
        lambda path: parquet(path, [TEXTS[:3], [], TEXTS[3:]], name="part.{}.parquet"),
        lambda path: saved(path, [TEXTS[:2], TEXTS[2:]], ("text", "label")),
        lambda path: Rows(TEXTS),
        lambda path: Rows(TEXTS, None),
        lambda path: pa.table({"text": TEXTS, "id": range(5)}),
        lambda path: pd.DataFrame({"id": range(5), "text": TEXTS}),
    ],
)
def test_all_of_them_give_the_corpus_of_the_list(tmp_path, make):
    for options in ({}, {"tokenizer": "characters", "lowercase": True}):
        found = read_corpus(make(tmp_path / "source"), column="text", **options)
        expected = as_corpus(TEXTS, **options)
        assert [*found] == [*expected]
        assert found.vocabulary == expected.vocabulary
        assert found.tokenizer == expected.tokenizer


def test_a_column_of_token_lists_is_not_split_again():
    tokens = [["a b", "c"], ["c"], []]
    found = read_corpus(Rows(tokens), column="text")
    assert [*found] == [*map(tuple, tokens)]
    assert found.tokenizer is None
    with pytest.raises(ValueError, match="these texts came split, by the caller"):
        read_corpus(Rows(tokens), column="text", tokenizer="13a")


def test_records_and_tables_are_read_too(tmp_path):
    expected = [*as_corpus(TEXTS)]
    path = tmp_path / "texts"
    path.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    assert [*read_corpus(path, field="text")] == expected
    path.write_text("id,text\n" + "".join(f'1,"{text}"\n' for text in TEXTS))
    assert [*read_corpus(path, column="text")] == expected


def test_columns_are_read_within_the_limit_or_beyond_memory(tmp_path, monkeypatch):
    shards = [["a" * 100] * 50] * 3
    monkeypatch.setattr(sources, "MAX_BYTES", 12_000)
    for sample in (
        one_file(tmp_path / "f", text=3 * shards[0]),
        parquet(tmp_path / "p", shards),
        saved(tmp_path / "s", shards),
    ):
        with pytest.raises(ValueError, match=r"/.: more than 1 GiB of text"):
            read_corpus(sample, column="text")
        with sources.opened(sample, column="text", bounded=False) as texts:
            assert sum(1 for _ in texts) == 150


def test_no_more_than_a_batch_is_in_memory(tmp_path):
    texts = [f"{k} {'word ' * 40}{k}" for k in range(200_000)]
    folder = parquet(tmp_path / "x", [texts], rows=10_000)
    size = pa.array(texts).nbytes
    before, most = pa.total_allocated_bytes(), 0
    with sources.opened(folder, column="text", bounded=False) as texts:
        for number, _ in enumerate(texts):
            if number % 5_000 == 0:
                most = max(most, pa.total_allocated_bytes() - before)
    assert number == 199_999
    assert most < size / 2


# -- bad input; more of it stands in tests/first_contact.txt -------------------------


def with_file(name, content, make=lambda path: saved(path, [["a b"]])):
    """A sample with a file in it of other content; None: without the file."""

    def made(path):
        make(path)
        (path / name).unlink(missing_ok=True)
        if content is not None:
            (path / name).write_bytes(content)
        return path

    return made


def cut_to(size):
    def made(path):
        file = saved(path, [["a b c d e f"] * 999]) / "data-00000-of-00001.arrow"
        file.write_bytes(file.read_bytes()[:size])
        return path

    return made


def dataset_of_splits(path):
    path.mkdir()
    for split in ("train", "test"):
        saved(path / split, [["a b"]])
    return with_file("dataset_dict.json", b"{}", Path.exists)(path)


def of_columns(path):
    return one_file(path, id=[1, 2, 3], text=["a", "b", None])


def piped(path):
    """Not a Parquet file that can be sought in, and a broken one."""
    return io.BytesIO(one_file(path, text=["a b", "c"] * 99).read_bytes()[:-9])


TEXT = {"column": "text"}
OLD = "x: a selection of rows, as old versions of datasets saved it; load it"
ROW_5 = "00001-of-00003.parquet, row 5: column 'text': expected a string, got N"
STATE = "x: state.json is not what save_to_disk of a dataset wr"
BROKEN = "data-00000-of-00001.arrow: the Arrow file is broken: "
BAD = [
    (of_columns, {"field": "text"}, "x: a Parquet file; name the column .*column=NAME"),
    (of_columns, TEXT, "x, row 3: column 'text': expected a string, got None"),
    (piped, TEXT, "stream: the Parquet file is broken: "),
    (
        with_file("a.parquet", b"a b\n", Path.mkdir),
        TEXT,
        "x/a.parquet: the Parquet file is broken: ",
    ),
    (dataset_of_splits, TEXT, "x: a saved dataset of several splits; .*: .*/x/test, "),
    (
        with_file("data-00000-of-00001.arrow", None),
        TEXT,
        "x: data-00000-of-00001.arrow is missing; copy the whole",
    ),
    (cut_to(60), TEXT, BROKEN),
    (cut_to(-2000), TEXT, BROKEN),
    (with_file("state.json", b"[]"), TEXT, STATE),
    (with_file("state.json", b"{"), TEXT, STATE),
    (with_file("state.json", b'{"_data_files": [1]}'), TEXT, STATE),
    (lambda path: saved(path, [["a b"]], _indices_data_files=[{}]), TEXT, OLD),
    (lambda path: parquet(path, [["a b"], ["a"] * 4 + [None]]), TEXT, ROW_5),
    (lambda path: saved(path, [["", ""]]), TEXT, "no line has a token"),
]


@pytest.mark.parametrize(("make", "options", "message"), BAD)
def test_a_bad_folder_is_told_in_one_line(tmp_path, make, options, message):
    with pytest.raises(ValueError, match=message) as refused:
        read_corpus(make(tmp_path / "x"), **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", [one_file, parquet, saved])
def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch, kind):
    options = {} if kind is one_file else {"shards": [["a b"]]}
    folder = kind(tmp_path / "x", **options)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(
        ModuleNotFoundError, match=r'x: reading .*"qdtheory\[parquet\]"'
    ):
        read_corpus(folder, column="text")


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (Rows(["a b"]), {}, "got a Rows: give one column, .* or name it (column=NAME)"),
        (Rows(["a b"]), {"column": "x"}, "a Rows without a column 'x'; there are: 'i"),
        (Rows(["a b"], None), {"column": "x"}, "row 0: expected a dictionary with 'x"),
        (Rows(["a b", None]), TEXT, "text 1: expected a string, got NoneType, a miss"),
        (pa.table({"a": ["b"]}), TEXT, "a Table without a column 'text'; there are:"),
        (pa.table({"text": [1]}), TEXT, "text 0: expected a string or a list of to"),
    ],
)
def test_a_bad_table_is_told_in_one_line(source, options, message):
    with pytest.raises(TypeError, match=re.escape(message).replace(r"\.\*", ".*")):
        read_corpus(source, **options)


def test_parquet_that_is_broken_anywhere_is_read_or_refused(tmp_path):
    path = one_file(tmp_path / "x", text=["a b", "c"] * 99)
    content = path.read_bytes()
    rng = random.Random(0)
    for _ in range(100):
        broken = bytearray(content)
        broken[rng.randrange(4, len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken[: rng.choice([len(content), rng.randrange(4, 900)])])
        with suppress(ValueError):
            read_corpus(path, column="text")
