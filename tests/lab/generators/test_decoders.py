"""Decoders, against direct implementations of each rule and sums over all texts."""

from functools import cache
from itertools import pairwise, product
from math import exp, log, prod, sqrt

import jax
import numpy as np
import pytest
from lab.generators import (
    Beam,
    BestOf,
    Epsilon,
    Eta,
    Greedy,
    MinK,
    MinP,
    PLess,
    Temperature,
    TopH,
    TopK,
    TopP,
    Typical,
    best_of_n,
    decode,
    next_token_distributions,
    text_distribution,
)
from referees.prefixes import masses_after
from refusals import refused
from scipy.optimize import brentq, minimize_scalar
from scipy.special import entr, softmax

import qdtheory as qd

TRUNCATIONS = TopK(2), TopP(0.7), MinP(0.3), Typical(0.6), Epsilon(0.2), Eta(0.3)
TRUNCATIONS += TopH(0.6), TopH(0.6, normalised=False), PLess(), MinK()
UNIT = 64  # of the counts below, so that floats hold every sum exactly


# --- Each rule by hand, on counts of sum 64 -------------------------------------------


def by_rank(counts, k):
    """The k greatest counts, of equal ones the first."""
    return set(sorted(range(len(counts)), key=lambda i: -counts[i])[:k])


def top_k(counts, k, keep):
    least = sorted(counts, reverse=True)[min(max(k, keep), len(counts)) - 1]
    return {i for i, c in enumerate(counts) if c >= least}


def top_p(counts, mass, keep):
    kept = list(range(len(counts)))
    rising = sorted(kept, key=lambda i: counts[i])
    gone = 0
    for i in rising[: max(len(counts) - keep, 0)]:
        gone += counts[i]
        if gone > UNIT - mass:
            break
        kept.remove(i)
    return set(kept)


def min_p(counts, eighths, keep):
    enough = {i for i, c in enumerate(counts) if 8 * c >= eighths * max(counts)}
    return enough | by_rank(counts, keep)


def at_least(counts, cutoff, keep):
    """Epsilon and eta, and how far the closest count is from the cutoff."""
    least = sorted(counts, reverse=True)[min(keep, len(counts)) - 1]
    kept = {i for i, c in enumerate(counts) if c / UNIT >= cutoff or c >= least}
    return kept, min(abs(c / UNIT - cutoff) for c in counts)


def entropy(counts):
    return -sum(c / UNIT * log(c / UNIT) for c in counts if c)


def typical(counts, mass, keep):
    """The kept tokens, and the least gap of two distances that differ."""
    mean = entropy(counts)
    away = [abs(-log(c / UNIT) - mean) if c else np.inf for c in counts]
    order = sorted(range(len(counts)), key=lambda i: away[i])
    held, last = 0, order[-1]
    for i in order:
        held += counts[i]
        if held >= mass:
            last = i
            break
    kept = {i for i in order if away[i] <= away[last]} | set(order[:keep])
    finite = sorted({a for a in away if a < np.inf})
    return kept, min((b - a for a, b in pairwise(finite)), default=1)


def top_h(counts, share, normalised):
    """The kept tokens, and how far the closest entropy is from the bound."""
    order = sorted(range(len(counts)), key=lambda i: -counts[i])
    bound, kept, away = share * entropy(counts), 0, 1.0
    for k in range(1, len(counts) + 1):
        some = [counts[i] for i in order[:k]]
        scale = UNIT / sum(some) if normalised else 1
        rest = bound - entropy([scale * c for c in some])
        away = min(away, abs(rest))
        kept += rest >= 0 and kept == k - 1
    return set(order[: max(kept, 1)]), away


def p_less(counts, norm):
    """In whole numbers, over the common denominator UNIT^2 or (V - 1) UNIT^2."""
    size, squares = len(counts), sum(c * c for c in counts)
    apart = [UNIT * c - squares for c in counts]
    if norm:
        apart = [(size - 1) * UNIT * c - size * squares + UNIT**2 for c in counts]
    kept = {i for i in range(size) if apart[i] >= 0 or counts[i] == max(counts)}
    return kept, min(map(abs, apart)) if norm else 1


