"""The catalogue: names, functions and verdicts hold, texts counted one by one."""

import importlib
import random
import re
from functools import partial
from itertools import product
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab import metrics
from lab.metrics.markov import markov_projection
from lab.metrics.since_2020 import compression_table
from referees import metrics_by_text as by_text
from scripts import rows_of, script

import qdtheory as qd
from qdtheory.catalogue.metrics import METRICS, Kind, Status, find_order, titled
from qdtheory.catalogue.names import NamedVerdict, matrix, read_metric
from qdtheory.support.layout import plain_name

SLOW = pytest.mark.slow
BY_NAME = {metric.name: metric for metric in METRICS}


# --- The table ------------------------------------------------------------------------
def test_no_name_stands_twice_and_kinds_and_statuses_are_the_enumerations():
    names = [(plain_name(x), m) for m in METRICS for x in (m.name, *m.other_names)]
    assert len({*names}) == len({name for name, _ in names}) >= 100
    assert {metric.kind for metric in METRICS} == {*get_args(Kind)}
    assert {metric.status for metric in METRICS} == {*get_args(Status)}


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_functions_exist_as_they_are_typed_and_the_verdict_begins_with_the_status(
    metric,
):
    for typed in (*metric.functions, *metric.in_lab):
        module, _, name = typed.rpartition(".")
        module = re.sub(r"^qd\b", "qdtheory", module)
        assert callable(getattr(importlib.import_module(module), name))
    said = " ".join([metric.partner, metric.beside, metric.verdict])
    for name in re.findall(r"`(qd\.[^`]*)`", said):
        assert callable(eval(name, {"qd": qd}))
    assert all("." in claim for claim in metric.claims)
    assert metric.functions or metric.in_lab or metric.shown_by
    first = "no verdict" if metric.status == "none" else metric.status
    assert metric.verdict.lower().startswith(first)


SMALL = qd.TextSpace(2, 3)
CLASSES = np.arange(8) % 4
REALS = np.random.default_rng(0).dirichlet(np.full(8, 2.0), 3)
KERNEL = metrics.lcs_kernel(SMALL)


def distinct(orders):
    """Sums of Distinct-n of ten texts, with minus their gradient as quality."""
    parts = [
        partial(qd.ngrams.expected_distinct, SMALL, n=n, num_texts=10) for n in orders
    ]
    return qd.compatible_quality(lambda q: sum(part(q) for part in parts))


def subsequences(*size):
    return qd.KernelPair(metrics.lcs_kernel(qd.TextSpace(*size)))


def edits(*size):
    return qd.KernelPair(metrics.edit_kernel(qd.TextSpace(*size)))


def coverage(q):
    """Of balls around six texts that are one token off, by five draws."""
    apart = (SMALL.tokens[:6, None] != SMALL.tokens).sum(axis=2)
    return (1 - (1 - jnp.asarray(apart <= 1, float) @ q) ** 5).mean()


def cosines(size=8):
    """Similarities of random embeddings, of full rank."""
    rows = np.random.default_rng(3).normal(size=(size, size + 1))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T


def fitted(p):
    """Log-likelihood of each text under the Markov model of order 1 that fits P."""
    return jnp.log(markov_projection(SMALL, p, 1))


def bleu(*sizes_and_numbers):
    *sizes, n, r, k = sizes_and_numbers
    return qd.BleuPair(qd.TextSpace(*sizes), n, r, k)


