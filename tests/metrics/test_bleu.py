"""Expected BLEU against sums over all tuples of texts, with NLTK inside."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import qdtheory as qd
from qdtheory.metrics.bleu import estimate_bleu, expected_corpus_bleu
from qdtheory.metrics.bleu_table import bleu_table, text_bleu

pytestmark = pytest.mark.filterwarnings("ignore:\\s*The hypothesis contains 0 counts")


def sentences(space):
    return [[int(t) for t in row if t >= 0] for row in space.tokens]


def nltk_tensor(space, max_order, num_references, smoothing):
    """NLTK's BLEU of every (reference, ..., candidate)."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    method = SmoothingFunction().method1 if smoothing else None
    texts = sentences(space)
    weights = (1 / max_order,) * max_order
    values = [
        sentence_bleu(list(references), candidate, weights, method)
        for *references, candidate in itertools.product(
            texts, repeat=num_references + 1
        )
    ]
    return np.reshape(values, (space.num_texts,) * (num_references + 1))


def brute_force(tensor, q, p):
    for _ in range(tensor.ndim - 1):
        tensor = np.tensordot(p, tensor, axes=1)
    return float(tensor @ q)


@pytest.mark.slow
@pytest.mark.claim("N7.9", "N7.20")
@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "num_references"),
    [
        (2, 3, 1),
        (2, 3, 2),
        (2, 3, 3),
        (3, 2, 2),
        (3, 3, 1),
        (2, (1, 2, 3), 1),
        (2, (1, 2, 3), 2),
        (2, (2, 4), 2),
        (2, (1, 2), 3),
        (3, (1, 2), 2),
        (1, (1, 2, 4, 5), 2),
    ],
)
def test_equals_the_sum_over_all_tuples(vocab_size, lengths, num_references, smoothing):
    space = qd.TextSpace(vocab_size, lengths)
    rng = np.random.default_rng(0)
    for max_order in (1, 2, 3):
        tensor = nltk_tensor(space, max_order, num_references, smoothing)
        for _ in range(3):
            q, p = rng.dirichlet(np.ones(space.num_texts), 2)
            exact = qd.expected_bleu(space, q, p, max_order, num_references, smoothing)
            assert abs(float(exact) - brute_force(tensor, q, p)) <= 1e-12
            own = qd.expected_self_bleu(space, q, max_order, num_references, smoothing)
            assert abs(float(own) - brute_force(tensor, q, q)) <= 1e-12


@pytest.mark.claim("N7.15")
def test_gradients_equal_those_of_the_sum_over_all_tuples():
    space = qd.TextSpace(2, (1, 3))
    tensor = jnp.asarray(nltk_tensor(space, 2, 2, None))
    rng = np.random.default_rng(1)
    q, p = (jnp.asarray(x) for x in rng.dirichlet(np.ones(space.num_texts), 2))
    # At a zero of p too: powers of 0 have finite derivatives.
    for real in (p, p.at[:3].set(0.0)):
        exact = jax.grad(
            lambda q, p: q @ text_bleu(bleu_table(space, 2), p, 2), argnums=(0, 1)
        )(q, real)
        tuples = jax.grad(
            lambda q, p: jnp.einsum("abc,a,b,c", tensor, p, p, q), argnums=(0, 1)
        )(q, real)
        for ours, theirs in zip(exact, tuples, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)
    # Finite differences, along a direction.
    pair = qd.BleuPair(space, 2, 2, 3)
    d = jnp.asarray(rng.normal(size=q.size))
    d -= d.mean()
    slope = jax.grad(pair.diversity)(q) @ d
    step = 1e-6
    change = pair.diversity(q + step * d) - pair.diversity(q - step * d)
    assert float(change / (2 * step)) == pytest.approx(float(slope), rel=1e-7)


@pytest.mark.parametrize(
    ("vocab_size", "length", "max_order", "num_sets"),
    [(4, 3, 1, 13), (4, 3, 2, 155), (4, 3, 3, 65), (4, 4, 2, 963), (4, 4, 3, 1255)],
)
def test_number_of_sets(vocab_size, length, max_order, num_sets):
    table = bleu_table(qd.TextSpace(vocab_size, length), max_order)
    assert table.num_sets == num_sets
    rows = np.asarray(table.sets).reshape(-1, vocab_size**length)
    assert not rows[num_sets:].any()
    assert len(np.unique(rows[:num_sets], axis=0)) == num_sets


