"""Decoders, against direct implementations of each rule and sums over all texts."""

from functools import cache, reduce
from itertools import product
from math import exp, log, prod, sqrt

import jax
import numpy as np
import pytest
from lab import generators as gen
from lab.generators import Greedy, MinK, Temperature, TopK, TopP, decode, markov_metrics
from numpy.testing import assert_allclose, assert_array_equal
from referees.prefixes import masses_after
from refusals import refused
from scipy.optimize import brentq, minimize_scalar
from scipy.special import entr, softmax

import qdtheory as qd

SPACES = qd.TextSpace(4, 3), qd.TextSpace(3, (1, 2, 3)), qd.TextSpace(2, (2, 5))
RULES = gen.MinP(0.3), gen.Typical(0.6), gen.Epsilon(0.2), gen.Eta(0.3), gen.PLess()
HEADS = tuple(gen.TopH(0.6, normalised=x) for x in (True, False))
TRUNCATIONS = *RULES, *HEADS, TopK(2), TopP(0.7), MinK()
UNIT = 64  # of the counts below, so that floats hold every sum exactly


# --- Each rule by hand ----------------------------------------------------------------


def truncated(c, k, mass, eighths, cutoff, keep):
    """Each rule on counts of sum 64: what it keeps, and the margin of the choice."""
    size, p, share, some = len(c), c / UNIT, cutoff / UNIT, mass / UNIT
    falling, rising = (np.argsort(x, kind="stable") for x in (-c, c))
    rank, h, greatest = np.argsort(falling), entr(p).sum(), c[falling]
    yield TopK(k, keep), c >= greatest[min(max(k, keep), size) - 1], 1
    gone = np.cumsum(c[rising]) > UNIT - mass
    gone[-keep:] = True
    yield TopP(some, keep), gone[np.argsort(rising)], 1
    yield gen.MinP(eighths / 8, keep), (8 * c >= eighths * max(c)) | (rank < keep), 1
    enough = c >= greatest[min(keep, size) - 1]
    yield gen.Epsilon(share, keep), enough | (p >= share), 1
    least = min(share, sqrt(share) * exp(-h))
    yield gen.Eta(share, keep), enough | (p >= least), abs(p - least).min()

    with np.errstate(divide="ignore"):
        away = abs(-np.log(p) - h)
    order = np.argsort(away, kind="stable")
    last = order[np.argmax(np.cumsum(c[order]) >= mass)]
    kept = (away <= away[last]) | (np.argsort(order) < keep)
    yield gen.Typical(some, keep), kept, np.diff(np.unique(away[c > 0])).min(initial=1)

    for normalised in (True, False):
        heads = (greatest[: i + 1] for i in range(size))
        laws = (head / (head.sum() if normalised else UNIT) for head in heads)
        room = np.array([some * h - entr(law).sum() for law in laws])
        number = np.argmin(np.append(room >= 0, False))
        yield gen.TopH(some, normalised), rank < max(number, 1), abs(room).min()

    # In whole numbers, over the common denominator UNIT^2 or (V - 1) UNIT^2.
    yield gen.PLess(), (UNIT * c >= c @ c) | (c == max(c)), 1
    above = (size - 1) * UNIT * c - size * (c @ c) + UNIT**2
    yield gen.PLess(norm=True), (above >= 0) | (c == max(c)), abs(above).min()

    logs = np.log(greatest[greatest > 0])
    falls, reach = -np.diff(logs) / np.arange(1, len(logs)), logs[0] - logs[-1]
    cliff, lead, least = 1, 1, size + 0.5
    if reach:
        cliff, least = falls.argmax() + 1, k / reach
        lead = (max(falls) - np.delete(falls, cliff - 1)).min(initial=1)
    number = min(max(cliff, int(least)), size)
    yield MinK(k), c >= greatest[number - 1], min(lead, abs(least - round(least)))


