"""Texts in quotes, with numbers or marks, of ids or in capitals: told at each door."""

import re
from functools import partial

import pytest
from lab import corpora
from refusals import refused

from qdtheory import text
from qdtheory.commands.outputs import with_options
from qdtheory.text.looks import odd_ends, told_later, unlike

PLAIN = ["a cat sat .", "the dog ran .", "a bird in a tree .", "it 's 3:30 , he said ."]
PLAIN = [f"{line[:-1]}{n} ." for n in range(5) for line in PLAIN]
NUMBERED = [f"{n}. {line}" for n, line in enumerate(PLAIN, 1)]
WRITTEN = {
    said: [form.format(line) for line in PLAIN]
    for said, form in {
        'begin with " and end with "': '"he said "{}""',
        "begin with [ and end with ]": "[{}]",
        "begin with '<s>'": "<s>{}",
        "end with '</s>'": "{} </s>",
        "end with '<|endoftext|>'": "{} <|endoftext|>",
        "begin with '-'": "- {}",
        "begin with 'Answer:'": "Answer: {}",
    }.items()
} | {"begin with a list number": NUMBERED}


def looked_at(lines, **options):
    with told_later():
        return odd_ends(text.as_corpus(lines, **options), "x")


@pytest.mark.parametrize("said", WRITTEN)
def test_what_stands_at_the_ends_of_every_line_is_told_once(said, tmp_path):
    path = tmp_path / "model.txt"
    path.write_text("\n".join(WRITTEN[said]) + "\n", "utf-8")
    start = f"100% of the sentences of {path} {said}, which counts as text: take it off"
    with pytest.warns(text.TextWarning, match=re.escape(start)) as told:
        text.read_corpus(path)
    assert [x.filename for x in told] == [__file__]
    with pytest.warns(text.TextWarning, match=re.escape(f"this text {said}, ")):
        assert 0 < text.bleu(WRITTEN[said], PLAIN)[0] < 1


def test_marks_that_are_split_or_at_both_ends_are_told_each_and_are_no_brackets():
    for tokenizer in ("13a", "characters"):
        for said in ("end with '</s>'", "begin with a list number"):
            (line,) = looked_at(WRITTEN[said], tokenizer=tokenizer)
            assert line.startswith(f"100% of the sentences of x {said}")
    lines = [f"[CLS] {line} [SEP]" for line in PLAIN]
    one, other = looked_at(lines)
    assert "begin with '[CLS]'" in one
    assert "end with '[SEP]'" in other
    assert looked_at([line.split() for line in lines]) == (one, other)


@pytest.mark.parametrize(("share", "told"), [(0.88, False), (0.92, True)])
def test_the_share_is_that_of_all_lines_with_a_token(share, told):
    lines = [f"{PLAIN[i % 20]}{' </s>' * (i % 100 < 100 * share)}" for i in range(2000)]
    found = looked_at([*lines, *[""] * 500])
    assert [line.split()[0] for line in found] == [f"{share:.0%}"] * told


@pytest.mark.parametrize(
    "lines",
    [
        PLAIN,
        ["he said hi."] * 9,  # a full stop on every line
        ["a </s>"] * 2,  # too few for a share
        *([line] * 9 for line in ("1.5 litres", "3:30 , he said", "' a b", '"')),
        [[5, 6, 1]] * 9,  # ids: 1 may be a full stop
    ],
)
def test_ordinary_text_gives_no_alarm(lines):
    assert odd_ends(text.as_corpus(lines)) == ()


# --- two texts -----------------------------------------------------------------------

NUMBERS = [[1, 2, 3, 4, 5], [2, 3, 4, 5, 6], [6, 7, 8, 1, 2]] * 20
METRICS = [
    text.bleu,
    text.bleu_scores,
    lambda ours, theirs: text.bleu(ours, text.prepare_references(theirs)),
    lambda ours, theirs: text.self_bleu(ours, against=theirs),
    *(partial(f, n=1) for f in (text.coverage_rate, text.cnd, text.jaccard_index)),
    lambda ours, theirs: text.cnd(ours, text.ngram_counts(theirs, 2), 2),
    partial(text.ms_jaccard, max_order=1),
    corpora.paired_bleu,
    corpora.paired_bleu_scores,
    corpora.rouge,
    corpora.rouge_scores,
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
    for way in (str.upper, str.capitalize):
        capitals = [*map(way, PLAIN)]
        for both in ((capitals, PLAIN), (PLAIN, capitals)):
            with pytest.warns(text.TextWarning, match="for its case: lower-case both"):
                metric(*both)
    # Here a warning is an error.
    metric(PLAIN, PLAIN)
    metric(capitals, capitals)
    metric(text.as_corpus(capitals, lowercase=True), PLAIN)


def test_capitals_and_numerals_on_one_side_are_told_by_their_shares():
    known = ["The", "cat", "that", "Smith", "saw", "sat", "beside", "a", "bird", "."]
    (said,) = unlike([word.upper() for word in known], known)
    assert " and 20% of those of the references" in said
    words = ("a", "cat", "2", *map(chr, range(98, 120)))
    (said,) = unlike(("5", "17", "3"), words, "x")
    assert said.startswith("100% of the words of x are numbers, and 4% of those of the")
    alike = [(known, known[:9]), ((), (1, 2)), ((1, "a"), ("a",)), (("1",), ("1", "3"))]
    assert {unlike(*both) for both in alike} == {()}


# --- reports and commands ------------------------------------------------------------


def test_a_report_names_the_text_that_is_refused():
    said = "model: strings against token ids: 1 and 'a'"
    refused((said, text.evaluate, {"model": NUMBERS}, PLAIN, 1))


def test_a_report_tells_all_and_reading_for_it_nothing(tmp_path):
    path = tmp_path / "real.txt"
    path.write_text("\n".join(NUMBERED).lower(), "utf-8")
    loud = [line.upper() for line in NUMBERED]
    given = {"loud": loud, "ends": WRITTEN["end with '</s>'"]}
    found = text.evaluate(given, path, max_order=2)
    told = "the references begin with a list", "loud begin with a list number"
    told = *told, "ends end with '</s>', which", "of the words of loud have capit"
    for line, said in zip(found.warnings[:4], told, strict=True):
        assert said in line
    assert with_options(line).endswith("lower-case both (--lowercase)")
    low = text.evaluate(given, path, max_order=2, lowercase=True)
    assert not [line for line in low.warnings if "capitals" in line]
