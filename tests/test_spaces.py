"""Text spaces and their n-grams, against plain loops over every text."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import assert_compiles_and_batches, assert_slope, random_distribution
from referees.ngram_counts import ngrams_of

import qdtheory as qd

# Few shapes, since JAX compiles once per shape; one token and one length included.
SPACES = [
    qd.TextSpace(*sizes)
    for sizes in [
        (1, 1),
        (1, 3),
        (5, 1),
        (2, 4),
        (3, 3),
        (1, (1, 2, 4)),
        (2, (1, 2, 3)),
        (3, (2, 4)),
    ]
]
spaces = st.sampled_from(SPACES)
seeds = st.integers(0, 2**16)


def all_texts(space) -> list[tuple[int, ...]]:
    """Every text, shorter first, then as a dictionary orders them."""
    vocabulary = range(space.vocab_size)
    return [
        text for length in space.lengths for text in product(vocabulary, repeat=length)
    ]


def all_ngrams(space, n) -> list[tuple[int, ...]]:
    return list(product(range(space.vocab_size), repeat=n))


# -- the order of the texts ------------------------------------------------------


@pytest.mark.claim("N1.1")
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_texts_are_all_there_in_order(space):
    texts = all_texts(space)
    padded = [[*text, *[-1] * (space.max_length - len(text))] for text in texts]
    assert space.tokens.tolist() == padded
    assert space.text_lengths.tolist() == [len(text) for text in texts]
    assert space.num_texts == len(texts)
    assert space.index(space.tokens).tolist() == list(range(len(texts)))


@given(spaces, st.data())
def test_index_inverts_tokens_in_any_shape(space, data):
    batch = data.draw(st.sampled_from([(), (3,), (2, 3)]))
    index = np.random.default_rng(data.draw(seeds)).integers(
        space.num_texts, size=batch
    )
    found = space.index(space.tokens[index])
    assert found.shape == batch
    assert np.array_equal(found, index)


@given(spaces, seeds)
def test_what_is_no_text_has_no_index(space, seed):
    # Every row of -1 .. |V| either is a text, and has its index, or is refused.
    rng = np.random.default_rng(seed)
    row = rng.integers(-1, space.vocab_size + 1, size=space.max_length)
    rows = space.tokens.tolist()
    if row.tolist() in rows:
        assert space.index(row) == rows.index(row.tolist())
    else:
        with pytest.raises(ValueError, match="is no text of this space"):
            space.index(row)


def test_one_length_is_asked_for_by_name():
    words = r"^a table is for texts of one length, got lengths \(1, 2\); take an LSTM$"
    with pytest.raises(ValueError, match=words):
        qd.TextSpace(2, (1, 2)).only_length("a table", "take an LSTM")


def test_tables_are_read_only():
    space = qd.TextSpace(vocab_size=2, lengths=2)
    for table in (space.tokens, space.ngrams(2)):
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 0


def test_equal_spaces_are_one_key(as_a_user):
    same = [qd.TextSpace(3, 2), qd.TextSpace(3, (2,)), qd.TextSpace(np.int64(3), 2)]
    assert len(set(same)) == 1
    assert qd.TextSpace(3, (1, 2)) not in same
    assert qd.TextSpace(2, 3) not in same


@pytest.mark.claim("N1.16")
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "texts"),
    [
        (10, 12, "1,000,000,000,000"),
        (5000, 20, r"10\^74.0"),
        (10**6, (1, 2), "1,000,001,000,000"),
    ],
)
def test_a_large_space_is_refused_before_allocation(vocab_size, lengths, texts):
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"{texts}.* texts .* GiB"):
        qd.TextSpace(vocab_size=vocab_size, lengths=lengths)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e6  # bytes; one int64 a text would be 8e12


# -- n-grams ----------------------------------------------------------------------


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_ngram_table_agrees_with_a_loop(space):
    for n in range(1, space.max_length + 1):
        number = {ngram: i for i, ngram in enumerate(all_ngrams(space, n))}
        width = space.max_length - n + 1
        for row, text in zip(space.ngrams(n).tolist(), all_texts(space), strict=True):
            numbers = [number[ngram] for ngram in ngrams_of(text, n)]
            assert row == numbers + [-1] * (width - len(numbers))


@pytest.mark.claim("N1.14")
@given(spaces, st.data())
def test_one_length_is_linear_and_several_weigh_by_length(space, data):
    n = data.draw(st.integers(1, min(space.lengths)))
    share = data.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    p, q = (
        random_distribution(space.num_texts, data.draw(seeds), 1 / 3) for _ in range(2)
    )
    mixed = space.ngram_distribution((1 - share) * p + share * q, n)
    # The share of q's n-grams among all; its share of texts for one length.
    t_p, t_q = ((r * (space.text_lengths - n + 1)).sum() for r in (p, q))
    weight = share * t_q / ((1 - share) * t_p + share * t_q)
    if len(space.lengths) == 1:
        assert weight == pytest.approx(share, abs=1e-14)
    expected = (1 - weight) * space.ngram_distribution(p, n)
    expected += weight * space.ngram_distribution(q, n)
    np.testing.assert_allclose(mixed, expected, rtol=0, atol=1e-14)


@pytest.mark.claim("N1.15")
@given(st.sampled_from([s for s in SPACES if len(s.lengths) > 1 and s.vocab_size > 1]))
def test_several_lengths_are_not_linear(space):
    # The shortest text of 0s and the longest of 1s, half each: 1s weigh more.
    p, q = np.eye(space.num_texts)[[0, -1]]
    middle = space.ngram_distribution((p + q) / 2, 1)
    linear = (space.ngram_distribution(p, 1) + space.ngram_distribution(q, 1)) / 2
    short, long = space.lengths[0], space.lengths[-1]
    gap = long / (short + long) - 1 / 2
    np.testing.assert_allclose(np.abs(middle - linear).max(), gap, rtol=0, atol=1e-15)
    assert gap > 0.1


@pytest.mark.parametrize("space", [SPACES[3], SPACES[6]], ids=str)
def test_ngram_distributions_trace(space):
    p = np.full(space.num_texts, 1 / space.num_texts)
    q = random_distribution(space.num_texts, 0, 1 / 3)

    def repetition(q):
        return (space.ngram_distribution(q, 2) ** 2).sum()

    assert_compiles_and_batches(repetition, np.stack([q, p]))
    assert_slope(repetition, p, q - p, rtol=0, atol=1e-6)


def test_no_ngram_at_all():
    space = qd.TextSpace(vocab_size=2, lengths=(1, 2))
    only_short = np.eye(space.num_texts)[0]
    with pytest.raises(ValueError, match="shorter than n"):
        space.ngram_distribution(only_short, 2)
    assert space.ngram_counts(only_short, 2).tolist() == [0.0] * 4


def test_a_length_given_twice_is_refused(as_a_user):
    with pytest.raises(ValueError, match=r"\(2, 2\); sort them, each once"):
        qd.TextSpace(vocab_size=2, lengths=(2, 2))


def test_index_takes_integers_only(as_a_user):
    with pytest.raises(TypeError, match="integers"):
        qd.TextSpace(vocab_size=2, lengths=2).index(np.array([0.0, 1.0]))
