"""Corpora: texts of any container, file or stream, or one clear error."""

import csv
import gzip
import io
import json
import os
import random
import threading
from collections import deque
from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar

from qdtheory.text import as_corpus, files, read_corpus
from qdtheory.text.containers import characters, described, mteval_13a, splitter
from qdtheory.text.files import Files
from qdtheory.text.sources import opened

zstd = files._zstd("tests")  # of Python 3.14, or its backport
# Without a time stamp: the bytes name the test, and every process must agree on them.
compress = partial(gzip.compress, mtime=0)
TEXT = {"field": "text"}
TEXTS = ["a b c", "", "b c\nd", "é c", "a a"]
TOKENS = [text.split() for text in TEXTS]
token_lists = st.lists(
    st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=12
).filter(any)


@given(token_lists)
def test_a_corpus_gives_back_its_sentences(texts):
    whole, corpus = as_corpus(texts), as_corpus(texts, empty="skip")
    kept = [tuple(text) for text in texts if text]
    assert list(whole) == list(map(tuple, texts))
    assert whole.num_empty == corpus.empty_lines == len(texts) - len(kept)
    assert whole.empty_lines == corpus.num_empty == 0
    # A corpus drops them as a list does, and says so.
    again = as_corpus(whole, empty="skip")
    assert list(again) == list(corpus) == kept
    assert again.empty_lines == corpus.empty_lines
    assert as_corpus(corpus) is corpus
    assert corpus.lengths.tolist() == [len(text) for text in kept]
    assert corpus.num_tokens == sum(map(len, kept))
    words = tuple(dict.fromkeys(t for text in kept for t in text))
    assert whole.vocabulary == corpus.vocabulary == words


@given(token_lists, st.slices(12), st.lists(st.integers(-4, 3), max_size=5))
def test_indexing_agrees_with_a_list(texts, part, positions):
    corpus, kept = as_corpus(texts), list(map(tuple, texts))
    assert list(corpus[part]) == kept[part]
    assert np.shares_memory(corpus[:9].tokens, corpus.tokens)
    assert corpus[part].vocabulary is corpus.vocabulary
    with pytest.raises(IndexError, match="out of range"):
        corpus[len(kept)]
    positions = [i for i in positions if -len(kept) <= i < len(kept)]
    assert list(corpus[np.array(positions, int)]) == [kept[i] for i in positions]
    assert [corpus[i] for i in positions] == [kept[i] for i in positions]
    mask = corpus.lengths > 2
    assert list(corpus[mask]) == [text for text in kept if len(text) > 2]


# -- containers ----------------------------------------------------------------------


class Column:
    """What Polars' Series has: no `tolist`, and iteration over Python objects."""

    def __init__(self, texts):
        self.texts = texts

    def to_list(self):
        return self.texts

    def __iter__(self):
        return iter(self.texts)


BOTH = [tuple, iter, deque, pd.Series, pa.array, Column]
CONTAINERS = [
    *((make, TEXTS) for make in BOTH),
    *((make, TOKENS) for make in BOTH),
    (np.array, TEXTS),
    (lambda texts: np.array(texts, np.dtypes.StringDType()), TEXTS),
    (partial(pd.Series, dtype="category"), TEXTS),
    (lambda texts: pa.chunked_array([texts[:1], texts[1:]]), TEXTS),
    (lambda tokens: [np.array(row, object) for row in tokens], TOKENS),
    (lambda tokens: map(tuple, tokens), TOKENS),
]


@pytest.mark.parametrize(("make", "texts"), CONTAINERS)
def test_every_container_gives_the_corpus_of_the_list(make, texts):
    corpus = as_corpus(make(texts))
    assert list(corpus) == list(map(tuple, TOKENS))
    assert corpus.tokenizer == ("white space" if texts is TEXTS else None)


