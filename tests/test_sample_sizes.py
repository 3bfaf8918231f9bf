"""Samples of any size: sums over n-grams, sample_sizes.csv, and a source's means."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from models import MODEL, REAL
from referees.ngram_counts import counted
from scipy.stats import binom, linregress
from scripts import frame, script

from qdtheory.text import (
    as_corpus,
    bleu,
    bleu_scores,
    cnd,
    coverage_rate,
    distinct,
    evaluate,
    negative_repetition_rate,
    self_bleu,
)
from qdtheory.text.partial_sums import partial_sums
from qdtheory.text.postings import hashed

ROWS = frame("sample_sizes.csv")
SIZES = 10**3, 10**4, 10**5, 10**6


@pytest.fixture(scope="module")
def sources():
    return script("topic_source")


@pytest.fixture(scope="module")
def small(sources):
    """A source, 300 references, and a function that draws from it."""
    source = sources.topic_source(300, 3, 8, seed=1)
    rng = np.random.default_rng(1)
    real = sources.draw(source, 300, rng)
    return source, real, lambda size: sources.draw(source, size, rng)


@pytest.mark.claim("N12.25")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_sums_of_ngrams_dealt_out_at_random_add_up(n):
    rng = np.random.default_rng(n)
    c, r = counted(MODEL, n), counted(REAL, n)
    sums = np.zeros(3, int)
    for part in np.array_split(rng.permutation(len(c)), 4):
        mine = [[*c][i] for i in part]
        sums[0] += len(mine)
        sums[1] += sum(c[g] ** 2 for g in mine)
        sums[2] += sum(c[g] * r[g] for g in mine)
    ours, real = as_corpus(MODEL), as_corpus(REAL)
    many, squares, common = sums.tolist()
    assert distinct(ours, n) == many / c.total()
    repetition = Fraction(squares, c.total() ** 2)
    assert negative_repetition_rate(ours, n, "plug-in") == pytest.approx(
        -float(repetition), rel=1e-14
    )
    coverage = Fraction(common, c.total() * r.total())
    found = coverage_rate(ours, real, n, "plug-in")
    assert found == pytest.approx(float(coverage), rel=1e-14)


@pytest.mark.claim("N12.29")
@pytest.mark.parametrize("bits", [18, 20, 22])
def test_hashes_collide_as_random_numbers_do(bits):
    """By the low bits of dense rows, where the notebook takes the high ones."""
    first, second = np.divmod(np.arange(100_000), 300)
    codes = hashed(first, second) & np.uint64(2**bits - 1)
    shared = 100_000 - len(np.unique(codes))
    # The expected number of values that are not hit.
    empty = 2**bits * (1 - 2.0**-bits) ** 100_000
    expected = 100_000 - (2**bits - empty)
    assert abs(shared - expected) <= 4 * np.sqrt(expected)


@pytest.mark.claim("N12.30")
def test_parts_of_skewed_words_are_balanced_and_share_nothing():
    rng = np.random.default_rng(0)
    words = rng.zipf(1.3, (4000, 6)) % 5000
    corpus = as_corpus(words.tolist())
    sizes = [
        partial_sums({"x": corpus}, corpus, 3, part=k, num_parts=8, num_groups=1)
        .totals.sums["x"]
        .distinct[:, 0]
        for k in range(8)
    ]
    expected = [len(counted(words.tolist(), n)) for n in (1, 2, 3)]
    assert np.sum(sizes, axis=0).tolist() == expected
    assert (np.max(sizes, axis=0) <= 1.35 * np.mean(sizes, axis=0)).all()


# -- the table -------------------------------------------------------------------------


def costs(column="seconds"):
    """A row for each size, a column for each way."""
    rows = ROWS[ROWS.what == "cost"]
    return rows.pivot(index="size", columns="name", values=column)


@pytest.mark.claim("N12.32", recount=True)
def test_the_table_of_costs_grows_linearly():
    """By a line through all but the smallest size, where the notebook takes two."""
    table = costs()
    assert table.count().sum() == 15
    for way in ("metrics", "intervals", "parts"):
        seconds = table[way][[*SIZES[1:]]]
        slope = linregress(np.log(SIZES[1:]), np.log(seconds)).slope
        assert 0.7 <= slope <= 1.2
    assert (table.intervals <= 3 * table.metrics)[[*SIZES]].all()
    assert (table.recounted >= 8 * table.metrics)[[*SIZES[:3]]].all()
    megabytes = costs("megabytes").loc[10**6]
    assert megabytes.parts < 0.6 * megabytes.intervals


@pytest.mark.claim("N12.33", recount=True)
def test_the_tables_intervals_cover():
    t = ROWS[ROWS.what == "coverage"]
    assert len(t) == 24
    assert set(t["size"]) == {*SIZES}
    assert (t.hits >= binom.ppf(1e-3, t.repeats, 0.95)).all()
    # The values scatter about the known mean, and the error is not too small.
    error = t.deviation / np.sqrt(t.repeats)
    assert ((t.average - t["mean"]).abs() <= 4 * error).all()
    assert (t.standard_error >= 0.7 * t.deviation).all()


@pytest.mark.claim("N12.33")
def test_intervals_of_another_source_cover(small, sources):
    source, real, draw = small
    expected = sources.means(source, real, 150)
    hits = Counter()
    for _ in range(60):
        found = evaluate({"x": draw(150)}, real, 2, None)["x"]
        hits.update(
            x for x, m in expected.items() if found[x].low <= m <= found[x].high
        )
    assert all(hits[name] >= binom.ppf(1e-3, 60, 0.95) for name in expected)


def test_the_script_is_the_tables():
    made = script("make_sample_sizes")
    assert made.SIZES == SIZES
    head = script("tables").provenance("sample_sizes.csv")
    assert any(made.SETTINGS in line for line in head)
    means = made.means(made.SOURCE, made.REAL, 10**4)
    rows = ROWS[(ROWS.what == "coverage") & (ROWS["size"] == 10**4)]
    listed = rows.set_index("name")["mean"]
    assert {x: means[x] for x in listed.index} == pytest.approx({**listed}, rel=1e-5)


# -- means at every size ---------------------------------------------------------------


@pytest.mark.claim("N12.34")
def test_means_are_those_of_all_samples(sources):
    """Every sample of two or three texts of two words, with its probability."""
    source = sources.topic_source(2, 2, 2, seed=5)
    real = sources.draw(source, 7, np.random.default_rng(0))
    texts = [*product(range(2), repeat=2)]
    law = [source.shares @ (source.laws[:, a] * source.laws[:, b]) for a, b in texts]
    found = {}
    for size in (2, 3):
        sums = Counter()
        for chosen in product(range(4), repeat=size):
            chance = np.prod([law[i] for i in chosen])
            sample = as_corpus([list(texts[i]) for i in chosen])
            sums["BLEU-1"] += chance * bleu(sample, real, 1, None)[0]
            sums["Self-BLEU-1"] += chance * self_bleu(sample, 1, None)[0]
            sums["CR-2"] += chance * coverage_rate(sample, real, 2, "pairs")
            sums["NRR-2"] += chance * negative_repetition_rate(sample, 2, "pairs")
            sums["CND-2"] += chance * cnd(sample, real, 2, "pairs")
            sums["distinct-1"] += chance * distinct(sample, 1)
        found[size] = sources.means(source, real, size)
        assert found[size] == pytest.approx(dict(sums), abs=1e-12)
    moved = {name for name, x in found[2].items() if abs(x - found[3][name]) > 1e-9}
    assert moved == {"Self-BLEU-1", "distinct-1"}


# -- differences, pieces, copies -------------------------------------------------------


@pytest.mark.claim("N12.35")
def test_pairs_have_the_error_of_the_mean_difference(small):
    """By the textbook's formula for sentence scores of BLEU."""
    _, real, draw = small
    rng = np.random.default_rng(2)
    ours = draw(2000)
    changed = rng.random(ours.num_tokens) < 0.3
    words = np.where(changed, rng.integers(300, size=ours.num_tokens), ours.tokens)
    other = as_corpus(words.reshape(-1, 8).tolist())
    report = evaluate({"one": ours, "other": other}, real, 2, None)
    scores = [bleu_scores(x, real, 2, None)[:, 1] for x in (ours, other)]
    textbook = {
        False: np.hypot(*(x.std(ddof=1) for x in scores)) / np.sqrt(2000),
        True: (scores[0] - scores[1]).std(ddof=1) / np.sqrt(2000),
    }
    index = report.metrics.index("BLEU-2")
    for paired, expected in textbook.items():
        found = report.compare("one", "other", paired=paired).difference
        assert found.standard_error[index] == pytest.approx(expected, rel=0.6)
    assert textbook[False] >= 1.1 * textbook[True]


