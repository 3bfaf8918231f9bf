"""Decoders and alignment, against rules by hand, sums over all texts, search."""

from collections import Counter
from functools import cache, reduce
from itertools import product
from math import exp, log, prod, sqrt

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab import generators as gen
from lab.generators import Greedy, MinK, Temperature, TopK, TopP, best_of_n, decode
from numpy.testing import assert_allclose, assert_array_equal
from referees.enumerated_batches import batches
from referees.prefixes import masses_after
from refusals import refused
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import entr, rel_entr, softmax

import qdtheory as qd

approx = pytest.approx

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


def test_only_the_cliff_of_min_k_is_free_of_the_temperature():
    rng = np.random.default_rng(27)
    for law in rng.dirichlet(np.full(12, 1.0), 100):
        t = Temperature(float(np.exp(rng.normal())))
        assert_allclose(MinK(0)(t(law)), t(MinK(0)(law)), atol=1e-13)
    # Logits 1, 0, -1: the first fall is steepest, and a range of 2 asks for tau / 2.
    law = softmax([1.0, 0.0, -1.0])
    numbers = [np.count_nonzero(MinK(4.5)(Temperature(t)(law))) for t in (0.5, 1, 2)]
    assert numbers == [1, 2, 3]


@pytest.mark.claim("N24.2")
def test_the_order_of_decoders():
    rng, differ = np.random.default_rng(8), 0
    for law in rng.dirichlet(np.full(6, 0.8), 200):
        t, share = rng.uniform(0.3, 2), rng.uniform(0.05, 0.9)
        top, warm = TopK(int(rng.integers(1, 7))), Temperature(t)
        assert_allclose(warm(top(law)), top(warm(law)), atol=1e-14)
        after, before = gen.MinP(share)(warm(law)), warm(gen.MinP(share**t)(law))
        assert_allclose(after, before, atol=1e-14)
        differ += not np.allclose(TopP(0.8)(warm(law)), warm(TopP(0.8)(law)))
    assert 40 < differ < 200


# --- Texts ----------------------------------------------------------------------------