VENDI, SQUARED = qd.VendiPair(KERNEL), qd.KernelPair(KERNEL**2)
MEANINGS = qd.PooledPair(qd.LL_SE, CLASSES)
N_GRAM_LL = [qd.pairs.ngram_pair(SMALL, n, qd.LL_SE) for n in (1, 2)]
# Pairs of each metric with the partner that the table names, compatible for every P.
COMPATIBLE = {
    "LL": [qd.LL_SE],
    "CR": [qd.CR_NRR],
    "exact match": [qd.pairs.distinct_k_pair(5)],
    "BLEU-n": [bleu(2, 3, 1, 2, 1), bleu(3, 2, 2, 1, 1)],
    "class LL": [MEANINGS],
    "n-gram LL": N_GRAM_LL,
    "n-gram entropy": N_GRAM_LL[1:],
    "squared similarity": [SQUARED],
    "Vendi's quality": [VENDI],
    "SE": [qd.LL_SE],
    "NRR": [qd.CR_NRR, qd.pairs.ngram_pair(SMALL, 2)],
    "Tsallis": [
        qd.SeparablePair(f, qd.Tsallis(a))
        for f, a in [("x**2", 3.0), ("-x**-0.5", 0.5)]
    ],
    "Self-BLEU-n": [bleu(2, 3, 3, 1, 1), bleu(2, 1, 1, 5, 3)],
    "distinct_k": [qd.pairs.distinct_k_pair(10)],
    "Vendi": [VENDI],
    "Vendi of order 2": [SQUARED],
    "semantic entropy": [MEANINGS],
    "Div_pair": [qd.KernelPair(cosines())],
}
# Concave metrics with minus their gradient: compatible by the supporting plane.
CONCAVE = {
    "Distinct-n": distinct([2]),
    "n-gram diversity": distinct([1, 2, 3]),
    "EAD": qd.compatible_quality(
        # Ten texts have twenty pairs of words, of four that there are.
        lambda q: 20 * qd.ngrams.expected_distinct(SMALL, q, 2, 10) / (4 - 4 * 0.75**20)
    ),
    "coverage": qd.compatible_quality(coverage),
    "Markov-k LL": qd.compatible_quality(lambda q: -q @ fitted(q)),
}


def test_every_status_of_a_pair_is_checked():
    statuses = {name: metric.status for name, metric in BY_NAME.items()}
    asked = {x for x, s in statuses.items() if s in ("compatible", "conditional")}
    assert asked == {*COMPATIBLE, *CONCAVE}


@pytest.mark.parametrize("name", COMPATIBLE)
def test_what_is_called_compatible_is_so_for_every_p(name):
    for pair in COMPATIBLE[name]:
        assert qd.check_compatibility(pair).status == "compatible"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[SLOW] * (name == "n-gram diversity"))
        for name in CONCAVE
    ],
)
def test_no_model_beats_p_in_a_concave_metric_and_its_slope(name):
    pair = CONCAVE[name]
    models = np.random.default_rng(1).dirichlet(np.full(8, 0.5), 200)
    quality = jax.vmap(pair.quality, (0, None))
    diversity = jax.vmap(pair.diversity)(models)
    for p in REALS:
        assert qd.check_compatibility(pair, p).status == "undecided"  # code has no seal
        lost = pair.quality(p, p) - quality(models, p) + pair.diversity(p) - diversity
        assert float(lost.min()) > 0  # the supporting plane lies above


def test_where_the_table_says_that_every_p_is_beaten_all_are():
    table = np.asarray(compression_table(SMALL, 2))
    repeats = partial(metrics.expected_self_repetition, SMALL, n=2, num_texts=2)
    curved = [np.asarray(jax.hessian(repeats)(REALS[0])), table + table.T]
    beaten = [subsequences(*sizes) for sizes in ((4, 2), (3, 3), (2, 4))]
    beaten += [edits(3, 3), edits(2, 4)]
    for kernel in (*curved, *(pair.kernel for pair in beaten)):
        assert qd.kernel_criterion(kernel).all_dominated
    # And not in the spaces that it leaves out.
    for pair in (subsequences(2, 3), edits(4, 2)):
        assert qd.kernel_criterion(pair.kernel).compatible
    assert not qd.kernel_criterion(edits(2, 3).kernel).all_dominated


@pytest.mark.claim("N25.18")
def test_qualities_that_fit_distinct_n_and_a_markov_model_in_closed_form():
    contains = qd.ngrams.ngram_matrix(SMALL, 2) > 0
    for p in REALS:
        lacking = contains.T @ (1 - contains @ p) ** 9  # n-grams that nine texts lack
        found = np.asarray(CONCAVE["Distinct-n"].text_quality(p))
        np.testing.assert_allclose(found, -lacking / 2, atol=1e-12)
        apart = np.asarray(CONCAVE["Markov-k LL"].text_quality(p) - fitted(p))
        assert np.ptp(apart) <= 1e-12