def test_a_token_is_a_word_of_any_kind_or_an_integer():
    assert list(as_corpus(["a b\ta", "  ", "c"])) == [("a", "b", "a"), (), ("c",)]
    for row in ([3, 1], list(np.array([3, 1])), np.array([3, 1])):
        assert list(as_corpus([row])) == [(3, 1)]


def test_what_is_split_already_is_not_split_again(as_a_user):
    split = as_corpus(TEXTS, tokenizer="characters", lowercase=True)
    assert as_corpus(split, "keep", "characters", True) is split
    assert as_corpus(split) is split
    parts = split[:2], split[::2], split[np.array([0])]
    assert {part.tokenizer for part in parts} == {"characters, lower-cased"}
    said = "tokenizer and lowercase are for strings: these texts came split, by "
    again = partial(as_corpus, tokenizer="13a")
    refused((f"{said}characters, lower-cased", again, split))
    refused((f"{said}the caller", again, TOKENS))


def test_what_holds_no_texts_is_refused_by_its_place(as_a_user):
    missing = ", a missing value: drop it, or give '' if the model wrote nothing"
    table, arrow = pd.DataFrame({"text": ["a"]}), pa.table({"id": [1], "text": ["a"]})
    rows = [
        (f"text 1: expected a string, got NoneType{missing}", ["a b", None]),
        (f"text 1: expected a string, got float{missing}", pd.Series(["a", np.nan])),
        (f", got NAType{missing}", pd.Series(["a", None], dtype="string")),
        ("text 0: expected a string or a list of tokens, got byte", np.array([b"a"])),
        ("text 1: expected a list of tokens, got int", [["a"], 3]),
        ("text 1 is a list and the first a string", ["a b", ["c"]]),
        ("text 1: a token is a float", [["a"], [1.5]]),
        ("share one list of references", [["the cat sat", "a cat"]]),
        ("got a dict: give one of its values, of 'm'", {"m": ["a b"]}),
        ("got a set, which holds no sentence twice: give all", {"a b"}),
        ("got one str: put the sentence in a list", "a b"),
        ("got the file StringIO: read_corpus reads files", io.StringIO("a b")),
        ('got a DataFrame: give one column, as in table["text"]', table),
        ('got a Table: give one column, as in table["text"]', arrow),
        ("expected a Corpus, a list of strings or a list of token lists, got int", 3),
    ]
    refused(*((words, as_corpus, x) for words, x in rows), error=TypeError)
    none = "at least one sentence with a token, got none"
    refused(*((none, as_corpus, x) for x in ([], ["", " "], as_corpus(["a"])[1:])))


# -- every form ----------------------------------------------------------------------

LINES = [text.replace("\n", " ") for text in TEXTS]
PLAIN = "\n".join(LINES).encode()


def written(content):
    """A file of some bytes, text or lines."""

    def write(path):
        text = "\n".join(content) if isinstance(content, list) else content
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def parquet(path, kind=None, rows=2, **columns):
    """A Parquet file of some texts, or of these columns."""
    columns = columns or {"id": range(5), "text": pa.array(TEXTS, kind)}
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=rows)
    return path


def several(path):
    written(PLAIN[:7])(path)
    return Files((path, io.BytesIO(compress(PLAIN[7:]))))


def table(texts, delimiter):
    file = io.StringIO()
    rows = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    rows.writerows([("id", "text"), *enumerate(texts)])
    return file.getvalue()


def records(texts):
    return [{"id": i, "text": text} for i, text in enumerate(texts)]


