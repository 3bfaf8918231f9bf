"""Pairs by their names, against the matrix, the theorems, and texts counted by hand."""

import random
import re

import jax
import numpy as np
import pytest
from referees import metrics_by_text as by_text
from scripts import rows_of

import qdtheory as qd
from qdtheory.catalogue.metrics import find_order, titled
from qdtheory.catalogue.names import FORMULA, NamedVerdict, matrix, read_metric

KEYS = "quality", "references", "diversity", "self_references"


def canonical(row):
    """The catalogue's names of a pair of the compatibility matrix."""
    return [titled(*find_order(row[side])) for side in ("quality", "diversity")]


TABLE = {
    tuple(row[key] for key in KEYS): row for row in rows_of("compatibility_matrix.csv")
}


def countable(key):
    """Whether all sets of references can be listed: not of ten among 27 texts."""
    (u, v), (_, r, _, k) = canonical(TABLE[key]), key
    names = [(u, r if counted(u, r) != u else ""), (v, k if counted(v, k) != v else "")]
    row = matrix()[tuple(x for name in names for x in name)]
    return row["words"] != "3" or int(r or 0) <= 2


def counted(name, number):
    """The name of a metric with its references, if it has any."""
    with_references = "BLEU" in name or name in ("Match", "exact match")
    return f"{name} of {number} references" if with_references else name


HUNDRED = random.Random(0).sample([*filter(countable, sorted(TABLE))], 100)


def spelled(name, rng):
    """The name as somebody types it: capitals, spaces, hyphens do not matter."""
    name = re.sub("[-_ ]", lambda _: rng.choice(["-", "_", " ", ""]), name)
    return rng.choice([name, name.lower(), name.upper()])


@pytest.mark.parametrize("key", HUNDRED, ids=" ".join)
def test_a_hundred_pairs_have_the_verdict_of_the_matrix(key):
    u, r, v, k = key
    rng = random.Random(u + v)
    names = [counted(x, n).replace(x, spelled(x, rng)) for x, n in ((u, r), (v, k))]
    verdict = qd.check(*names)
    assert isinstance(verdict, NamedVerdict)
    # The matrix has texts of 3 tokens, and of others the pair may be the other.
    assert verdict.status in (TABLE[key]["verdict"], "conditional")
    for name, number in zip(canonical(TABLE[key]), (r, k), strict=True):
        assert name in verdict.pair
        assert "BLEU" not in name or f"{name} of {number} reference" in verdict.pair
    assert (verdict.witness is None) == (TABLE[key]["verdict"] == "compatible")
    assert re.search(r"\([TNLE]\d+\.\d+", verdict.reason)
    assert len(verdict.instead) == 2


def shares(row):
    return (np.array(row[side].split(), float) for side in ("real", "model"))


@pytest.mark.claim("N14.4", "N14.17")
@pytest.mark.parametrize("key", HUNDRED, ids=" ".join)
def test_their_witnesses_win_when_every_text_is_counted(key):
    u, v = canonical(TABLE[key])
    verdict = qd.check(
        counted(u.replace("exact match", "Match"), key[1]), counted(v, key[3])
    )
    if verdict.witness is None:
        assert TABLE[key]["verdict"] == "compatible"
        return
    words = 1 + max(
        "abc".index(word) for text in verdict.texts for word in text.split()
    )
    texts = by_text.texts_of(words, len(verdict.texts[0].split()))
    assert verdict.texts == tuple(" ".join("abc"[i] for i in text) for text in texts)
    p, q = np.asarray(verdict.witness.p), np.asarray(verdict.witness.q)
    scores = by_text.quality(u, key[1], texts, p)
    gains = (
        scores @ (q - p),
        -np.subtract(*(by_text.diversity(v, key[3], texts, x) for x in (p, q))),
    )
    expected = verdict.witness.quality_gain, verdict.witness.diversity_gain
    assert min(expected) > 1e-9
    np.testing.assert_allclose(gains, expected, rtol=1e-4, atol=1e-11)