BIGRAMS = np.asarray(qd.ngrams.ngram_matrix(SMALL, 2)) / 2
FEATURES = SMALL.tokens.astype(float)
APART = np.linalg.norm(FEATURES[:, None] - FEATURES, axis=2)


def brier_lm(q, p):
    """The geometric mean of the parts for one to three tokens."""
    parts = 1.0
    for n in (1, 2, 3):
        first = FEATURES[:, :n] @ 2 ** np.arange(n)
        same = (first[:, None] == first).astype(float)
        parts *= 2 * q @ same @ p - q @ same @ q
    return max(parts, 0) ** (1 / 3)


def prd(q, p):
    return metrics.prd_f_scores(metrics.precision_recall_distributions(q, p)).min()


# Each metric that is a divergence by itself, negated where it is greatest at Q = P.
DIVERGENCES = {
    "CND": lambda q, p: qd.cnd(BIGRAMS @ q, BIGRAMS @ p),
    "MMD": partial(qd.pairs.squared_mmd, KERNEL),
    "quantum relative entropy": partial(
        metrics.quantum_relative_entropy, kernel=KERNEL
    ),
    "NLL": lambda q, p: qd.cross_entropy(p, q),
    "KL": qd.kl_divergence,
    "JS": qd.jensen_shannon_divergence,
    "total variation": qd.divergences.total_variation,
    "Hellinger": qd.divergences.hellinger_distance,
    "MS-Jaccard": lambda q, p: -qd.ms_jaccard(SMALL, q, p, 2)[-1],
    "Frechet distance": lambda q, p: metrics.frechet_distance(q, p, FEATURES),
    "MAUVE": lambda q, p: -metrics.mauve(q, p),
    "BrierLM": lambda q, p: -brier_lm(q, p),
    "energy score": lambda q, p: q @ APART @ p - q @ APART @ q / 2,
    "precision and recall": lambda q, p: -prd(q, p),
}


def test_a_divergence_is_least_at_the_real_distribution():
    found = {name for name, m in BY_NAME.items() if m.status == "a divergence"}
    assert found == {*DIVERGENCES}
    models = np.random.default_rng(2).dirichlet(np.ones(8), 5)
    for name, divergence in DIVERGENCES.items():
        for p in REALS:
            least = float(divergence(p, p))
            assert min(float(divergence(q, p)) for q in models) > least + 1e-4, name


# --- Names ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "title"),
    [
        *(("VENDI SCORE", "Vendi"), ("log-likelihood", "LL"), ("pass@5", "pass@5")),
        *(("BLEU\u20112", "BLEU-2"), ("Distinct 10", "distinct_10")),
        *(("rarefaction-2", "distinct_2"), ("Markov-0 LL", "Markov-0 LL")),
    ],
)
def test_names_are_found_by_any_of_them(given, title):
    assert titled(*find_order(given)) == title


@pytest.mark.parametrize(
    ("name", "pair"), [("ll se", qd.LL_SE), ("CR_NRR", qd.CR_NRR), ("LLNRR", qd.LL_NRR)]
)
def test_the_name_of_a_pair_stands_for_it_at_every_door(name, pair):
    p = np.array([0.5, 0.3, 0.15, 0.05])
    for door in (
        qd.check_compatibility,
        qd.check_rationality,
        lambda x: qd.quality_discrepancy(x, p).qdisc,
        lambda x: qd.certify(x, p, qd.quality_discrepancy(x, p)).upper_bound,
        lambda x: qd.pareto_frontier(x, p, 5).quality.tolist(),
    ):
        assert door(name) == door(pair)


# --- Verdicts by name -----------------------------------------------------------------
KEYS = "quality", "references", "diversity", "self_references"
TABLE = {
    tuple(row[key] for key in KEYS): row for row in rows_of("compatibility_matrix.csv")
}


