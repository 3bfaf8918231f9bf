"""Texts in quotes, with numbers or marks, of ids or in capitals: told at each door."""

import os
import re
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from lab import corpora

from qdtheory import text
from qdtheory.commands.outputs import with_options
from qdtheory.text.looks import odd_ends, tell, told_later, unlike

PLAIN = ["a cat sat .", "the dog ran .", "a bird in a tree .", "it 's 3:30 , he said ."]
PLAIN = [f"{line[:-1]}{n} ." for n in range(5) for line in PLAIN]
NUMBERED = [f"{n}. {line}" for n, line in enumerate(PLAIN, 1)]
WRITTEN = {
    'begin with " and end with "': [f'"he said "{line}""' for line in PLAIN],
    "begin with ' and end with '": [f"'{line}'" for line in PLAIN],
    "begin with “ and end with ”": [f"“{line}”" for line in PLAIN],
    "begin with [ and end with ]": [f"[{line}]" for line in PLAIN],
    "begin with '<s>'": [f"<s>{line}" for line in PLAIN],
    "end with '</s>'": [f"{line} </s>" for line in PLAIN],
    "end with '<|endoftext|>'": [f"{line}<|endoftext|>" for line in PLAIN],
    "end with '[SEP]'": [f"{line} [SEP]" for line in PLAIN],
    "begin with '-'": [f"- {line}" for line in PLAIN],
    "begin with 'Answer:'": [f"Answer: {line}" for line in PLAIN],
    "begin with a list number": NUMBERED,
}


def looked_at(lines, **options):
    with told_later():
        return text.as_corpus(lines, **options)


@pytest.mark.parametrize("said", WRITTEN)
def test_what_stands_at_the_ends_of_every_line_is_told(said, tmp_path):
    path = tmp_path / "model.txt"
    path.write_text("\n".join(WRITTEN[said]) + "\n", "utf-8")
    start = f"100% of the sentences of {path} {said}, "
    with pytest.warns(text.TextWarning, match=re.escape(start)) as told:
        corpus = text.read_corpus(path)
    assert len(told) == 1
    assert told[0].filename == __file__
    with pytest.warns(text.TextWarning, match=re.escape(f"this text {said}, ")):
        text.bleu(WRITTEN[said], PLAIN)
    # Summary when it was read; a corpus is not told of again.
    assert 0 < text.bleu(corpus, PLAIN)[0] < 1
    assert str(told[0].message).endswith(
        "counts as text: take it off first or, in Python, by a function as tokenizer"
    )


@pytest.mark.parametrize("tokenizer", ["whitespace", "13a", "characters"])
@pytest.mark.parametrize("said", ["end with '</s>'", "begin with a list number"])
def test_a_mark_that_is_split_is_seen(said, tokenizer):
    (line,) = odd_ends(looked_at(WRITTEN[said], tokenizer=tokenizer), "x")
    assert line.startswith(f"100% of the sentences of x {said}")


def test_marks_at_both_ends_are_told_each_and_are_no_brackets():
    lines = [f"[CLS] {line} [SEP]" for line in PLAIN]
    one, other = odd_ends(looked_at(lines))
    assert "begin with '[CLS]'" in one
    assert "end with '[SEP]'" in other
    split = [line.split() for line in lines]
    assert odd_ends(looked_at(split)) == (one, other)


@pytest.mark.parametrize(("share", "told"), [(0.88, False), (0.92, True), (0.95, True)])
def test_the_share_is_that_of_all_lines_with_a_token(share, told):
    size = 2000
    lines = [f"{PLAIN[i % 20]} </s>" if i % 100 < 100 * share else PLAIN[i % 20]
             for i in range(size)]  # fmt: skip
    found = odd_ends(looked_at([*lines, *[""] * 500]))
    assert [line.split()[0] for line in found] == [f"{share:.0%}"] * told


@pytest.mark.parametrize(
    "lines",
    [
        PLAIN,
        ["he said hi."] * 9,  # a full stop on every line
        ["a </s>"] * 2,  # too few for a share
        [f"{n}.5 litres" for n in range(9)],
        ["3:30 , he said"] * 9,
        ["<unk> cat <unk> ran"] * 8 + ["a b"],
        ["' a b"] * 9,
        [[5, 6, 1]] * 9,  # ids: 1 may be a full stop
        ['"'] * 9,
    ],
)
def test_ordinary_text_gives_no_alarm(lines):
    said = odd_ends(text.as_corpus(lines)) if "<unk>" not in lines[0] else ()
    assert said == ()


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
@pytest.mark.parametrize("swapped", [False, True])
def test_strings_against_token_ids_are_refused(metric, swapped):
    sides = [f"{line} {n}" for n, line in enumerate(PLAIN * 3)], NUMBERS
    ours, theirs = sides[::-1] if swapped else sides
    with pytest.raises(ValueError, match=r"^strings against token ids: .* are never"):
        metric(ours, theirs)


