"""Files, folders, datasets and streams: the same corpus, or one clear error."""

import csv
import gzip
import io
import json
import os
import random
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from stored import parquet, saved

from qdtheory.text import as_corpus, files, read_corpus, sources
from qdtheory.text.files import Files
from qdtheory.text.sources import opened, sentences

zstd = files._zstd("tests")  # of Python 3.14, or its backport
# Without a time stamp: the bytes name the test, and every process must agree on them.
compress = partial(gzip.compress, mtime=0)
TEXT = {"column": "text"}
FIELD = {"field": "text"}

# -- every form ----------------------------------------------------------------------

TEXTS = ["a b c", "", "b c\nd", "é c", "a a"]
LINES = [text.replace("\n", " ") for text in TEXTS]
PLAIN = "\n".join(LINES).encode()


def written(content):
    """A file of some bytes, text or lines."""

    def write(path):
        text = "\n".join(content) if isinstance(content, list) else content
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def one_file(path, kind=None, **columns):
    """A Parquet file of some texts, or of these columns."""
    columns = columns or {"id": range(5), "text": pa.array(TEXTS, kind)}
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=2)
    return path


def several(path):
    written(PLAIN[:7])(path)
    return Files((path, io.BytesIO(compress(PLAIN[7:]))))


class Rows:
    """What `datasets.Dataset` and `IterableDataset` of Hugging Face have."""

    def __init__(self, texts, names=("id", "text")):
        self.texts, self.names = texts, names

    @property
    def column_names(self):
        return self.names

    def __iter__(self):
        return iter({"id": i, "text": text} for i, text in enumerate(self.texts))


def table(delimiter):
    file = io.StringIO()
    rows = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    rows.writerows([("id", "text"), *enumerate(TEXTS)])
    return written(file.getvalue())


FORMS = [
    *((written(x), {}) for x in (PLAIN, PLAIN + b"\n", b"\xef\xbb\xbf" + PLAIN)),
    (written(PLAIN.replace(b"\n", b"\r\n") + b"\r\n"), {}),
    (written(compress(PLAIN[:9]) + compress(PLAIN[9:])), {}),
    (written(zstd.compress(b"\xef\xbb\xbf" + PLAIN)), {}),
    (lambda path: io.BytesIO(compress(PLAIN)), {}),
    (several, {}),
    (written([json.dumps({"id": 1, "text": x}) for x in TEXTS]), FIELD),
    (written([json.dumps({"x": {"text": x}}) for x in TEXTS]), {"field": "x.text"}),
    (written([json.dumps(x) for x in TEXTS]), {"field": "."}),
    *((table(x), TEXT) for x in ",\t"),
    (one_file, TEXT),
    (lambda path: one_file(path, pa.large_string()), TEXT),
    (lambda path: one_file(path, text=pa.array(TEXTS).dictionary_encode()), TEXT),
    (lambda path: io.BytesIO(one_file(path).read_bytes()), TEXT),
    (lambda path: io.BytesIO(compress(one_file(path).read_bytes())), TEXT),
    (lambda path: parquet(path, [TEXTS[:3], TEXTS[3:4], TEXTS[4:]]), TEXT),
    (lambda x: parquet(x, [TEXTS[:3], [], TEXTS[3:]], name="part.{}.parquet"), TEXT),
    (lambda path: saved(path, [TEXTS[:2], TEXTS[2:]], ("text", "label")), TEXT),
    *((lambda path, x=x: Rows(TEXTS, x), TEXT) for x in (("id", "text"), None)),
    (lambda path: pa.table({"text": TEXTS, "id": range(5)}), TEXT),
    (lambda path: pd.DataFrame({"id": range(5), "text": TEXTS}), TEXT),
]