def test_many_references():
    # With ever more references only texts that lack some n-gram of the real ones stay
    # below 1; of uniform references none lacks any.
    space = qd.TextSpace(2, 3)
    uniform = np.full(8, 1 / 8)
    values = [
        float(qd.expected_bleu(space, uniform, uniform, 2, n)) for n in (1, 10, 100)
    ]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(1, abs=1e-5)
    # Two texts: the candidate is among n draws with chance 1 - (1 - p)^n.
    p = np.array([0.3, 0.7])
    pair = qd.single_token_bleu_pair(7, 4)
    space = qd.TextSpace(2, 1)
    exact = qd.BleuPair(space, 1, 7, 4)
    q = np.array([0.2, 0.8])
    assert float(exact.quality(q, p)) == pytest.approx(float(pair.quality(q, p)))
    assert float(exact.diversity(q)) == pytest.approx(float(pair.diversity(q)))


@pytest.mark.claim("N7.13")
def test_order_of_the_whole_text_is_membership():
    # BLEU-3 of texts of 3 tokens is 1 if the candidate is a reference, else 0.
    space = qd.TextSpace(3, 3)
    p = np.random.default_rng(2).dirichlet(np.ones(27))
    for n in (1, 2, 50):
        values = text_bleu(bleu_table(space, 3), p, n)
        np.testing.assert_allclose(values, 1 - (1 - p) ** n, rtol=0, atol=1e-13)


def test_orders_beyond_every_text():
    space = qd.TextSpace(2, (1, 2))
    p = np.full(6, 1 / 6)
    assert float(qd.expected_bleu(space, p, p, max_order=3)) == 0
    smooth = float(qd.expected_bleu(space, p, p, 3, 2, "epsilon"))
    tensor = nltk_tensor(space, 3, 2, "epsilon")
    assert smooth == pytest.approx(brute_force(tensor, p, p), abs=1e-12)


def test_one_compiled_function_serves_any_number_of_references():
    space = qd.TextSpace(2, 3)
    compiled = jax.jit(lambda table, p, n: text_bleu(table, p, n))
    p = np.random.default_rng(3).dirichlet(np.ones(8))
    table = bleu_table(space, 2)
    for n in (1, 2, 1000):
        values = compiled(table, p, float(n))
        np.testing.assert_allclose(values, text_bleu(table, p, n), rtol=1e-13)
    assert compiled._cache_size() == 1
    batch = jax.vmap(lambda p: text_bleu(table, p, 2))(jnp.stack([p, p[::-1]]))
    np.testing.assert_allclose(batch[1], text_bleu(table, p[::-1], 2), rtol=1e-13)


def test_pair_compiles_with_its_table_as_an_argument():
    pair = qd.BleuPair(qd.TextSpace(2, 3), 2, 2, 2)
    leaves = jax.tree.leaves(pair)
    assert any(getattr(leaf, "ndim", 0) == 3 for leaf in leaves)
    p = np.random.default_rng(4).dirichlet(np.ones(8))
    value = jax.jit(lambda pair, p: pair.quality(p, p))(pair, p)
    assert float(value) == pytest.approx(float(pair.quality(p, p)), rel=1e-14)
    # The verdict takes it unchanged: with two references the gradients decide.
    verdict = qd.check_compatibility(pair, p)
    assert verdict.compatible is False
    witness = verdict.witness
    assert witness is not None
    assert pair.quality(witness.q, p) > pair.quality(p, p)
    assert pair.diversity(witness.q) > pair.diversity(p)


def test_bad_input(as_a_user):
    space = qd.TextSpace(2, 2)
    p = np.full(4, 0.25)
    with pytest.raises(
        ValueError, match="num_references must be a whole number from 1 on, got 0"
    ):
        qd.expected_bleu(space, p, p, 2, 0)
    with pytest.raises(ValueError, match="num_self_references must be a whole number"):
        qd.BleuPair(space, 2, 2, 0)
    with pytest.raises(ValueError, match="max_order must be at least 1, got 0"):
        qd.expected_bleu(space, p, p, 0)
    with pytest.raises(ValueError, match="must be None or \"epsilon\", got 'add'"):
        qd.expected_bleu(space, p, p, 2, 2, "add")
    with pytest.raises(ValueError, match="q must have 4 entries, got 8"):
        qd.expected_bleu(space, np.full(8, 1 / 8), p)
    with pytest.raises(ValueError, match="p must have 4 entries, got 8"):
        qd.expected_bleu(space, p, np.full(8, 1 / 8))
    with pytest.raises(ValueError, match=r"BLEU table .* GiB"):
        qd.BleuPair(qd.TextSpace(5, 8))


@pytest.mark.parametrize("smoothing", [None, "epsilon"])
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "num_references", "num_candidates"),
    [(2, 2, 2, 2), (2, (1, 2), 2, 2), (2, (1, 3), 1, 2), (2, (1, 2), 1, 3)],
)
def test_pooled_bleu_equals_the_sum_over_all_tuples(
    vocab_size, lengths, num_references, num_candidates, smoothing
):
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    method = SmoothingFunction().method1 if smoothing else None
    space = qd.TextSpace(vocab_size, lengths)
    texts, n = sentences(space), space.num_texts
    q, p = np.random.default_rng(5).dirichlet(np.ones(n), 2)
    for max_order in (1, 2):
        total = 0.0
        for rs in itertools.product(range(n), repeat=num_references):
            references = [[texts[r] for r in rs]] * num_candidates
            for cs in itertools.product(range(n), repeat=num_candidates):
                score = corpus_bleu(
                    references,
                    [texts[c] for c in cs],
                    (1 / max_order,) * max_order,
                    method,
                )
                total += p[list(rs)].prod() * q[list(cs)].prod() * score
        ours = expected_corpus_bleu(
            space, q, p, max_order, num_references, num_candidates, smoothing
        )
        assert ours == pytest.approx(total, abs=1e-12)