def test_reports_name_the_text_that_is_refused():
    with pytest.raises(ValueError, match="'a' and 1 are never equal; decode the ids"):
        text.bleu(["a cat"], [[1, 2]])
    with pytest.raises(
        ValueError, match=r"^model: strings against token ids: 1 and 'a'"
    ):
        text.evaluate({"model": NUMBERS}, PLAIN, max_order=1)
    with pytest.raises(
        ValueError, match=r"in the references too: 100% of the words .*case"
    ):
        text.evaluate({"loud": ["A B", "B A", "B"]}, ["a b", "b a", "b"], max_order=1)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("way", [str.upper, str.title, str.capitalize])
def test_capitals_against_lower_case_are_told(metric, way):
    capitals = [*map(way, PLAIN)]
    for ours, theirs in ((capitals, PLAIN), (PLAIN, capitals)):
        with pytest.warns(text.TextWarning, match="but for its case: lower-case both"):
            metric(ours, theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric(PLAIN, PLAIN)
        metric(capitals, capitals)
        metric(text.as_corpus(capitals, lowercase=True), PLAIN)


def test_all_capitals_against_true_case_are_told():
    real = [f"{line.capitalize()} Smith" for line in PLAIN]
    shouted = [line.upper().split() for line in real]
    loud, known = (text.as_corpus(x).vocabulary for x in (shouted, real))
    (said,) = unlike(loud, known)
    share = sum(str(word) != str(word).lower() for word in known)
    assert f" and {share / len(known):.0%} of those of the references" in said
    assert unlike(known, known[:9]) == ()


def test_numerals_against_words_are_told():
    (said,) = unlike(
        ("5", "17", "3"), ("a", "cat", "2", *map(chr, range(98, 120))), "x"
    )
    assert said.startswith("100% of the words of x are numbers, and 4% of those of the")


def test_texts_that_can_be_compared_are():
    assert unlike((), (1, 2)) == unlike(("a",), ()) == unlike((1, 2), (2, 3)) == ()
    assert unlike((1, "a"), ("a", "b")) == unlike((1, "a"), (1,)) == ()
    assert unlike(("1", "2"), ("1", "3")) == ()


# --- reports and commands ------------------------------------------------------------


def test_a_report_tells_all_and_reading_for_it_nothing(tmp_path):
    path = tmp_path / "real.txt"
    path.write_text("\n".join(NUMBERED).lower(), "utf-8")
    given = {
        "loud": [line.upper() for line in NUMBERED],
        "ends": WRITTEN["end with '</s>'"],
    }
    for how in ({}, {"empty": "skip"}):
        found = text.evaluate(given, path, max_order=2, **how)
        starts = [line.partition(":")[0] for line in found.warnings]
        begin, mark = "of the sentences of", ", which counts as text"
        assert starts[:3] == [
            f"100% {begin} the references begin with a list number{mark}",
            f"100% {begin} loud begin with a list number{mark}",
            f"100% {begin} ends end with '</s>'{mark}",
        ]
        assert "of the words of loud have capitals" in starts[3]
        assert with_options(found.warnings[3]).endswith("lower-case both (--lowercase)")
    low = text.evaluate(given, path, max_order=2, lowercase=True)
    assert not [line for line in low.warnings if "capitals" in line]


def test_a_warning_names_the_line_that_called_and_can_be_an_error():
    with pytest.warns(text.TextWarning) as told:
        tell(["so"])
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", text.TextWarning)
        with pytest.raises(text.TextWarning):
            text.self_bleu(NUMBERED)
        with told_later():
            text.self_bleu(NUMBERED)


DATA = Path(os.environ.get("QDTHEORY_DATA", "no/data"))
COCO = ["coco60/train.txt", "coco60/test.txt", "texygen/image_coco.txt"]
COCO += ["texygen/test_coco.txt", *(f"model_samples/{m}.txt" for m in (
    "mle", "seq", "maligan", "rank", "leakgan", "textgan"))]  # fmt: skip


@pytest.mark.skipif(not DATA.is_dir(), reason="QDTHEORY_DATA names no folder")
def test_the_papers_corpora_give_no_alarm():
    read = {name: text.read_corpus(DATA / name) for name in COCO}
    for one, other in product(read.values(), repeat=2):
        assert unlike(one.vocabulary, other.vocabulary) == ()
    news = text.read_corpus(DATA / "texygen/test_emnlp.txt")
    (said,) = unlike(read["coco60/test.txt"].vocabulary, news.vocabulary)
    assert "19% of those of the references" in said  # true case