@pytest.mark.claim("N12.36")
def test_means_of_pieces_are_those_of_the_piece(small, sources):
    source, real, draw = small
    ours = draw(500)
    pieces = [ours[k : k + 50] for k in range(0, 500, 50)]
    for metric in (
        lambda x: bleu(x, real, 1, None)[0],
        lambda x: coverage_rate(x, real, 2, "pairs"),
    ):
        assert np.mean([*map(metric, pieces)]) == pytest.approx(metric(ours), rel=1e-12)
    small_mean, large_mean = (sources.means(source, real, s) for s in (50, 500))
    for name, metric in {
        "Self-BLEU-1": lambda x: self_bleu(x, 1, None)[0],
        "distinct-1": lambda x: distinct(x, 1),
    }.items():
        values = [*map(metric, pieces)]
        error = np.std(values, ddof=1) / np.sqrt(10)
        assert abs(np.mean(values) - small_mean[name]) <= 5 * error
        assert abs(np.mean(values) - large_mean[name]) > 20 * error


@pytest.mark.claim("N12.37")
def test_copies_halve_the_error_and_not_the_deviation(small):
    """Twice: four copies have the spread of one, and half of its standard error."""
    _, real, draw = small
    values, errors = [], []
    for _ in range(40):
        once = draw(200)
        both = {"once": once, "copied": once[np.repeat(np.arange(200), 4)]}
        found = evaluate(both, real, 1, None)
        each = [found[name]["BLEU-1"] for name in both]
        values.append([x.value for x in each])
        errors.append([x.standard_error for x in each])
    assert np.ptp(values, axis=1).max() <= 1e-12
    once, copied = np.mean(errors, axis=0)
    assert copied / once == pytest.approx(0.5, abs=0.08)