@pytest.mark.claim("N24.3", "N24.25", "N24.26")
def test_truncations_keep_what_a_direct_implementation_keeps():
    rng, clear = np.random.default_rng(1), 0
    for case in range(1500):
        size, unit = 2 + case % 7, (1, 8)[case // 7 % 2]  # with many ties and zeros
        c = unit * rng.multinomial(UNIT // unit, rng.dirichlet(np.full(size, 0.7)))
        numbers = rng.integers(1, (9, UNIT, 9, 33, 4)).tolist()
        for decoder, kept, margin in truncated(c, *numbers):
            # Where rounding decides (tokens as far below as above the mean surprise, a
            # probability at the cutoff), either answer is right.
            if margin > 1e-12:
                clear += 1
                off = decoder(c / UNIT) - kept * c / (kept @ c)
                assert np.abs(off).max() <= 1e-15, (decoder, c)
    assert clear > 13_500
    # Of equal tokens the rules above keep all or none, but for top-p: the last stay.
    assert TopP(0.5)(np.full(4, 0.25)).tolist() == [0, 0, 0.5, 0.5]


@pytest.mark.claim("N24.25", "N24.26")
@pytest.mark.parametrize("n", [1, 10, 50, 100])
def test_of_equal_tokens_p_less_keeps_all_top_h_a_power_and_its_code_a_share(n):
    law = np.full(n, 1 / n)  # whose sum of squares is rounded
    for decoder in (gen.PLess(), gen.PLess(norm=True)):
        assert_allclose(decoder(law), law, atol=1e-15)
    rules = [gen.TopH(0.455, normalised=x)(law) for x in (True, False)]
    paper, code = map(np.count_nonzero, rules)
    assert (paper, code) == (int(n**0.455), max(1, int(0.455 * n)))
    assert n == 1 or log(code) > 0.455 * log(n)  # beyond the bound on the entropy


@pytest.mark.claim("N24.27")
def test_only_the_cliff_of_min_k_is_free_of_the_temperature():
    rng = np.random.default_rng(27)
    for law in rng.dirichlet(np.full(12, 1.0), 100):
        t = Temperature(float(np.exp(rng.normal())))
        assert_allclose(MinK(0)(t(law)), t(MinK(0)(law)), atol=1e-13)
    # Logits 1, 0, -1: the first fall is steepest, and a range of 2 asks for tau / 2.
    law = softmax([1.0, 0.0, -1.0])
    numbers = [np.count_nonzero(MinK(4.5)(Temperature(t)(law))) for t in (0.5, 1, 2)]
    assert numbers == [1, 2, 3]
    assert MinK(0)(np.array([0.5, 0.5, 0.0])).tolist() == [0.5, 0.5, 0]


def test_temperature_and_greedy():
    law = np.array([0.5, 0.3, 0.2, 0.0])
    for t in (0.01, 0.5, 1, 3.0):
        expected = law ** (1 / t) / (law ** (1 / t)).sum()
        assert_allclose(Temperature(t)(law), expected, rtol=1e-13)
    assert Temperature(1e-4)(law).tolist() == Greedy()(law).tolist() == [1, 0, 0, 0]


@pytest.mark.claim("N24.2")
def test_the_order_of_decoders():
    rng, differ = np.random.default_rng(8), 0
    for law in rng.dirichlet(np.full(6, 0.8), 200):
        t, share = rng.uniform(0.3, 2), rng.uniform(0.05, 0.9)
        top, warm = TopK(int(rng.integers(1, 7))), Temperature(t)
        assert_allclose(warm(top(law)), top(warm(law)), atol=1e-14)
        after, before = gen.MinP(share)(warm(law)), warm(gen.MinP(share**t)(law))
        assert_allclose(after, before, atol=1e-14)
        one, other = TopP(0.8)(warm(law)), warm(TopP(0.8)(law))
        differ += not np.allclose(one, other)
        decoded = decode(law, qd.TextSpace(6, 1), (warm, TopP(0.8)))
        assert_allclose(decoded, one, atol=1e-15)
    assert 40 < differ < 200


# --- Texts ----------------------------------------------------------------------------


def of_prefix(space, q, prefix):
    """The distribution of the next token after a prefix, the end last."""
    mass = masses_after(space, q, prefix)
    return mass / mass.sum()


@pytest.mark.claim("N24.1")
@pytest.mark.parametrize("space", SPACES)
def test_a_decoded_text_is_a_product_over_its_prefixes(space):
    q = np.random.default_rng(4).dirichlet(np.ones(space.num_texts))
    both, texts = (Temperature(0.7), TopP(0.8)), space.tokens.tolist()
    for decoder in (*TRUNCATIONS, Temperature(2.0), Greedy(), both):
        steps = decoder if decoder is both else (decoder,)

        @cache
        def change(prefix, steps=steps):
            law = of_prefix(space, q, prefix)
            return reduce(lambda x, step: step(x), steps, law)

        expected = []
        for row in texts:
            text = tuple(token for token in row if token >= 0)
            ends = () if len(text) == space.max_length else (space.vocab_size,)
            path = enumerate((*text, *ends))
            expected.append(prod(change(text[:t])[token] for t, token in path))
        found = decode(q, space, decoder)
        assert_allclose(found, expected, atol=1e-14, err_msg=str(decoder))
        assert found.sum() == pytest.approx(1, abs=1e-13)


def test_models_and_batches():
    space = SPACES[1]
    lstm = qd.LSTMLanguageModel.random(jax.random.key(0), 4, 6, 8, end_token=3)
    p = np.asarray(lstm.probabilities(space))
    assert_array_equal(*(decode(m, space, TopK(2)) for m in (lstm, p)))
    # A model's own temperature is the decoder's.
    cold = lstm.probabilities(space, 0.6)
    assert_allclose(decode(p, space, Temperature(0.6)), cold, rtol=1e-11)
    several = np.random.default_rng(5).dirichlet(np.ones(space.num_texts), (2, 3))
    tokens = *TRUNCATIONS, TopK(2, 3), Temperature(0.5), Greedy()
    for decoder in (*tokens, gen.Beam(2), gen.BestOf(3, p)):
        found, one = (decode(q, space, decoder) for q in (several, several[1, 2]))
        assert found.shape == several.shape
        assert_array_equal(found[1, 2], one)
    found = decode(p, space, (Greedy(), gen.BestOf(3, p)))
    assert_array_equal(found, gen.best_of_n(decode(p, space, Greedy()), p, 3))


@pytest.mark.parametrize("space", SPACES)
def test_laws_and_texts_are_inverse(space):
    q = np.random.default_rng(6).dirichlet(np.full(space.num_texts, 0.3))
    q[: space.num_texts // 2] = 0
    q /= q.sum()
    laws = gen.next_token_distributions(q, space)
    assert all(np.allclose(law.sum(axis=-1), 1) for law in laws)
    assert_allclose(gen.text_distribution(laws, space), q, atol=1e-15)


def searched(space, q, width, penalty):
    """Beam search on dictionaries of prefixes."""
    beams, finished = {(): 0.0}, {}
    for t in range(space.max_length):
        rivals = [
            (total + log(x), prefix, token)
            for prefix, total in beams.items()
            for token, x in enumerate(of_prefix(space, q, prefix))
            if x
        ]
        rivals, beams = sorted(rivals, key=lambda rival: -rival[0])[: 2 * width], {}
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
    for q in rng.dirichlet(np.full(space.num_texts, 0.5), 6):
        for width, penalty in product((1, 2, 3, 200), (0.0, 1.0)):
            found = decode(q, space, gen.Beam(width, penalty))
            assert found.max() == 1
            assert found.argmax() == searched(space, q, width, penalty)
        assert decode(q, space, gen.Beam(space.num_texts, 0.0)).argmax() == q.argmax()
        if len(space.lengths) == 1:
            one = decode(q, space, gen.Beam(1))
            assert_array_equal(one, decode(q, space, Greedy()))


# --- Where they lie: LL-SE ------------------------------------------------------------


def tempered(p, beta):
    return softmax(beta * np.log(p))


def lacking(q, p):
    """KL to the closest text temperature: 0 on the frontier of LL-SE."""
    log_p, negentropy = np.log(p), -entr(q).sum()

    def gap(beta):
        return np.logaddexp.reduce(beta * log_p) - beta * (q @ log_p) + negentropy

    options = {"bounds": (-40, 40), "method": "bounded", "options": {"xatol": 1e-10}}
    return minimize_scalar(gap, **options).fun


def lost(q, p):
    """LL of the text temperature of the entropy of q, less that of q."""
    se = entr(q).sum()
    beta = brentq(lambda b: entr(tempered(p, b)).sum() - se, 0.01, 500)
    return (tempered(p, beta) - q) @ np.log(p)


@pytest.mark.claim("N24.4")
def test_token_temperature_on_the_frontier():
    """Rows with the same numbers, rows that compensate, and rows that do not."""
    rng, space = np.random.default_rng(11), qd.TextSpace(3, 3)
    for _ in range(5):
        rows = rng.dirichlet(np.ones(3), 4)
        alike = [rng.permuted(np.tile(rows[t], (3**t, 1)), axis=1) for t in range(3)]
        # After the first token the two rows of a text are rows 1 and 2, or 2 and 1.
        second = np.array([rows[1], rng.permutation(rows[2]), rows[1]])
        traded = [rows[:1], second, np.repeat(rows[[2, 1, 2]], 3, axis=0)]
        lie = [gen.text_distribution(laws, space) for laws in (alike, traded)]
        for p, lies in zip((*lie, rng.dirichlet(np.ones(27))), (True, True, False)):
            for t in (0.4, 3.0):
                gap = lacking(decode(p, space, Temperature(t)), p)
                assert (gap <= 1e-12) if lies else (gap >= 1e-4)


@pytest.mark.claim("N24.5")
@pytest.mark.parametrize("t", [0.5, 2.0])
def test_two_words_and_two_tokens_suffice(t):
    p = np.array([0.25, 0.25, 0.45, 0.05])
    assert lost(decode(p, qd.TextSpace(2, 2), Temperature(t)), p) >= 0.003
    one = decode(p, qd.TextSpace(4, 1), Temperature(t))  # one token is not enough
    assert_allclose(one, tempered(p, 1 / t), atol=1e-15)


@pytest.mark.claim("N24.6")
def test_a_truncation_lacks_entropy_even_when_it_hardly_cuts():
    """Of one token: the share lost tends to 1 / (1 + surprise of the cut - entropy)."""
    for head in np.random.default_rng(12).dirichlet(np.full(5, 5.0), 5):
        gaps = []
        for rare in (1e-3, 1e-5, 1e-7):
            p, q = np.append((1 - rare) * head, rare), np.append(head, 0)
            share = lost(q, p) / (lost(q, p) + (q - p) @ np.log(p))
            gaps.append(abs(share * (1 - log(rare) - entr(p).sum()) - 1))
        assert gaps[0] > gaps[1] > gaps[2]
        assert gaps[2] <= 1e-2


@pytest.mark.claim("N24.8", "N24.9")
def test_truncation_beats_temperature_where_the_greedy_text_is_not_the_mode():
    space, p = qd.TextSpace(2, 2), np.array([0.3, 0.3, 0.36, 0.04])
    q, greedy = (decode(p, space, decoder) for decoder in (gen.MinP(0.5), Greedy()))
    assert_allclose(q, [0.3, 0.3, 0.4, 0], atol=1e-15)
    sweep = [decode(p, space, Temperature(float(t))) for t in np.linspace(0.05, 1, 96)]
    for f, spread in ((np.log(p), lambda x: entr(x).sum()), (p, lambda x: -x @ x)):
        wins = [(q - x) @ f > 0 and spread(q) > spread(x) for x in sweep]
        assert sum(wins) >= 10
    assert p[greedy.argmax()] < p.max()
    # Any model of more LL than the greedy text beats all temperatures that are low.
    assert q @ np.log(p) > np.log(p[greedy.argmax()])
    assert abs(sweep[0] @ np.log(p) - np.log(p[greedy.argmax()])) <= 0.01


@pytest.mark.claim("N24.7")
def test_temperature_loses_least_under_ll_se():
    """Twenty oracles of 64 texts: the median share of the gain that is lost."""
    space, medians = qd.TextSpace(4, 3), []
    oracles = [np.asarray(qd.oracle(space, seed)) for seed in range(20)]
    cuts = (0.1, 0.2, 0.4, 0.6)
    for family, numbers in ((Temperature, (0.3, 0.5, 0.7, 0.9)), (gen.MinP, cuts)):
        shares = []
        for p, number in product(oracles, numbers):
            q = decode(p, space, family(number))
            if 0.25 < entr(q).sum() / entr(p).sum() < 0.95:
                shares.append(lost(q, p) / (lost(q, p) + (q - p) @ np.log(p)))
        assert len(shares) >= 20
        medians.append(np.median(shares))
    assert medians[0] < 0.05 < medians[1]


# --- Markov models: sums over positions -----------------------------------------------


def drawn(rng, size, weight=1.0):
    rows = rng.dirichlet(np.full(size, weight), size + 1)
    return gen.MarkovModel(rows[0], rows[1:])


def listed(q, p):
    """The four metrics from the probabilities of all texts."""
    seen = q > 0
    return entr(q).sum(), q[seen] @ np.log(p[seen]), np.log(q @ p), np.log(q @ q)


@pytest.mark.claim("N24.11")
@pytest.mark.parametrize(("size", "length"), [(3, 5), (2, 8), (4, 1)])
def test_metrics_and_decoders_on_all_texts(size, length):
    p, space = drawn(np.random.default_rng(size), size), qd.TextSpace(size, length)
    table = np.asarray(p.probabilities(space))
    for decoders in ((Temperature(0.6),), (TopK(2),), (Temperature(2.0), TopP(0.8))):
        q = gen.decode_markov(p, *decoders)
        law = np.asarray(q.probabilities(space))
        assert_allclose(law, decode(table, space, decoders), atol=1e-14)
        found = markov_metrics(q, p, length)
        values = found.se, found.ll, found.log_cr, found.log_repetition
        assert_allclose(values, listed(law, table), rtol=1e-12)
        assert_allclose((found.cr, -found.nrr), np.exp(values[2:]))
    for beta in (0.3, 1.0, 2.5):
        se, ll, *_ = listed(np.asarray(qd.temper(table, beta)), table)
        found = gen.tempered_markov_metrics(p, beta, length)
        assert_allclose(found, (ll, se), rtol=1e-11)


@pytest.mark.claim("N24.11")
def test_metrics_of_long_texts_grow_with_the_length():
    """50 words and 100 tokens."""
    p = drawn(np.random.default_rng(2), 50, 0.3)
    q = gen.decode_markov(p, TopK(5))
    one, two, four = (markov_metrics(q, p, length) for length in (50, 99, 197))
    for name in ("se", "ll", "log_cr", "log_repetition"):
        a, b, c = (getattr(found, name) for found in (one, two, four))
        assert 2 * (b - a) == pytest.approx(c - b, rel=1e-3)
    # 1e-600 is no float, its logarithm is.
    assert markov_metrics(p, p, 1000).log_cr < -700
    assert markov_metrics(p, p, 1000).cr == 0


def test_what_one_model_never_writes():
    never = gen.MarkovModel(np.array([0.0, 1.0]), np.eye(2))
    p = gen.MarkovModel(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [1.0, 0.0]]))
    found = markov_metrics(never, p, 3)
    assert (found.se, found.ll, found.log_cr, found.cr) == (0, -np.inf, -np.inf, 0)
    # Rows that are never reached do not count.
    assert markov_metrics(gen.decode_markov(p, Greedy()), p, 1).ll == 0


@pytest.mark.usefixtures("as_a_user")
def test_bad_input():
    space, q, best = qd.TextSpace(2, 2), np.full(4, 0.25), gen.BestOf(2, np.ones(3))
    uniform = [np.full(n, 1 / n) for n in (2, 3)]
    p, three = (gen.MarkovModel(x, np.tile(x, (x.size, 1))) for x in uniform)
    wide = gen.MarkovModel(np.full(2, 0.5), np.full((2, 3), 0.5))
    light = gen.MarkovModel(np.full(2, 0.4), np.full((2, 2), 0.5))
    one, size = "a Markov model is for texts of one length, got", "over 2 tokens here, "
    refused(
        ("t must be positive and finite, got 0; for 0 take Greedy()", Temperature, 0),
        ("k must be at least 1, got 0", TopK, 0),
        ("min_tokens_to_keep must be at least 1, got 0", TopK, 1, 0),
        ("mass must lie in [0, 1], got 1.1", TopP, 1.1),
        ("mass must lie in (0, 1), got 1.0", gen.Typical, 1.0),
        ("share must lie in (0, 1], got 0", gen.TopH, 0),
        ("tau must be finite and at least 0, got -1", MinK, -1),
        ("cutoff must lie in (0, 1), got 0", gen.Epsilon, 0),
        ("width must be at least 1, got 0", gen.Beam, 0),
        (
            "chooses texts: it must be the last",
            decode,
            q,
            space,
            (gen.Beam(2), TopK(1)),
        ),
        ("the space has 4 texts, so q must have 4", decode, q[:3], space, TopK(1)),
        ("q must hold distributions", decode, np.full(4, 0.3), space, TopK(1)),
        ("expected at least one decoder", decode, q, space, ()),
        ("scores must have 4 entries, got 3", decode, q, space, best),
        ("shape (|V|,) and transitions of shape", markov_metrics, p, wide, 3),
        ("must be nonnegative and sum to 1", gen.decode_markov, light, TopK(1)),
        ("the models have 2 and 3 tokens", markov_metrics, p, three, 3),
        ("length must be at least 1, got 0", markov_metrics, p, p, 0),
        (
            "beta must be positive and finite, got 0",
            gen.tempered_markov_metrics,
            p,
            0,
            3,
        ),
        (one, p.probabilities, qd.TextSpace(2, (1, 2))),
        (size + "the space over 3", p.probabilities, qd.TextSpace(3, 2)),
    )
    beam = "decoder must be one of tokens, as TopK(5), got Beam"
    refused(
        ("expected a decoder, as TopK(5), got 'top-k'", decode, q, space, "top-k"),
        ("LogitTable, got {}", decode, {}, space, TopK(1)),
        (beam, gen.decode_markov, p, gen.Beam(2)),
        error=TypeError,
    )