def canonical(key):
    """The catalogue's names of a pair of the compatibility matrix."""
    return [titled(*find_order(name)) for name in key[::2]]


def counted(name, number):
    """The name of a metric with its references, if it has any."""
    with_references = "BLEU" in name or name in ("Match", "exact match")
    return f"{name} of {number} references" if with_references else name


def countable(key):
    """Whether all sets of references can be listed: not of ten among 27 texts."""
    (u, v), (_, r, _, k) = canonical(key), key
    names = [(u, r if counted(u, r) != u else ""), (v, k if counted(v, k) != v else "")]
    row = matrix()[tuple(x for name in names for x in name)]
    return row["words"] != "3" or int(r or 0) <= 2


HUNDRED = random.Random(0).sample([*filter(countable, sorted(TABLE))], 100)
# Longer texts, which the matrix does not have.
HUNDRED += [("BLEU-4", r, "Self-BLEU-4", k) for r, k in product("12", repeat=2)]


@pytest.mark.claim("N14.4", "N14.17")
@pytest.mark.parametrize("key", HUNDRED, ids=" ".join)
def test_a_hundred_pairs_have_the_verdict_of_the_matrix_and_witnesses_by_count(key):
    u, r, v, k = key
    verdict = qd.check(counted(u, r), counted(v, k))
    told = TABLE[key]["verdict"] if key in TABLE else "incompatible"
    assert isinstance(verdict, NamedVerdict)
    # The matrix has texts of 3 tokens, and of others the pair may be the other.
    assert verdict.status in (told, "conditional")
    assert f'"status": "{verdict.status}"' in verdict.to_json()
    for name, number in zip(canonical(key), (r, k), strict=True):
        assert name in verdict.pair
        assert "BLEU" not in name or f"{name} of {number} reference" in verdict.pair
    assert re.search(r"\([TNLE]\d+\.\d+", verdict.reason)
    assert verdict.instead
    assert (verdict.witness is None) == (told == "compatible")
    if verdict.witness is None:
        return
    words = 1 + max("abc".index(word) for word in " ".join(verdict.texts).split())
    texts = by_text.texts_of(words, len(verdict.texts[0].split()))
    assert verdict.texts == tuple(" ".join("abc"[i] for i in text) for text in texts)
    (u, v), found = canonical(key), verdict.witness
    p, q = np.asarray(found.p), np.asarray(found.q)
    before, after = (by_text.diversity(v, k, texts, x) for x in (p, q))
    gains = by_text.quality(u, r, texts, p) @ (q - p), after - before
    expected = found.quality_gain, found.diversity_gain
    assert min(expected) > 1e-9
    np.testing.assert_allclose(gains, expected, rtol=1e-4, atol=1e-11)


def test_every_pair_of_the_matrix_is_in_the_table_once_with_a_rival():
    rows = matrix()
    assert len(rows) == len(TABLE) + 4 == 484
    assert {row["verdict"] for row in rows.values()} == {"compatible", "incompatible"}
    for row in rows.values():
        assert bool(row["words"]) == (row["verdict"] == "incompatible")


def compatible_at(verdict, words, length):
    """What the answer says of all texts of so many words and tokens."""
    said = re.search("references: (.*?)\\. ", verdict.reason)[1]
    if every := re.fullmatch("(compatible|incompatible) at every L", said):
        return every[1] == "compatible"
    at = re.fullmatch(r"compatible at L = (\d), incompatible from L = (\d) on", said)
    if at:
        assert int(at[2]) == int(at[1]) + 1
        return length == int(at[1])
    texts, rest = said.removeprefix("compatible over texts of ").split(", incompatible")
    assert rest == " over any others"
    assert texts in ("two words", "one token, over two words")
    return words == 2 and (length == 1 or texts == "two words")


# Two words of up to 5 tokens, three of up to 3.
WORLDS = [*((2, x) for x in range(1, 6)), *((3, x) for x in range(1, 4))]