def min_k(counts, tau):
    """The kept tokens, and the lead of the steepest fall, or of the number."""
    logs = sorted((log(c) for c in counts if c), reverse=True)
    falls = [(a - b) / i for i, (a, b) in enumerate(pairwise(logs), start=1)]
    ranked, reach = sorted(falls, reverse=True), logs[0] - logs[-1]
    cliff = falls.index(ranked[0]) + 1 if reach else 1
    least = tau / reach if reach else len(counts) + 0.5
    margin = min([ranked[0] - x for x in ranked[1:]] or [1]) if reach else 1
    k = min(max(cliff, int(least)), len(counts))
    smallest = sorted(counts, reverse=True)[k - 1]
    kept = {i for i, c in enumerate(counts) if c >= smallest}
    return kept, min(margin, abs(least - round(least)))


@cache
def counted_laws():
    """10,000 laws of 2 to 8 tokens, by size; half with zeros and few values."""
    rng, laws = np.random.default_rng(0), {}
    for case in range(10_000):
        size = 2 + case % 7
        counts = rng.multinomial(UNIT, rng.dirichlet(np.full(size, 0.7)))
        if case < 5000:
            counts = np.full(size, UNIT // size)
            counts[-1] += UNIT - counts.sum()
            for i, j in rng.integers(size, size=(size // 2, 2)):
                moved = int(counts[i]) // 2 if i != j else 0
                counts[i], counts[j] = counts[i] - moved, counts[j] + moved
        laws.setdefault(size, []).append(rng.permutation(counts))
    return {size: rng.permutation(rows) for size, rows in laws.items()}


def rules(k, mass, eighths, cutoff, keep):
    """Each truncation, with the rule: the kept tokens, and the margin of the choice."""
    share = cutoff / UNIT

    def eta(counts):
        least = sqrt(share) * exp(-entropy(counts))
        return at_least(counts, min(share, least), keep)

    yield TopK(k, keep), lambda c: (top_k(c, k, keep), 1)
    yield TopP(mass / UNIT, keep), lambda c: (top_p(c, mass, keep), 1)
    yield MinP(eighths / 8, keep), lambda c: (min_p(c, eighths, keep), 1)
    yield Epsilon(share, keep), lambda c: (at_least(c, share, keep)[0], 1)
    yield Eta(share, keep), eta
    yield Typical(mass / UNIT, keep), lambda c: typical(c, mass, keep)
    yield TopH(mass / UNIT), lambda c: top_h(c, mass / UNIT, True)
    code = TopH(mass / UNIT, normalised=False)
    yield code, lambda c: top_h(c, mass / UNIT, False)
    yield PLess(), lambda c: p_less(c, False)
    yield PLess(norm=True), lambda c: p_less(c, True)
    yield MinK(k), lambda c: min_k(c, k)


@pytest.mark.claim("N24.3")
def test_truncations_keep_what_a_direct_implementation_keeps():
    rng, clear, tied = np.random.default_rng(1), 0, 0
    for size, rows in counted_laws().items():
        tied += sum(len(set(row)) < size for row in rows.tolist())
        for batch in np.array_split(rows, 10):
            high = (9, UNIT, 9, 33, 4)
            for decoder, rule in rules(*(int(x) for x in rng.integers(1, high))):
                found = decoder(batch / UNIT)
                for counts, law in zip(batch.tolist(), found):
                    kept, margin = rule(counts)
                    # Where rounding decides (tokens as far below as above the mean
                    # surprise, a probability at the cutoff), either answer is right.
                    if margin <= 1e-12:
                        continue
                    clear += 1
                    expected = [c * (i in kept) for i, c in enumerate(counts)]
                    expected = np.array(expected) / sum(expected)
                    assert np.abs(law - expected).max() <= 1e-15, (decoder, counts)
    assert tied > 3000
    assert clear > 95_000
    # Of equal tokens the rules above keep all or none, but for top-p: the last stay.
    assert TopP(0.5)(np.full(4, 0.25)).tolist() == [0, 0, 0.5, 0.5]


@pytest.mark.claim("N24.25")
def test_top_h_bounds_the_entropy_and_the_code_of_its_authors_does_not():
    rng = np.random.default_rng(25)
    for size, share in product((2, 5, 30), (0.2, 0.6, 0.95)):
        for law in rng.dirichlet(np.full(size, rng.choice([0.3, 1, 8])), 60):
            kept = TopH(share)(law)
            assert entr(kept).sum() <= share * entr(law).sum() + 1e-12
            # One more token would break it, so nothing is left to add.
            ranked = sorted(law, reverse=True)
            more = np.array(ranked[: np.count_nonzero(kept) + 1])
            assert entr(more / more.sum()).sum() > share * entr(law).sum()
    # The code keeps a share of n equal tokens, the paper a power of n.
    for n in (10, 50, 100):
        law = np.full(n, 1 / n)
        code = np.count_nonzero(TopH(0.455, normalised=False)(law))
        assert code == int(0.455 * n)
        assert np.count_nonzero(TopH(0.455)(law)) == int(n**0.455)
        assert log(code) > 0.455 * log(n)
    assert TopH(1)(law).tolist() == TopH(1.0, normalised=False)(law).tolist()


@pytest.mark.claim("N24.26")
def test_p_less_keeps_at_most_the_effective_number_and_always_one():
    rng = np.random.default_rng(26)
    for size in (1, 2, 6, 40):
        for law in rng.dirichlet(np.full(size, rng.choice([0.2, 1, 20])), 100):
            squares = sum(x * x for x in law.tolist())
            kept, wider = PLess()(law) > 0, PLess(norm=True)(law) > 0
            assert 1 <= kept.sum() <= 1 / squares + 1e-9
            assert set(np.flatnonzero(kept)) <= set(np.flatnonzero(wider))
            share = min(squares / max(law), 1.0)
            np.testing.assert_allclose(PLess()(law), MinP(share)(law), atol=1e-15)
        flat = np.full(size, 1 / size)  # the sum of squares is rounded
        np.testing.assert_allclose(PLess()(flat), flat, atol=1e-15)
        np.testing.assert_allclose(PLess(norm=True)(flat), flat, atol=1e-15)


@pytest.mark.claim("N24.27")
def test_only_the_cliff_of_min_k_is_free_of_the_temperature():
    rng = np.random.default_rng(27)
    for law in rng.dirichlet(np.full(12, 1.0), 200):
        t = Temperature(float(np.exp(rng.normal())))
        np.testing.assert_allclose(MinK(0)(t(law)), t(MinK(0)(law)), atol=1e-13)
    # Logits 1, 0, -1: the first fall is steepest, and a range of 2 asks for tau / 2.
    law = softmax([1.0, 0.0, -1.0])
    numbers = [np.count_nonzero(MinK(4.5)(Temperature(t)(law))) for t in (0.5, 1, 2)]
    assert numbers == [1, 2, 3]
    assert MinK(0)(np.array([0.5, 0.5, 0.0])).tolist() == [0.5, 0.5, 0]
    assert MinK()(np.array([1.0])).tolist() == [1]


def test_temperature_and_greedy():
    law = np.array([0.5, 0.3, 0.2, 0.0])
    for t in (0.01, 0.5, 1, 3.0):
        expected = law ** (1 / t) / (law ** (1 / t)).sum()
        np.testing.assert_allclose(Temperature(t)(law), expected, rtol=1e-13)
    assert Temperature(1e-4)(law).tolist() == Greedy()(law).tolist() == [1, 0, 0, 0]


# --- Texts ----------------------------------------------------------------------------


def of_prefix(space, q, prefix):
    """The distribution of the next token after a prefix, the end last."""
    mass = masses_after(space, q, prefix)
    return mass / mass.sum()


def by_prefixes(space, q, change):
    """The decoded probability of each text, token by token."""
    change, found = cache(change), []
    for row in space.tokens:
        text = tuple(row[row >= 0].tolist())
        factors = [change(text[:t])[token] for t, token in enumerate(text)]
        if len(text) < space.max_length:
            factors.append(change(text)[space.vocab_size])
        found.append(prod(factors))
    return np.array(found)


SPACES = qd.TextSpace(4, 3), qd.TextSpace(3, (1, 2, 3)), qd.TextSpace(2, (2, 5))


@pytest.mark.claim("N24.1")
@pytest.mark.parametrize("space", SPACES)
def test_a_decoded_text_is_a_product_over_its_prefixes(space):
    q = np.random.default_rng(4).dirichlet(np.ones(space.num_texts))
    both = Temperature(0.7), TopP(0.8)
    for decoder in (*TRUNCATIONS, Temperature(2.0), Greedy(), both):
        steps = decoder if isinstance(decoder, tuple) else (decoder,)

        def change(prefix, steps=steps):
            law = of_prefix(space, q, prefix)
            for step in steps:
                law = step(law)
            return law

        found = decode(q, space, decoder)
        expected = by_prefixes(space, q, change)
        np.testing.assert_allclose(found, expected, atol=1e-14, err_msg=str(decoder))
        assert found.sum() == pytest.approx(1, abs=1e-13)


def test_models_and_batches():
    space = SPACES[1]
    lstm = qd.LSTMLanguageModel.random(jax.random.key(0), 4, 6, 8, end_token=3)
    p = np.asarray(lstm.probabilities(space))
    np.testing.assert_array_equal(*(decode(m, space, TopK(2)) for m in (lstm, p)))
    # A model's own temperature is the decoder's.
    cold = lstm.probabilities(space, 0.6)
    np.testing.assert_allclose(decode(p, space, Temperature(0.6)), cold, rtol=1e-11)
    several = np.random.default_rng(5).dirichlet(np.ones(space.num_texts), (2, 3))
    tokens = *TRUNCATIONS, TopK(2, 3), Temperature(0.5), Greedy()
    for decoder in (*tokens, Beam(2), BestOf(3, p)):
        found = decode(several, space, decoder)
        assert found.shape == several.shape
        one = decode(several[1, 2], space, decoder)
        np.testing.assert_array_equal(found[1, 2], one)
    found = decode(p, space, (Greedy(), BestOf(3, p)))
    np.testing.assert_array_equal(found, best_of_n(decode(p, space, Greedy()), p, 3))


@pytest.mark.parametrize("space", SPACES)
def test_laws_and_texts_are_inverse(space):
    q = np.random.default_rng(6).dirichlet(np.full(space.num_texts, 0.3))
    q[: space.num_texts // 2] = 0
    q /= q.sum()
    laws = next_token_distributions(q, space)
    assert all(np.allclose(law.sum(axis=-1), 1) for law in laws)
    np.testing.assert_allclose(text_distribution(laws, space), q, atol=1e-15)


@pytest.mark.claim("N24.2")
def test_the_order_of_decoders():
    rng = np.random.default_rng(8)
    differ = 0
    for law in rng.dirichlet(np.full(6, 0.8), 300):
        t, share = rng.uniform(0.3, 2), rng.uniform(0.05, 0.9)
        k, warm = int(rng.integers(1, 7)), Temperature(t)
        np.testing.assert_allclose(warm(TopK(k)(law)), TopK(k)(warm(law)), atol=1e-14)
        after, before = MinP(share)(warm(law)), warm(MinP(share**t)(law))
        np.testing.assert_allclose(after, before, atol=1e-14)
        one, other = TopP(0.8)(warm(law)), warm(TopP(0.8)(law))
        differ += not np.allclose(one, other)
        decoded = decode(law, qd.TextSpace(6, 1), (warm, TopP(0.8)))
        np.testing.assert_allclose(decoded, one, atol=1e-15)
    assert 60 < differ < 300


# --- Decoders of texts ----------------------------------------------------------------


def searched(space, q, width, penalty):
    """Beam search on dictionaries of prefixes."""
    beams, finished = {(): 0.0}, {}
    for t in range(space.max_length):
        rivals = []
        for prefix, total in beams.items():
            law = of_prefix(space, q, prefix)
            rivals += [
                (total + log(x), prefix, token) for token, x in enumerate(law) if x
            ]
        rivals = sorted(rivals, key=lambda rival: -rival[0])[: 2 * width]
        beams = {}
        for rank, (total, prefix, token) in enumerate(rivals):
            ends = token == space.vocab_size
            text = prefix if ends else (*prefix, token)
            if (ends or t + 1 == space.max_length) and rank < width:
                finished[text] = total / (t + 1) ** penalty
            if not ends and len(beams) < width:
                beams[text] = total
    best = max(finished, key=finished.__getitem__)
    return int(space.index(np.array([*best, *[-1] * (space.max_length - len(best))])))


@pytest.mark.claim("N24.10")
@pytest.mark.parametrize("space", SPACES)
def test_beam_search(space):
    rng = np.random.default_rng(9)
    for q in rng.dirichlet(np.full(space.num_texts, 0.5), 8):
        for width, penalty in product((1, 2, 3, 200), (0.0, 1.0)):
            found = decode(q, space, Beam(width, penalty))
            assert found.max() == 1
            assert found.argmax() == searched(space, q, width, penalty)
        whole = decode(q, space, Beam(space.num_texts, 0.0))
        assert whole.argmax() == q.argmax()
        if len(space.lengths) == 1:
            one = decode(q, space, Beam(1))
            np.testing.assert_array_equal(one, decode(q, space, Greedy()))


# --- Where they lie: LL-SE ------------------------------------------------------------


def lacking(q, p):
    """KL to the closest text temperature: 0 on the frontier of LL-SE."""
    seen, log_p = q > 0, np.log(p)
    negentropy = q[seen] @ np.log(q[seen])

    def gap(beta):
        return np.logaddexp.reduce(beta * log_p) - beta * (q @ log_p) + negentropy

    options = {"bounds": (-40, 40), "method": "bounded", "options": {"xatol": 1e-10}}
    return minimize_scalar(gap, **options).fun


@pytest.mark.claim("N24.4")
def test_token_temperature_on_the_frontier():
    """Rows with the same numbers, rows that compensate, and rows that do not."""
    rng, space = np.random.default_rng(11), qd.TextSpace(3, 3)
    for _ in range(5):
        rows = rng.dirichlet(np.ones(3), 4)
        alike = [np.array([rng.permutation(rows[t]) for _ in range(3**t)])
                 for t in range(3)]  # fmt: skip
        # After the first token the two rows of a text are rows 1 and 2, or 2 and 1.
        second = [rows[1], rng.permutation(rows[2]), rows[1]]
        third = [rows[2], rows[1], rows[2]]
        traded = [rows[:1], np.array(second), np.repeat(third, 3, axis=0)]
        lie = [text_distribution(laws, space) for laws in (alike, traded)]
        for p, lies in zip((*lie, rng.dirichlet(np.ones(27))), (True, True, False)):
            for t in (0.4, 3.0):
                gap = lacking(decode(p, space, Temperature(t)), p)
                assert (gap <= 1e-12) if lies else (gap >= 1e-4)


def tempered(p, beta):
    return softmax(beta * np.log(p))


def best_quality(p, q):
    """The LL of the text temperature of the entropy of q."""
    se = entr(q).sum()
    beta = brentq(lambda b: entr(tempered(p, b)).sum() - se, 0.01, 500)
    return tempered(p, beta) @ np.log(p)


@pytest.mark.claim("N24.5")
def test_two_words_and_two_tokens_suffice():
    space, p = qd.TextSpace(2, 2), np.array([0.25, 0.25, 0.45, 0.05])
    for t in (0.5, 2.0):
        q = decode(p, space, Temperature(t))
        assert best_quality(p, q) - q @ np.log(p) >= 0.003
    # One token, or one word, is not enough.
    one = qd.TextSpace(4, 1)
    for t in (0.5, 2.0):
        found = decode(p, one, Temperature(t))
        np.testing.assert_allclose(found, tempered(p, 1 / t), atol=1e-15)


@pytest.mark.claim("N24.6")
def test_a_truncation_lacks_entropy_even_when_it_hardly_cuts():
    """Of one token: the share lost tends to 1 / (1 + surprise of the cut - entropy)."""
    rng = np.random.default_rng(12)
    for head in rng.dirichlet(np.full(5, 5.0), 5):
        gaps = []
        for rare in (1e-3, 1e-5, 1e-7):
            p, q = np.append((1 - rare) * head, rare), np.append(head, 0)
            best = best_quality(p, q)
            lost = (best - q @ np.log(p)) / (best - p @ np.log(p))
            said = 1 / (1 - log(rare) - entr(p).sum())
            gaps.append(abs(lost / said - 1))
        assert gaps[0] > gaps[1] > gaps[2]
        assert gaps[2] <= 1e-2


@pytest.mark.claim("N24.8")
@pytest.mark.claim("N24.9")
def test_truncation_beats_temperature_where_the_greedy_text_is_not_the_mode():
    space = qd.TextSpace(2, 2)
    p = np.array([0.3, 0.3, 0.36, 0.04])
    q = decode(p, space, MinP(0.5))
    np.testing.assert_allclose(q, [0.3, 0.3, 0.4, 0], atol=1e-15)
    beaten = {"LL-SE": 0, "CR-NRR": 0}
    for t in np.linspace(0.05, 1, 96):
        cold = decode(p, space, Temperature(float(t)))
        more_se = bool(entr(q).sum() > entr(cold).sum())
        beaten["LL-SE"] += bool((q - cold) @ np.log(p) > 0) and more_se
        beaten["CR-NRR"] += bool((q - cold) @ p > 0) and bool(q @ q < cold @ cold)
    assert min(beaten.values()) >= 10
    greedy = decode(p, space, Greedy())
    assert p[greedy.argmax()] < p.max()
    # Any model of more LL than the greedy text beats all temperatures that are low.
    coldest = decode(p, space, Temperature(0.05))
    assert q @ np.log(p) > np.log(p[greedy.argmax()])
    assert abs(coldest @ np.log(p) - np.log(p[greedy.argmax()])) <= 0.01


@pytest.mark.claim("N24.7")
def test_temperature_loses_least_under_ll_se():
    """Twenty oracles of 64 texts: the median share of the gain that is lost."""
    space, shares = qd.TextSpace(4, 3), {"temperature": [], "min-p": []}
    families = {
        "temperature": [Temperature(t) for t in (0.3, 0.5, 0.7, 0.9)],
        "min-p": [MinP(share) for share in (0.1, 0.2, 0.4, 0.6)],
    }
    for seed in range(20):
        p = np.asarray(qd.oracle(space, seed))
        real = p @ np.log(p)
        for name, decoders in families.items():
            for decoder in decoders:
                q = decode(p, space, decoder)
                if 0.25 < entr(q).sum() / -real < 0.95:
                    best = best_quality(p, q)
                    shares[name].append((best - q @ np.log(p)) / (best - real))
    medians = {name: np.median(found) for name, found in shares.items()}
    assert min(len(found) for found in shares.values()) >= 20
    assert medians["temperature"] < 0.05 < medians["min-p"]


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    space, q = qd.TextSpace(2, 2), np.full(4, 0.25)
    refused(
        ("t must be positive and finite, got 0; for 0 take Greedy()", Temperature, 0),
        ("k must be at least 1, got 0", TopK, 0),
        ("min_tokens_to_keep must be at least 1, got 0", TopK, 1, 0),
        ("mass must lie in [0, 1], got 1.1", TopP, 1.1),
        ("share must lie in [0, 1], got -0.1", MinP, -0.1),
        ("mass must lie in (0, 1), got 1.0", Typical, 1.0),
        ("share must lie in (0, 1], got 0", TopH, 0),
        ("tau must be finite and at least 0, got -1", MinK, -1),
        ("tau must be finite and at least 0, got inf", MinK, np.inf),
        ("cutoff must lie in (0, 1), got 0", Epsilon, 0),
        ("cutoff must lie in (0, 1), got 1", Eta, 1),
        ("width must be at least 1, got 0", Beam, 0),
        ("chooses texts: it must be the last", decode, q, space, (Beam(2), TopK(1))),
        ("the space has 4 texts, so q must have 4", decode, q[:3], space, TopK(1)),
        ("q must hold distributions", decode, np.full(4, 0.3), space, TopK(1)),
        ("expected at least one decoder", decode, q, space, ()),
        ("scores must have 4 entries, got 3", decode, q, space, BestOf(2, q[:3])),
    )
    refused(
        ("expected a decoder, as TopK(5), got 'top-k'", decode, q, space, "top-k"),
        ("LogitTable, got {}", decode, {}, space, TopK(1)),
        error=TypeError,
    )