RECORDS = records(TEXTS)
FORMS = [
    *((written(x), {}) for x in (PLAIN, b"\xef\xbb\xbf" + PLAIN)),
    (written(PLAIN.replace(b"\n", b"\r\n") + b"\r\n"), {}),
    (written(compress(PLAIN[:9]) + compress(PLAIN[9:])), {}),
    (written(zstd.compress(b"\xef\xbb\xbf" + PLAIN)), {}),
    (lambda path: io.BytesIO(compress(PLAIN)), {}),
    (several, {}),
    (written([json.dumps({"x": {"text": x}}) for x in TEXTS]), {"field": "x.text"}),
    (written([json.dumps(x) for x in TEXTS]), {"field": "."}),
    *((written(table(TEXTS, x)), TEXT) for x in ",\t;"),
    (written(json.dumps(RECORDS)), TEXT),
    (written(json.dumps({"of": [1], "rows": RECORDS}, indent=1)), TEXT),
    (written("\n".join(json.dumps(x, indent=1) for x in RECORDS)), TEXT),
    (written(json.dumps(TEXTS, indent=0)), {}),
    (written([json.dumps({"c": [0, {"message": {"content": x}}]}) for x in TEXTS]),
     {"field": "c.1.message.content"}),
    (written([json.dumps({"resps": [[x]]}) for x in TEXTS]), {"field": "resps.0"}),
    (written([json.dumps({"c": [{"message": {"content": x}}]}) for x in TEXTS]),
     {"field": "c"}),
    (lambda path: parquet(path, m=[{"text": [x], "n": 1} for x in TEXTS]),
     {"field": "m.text"}),
    (lambda path: parquet(path, pa.large_string()), TEXT),
    (lambda path: parquet(path, text=pa.array(TEXTS).dictionary_encode()), TEXT),
    (lambda path: io.BytesIO(compress(parquet(path).read_bytes())), TEXT),
]  # fmt: skip


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
    rows = records(texts)
    forms = "\n".join(map(json.dumps, rows)), json.dumps(rows, indent=1)
    for content in (*forms, table(texts, ","), table(texts, "\t")):
        with opened(io.BytesIO(content.encode()), "text") as found:
            assert [*found] == texts


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\n a b \n\t\n\nc\n", ["", "a b", "", "", "c"]),
        (b"a b\r\n\r\n", ["a b", ""]),
        ("a b\nc\u2028d\x0ce\n".encode(), ["a b", "c d e"]),
    ],
)
def test_empty_lines_are_kept_or_skipped(tmp_path, content, expected):
    path = written(content)(tmp_path / "f")
    corpus, rest = read_corpus(str(path)), read_corpus(path, empty="skip")
    assert [" ".join(text) for text in corpus] == expected
    assert [" ".join(text) for text in rest] == [*filter(None, expected)]
    assert corpus.num_empty == rest.empty_lines == expected.count("")
    assert corpus.empty_lines == rest.num_empty == 0


def test_prose_stays_prose(tmp_path):
    ask = partial(read_corpus, field="text")
    for content in ("1 2\n3\n", "a\tb\nc\n", "one, two\nthree, a\n", '"a," he\n"b"\n',
                    "[ applause ]\na b\n", "{ a }\n", "a,b\nc,d\n"):  # fmt: skip
        path = written(content)(tmp_path / "a.txt")
        assert len(read_corpus(path)) == len(ask(path)) == content.count("\n")


def test_a_key_with_dots_wins_over_a_path():
    for field, expected in (("meta.text", "e f"), ("meta.x.y.z", "c d")):
        with opened(io.BytesIO(LINE.encode()), field) as found:
            assert [*found] == [expected]


# -- streams, and what has no end ----------------------------------------------------