def test_every_pair_of_the_matrix_is_in_the_table_once_with_a_rival():
    rows = matrix()
    assert len(rows) == len(TABLE) + 4 == 484
    assert {row["verdict"] for row in rows.values()} == {"compatible", "incompatible"}
    for row in rows.values():
        assert bool(row["words"]) == (row["verdict"] == "incompatible")
        if row["words"]:
            p, q = shares(row)
            assert p.min() > 0 <= q.min()
            assert p.size == q.size == int(row["words"]) ** int(row["length"])


@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("k", [1, 2])
def test_bleu_4_has_a_rival_whose_texts_are_counted(r, k):
    verdict = qd.check(f"BLEU-4 of {r} references", f"Self-BLEU-4 of {k} references")
    length = len(verdict.texts[0].split())
    texts = by_text.texts_of(2, length)
    p, q = verdict.witness.p, verdict.witness.q

    def mean(model, real, number):
        """Over one or two references, drawn one after another."""
        table = np.array(
            [
                [[by_text.bleu(a, [b, c], 4) for c in texts] for b in texts]
                for a in texts
            ]
        )
        if number == 1:
            return model @ np.diagonal(table, axis1=1, axis2=2) @ real
        return np.einsum("ijk,i,j,k", table, model, real, real)

    assert mean(q, p, r) - mean(p, p, r) == pytest.approx(
        verdict.witness.quality_gain, rel=1e-4
    )
    gain = mean(p, p, k) - mean(q, q, k)
    assert gain == pytest.approx(verdict.witness.diversity_gain, rel=1e-4)
    assert min(verdict.witness.quality_gain, gain) > 1e-9


@pytest.mark.claim("N25.20")
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
    ],
)
def test_bleu_is_judged_as_over_the_spaces_that_the_sentence_names(n, r, k, spaces):
    verdict = qd.check(
        f"BLEU-{n} of {r} references", f"self bleu {n} of {k} references"
    )
    assert f"Here n = {n}, with {r} and {k} references" in verdict.reason
    for space in spaces:
        found = qd.check_compatibility(qd.BleuPair(qd.TextSpace(*space), n, r, k))
        assert found.compatible is compatible_at(verdict, *space)


def compatible_at(verdict, words, length):
    """What the answer says of all texts of so many words and tokens."""
    said = re.search("references: (.*?)\\. ", verdict.reason)[1]
    if every := re.fullmatch("(compatible|incompatible) at every L", said):
        return every[1] == "compatible"
    if at := re.fullmatch(
        r"compatible at L = (\d), incompatible from L = (\d) on", said
    ):
        assert int(at[2]) == int(at[1]) + 1
        return length == int(at[1])
    texts, rest = said.removeprefix("compatible over texts of ").split(", incompatible")
    assert rest == " over any others"
    assert texts in ("two words", "one token, over two words")
    return words == 2 and (length == 1 or texts == "two words")