def of_prefix(space, q, prefix):
    """The distribution of the next token after a prefix, the end last."""
    mass = masses_after(space, q, prefix)
    return mass / mass.sum()


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
    # Back again, with prefixes that never occur.
    q[: q.size // 2] = 0
    laws = gen.next_token_distributions(q / q.sum(), space)
    assert all(np.allclose(law.sum(axis=-1), 1) for law in laws)
    assert_allclose(gen.text_distribution(laws, space), q / q.sum(), atol=1e-15)


def test_models_and_batches():
    space = SPACES[1]
    lstm = qd.LSTMLanguageModel.random(jax.random.key(0), 4, 6, 8, end_token=3)
    p = np.asarray(lstm.probabilities(space))
    # A model's own temperature is the decoder's.
    cold = lstm.probabilities(space, 0.6)
    assert_allclose(decode(lstm, space, Temperature(0.6)), cold, rtol=1e-11)
    several = np.random.default_rng(5).dirichlet(np.ones(space.num_texts), 3)
    for decoder in (*TRUNCATIONS, TopK(2, 3), gen.Beam(2), gen.BestOf(3, p)):
        found, one = (decode(q, space, decoder) for q in (several, several[1]))
        assert_array_equal(found[1], one)
    found = decode(p, space, (Greedy(), gen.BestOf(3, p)))
    assert_array_equal(found, gen.best_of_n(decode(p, space, Greedy()), p, 3))


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
    rng, whole = np.random.default_rng(9), gen.Beam(space.num_texts, 0.0)
    for q in rng.dirichlet(np.full(space.num_texts, 0.5), 6):
        for width, penalty in product((1, 2, 3, 200), (0.0, 1.0)):
            found = decode(q, space, gen.Beam(width, penalty))
            assert found.max() == 1
            assert found.argmax() == searched(space, q, width, penalty)
        assert decode(q, space, whole).argmax() == q.argmax()


# --- Where they lie: LL-SE ------------------------------------------------------------


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
    beta = brentq(lambda b: float(qd.entropy(qd.temper(p, b))) - se, 0.01, 500)
    return (qd.temper(p, beta) - q) @ np.log(p)


def test_token_temperature_on_the_frontier():
    """Rows with the same numbers, rows that compensate, and rows that do not."""
    rng, space = np.random.default_rng(11), qd.TextSpace(3, 3)
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
def test_two_words_and_two_tokens_suffice():
    p = np.array([0.25, 0.25, 0.45, 0.05])
    for t in (0.5, 2.0):
        assert lost(decode(p, qd.TextSpace(2, 2), Temperature(t)), p) >= 0.003
        one = decode(p, qd.TextSpace(4, 1), Temperature(t))  # one token is not enough
        assert_allclose(one, qd.temper(p, 1 / t), atol=1e-15)
    assert Temperature(1e-4)(p).tolist() == Greedy()(p).tolist() == [0, 0, 1, 0]


@pytest.mark.claim("N24.6")
def test_a_truncation_lacks_entropy_even_when_it_hardly_cuts():
    """Of one token: the share lost tends to 1 / (1 + surprise of the cut - entropy)."""
    for head in np.random.default_rng(12).dirichlet(np.full(5, 5.0), 5):
        gaps = []
        for rare in (1e-3, 1e-5, 1e-7):
            p, q = np.append((1 - rare) * head, rare), np.append(head, 0)
            share = lost(q, p) / (lost(q, p) + (q - p) @ np.log(p))
            gaps.append(abs(share * (1 - log(rare) - entr(p).sum()) - 1))
        assert gaps[0] > gaps[1] > gaps[2] < 1e-2


@pytest.mark.claim("N24.8", "N24.9")
def test_truncation_beats_temperature_where_the_greedy_text_is_not_the_mode():
    space, p = qd.TextSpace(2, 2), np.array([0.3, 0.3, 0.36, 0.04])
    q, greedy = (decode(p, space, decoder) for decoder in (gen.MinP(0.5), Greedy()))
    assert_allclose(q, [0.3, 0.3, 0.4, 0], atol=1e-15)
    sweep = [decode(p, space, Temperature(float(t))) for t in np.linspace(0.05, 1, 96)]
    for f, spread in ((np.log(p), lambda x: entr(x).sum()), (p, lambda x: -x @ x)):
        wins = [(q - x) @ f > 0 and spread(q) > spread(x) for x in sweep]
        assert sum(wins) >= 10
    # Any model of more LL than the greedy text beats all temperatures that are low.
    reached = greedy @ np.log(p)
    assert q @ np.log(p) > reached == approx(sweep[0] @ np.log(p), abs=0.01)
    assert reached < np.log(p.max())


@pytest.mark.claim("N24.7")
def test_temperature_loses_least_under_ll_se():
    """Twenty oracles of 64 texts: the median share of the gain that is lost."""
    space, medians = qd.TextSpace(4, 3), []
    oracles, cuts = [np.asarray(qd.oracle(space, x)) for x in range(20)], (0.2, 0.4)
    for family, numbers in ((Temperature, (0.5, 0.7)), (gen.MinP, cuts)):
        shares = []
        for p, number in product(oracles, numbers):
            q = decode(p, space, family(number))
            if 0.25 < entr(q).sum() / entr(p).sum() < 0.95:
                shares.append(lost(q, p) / (lost(q, p) + (q - p) @ np.log(p)))
        assert len(shares) >= 20
        medians.append(np.median(shares))
    assert medians[0] < 0.05 < medians[1]


# --- Markov models: sums over positions -----------------------------------------------


def drawn(rng, size):
    rows = rng.dirichlet(np.ones(size), size + 1)
    return gen.MarkovModel(rows[0], rows[1:])


def listed(q, p):
    """The four metrics from the probabilities of all texts."""
    seen = q > 0
    return entr(q).sum(), q[seen] @ np.log(p[seen]), np.log(q @ p), np.log(q @ q)


@pytest.mark.parametrize(("size", "length"), [(3, 5), (4, 1)])
def test_metrics_and_decoders_on_all_texts(size, length):
    p, space = drawn(np.random.default_rng(size), size), qd.TextSpace(size, length)
    table = np.asarray(p.probabilities(space))
    for decoders in ((Temperature(0.6),), (TopK(2),), (Temperature(2.0), TopP(0.8))):
        q = gen.decode_markov(p, *decoders)
        law = np.asarray(q.probabilities(space))
        assert_allclose(law, decode(table, space, decoders), atol=1e-14)
        found = gen.markov_metrics(q, p, length)
        values = found.se, found.ll, found.log_cr, found.log_repetition
        assert_allclose(values, listed(law, table), rtol=1e-12)
        assert_allclose((found.cr, -found.nrr), np.exp(values[2:]))
    for beta in (0.3, 2.5):
        se, ll, *_ = listed(np.asarray(qd.temper(table, beta)), table)
        found = gen.tempered_markov_metrics(p, beta, length)
        assert_allclose(found, (ll, se), rtol=1e-11)
    long = gen.markov_metrics(p, p, 3000)  # its logarithm is a float, CR is none
    assert (long.log_cr < -750, long.cr) == (True, 0)


def test_what_one_model_never_writes():
    never = gen.MarkovModel(np.array([0.0, 1.0]), np.eye(2))
    p = gen.MarkovModel(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [1.0, 0.0]]))
    found = gen.markov_metrics(never, p, 3)
    assert (found.se, found.ll, found.log_cr, found.cr) == (0, -np.inf, -np.inf, 0)
    # Rows that are never reached do not count.
    assert gen.markov_metrics(gen.decode_markov(p, Greedy()), p, 1).ll == 0