def test_a_pipe_is_read_in_pieces():
    reading, writing = os.pipe()
    packed = compress(b"a b\nc\n" * 1000)

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
    monkeypatch.setattr(files, "MAX_BYTES", 12_000)
    path = parquet(tmp_path / "f", text=["a" * 100] * 150)
    read = partial(read_corpus, field="text")
    refused((f"{path}: more than 1 GiB of text", read, path))
    with opened(path, field="text", bounded=False) as texts:
        assert sum(1 for _ in texts) == 150
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
    path = parquet(tmp_path / "x", rows=10_000, text=texts)
    size, before, most = pa.array(texts).nbytes, pa.total_allocated_bytes(), 0
    with opened(path, field="text", bounded=False) as texts:
        for number, _ in enumerate(texts):
            if number % 5_000 == 0:
                most = max(most, pa.total_allocated_bytes() - before)
    assert number == 199_999
    assert most < size / 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_that_nothing_writes_to_is_empty(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(("pipe, line 1: the file is empty", read_corpus, tmp_path / "pipe"))


def test_a_cell_of_a_table_is_as_long_as_a_line_may_be(tmp_path):
    path = written("text\n" + "a " * 10**5)(tmp_path / "x.csv")
    assert read_corpus(path, field="text").num_tokens == 10**5


# -- bad input; more of it stands in tests/first_contact.txt -------------------------

NESTED = {"meta": {"text": "a b", "x.y": {"z": "c d"}}, "meta.text": "e f", "n": None}
LINE = json.dumps(NESTED)
STRINGS = ["", *(json.dumps(x) for x in TEXTS * 9), ""]
LISTS = [json.dumps({"prompt": "a b", "outputs": ["a b", "c"]})] * 3


BAD = [
    (written(b"\xfe\xff\0a"), {}, "x: UTF-16, expected UTF-8"),
    (written("a".encode("utf-32")), {}, "x: UTF-32, expected UTF-8; .*: iconv -f U"),
    (written(b"BZh91AY"), {}, "x: a bzip2 file, expected text, gzip or zstd; unpack"),
    (written(compress(b"a b" * 99)[:15] + b"x" * 40), {}, "x: the gzip file is broken"),
    (written(zstd.compress(b"a b" * 99)[:9] + b"k"), {}, "x: the zstd file is broken"),
    (lambda path: written(compress(b"a,b\n1,2"))(path.with_suffix(".csv.gz")), {},
     "csv.gz: name the field .*there are: a, b$"),
    (written("a\tb\n1\t2"), {}, "x: name the field that holds the .*are: a, b$"),
    (written("a,text\n1,2\n3,4"), {"field": "b"}, "line 2: no field 'b'; .*: a, text$"),
    (written(json.dumps([*RECORDS, 3])), TEXT, "record 6: expected a JSON obj"),
    (written(json.dumps(RECORDS, indent=1)[:-9]), TEXT, "x, line 20: expected a JSON "),
    (written("a b\rc d\r"), {}, "x, line 1: a line end of old Macs .*: tr '"),
    (written("a b\r\nc\rd\r\n"), {}, "x, line 2: a carriage return .*: sed ."),
    (lambda path: written(json.dumps(RECORDS, indent=1)[:-9])(
        path.with_suffix(".jsonl")), {}, "jsonl, line 20: expected a JSON "),
    (written('{"a": "b"}\nb'), {"field": "a"}, "x, line 2: .*, got b; mend or rem"),
    (written('{"a": "b"}\n{"a": "'), {"field": "a"}, "line 2: .*, got {.*or remov"),
    (written("a,b\n1"), {"field": "b"}, "line 2: 1 cells, expected 2 as in .*(a,b)"),
    (written("a,b\n1,2\n1,2,3"), {"field": "b"}, "line 3: 3 cells, expected 2 as in"),
    (written("a,b,a\n1,2,3"), {"field": "b"}, "line 1: columns of one name, 'a'; ren"),
    (written('a,b\n1,"c\nd"\n2,"e\n3,f\n'), {"field": "b"}, "line 4: .* quote that op"),
    (written('a,b\n1,"c\n2,"e"\n'), {"field": "b"}, "line 2: .* quote that opens i"),
    (written('a\n"a\n' + "c\n" * 99_999), {"field": "a"}, "line 2: .*quote that opens"),
    (written([LINE] * 2), {"field": "meta.lost"}, "line 1, meta: no f.*: text, x.y$"),
    (written(LINE), {"field": "n"}, "record 1: field 'n': expected a string, got None"),
    *((written(STRINGS), x, 'line 1: JSON strings.*[(]field="."') for x in ({}, TEXT)),
    (written([*STRINGS, '"a" b']), {"field": "."}, 'line 48: .* string .*"a" b'),
    (written(LISTS), {}, "x: name the field .*: prompt, outputs; add --prompts"),
    (written(LISTS), {"field": "outputs"}, "line 1: .*; add --prompts .*, outputs.0$"),
    (written([json.dumps({"doc_id": 7, "x": "a", "filter": y}) for y in "bc"]),
     {"field": "x"}, "line 2: the doc_id of .*, line 1 again, by another filter, c; k"),
    (lambda path: io.BytesIO(parquet(path).read_bytes()[:-9]), TEXT,
     "stream: the Parquet file is broken: "),
    (lambda path: parquet(path, text=[*"abcd", None]), TEXT, "x, row 5: .*got None"),
    (lambda path: pyarrow.parquet.write_table(pa.table(
        [pa.array(TEXTS)] * 2, ["text"] * 2), path) or path, TEXT, "x: columns of one"),
    (parquet, {"field": "body"}, "x: no field 'body' .*; there are: id, text$"),
    (lambda path: path.mkdir() or path, {}, "x: a folder, expected a file; give its f"),
    (lambda path: Files((written(" ")(path), path)), {}, "x, .*x, line 1: no line has"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "options", "message"), BAD)
def test_what_cannot_be_read_is_told_in_one_line(tmp_path, make, options, message):
    with pytest.raises(ValueError, match=message) as raised:
        read_corpus(make(tmp_path / "x"), **options)
    assert "\n" not in str(raised.value)


def test_bad_streams_and_tokenizers(tmp_path, as_a_user):
    path = written(b"a b\nc\n")(tmp_path / "f")
    read = partial(read_corpus, path)
    refused(
        ("expected a file in binary mode, got one of t", read_corpus, io.StringIO("a")),
        ("line 1: expected a list of tokens, got str", read, str.lower),
        error=TypeError,
    )
    both = Files((path, tmp_path / "lost.txt"))
    refused(("lost.txt", read_corpus, both), error=FileNotFoundError)


def test_parquet_that_is_broken_anywhere_is_read_or_refused(tmp_path):
    path = parquet(tmp_path / "x", text=["a b", "c"] * 99)
    content, rng = path.read_bytes(), random.Random(0)
    for _ in range(100):
        broken = bytearray(content)
        broken[rng.randrange(4, len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken[: rng.choice([len(content), rng.randrange(4, 900)])])
        with suppress(ValueError):
            read_corpus(path, field="text")


# -- tokenizers: those of sacrebleu, and the names that choose them ------------------

SENTENCE = st.lists(
    st.sampled_from([*"ab59 .,-'\"&;()[]{}~`!@#$%^*_+=|\\/:<>?é٣。\u3000\t"])
    | st.sampled_from(["&quot;", "&amp;", "&lt;", "&gt;", "<skipped>", "-", "3.5"])
).map("".join)


@given(SENTENCE)
def test_tokens_are_those_of_sacrebleu(sentence):
    assert mteval_13a(sentence) == Tokenizer13a()(sentence).split()
    assert characters(sentence) == TokenizerChar()(sentence).split()


def test_names_and_functions_choose_a_tokenizer(as_a_user):
    assert splitter("whitespace") is str.split
    assert splitter("13a", lowercase=True)("It's A-1.") == ["it's", "a-1", "."]
    assert splitter(list)("a b") == ["a", " ", "b"]
    assert described("whitespace") == "white space"
    assert described(mteval_13a, lowercase=True) == "mteval_13a, lower-cased"
    said = "'whitespace', '13a', 'characters' or a function"
    refused(*((said, splitter, x) for x in ("intl", "", None, 3)))