@pytest.mark.parametrize(("make", "where"), FORMS)
def test_every_form_gives_the_corpus_of_the_list(tmp_path, make, where):
    for options in ({}, {"tokenizer": "characters", "lowercase": True}):
        found = read_corpus(make(tmp_path / "source"), **where, **options)
        expected = as_corpus(TEXTS, **options)
        assert [*found] == [*expected]
        assert found.vocabulary == expected.vocabulary
        assert found.tokenizer == expected.tokenizer


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


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a b\nc", ["a b", "c"]),
        (b"\n a b \n\t\n\nc\n", ["", "a b", "", "", "c"]),
        (b"a b\r\n\r\n", ["a b", ""]),
        (b"a b\n ", ["a b", ""]),
        ("a b\nc\u2028d\x0ce\n".encode(), ["a b", "c d e"]),
    ],
)
def test_lines_end_at_line_feeds_and_empty_ones_are_kept_or_skipped(
    tmp_path, content, expected
):
    path = written(content)(tmp_path / "f")
    corpus, rest = read_corpus(str(path)), read_corpus(path, empty="skip")
    assert [" ".join(text) for text in corpus] == expected
    assert [" ".join(text) for text in rest] == [*filter(None, expected)]
    assert corpus.num_empty == rest.empty_lines == expected.count("")
    assert corpus.empty_lines == rest.num_empty == 0


def test_a_column_of_token_lists_is_not_split_again(tmp_path):
    tokens = [["a b", "c"], ["c"], []]
    found = read_corpus(Rows(tokens), column="text")
    assert [*found] == [*map(tuple, tokens)]
    assert found.tokenizer is None
    again = partial(read_corpus, column="text", tokenizer="13a")
    refused(("these texts came split, by the caller", again, Rows(tokens)))
    path = written(b"ab\r\n\nc\n")(tmp_path / "f")
    assert list(read_corpus(path, tokenizer=list)) == [("a", "b"), (), ("c",)]


@pytest.mark.parametrize(
    "content",
    [
        *("[ applause ]\na b\n", "{ a }\n", "1 2\n3\n", "a\tb\nc\n"),
        *("one, two\nthree, a\n", '"a b," he said\n"c d"\n'),
    ],
)
def test_prose_stays_prose(tmp_path, content):
    path = written(content)(tmp_path / "a.txt")
    assert len(read_corpus(path)) == content.count("\n")
    if content.startswith(("[", "{")):  # a record is asked for
        ask = partial(read_corpus, field="text")
        refused(("line 1: expected a JSON object", ask, path))
    else:
        assert len(read_corpus(path, field="text")) == content.count("\n")


def test_a_key_with_dots_wins_over_a_path():
    lines = [json.dumps(NESTED)]
    assert [*sentences(lines, "f", field="meta.text")] == ["e f"]
    assert [*sentences(lines, "f", field="meta.x.y.z")] == ["c d"]


# -- streams, and what has no end ----------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, compress])
def test_a_pipe_is_read_in_pieces(pack):
    reading, writing = os.pipe()
    packed = pack(b"a b\nc\n" * 1000)

    def write():
        for start in range(0, len(packed), 3):
            os.write(writing, packed[start : start + 3])
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, "rb") as file:
        assert len(read_corpus(file)) == 2000
    writer.join()