@pytest.mark.slow
@pytest.mark.claim("N25.20", "N25.21", "N25.22")
@pytest.mark.parametrize("r", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_no_headline_on_bleu_contradicts_a_small_world(n, r):
    """Two words of up to 5 tokens, three of up to 3, as `check_compatibility` finds."""
    for k in (1, 2, 3):
        verdict = qd.check(
            f"BLEU-{n} of {r} references", f"Self-BLEU-{n} of {k} references"
        )
        seen = set()
        for space in [*((2, x) for x in range(1, 6)), *((3, x) for x in range(1, 4))]:
            if space[1] < n:  # both metrics are 0, of which the answer does not speak
                continue
            pair = qd.BleuPair(qd.TextSpace(*space), n, r, k)
            found = qd.check_compatibility(pair).compatible
            assert found is compatible_at(verdict, *space), (k, space)
            seen.add(found)
        if verdict.status == "conditional":
            assert verdict.compatible is None
            # Five tokens are the most that are tried: of order 5 no longer ones.
            assert seen == ({True} if n == 5 else {True, False})
        else:
            assert seen == {verdict.compatible}


def test_bleu_4_of_one_reference_is_conditional_in_every_answer():
    verdict = qd.check("BLEU-4 of 1 reference", "Self-BLEU-4 of 1 reference")
    assert (verdict.status, verdict.compatible) == ("conditional", None)
    assert "compatible at L = 4, incompatible from L = 5 on" in verdict.reason
    assert str(verdict).startswith("conditional: BLEU-4 of 1 reference")
    assert '"status": "conditional"' in verdict.to_json()
    assert len(verdict.texts[0].split()) == 5


def test_bleu_3_and_nrr_are_compatible_over_texts_of_three_tokens_alone():
    """Of three tokens BLEU-3 of one reference is CR; of four a rival is found."""
    verdict = qd.check("BLEU-3 of 1 reference", "NRR")
    assert (verdict.status, verdict.witness) == ("conditional", None)
    assert "4 words and 3 tokens no model beats any P" in verdict.reason
    for length, beaten in ((3, None), (4, False)):
        bleu = qd.BleuPair(qd.TextSpace(2, length), 3, 1, 1)
        pair = qd.FunctionPair(bleu.quality, lambda q: -(q @ q))
        found = qd.check_compatibility(pair, num_texts=2**length)
        assert found.compatible is beaten


@pytest.mark.claim("T3.9")
@pytest.mark.parametrize("k", [2, 5, 10, 40])
@pytest.mark.parametrize("n", [1, 4, 9])
def test_exact_match_fits_distinct_k_of_one_draw_more(k, n):
    draws = f"rarefaction-{k}" if k < 10 else f"distinct_{k}"
    verdict = qd.check(f"exact match of {n} references", draws)
    assert verdict.compatible is (k == n + 1)
    if not verdict.compatible:
        p, q = np.asarray(verdict.witness.p), np.asarray(verdict.witness.q)
        assert (1 - (1 - p) ** n) @ (q - p) > 0
        assert ((1 - (1 - q) ** k) - (1 - (1 - p) ** k)).sum() > 0


@pytest.mark.parametrize(
    ("quality", "diversity", "status", "says"),
    [
        ("perplexity", "entropy", "compatible", "Theorem 3"),
        ("LL", "NRR", "incompatible", "Theorem 3"),
        ("class LL", "semantic entropy", "compatible", "on the classes"),
        ("Vendi LL", "Vendi score", "compatible", "quantum relative entropy"),
        ("2-gram LL", "Ent-2", "compatible", "-KL of the n-grams"),
        ("CR-3", "NRR 3", "compatible", "squared distance"),
        ("2-gram LL", "Ent-3", "undecided", "Nothing is proved"),
        ("LL", "pairwise ROUGE-L", "incompatible", "has no partner"),
        ("BLEU-4", "NLZ78", "incompatible", "compression ratio has no partner"),
        ("METEOR", "distinct-2", "undecided", "METEOR: No verdict"),
        ("BLEURT", "SE", "undecided", "a score of each"),
        ("F1", "SE", "undecided", "a score of each"),
        ("win rate", "Self-BLEU-4", "undecided", "perfect is a family"),
        ("accuracy", "distinct-2", "undecided", "perfect is a family"),
        ("sacreBLEU", "Self-BLEU-4", "undecided", "no mean over texts"),
        ("generation perplexity", "SE", "compatible", "Theorem 3"),
        ("EM of 3 references", "distinct_10", "incompatible", "Theorem 3"),
        ("COMET", "SE", "undecided", "given its source"),
        ("LL", "MTLD", "undecided", "repeat each other"),
        ("MAUVE", "NRR", "undecided", "A divergence"),
        ("LL", "FID", "undecided", "A divergence"),
        ("BLEU-2 of 7 references", "SE", "undecided", "numbers of references"),
    ],
)
def test_what_is_said_of_other_pairs(quality, diversity, status, says):
    verdict = qd.check(quality, diversity)
    assert (verdict.status, says in verdict.reason) == (status, True)


def test_self_bleu_and_perplexity_say_what_they_are_taken_for():
    verdict = qd.check("Perplexity", "self-bleu-2")
    assert verdict.pair == "LL and Self-BLEU-2 of 2 references"
    assert any("low perplexity is quality" in note for note in verdict.notes)
    assert any("low Self-BLEU is diversity" in note for note in verdict.notes)


def test_the_twenty_commonest_metrics_are_known():
    names = """BLEU-4, ROUGE-L, ROUGE-1, METEOR, chrF, TER, CIDEr, BERTScore, BLEURT,
    COMET, BARTScore, perplexity, MAUVE, Self-BLEU-4, distinct-2, TTR, MTLD,
    2-gram entropy, Zipf coefficient, compression ratio, Vendi score,
    Frechet distance, LLM judge, F1, EM, accuracy, win rate, gen ppl, sacreBLEU"""
    for name in names.replace("\n", " ").split(","):
        metric, _ = find_order(name.strip())
        kind = "quality" if metric.kind == "divergence" else metric.kind
        other = qd.check(
            *[(name.strip(), "NRR"), ("CR", name.strip())][kind != "quality"]
        )
        assert len(other.instead) == 2
        assert other.reason


@pytest.mark.parametrize("a", [0.5, 3.0])
def test_a_mean_over_texts_has_no_quality_but_minus_itself(a):
    """MTLD's verdict: of two linear metrics some model near P is better in both."""
    rng = np.random.default_rng(1)
    scores, lexical = rng.normal(size=(2, 8))
    p = rng.dirichlet(np.full(8, a))
    u, v = (x - p @ x for x in (scores, lexical))
    # The step is along both gradients under P, which are not antiparallel.
    q = p * (1 + 0.05 * (u / np.sqrt(p @ u**2) + v / np.sqrt(p @ v**2)))
    assert q.min() > 0
    assert min((q - p) @ scores, (q - p) @ lexical) > 0


# --- names of pairs, and bad ones ---------------------------------------------------


@pytest.mark.parametrize("name", ["LL-SE", "ll se", "LL_SE", "cr-nrr", "LLNRR"])
def test_the_name_of_a_pair_stands_for_it_at_every_door(name):
    letters = re.sub("[^A-Z]", "", name.upper())
    pair = {"LLSE": qd.LL_SE, "CRNRR": qd.CR_NRR, "LLNRR": qd.LL_NRR}[letters]
    p = np.array([0.5, 0.3, 0.15, 0.05])
    assert qd.check_compatibility(name) == qd.check_compatibility(pair)
    assert qd.check_rationality(name) == qd.check_rationality(pair)
    found = qd.quality_discrepancy(name, p)
    assert found.qdisc == qd.quality_discrepancy(pair, p).qdisc
    assert (
        qd.certify(name, p, found).upper_bound == qd.certify(pair, p, found).upper_bound
    )
    assert qd.pareto_frontier(name, p, 5).quality.tolist() == (
        qd.pareto_frontier(pair, p, 5).quality.tolist()
    )


DOORS = {
    "check_compatibility": qd.check_compatibility,
    "check_rationality": qd.check_rationality,
    "quality_discrepancy": lambda name: qd.quality_discrepancy(name, np.full(4, 0.25)),
    "certify": lambda name: qd.certify(name, np.full(4, 0.25)),
    "pareto_frontier": lambda name: qd.pareto_frontier(name, np.full(4, 0.25)),
}


@pytest.mark.parametrize("door", DOORS)
def test_an_unknown_pair_is_one_line_with_the_names_there_are(as_a_user, door):
    with pytest.raises(
        ValueError, match="no pair is called 'LL-XX'; there are LL-SE, "
    ):
        DOORS[door]("LL-XX")
    with pytest.raises(ValueError, match="BLEU needs a space"):
        DOORS[door]("BLEU-2")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (
            ("rogue-l", "NRR"),
            "no metric is called 'rogue-l'; do you mean ROUGE-L, .*MODULE",
        ),
        (
            ("LL", "distnct-2"),
            "no metric is called 'distnct-2'; do you mean .*distinct",
        ),
        (
            ("Self-BLEU-2", "BLEU-2"),
            "quality: Self-BLEU-2 is a diversity; name a quality",
        ),
        (("BLEU-2", "ROUGE-L"), "diversity: ROUGE-L is a quality; name a diversity"),
        (("BLEU", "Self-BLEU"), "quality: BLEU needs an order: BLEU-2, ..."),
        (("BLEU-0", "Self-BLEU-0"), "quality: BLEU-0 needs an order: BLEU-2, ..."),
        (("LL", "distinct"), "diversity: distinct needs an order: Distinct-2, ..."),
        (("LL of 3 references", "SE"), "LL has no number of references; leave it out"),
        (("BLEU-2 of 0 references", "SE"), "no metric is called"),
        (("a\nb", "SE"), "no metric is called"),
        (("LL", "ümlaut"), "no metric is called"),
        (
            ("ROUGE-L",),
            "no pair is called 'ROUGE-L'.*a metric, needs another beside it",
        ),
        (("ROUGE-L", "-x log x"), "ROUGE is not allowed.* come two together"),
        (("ROUGE-L", "NRR", [0.5, 0.5]), "ROUGE is not .* without p or num_texts"),
        (("x", "2-gram entropy"), r"gram is not .* or qd.check\(NAME, NAME\)"),
    ],
)
def test_bad_names_are_one_clear_line(as_a_user, names, says):
    with pytest.raises(ValueError, match=says) as refused:
        qd.check(*names)
    assert "\n" not in str(refused.value).replace("a\\nb", "")


