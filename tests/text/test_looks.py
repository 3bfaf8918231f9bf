"""Texts in quotes, with numbers or marks, of ids or in capitals: told at each door."""

import re
from functools import partial
from unicodedata import normalize

import numpy as np
import pytest
from lab import corpora
from refusals import refused

from qdtheory import text
from qdtheory.commands.outputs import with_options
from qdtheory.text.checks import told_later
from qdtheory.text.comparability import warnings_of_texts
from qdtheory.text.looks import odd_looks, seen, unlike

PLAIN = ["a cat sat .", "the dog ran .", "a bird in a tree .", "it 's 3:30 , he said ."]
PLAIN = [f"{line[:-1]}{n} ." for n in range(5) for line in PLAIN]
NUMBERED = [f"{n}. {line}" for n, line in enumerate(PLAIN, 1)]
WRITTEN = {
    said: [form.format(line) for line in PLAIN]
    for said, form in {
        'stand in ""': '"he said "{}""',
        "hold <s>": "<s>{}",
        "hold <pad>": "{} <pad> <pad> <pad> sat",
        "hold -100": "{} -100 -100",
        "hold **": "**so** {}",
        "hold &amp;": "{} &amp; so on",
        "reason in <think>": "<think> {} is it so?",
        "begin with -": "- {}",
        "begin with Answer:": "Answer: {}",
    }.items()
} | {
    "begin with a list number": NUMBERED,
    "have no space between words": ["我喜欢这个城市的公园。"] * 20,
}


def looked_at(lines, **options):
    with told_later():
        return odd_looks("x", seen(text.as_corpus(lines, **options)))


@pytest.mark.parametrize("said", WRITTEN)
def test_what_every_line_has_beside_its_text_is_told_once(said, tmp_path):
    path = tmp_path / "model.txt"
    path.write_text("\n".join(WRITTEN[said]) + "\n", "utf-8")
    start = f"100% of the sentences of {path} {said}, "
    with pytest.warns(text.TextWarning, match=re.escape(start)) as told:
        text.read_corpus(path)
    assert [x.filename for x in told] == [__file__]
    with pytest.warns(text.TextWarning, match=re.escape(f"this text {said}, ")):
        assert 0 <= text.bleu(WRITTEN[said], PLAIN)[0] < 1


def test_marks_that_a_tokenizer_splits_and_several_of_a_line_are_told_in_one():
    for tokenizer in ("13a", "characters"):
        for said in ("hold <pad>", "begin with a list number"):
            (line,) = looked_at(WRITTEN[said], tokenizer=tokenizer)
            assert line.startswith(f"100% of the sentences of x {said}")
    assert "hold [CLS], [SEP], which" in looked_at(["[CLS] a [SEP]"] * 9)[0]
    assert not looked_at([f"{x}{' </s>' * (i % 20 > 3)}" for i, x in enumerate(PLAIN)])


def test_ordinary_text_gives_no_alarm():
    lines = "he said hi.", "1.5 litres", "3:30 , he said", "' a b", '"', [5, 6, 1]
    # Two are too few for a share.
    for text_of in (PLAIN, ["a </s>"] * 2, *([line] * 9 for line in lines)):
        assert looked_at(text_of) == ()


# --- two texts -----------------------------------------------------------------------

NUMBERS = [[1, 2, 3, 4, 5], [2, 3, 4, 5, 6], [6, 7, 8, 1, 2]] * 20
METRICS = [
    text.bleu,
    lambda ours, theirs: text.bleu(ours, text.prepare_references(theirs)),
    lambda ours, theirs: text.self_bleu(ours, against=theirs),
    partial(text.coverage_rate, n=1),
    lambda ours, theirs: text.cnd(ours, text.ngram_counts(theirs, 2), 2),
    partial(text.ms_jaccard, max_order=1),
    *(corpora.paired_bleu, corpora.rouge),
]


@pytest.mark.parametrize("metric", [*METRICS, corpora.reverse_lm_score])
def test_strings_against_token_ids_are_refused(metric):
    strings = [f"{line} {n}" for n, line in enumerate(PLAIN * 3)]
    refused(
        ("strings against token ids: ", metric, strings, NUMBERS),
        (" are never equal; decode the ids", metric, NUMBERS, strings),
    )


@pytest.mark.parametrize("metric", METRICS)
def test_capitals_against_lower_case_are_told(metric):
    capitals = [*map(str.capitalize, PLAIN)]
    for both in ((capitals, PLAIN), (PLAIN, capitals)):
        with pytest.warns(text.TextWarning, match="are two; lower-case both"):
            metric(*both)
    # Here a warning is an error.
    metric(capitals, capitals)
    metric(text.as_corpus(capitals, lowercase=True), PLAIN)


def drawn(seed):
    words = ["the", "a", "man", "dog", "cat", "park", "café", "Smith", "7", "it's"]
    rng = np.random.default_rng(seed)
    return [f"{' '.join(rng.choice(words, rng.integers(6, 14)))} ." for _ in range(300)]


ONE_SIDED = {
    "'cafe\u0301' and 'café' are two; use NFKC": lambda x: normalize("NFD", x),
    "s' and \"it's\" are two; use one": lambda x: x.replace("'", "\u2019"),
    "and 'a' are two; lower-case both (lowercase=True)": str.upper,
    'two; split both alike (tokenizer="13a")': lambda x: x.replace(" .", "."),
    "hold <pad>, which counts as text": lambda x: f"{x}{' <pad>' * (x[0] == 'a')}",
    "have PAD, the other side does not: take marks off": lambda x: f"{x} PAD PAD",
    "have ., the other side does not": lambda x: x[:-2],
    "have numbers alone, the other": lambda x: " ".join(str(len(y)) for y in x.split()),
}


@pytest.mark.parametrize("said", ONE_SIDED)
def test_what_one_side_alone_has_is_told_of_whichever_it_is(said):
    ours, theirs = drawn(0), drawn(1)
    odd = [*map(ONE_SIDED[said], ours)]

    def told(*both):
        ours, theirs = map(text.as_corpus, both)
        return [*warnings_of_texts({"x": ours}, theirs, "pairs")]

    for both in ((odd, theirs), (theirs, odd)):
        assert sum(said in line for line in told(*both)) == 1
    assert [*told(ours, theirs), *told(odd, odd[:])] == []
    alike = [((), (1, 2)), ((1, "a"), ("a",)), (("1",), ("1", "3"))]
    assert {unlike(*both) for both in alike} == {()}


# --- reports and commands ------------------------------------------------------------


def test_a_report_tells_all_and_reading_for_it_nothing(tmp_path):
    path = tmp_path / "real.txt"
    path.write_text("\n".join(NUMBERED).lower(), "utf-8")
    loud = [line.upper() for line in NUMBERED]
    given = {"loud": loud, "ends": WRITTEN["hold <pad>"]}
    found = text.evaluate(given, path, max_order=2).warnings
    told = "the references begin with a list", "loud begin with a list number"
    told = *told, "ends hold <pad>, which", "of the words of loud alone have capit"
    assert all(said in line for said, line in zip(told, found))
    assert with_options(found[3]).endswith("lower-case both (--lowercase)")
    said = "model: strings against token ids: 1 and 'a'"
    refused((said, text.evaluate, {"model": NUMBERS}, PLAIN, 1))