def test_what_is_too_large_is_refused_or_read_line_by_line(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_BYTES", 12_000)
    shards, read = [["a" * 100] * 50] * 3, partial(read_corpus, column="text")
    for sample in (
        one_file(tmp_path / "f", text=3 * shards[0]),
        parquet(tmp_path / "p", shards),
        saved(tmp_path / "s", shards),
    ):
        refused((f"{sample}: more than 1 GiB of text", read, sample))
        with opened(sample, column="text", bounded=False) as texts:
            assert sum(1 for _ in texts) == 150
    monkeypatch.setattr(files, "MAX_BYTES", 12_000)
    for pack in (compress, zstd.compress):  # a small file that unpacks to much
        path = written(pack(b"a\n" * 10_000))(tmp_path / "bomb")
        refused(("bomb: more than 1 GiB", read_corpus, path))
        with opened(path, bounded=False) as texts:
            assert sum(1 for _ in texts) == 10_000
    monkeypatch.setattr(files, "MAX_LINE", 100)
    path = written(b"a\n" + b"b" * 100 + b"\nc")(tmp_path / "a.txt")
    refused(("a.txt, line 2: a line of more than 16", read_corpus, path))
    assert len(read_corpus(written(b"a\n" + b"b" * 99 + b"\nc")(path))) == 3


def test_no_more_than_a_batch_is_in_memory(tmp_path):
    texts = [f"{k} {'word ' * 40}{k}" for k in range(200_000)]
    folder = parquet(tmp_path / "x", [texts], rows=10_000)
    size, before, most = pa.array(texts).nbytes, pa.total_allocated_bytes(), 0
    with opened(folder, column="text", bounded=False) as texts:
        for number, _ in enumerate(texts):
            if number % 5_000 == 0:
                most = max(most, pa.total_allocated_bytes() - before)
    assert number == 199_999
    assert most < size / 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_that_nothing_writes_to_is_empty(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(("pipe, line 1: the file is empty", read_corpus, tmp_path / "pipe"))


# -- bad input; more of it stands in tests/first_contact.txt -------------------------

SHARD = "data-00000-of-00001.arrow"
DOCUMENT = [{"text": "a b"}, {"text": "c"}] * 30
NESTED = {"meta": {"text": "a b", "x.y": {"z": "c d"}}, "meta.text": "e f", "n": None}
LINE = json.dumps(NESTED)
STRINGS = ["", *(json.dumps(x) for x in TEXTS * 9), ""]
LISTS = [json.dumps({"prompt": "a b", "outputs": ["a b", "c"]})] * 3


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
        file = saved(path, [["a b c d e f"] * 999]) / SHARD
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


OLD = "x: a selection of rows, as old versions of datasets saved it; load it"
ROW_5 = "00001-of-00003.parquet, row 5: column 'text': expected a string, got N"
STATE = "x: state.json is not what save_to_disk of a dataset wr"
STATES = b"[]", b"{", b'{"_data_files": [1]}'
BROKEN = f"{SHARD}: the Arrow file is broken: "
AS_JSON, AS_TABLE = "x, line 1: .*JSON", "x.*, line 1: .*column=NAME"
BAD = [
    (written(compress("a".encode("utf-16"))), {}, "x: UTF-16, expected UTF-8"),
    (written(b"\xfe\xff\0a"), {}, "x: UTF-16, expected UTF-8"),
    (written("a".encode("utf-32")), {}, "x: UTF-32, expected UTF-8; .*: iconv -f U"),
    (written(b"\0\0\xfe\xff\0\0\0a"), {}, "x: UTF-32, expected UTF-8"),
    (written(b"BZh91AY"), {}, "x: a bzip2 file, expected text, gzip or zstd; unpack"),
    (written(b"\xfd7zXZ\0"), {}, "x: a xz file"),
    (written(compress(b"a b" * 99)[:15] + b"x" * 40), {}, "x: the gzip file is broken"),
    (written(zstd.compress(b"a b" * 99)[:9] + b"k"), {}, "x: the zstd file is broken"),
    (written(b"PAR1xxxxxxxxx"), {}, "x: the Parquet file is broken"),
    (lambda path: written(compress(b"a,b"))(path.with_suffix(".csv.gz")), {}, AS_TABLE),
    (written(json.dumps(DOCUMENT)), FIELD, AS_JSON),
    (written(json.dumps(DOCUMENT, indent=1)), {}, AS_JSON),
    (written(json.dumps(DOCUMENT, indent=1)), {"field": "a"}, AS_JSON),
    (written('{"a": "b"}\nb'), {"field": "a"}, "x, line 2: .*, got b; mend or rem"),
    (written('{"a": "b"}\n{"a": "'), {"field": "a"}, "line 2: .*which is no JSON$"),
    (written('{\n"a": "b"}'), {"field": "a"}, "line 1: .* got {; write one object"),
    (written('# a\n{"a": "b"}'), {"field": "a"}, "line 1: expected a JSON object"),
    (written('{"a": "b"}\n[1]'), {"field": "a"}, "line 2: .* on each line, got .1"),
    (written("a,b\n1"), {"column": "b"}, "line 2: column 'b': .* string, got None"),
    (written('a\n"a\n' + "c\n" * 99_999), {"column": "a"}, "line .*quote left open"),
    (written(LINE), {"field": "meta.lost"}, "x, line 1, meta: no f.*: text, x.y$"),
    (written(LINE), {"field": "lost.text"}, "x, line 1: no field 'lost.text'; the"),
    (written(LINE), {"field": "n.text"}, "x, line 1: no field 'n.text'; there are"),
    (written(LINE), {"field": "meta"}, "field 'meta': expected a string, got {'text'"),
    *((written(STRINGS), x, 'line 1: JSON strings.*[(]field="."') for x in ({}, FIELD)),
    (written([*STRINGS, '"a" b']), {"field": "."}, 'line 48: .* string .*"a" b'),
    (written(LISTS), {"field": "outputs"}, "line 1: .* prompt are for --prompts"),
    (of_columns, TEXT, "x, row 3: column 'text': expected a string, got None"),
    (piped, TEXT, "stream: the Parquet file is broken: "),
    (with_file("a.parquet", b"a b\n", Path.mkdir), TEXT, "x/a.parquet: the Parquet fi"),
    (dataset_of_splits, TEXT, "x: a saved dataset of several splits; .*: .*/x/test, "),
    (with_file(SHARD, None), TEXT, f"x: {SHARD} is missing; copy the whole"),
    *((cut_to(size), TEXT, BROKEN) for size in (60, -2000)),
    *((with_file("state.json", state), TEXT, STATE) for state in STATES),
    (lambda path: saved(path, [["a b"]], _indices_data_files=[{}]), TEXT, OLD),
    (lambda path: parquet(path, [["a b"], ["a"] * 4 + [None]]), TEXT, ROW_5),
    (lambda path: saved(path, [["", ""]]), TEXT, "no line has a token"),
    (lambda path: Files((written(" ")(path), path)), {}, "x, .*x, line 1: no line has"),
]


@pytest.mark.parametrize(("make", "options", "message"), BAD)
def test_what_cannot_be_read_is_told_in_one_line(tmp_path, make, options, message):
    with pytest.raises(ValueError, match=message) as raised:
        read_corpus(make(tmp_path / "x"), **options)
    assert "\n" not in str(raised.value)


def test_bad_tables_streams_and_tokenizers(tmp_path, as_a_user):
    path = written(b"a b\nc\n")(tmp_path / "f")
    read, named = partial(read_corpus, path), partial(read_corpus, column="text")
    other, none = partial(read_corpus, column="x"), Rows(["a b"], None)
    numbers = pa.table({"text": [1]})
    refused(
        ("expected a file in binary mode, got one of t", read_corpus, io.StringIO("a")),
        ("line 1: expected a list of tokens, got str", read, str.lower),
        ("line 1: a token is a bytes", read, lambda line: line.encode().split()),
        ("got a Rows: give one column, as in", read_corpus, Rows(["a b"])),
        ("a Rows without a column 'x'; there are: 'i", other, Rows(["a b"])),
        ("row 0: expected a dictionary with 'x", other, none),
        ("text 1: expected a string, got NoneType, a miss", named, Rows(["a b", None])),
        ("a Table without a column 'text'; there are:", named, pa.table({"a": ["b"]})),
        ("text 0: expected a string or a list of to", named, numbers),
        error=TypeError,
    )
    refused(("'whitespace', '13a', 'characters' or a function", read, "words"))
    both = Files((path, tmp_path / "lost.txt"))
    refused(("lost.txt", read_corpus, both), error=FileNotFoundError)


@pytest.mark.parametrize("make", [one_file, parquet, saved, zstd])
def test_an_extra_that_is_missing_is_named(tmp_path, monkeypatch, make):
    if make is zstd:
        source, modules = written(zstd.compress(b"a b"))(tmp_path / "x"), ["", ".zstd"]
        modules = [f"{x}{y}" for x in ("compression", "backports") for y in modules]
    else:
        shards = {} if make is one_file else {"shards": [["a b"]]}
        source, modules = make(tmp_path / "x", **shards), ["pyarrow.parquet"]
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    said = "zstd" if make is zstd else "parquet"
    with pytest.raises(ModuleNotFoundError, match=rf'x: .*"qdtheory\[{said}\]"'):
        read_corpus(source, **({} if make is zstd else TEXT))


def test_parquet_that_is_broken_anywhere_is_read_or_refused(tmp_path):
    path = one_file(tmp_path / "x", text=["a b", "c"] * 99)
    content, rng = path.read_bytes(), random.Random(0)
    for _ in range(100):
        broken = bytearray(content)
        broken[rng.randrange(4, len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken[: rng.choice([len(content), rng.randrange(4, 900)])])
        with suppress(ValueError):
            read_corpus(path, column="text")