@pytest.mark.parametrize(
    ("f", "g"), [("log(x)", "-x**2"), ("LL", "-x**2"), ("x", "NRR"), ("x", "-NRR")]
)
def test_formulas_are_no_names(f, g):
    assert not re.search(FORMULA, "LL of 2 references")
    assert re.search(FORMULA, f) or re.search(FORMULA, g)


def test_a_named_verdict_has_all_that_the_verdict_of_the_pair_has():
    by_name, verdict = qd.check("LL", "SE"), qd.check_compatibility(qd.LL_SE)
    for field in ("compatible", "w0", "b0", "alpha", "exact", "psi", "divergence"):
        assert getattr(by_name, field) == getattr(verdict, field)
    p = np.full(4, 0.25)
    assert qd.check("LL", "NRR", p) == qd.check_compatibility(qd.LL_NRR, p)
    assert '"pair": "LL and SE"' in by_name.to_json()
    with pytest.raises(TypeError, match="three values"):
        bool(by_name)


@pytest.mark.slow
def test_the_table_is_what_its_script_makes_of_two_pairs():
    from scripts import script

    make = script("make_named_pairs")
    jax.config.update("jax_cpu_enable_async_dispatch", True)
    kinds = [("CR", "", "SE", ""), ("LL", "", "NRR", "")]
    made = make.witnesses(kinds)
    for kind in kinds:
        row = matrix()[kind]
        words, length, real, model, *gains = made[kind]
        assert (str(words), str(length), real) == (
            row["words"],
            row["length"],
            row["real"],
        )
        ours, theirs = (np.array(x.split(), float) for x in (model, row["model"]))
        assert np.abs(ours / ours.sum() - theirs / theirs.sum()).max() < 2e-3
        assert min(gains) > 0
    assert [*make.bleu_4(1, 2)[:4]] == ["BLEU-4", 1, "Self-BLEU-4", 2]


def test_names_keep_their_numbers():
    assert read_metric("diversity", "distinct_2").title == "Distinct-2"
    assert read_metric("diversity", "distinct-10").title == "distinct_10"
    assert read_metric("quality", "Markov-0 LL").title == "Markov-0 LL"
    assert read_metric("quality", "exact match").title == "exact match of 9 references"