@pytest.mark.claim("N25.20", "N25.21", "N25.22")
@pytest.mark.parametrize(
    ("n", "r", "k", "spaces"),
    [
        (1, 1, 1, [(2, 1), (2, 3), (3, 2), (4, 2)]),
        (1, 2, 1, [(3, 1), (3, 2)]),
        (1, 3, 2, [(2, 2), (3, 1)]),
        (2, 1, 1, [(2, 3), (3, 3)]),
        (2, 2, 2, [(2, 2), (2, 3), (3, 2)]),
        (3, 10, 1, [(2, 3), (2, 4)]),
        (4, 2, 2, [(2, 4)]),
        *(
            pytest.param(*numbers, WORLDS, marks=SLOW)
            for numbers in product(range(1, 6), (1, 2, 3), (1, 2, 3))
        ),
    ],
)
def test_no_headline_on_bleu_contradicts_a_small_world(n, r, k, spaces):
    """As `check_compatibility` finds over each of them."""
    verdict = qd.check(f"BLEU-{n} of {r} references", f"self bleu{n} of {k} references")
    assert f"Here n = {n}, with {r} and {k} references" in verdict.reason
    seen = set()
    for space in spaces:
        if space[1] < n:  # both metrics are 0, of which the answer does not speak
            continue
        found = qd.check_compatibility(bleu(*space, n, r, k)).compatible
        assert found is compatible_at(verdict, *space), space
        seen.add(found)
    assert (verdict.compatible is None) == (verdict.status == "conditional")
    if spaces is WORLDS:
        # Five tokens are the most that are tried: of order 5 no longer ones.
        both = verdict.compatible is None and n < 5
        assert seen == ({True, False} if both else {verdict.compatible is not False})


@pytest.mark.parametrize(
    ("quality", "diversity", "status", "says"),
    [
        ("BLEU-3 of 1 reference", "NRR", "conditional", "4 words and 3 tokens no mod"),
        ("exact match of 4 references", "rarefaction-5", "compatible", "Theorem 3"),
        ("Vendi LL", "Vendi score", "compatible", "quantum relative entropy"),
        ("CR-3", "NRR 3", "compatible", "squared distance"),
        ("F1", "Self-BLEU-1 of 1 reference", "conditional", "no model beats"),
        ("BLEU-3 of 1 reference", "NRR", "conditional", "no model beats"),
        ("KL", "MTLD", "compatible", "KL is best at P alone"),
        ("exact match", "HD-D", "incompatible", "of each text"),
        ("density", "pairwise ROUGE-L", "incompatible", "both sides"),
        ("sacreBLEU", "distinct-2", "undecided", "no mean over texts"),
        ("pass@1", "pass@k", "incompatible", "right equally"),
        ("MAUVE", "NRR", "undecided", "A divergence"),
        ("LL", "rarefaction-7", "incompatible", "T3.9"),
        ("F1", "Div_pair", "undecided", "Nothing is proved"),
    ],
)
def test_what_is_said_of_other_pairs(quality, diversity, status, says):
    verdict = qd.check(quality, diversity)
    assert verdict.status == status
    assert says in " ".join(str(verdict).split())  # as it is printed


BESIDE = ["BLEU", *by_text.BESIDE]
FIXED = ["accuracy", "reward", "perplexity", "gen PPL", "GPT-2 perplexity"]
OTHERS = ["Self-BLEU", "Self-BLEU-1", "Self-BLEU-1 of 5 references", "distinct"]
OTHERS += ["self-bleu 3 of 1 reference", "Self-BLEU-2 of 7 references", "dist-2"]
OTHERS += ["entropy", "NRR", "NRR-3", "Vendi", "semantic entropy", "MTLD", "Ent-2"]
OTHERS += ["pairwise similarity", "distinct_10", "pairwise ROUGE-L", "NEdit", "NLZ78"]
OTHERS += ["NSelf-repetition"]