def test_decoders_and_alignment_refuse_bad_input(as_a_user):
    half, ones = np.full(2, 0.5), np.ones((2, 2))
    certain = np.tril(np.ones((3, 3)), -1) + np.eye(3) / 2
    dpo, loss, always = gen.dpo_optimum, gen.dpo_loss, "some texts always win against"
    space, q = qd.TextSpace(2, 2), np.full(4, 0.25)
    p, wide = (gen.MarkovModel(half, np.full((2, n), 0.5)) for n in (2, 3))
    beam = gen.Beam(2)
    refused(
        ("t must be positive and finite, got 0; for 0 take Greedy()", Temperature, 0),
        *(("mass must lie in", *call) for call in ((TopP, 1.1), (gen.Typical, 1.0))),
        ("it must be the last", decode, q, space, (beam, TopK(1))),
        ("the space has 4 texts, so q must have 4", decode, q[:3], space, TopK(1)),
        ("q must hold distributions", decode, np.full(4, 0.3), space, TopK(1)),
        ("expected at least one decoder", decode, q, space, ()),
        ("shape (|V|,) and transitions of shape", gen.markov_metrics, p, wide, 3),
        ("rewards must be finite", gen.forward_kl_optimum, half, [0, np.inf], 1.0),
        ("must lie in [0, 1], got 1.1", gen.self_training, half, half, 3, 3, 1.1),
        ("scores must not be NaN", best_of_n, half, [0.0, np.nan], 2),
        (always, dpo, np.full(3, 1 / 3), certain, 10.0),
        ("preferences must have shape (2, 2)", dpo, half, half, 1.0),
        ("must be chances, with the rev", loss, half, half, ones, 1.0),
    )
    refused(
        ("expected a decoder, as TopK(5), got 'top-k'", decode, q, space, "top-k"),
        ("LogitTable, got {}", decode, {}, space, TopK(1)),
        ("must be one of tokens, as TopK(5), got Beam", gen.decode_markov, p, beam),
        error=TypeError,
    )


def worlds(count, size=6):
    rng = np.random.default_rng(size)
    for _ in range(count):
        yield rng.dirichlet(np.ones(size)), rng.normal(size=size), rng.uniform(0.1, 2)


def highest(objective, size):
    """The maximiser over the simplex, by BFGS on logits."""
    down = jax.jit(jax.value_and_grad(lambda x: -objective(jax.nn.softmax(x))))
    found = minimize(down, np.zeros(size), jac=True, options={"gtol": 1e-10})
    return np.asarray(jax.nn.softmax(found.x))


@pytest.mark.parametrize(("q0", "rewards", "beta"), [*worlds(2)])
@pytest.mark.claim("N24.12", "N24.14", "N24.15")
def test_optima_are_the_highest(q0, rewards, beta):
    """DPO finds the KL optimum, whatever is compared."""
    optimum, said = gen.kl_optimum(q0, rewards, beta), gen.bradley_terry(rewards)
    forward = gen.forward_kl_optimum(q0, rewards, beta)
    for found, objective, error in (
        (optimum, lambda q: q @ rewards - beta * qd.kl_divergence(q, q0), 1e-6),
        (forward, lambda q: q @ rewards - beta * qd.kl_divergence(q0, q), 1e-5),
        (optimum, lambda q: -gen.dpo_loss(q, q0, said, beta), 1e-4),
    ):
        assert_allclose(found, highest(objective, 6), atol=error)
    assert np.ptp(rewards + beta * q0 / forward) <= 1e-9  # one multiplier
    assert (forward >= q0 * beta / (beta + np.ptp(rewards)) * (1 - 1e-9)).all()
    assert_allclose(gen.dpo_optimum(q0, said, beta), optimum, rtol=1e-9)
    assert np.ptp(gen.fitted_rewards(np.roll(q0, 1), said) - rewards) <= 1e-9


@pytest.mark.claim("N24.12")
def test_the_price_is_the_slope_of_entropy_in_reward():
    for q0, rewards, beta in worlds(3):
        ends = [gen.kl_optimum(q0, rewards, beta * f) for f in (1 - 1e-5, 1 + 1e-5)]
        (u, v), (other_u, other_v) = ((q @ rewards, qd.entropy(q)) for q in ends)
        found = float(gen.diversity_price(q0, rewards, beta))
        assert found == approx(-float((v - other_v) / (u - other_u)), 1e-5)
        # LL as a reward for P stays on the frontier.
        best = qd.pareto_optimum(qd.LL_SE, q0, -1 - 1 / beta)
        assert_allclose(gen.kl_optimum(q0, np.log(q0), beta), best.q, atol=1e-13)
        price = float(gen.diversity_price(q0, np.log(q0), beta))
        assert price == approx(1 + 1 / beta, rel=1e-10)
        # A taste for the typical is a temperature.
        found = gen.kl_optimum(q0, rewards + 0.3 * np.log(q0), beta)
        expected = gen.kl_optimum(qd.temper(q0, 1 + 0.3 / beta), rewards, beta)
        assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.claim("N24.14")