def test_pooled_bleu_of_one_candidate_is_expected_bleu():
    space = qd.TextSpace(2, (1, 2, 3))
    q, p = np.random.default_rng(6).dirichlet(np.ones(14), 2)
    p[3] = 0
    p /= p.sum()
    for max_order, n in ((1, 1), (2, 2), (4, 2)):
        for smoothing in (None, "epsilon"):
            one = expected_corpus_bleu(space, q, p, max_order, n, 1, smoothing)
            exact = float(qd.expected_bleu(space, q, p, max_order, n, smoothing))
            assert one == pytest.approx(exact, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vocab_size", "lengths", "num_references"), [(8, 4, 10), (2, (1, 3, 5), 2)]
)
def test_monte_carlo_agrees(vocab_size, lengths, num_references):
    space = qd.TextSpace(vocab_size, lengths)
    rng = np.random.default_rng(7)
    q, p = rng.dirichlet(np.full(space.num_texts, 0.5), 2)
    candidates = rng.choice(space.num_texts, size=20_000, p=q)
    references = rng.choice(space.num_texts, size=(20_000, num_references), p=p)
    for smoothing in (None, "epsilon"):
        found = estimate_bleu(
            space.tokens[candidates], space.tokens[references], 2, smoothing
        )
        exact = float(qd.expected_bleu(space, q, p, 2, num_references, smoothing))
        assert abs(found.value - exact) <= 4 * found.standard_error
        assert found.standard_error <= 0.01


def test_monte_carlo_scores_single_draws_as_nltk_does():
    from nltk.translate.bleu_score import sentence_bleu

    rng = np.random.default_rng(8)
    for _ in range(30):
        candidate = rng.integers(3, size=(1, rng.integers(1, 9)))
        references = rng.integers(3, size=(1, 3, 7))
        for row, length in enumerate(rng.integers(1, 8, size=3)):
            references[0, row, length:] = -1
        # The mean of two equal draws is the score itself.
        found = estimate_bleu(candidate.repeat(2, 0), references.repeat(2, 0), 3)
        score = sentence_bleu(
            [[int(t) for t in row if t >= 0] for row in references[0]],
            candidate[0].tolist(),
            (1 / 3,) * 3,
        )
        assert found.value == pytest.approx(score, abs=1e-14)
        assert found.standard_error == 0


def test_bad_input_beyond_the_closed_form(as_a_user):
    space, p = qd.TextSpace(2, 2), np.full(4, 0.25)
    texts, references = np.zeros((3, 2), int), np.zeros((3, 1, 2), int)
    with pytest.raises(
        ValueError, match="num_candidates must be a whole number from 1 on, got 0"
    ):
        expected_corpus_bleu(space, p, p, num_candidates=0)
    with pytest.raises(ValueError, match="multisets of references, 1,000,000"):
        expected_corpus_bleu(space, p, p, num_references=500)
    with pytest.raises(ValueError, match=r"\(3, 2\) and \(2, 1, 2\)"):
        estimate_bleu(texts, references[:2])
    with pytest.raises(ValueError, match="at least 2 draws, got 1"):
        estimate_bleu(texts[:1], references[:1])
    with pytest.raises(ValueError, match="no text may be empty"):
        estimate_bleu(texts - 1, references)
    with pytest.raises(ValueError, match="texts of 63 n-grams and lengths"):
        bleu_table(qd.TextSpace(1, 12), 7)


@pytest.mark.parametrize("num_references", [1, 2])
def test_second_derivatives_at_a_point_mass(num_references):
    # Where chances are 0 the powers' derivatives are 0, not 0 / 0.
    space = qd.TextSpace(2, 2)
    table = bleu_table(space, 2)
    corner = np.eye(4)[1]

    def total(p):
        return text_bleu(table, p, num_references).sum()

    hessian = jax.hessian(total)(corner)
    step = 1e-4
    for i, a in enumerate(np.eye(4)):
        for j, b in enumerate(np.eye(4)):
            # Exact for a polynomial of degree 2, up to its rounding over step^2.
            change = total(corner + step * (a + b)) - total(corner + step * a)
            change -= total(corner + step * b) - total(corner)
            assert hessian[i, j] == pytest.approx(float(change) / step**2, abs=1e-6)