@pytest.mark.parametrize("named", OTHERS)
def test_a_pair_of_two_names_has_a_rival_text_by_text(named):
    v, rng = read_metric(named), np.random.default_rng(7)
    for name in BESIDE + FIXED:
        verdict, u = qd.check(name, named), read_metric(name)
        if (name, named) == ("F1", "pairwise similarity"):
            assert verdict.status == "undecided"
            continue
        assert verdict.status == "incompatible"
        assert verdict.sentence.startswith(
            "Incompatible: some model beats real text in"
        )
        texts = [tuple(map(ord, text.replace(" ", ""))) for text in verdict.texts]
        texts = [tuple(token - ord("a") for token in text) for text in texts]
        p, q = np.asarray(verdict.witness.p), np.asarray(verdict.witness.q)
        rivals = np.stack([q, 2 * p - q] if verdict.either else [q])
        assert min(rivals.min(), p.min()) >= 0
        value = partial(by_text.diversity, v.name, v.references, texts)
        rises = np.array([value(x) - value(p) for x in rivals])
        if name in FIXED:
            # The scores of the texts are what they are: many of them, in the order in
            # which the answer speaks of two texts; for MTLD of two that score alike.
            scores = rng.normal(size=(50, len(p)))
            if not verdict.either:
                scores.sort(axis=1)
            scores *= named != "MTLD"
        else:
            called = name if name in by_text.BESIDE else u.name
            scores = by_text.quality(called, u.references, texts, p)[None]
        gains = scores @ (rivals - p).T
        no_worse = (gains > -1e-13) & (rises > -1e-13)
        better = np.maximum(gains, rises) > 1e-9
        assert (no_worse & better).any(axis=1).all(), name


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_the_first_line_of_a_metric_is_what_check_says(metric):
    first, _, _ = metric.summary()
    assert first.endswith(f"Sound {metric.sound}.")
    kinds = {"quality", "diversity"}
    if metric.papers.startswith("beside ") and "coverage" not in (metric.name, first):
        other = metric.papers.removeprefix("beside ")
        tried = {metric.name, other} == {"density", "coverage"}
        told = f"beside {other}: real text is beaten{' where tried' * tried}."
        assert first.startswith(f"As papers use it, {told}")
        if not tried:
            assert qd.check(metric.name, other).status == "incompatible"
    assert metric.papers or metric.kind not in kinds or "not" in metric.sound
    assert not re.search("(?i)compatible|conditional", first)


def test_a_named_verdict_has_all_that_the_verdict_of_the_pair_has():
    by_name, verdict = qd.check("LL", "SE"), qd.check_compatibility(qd.LL_SE)
    for field in ("compatible", "w0", "b0", "alpha", "exact", "psi", "divergence"):
        assert getattr(by_name, field) == getattr(verdict, field)
    assert '"pair": "LL and SE"' in by_name.to_json()
    p = np.full(4, 0.25)
    assert qd.check("LL", "NRR", p) == qd.check_compatibility(qd.LL_NRR, p)
    taken = qd.check("self-bleu", "Perplexity")
    assert taken.pair == "Perplexity and Self-BLEU-4 of 2 references"
    assert "put in this order" in taken.notes[0]
    assert "Self-BLEU-4 taken" in taken.notes[1]
    assert "low perplexity is quality" in taken.notes[2]
    assert repr(taken) == str(taken)


@SLOW
def test_the_table_is_what_its_script_makes_of_two_pairs():
    make = script("make_named_pairs")
    jax.config.update("jax_cpu_enable_async_dispatch", True)
    kinds = [("CR", "", "SE", ""), ("LL", "", "NRR", "")]
    for kind, (*texts, real, model, gain, rise) in make.witnesses(kinds).items():
        row = matrix()[kind]
        assert [*map(str, texts), real] == [row["words"], row["length"], row["real"]]
        ours, theirs = (np.array(x.split(), float) for x in (model, row["model"]))
        assert np.abs(ours / ours.sum() - theirs / theirs.sum()).max() < 2e-3
        assert min(gain, rise) > 0
    assert [*make.bleu_4(1, 2)[:4]] == ["BLEU-4", 1, "Self-BLEU-4", 2]