def test_how_fast_the_best_text_takes_all():
    q0, rewards = np.array([0.2, 0.3, 0.5]), np.array([1.0, 0.5, 0.0])
    rest = (q0[1:] / (1 - rewards[1:])).sum()
    for beta in (1e-3, 1e-7):
        left = 1 - gen.forward_kl_optimum(q0, rewards, beta)[0]
        assert left / beta / rest == approx(1, abs=20 * beta)
    left = float(gen.kl_optimum(q0, rewards, 0.02)[1:].sum())
    assert log(left) == approx(-0.5 / 0.02 + log(0.3 / 0.2), abs=1e-3)
    # Ties, and a text that the start never writes.
    q0, rewards = np.array([0.4, 0.0, 0.6]), np.array([1.0, 2.0, 1.0])
    for optimum in (gen.forward_kl_optimum, gen.kl_optimum):
        assert_allclose(optimum(q0, rewards, 0.1), q0, atol=1e-12)


@pytest.mark.claim("N24.13")
@pytest.mark.parametrize("n", [1, 2, 4])
def test_best_of_n_by_all_samples(n):
    rng = np.random.default_rng(n)
    for scores in (rng.normal(size=5), np.array([1.0, 0, 1, 2, 0]), np.zeros(5)):
        q0 = rng.dirichlet(np.ones(5))
        texts, chances = batches(q0, n)
        first = texts[range(len(texts)), scores[texts].argmax(axis=1)]
        found = best_of_n(q0, scores, n)
        assert_allclose(found, np.bincount(first, chances, 5), atol=1e-14)
    q0, scores = rng.dirichlet(np.full(2000, 0.5)), rng.normal(size=2000)
    bound = log(n) - (n - 1) / n
    paid = rel_entr(best_of_n(q0, scores, n), q0).sum()
    assert 0.9 * bound <= paid + 1e-12 <= bound + 2e-12
    # A text of 1e-18 has n times that; by differences of powers it would have 0.
    found = best_of_n(np.array([1e-18, 1 - 1e-18]), np.array([2.0, 1.0]), n)
    assert float(found[0]) == approx(n * 1e-18, rel=1e-12, abs=0)


@pytest.mark.claim("N24.15")
def test_preferences_without_a_reward():
    rng = np.random.default_rng(5)
    upper = np.triu(rng.uniform(0.05, 0.95, (5, 5)), 1)
    chances = jnp.asarray(upper + np.tril(1 - upper.T, -1) + np.eye(5) / 2)
    q0 = rng.dirichlet(np.ones(5))
    slope = jax.grad(lambda x: gen.dpo_loss(jax.nn.softmax(x), q0, chances, 0.5))
    assert np.abs(slope(jnp.log(gen.dpo_optimum(q0, chances, 0.5)))).max() <= 1e-11


@pytest.mark.claim("N24.17", "N24.18")
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_self_training_by_all_training_sets(share):
    p, found_in = np.array([0.5, 0.3, 0.2]), Counter({(1, 1, 2): 1.0})
    found = gen.self_training(np.array([0.25, 0.25, 0.5]), p, 4, 3, share)
    for generation in range(4):
        models = np.array([*found_in]) / 4
        chances = np.array([*found_in.values()])
        squares = (np.square(x).sum(axis=1) for x in (models, models - p))
        nrr, cnd = (chances @ x for x in squares)
        values = [x[generation] for x in (found.cr, found.nrr, found.cnd)]
        assert_allclose(values, (chances @ models @ p, -nrr, cnd), atol=1e-13)
        found_in = Counter()
        for model, chance in zip(models, chances):
            for texts, likely in zip(*batches((1 - share) * model + share * p, 4)):
                found_in[tuple(np.bincount(texts, minlength=3))] += chance * likely


@pytest.mark.claim("N24.17", "N24.18")
def test_self_training_in_the_long_run():
    """A real text a generation keeps two thirds of the diversity."""
    p = np.random.default_rng(0).dirichlet(np.ones(20))
    assert gen.self_training(p, p, 10, 3).nrr_limit == -1
    found = gen.self_training(p, p, 10_000, 200_000, 1e-4)
    assert found.nrr[-1] == approx(found.nrr_limit, rel=1e-6)
    assert (1 + found.nrr_limit) / (1 - p @ p) == approx(2 / 3, abs=1e-4)
