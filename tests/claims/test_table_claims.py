"""Claims that count in a committed table: rows of (claim, what is counted, bounds)."""

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binomtest, kendalltau, pearsonr, spearmanr
from scripts import column_of, frame, published

table = cache(frame)
# The least number above 0, and no bound.
UP, INF = np.nextafter(0, 1), np.inf


# --- generators.csv: 100 oracles ----------------------------------------------------


@cache
def gan(metric, texts=None, pretrained="yes", decoding=""):
    """An oracle a row and a model a column, of those that saw P or so many texts."""
    rows = table("generators.csv").query("temperature == 1 and decoding == @decoding")
    rows = rows[rows.texts.isna() if texts is None else rows.texts == texts]
    rows = rows[rows.pretrained.isin([pretrained, ""])]
    found = rows.pivot(index="oracle", columns="model", values=metric)
    assert found.index.tolist() == [*range(100)]
    return found


def lacking():
    """Of the frontier, as a share of KL(Q, P), which no model exceeds."""
    rows = table("generators.csv")
    return (rows.LL_SE + 2e-4) / (rows.oracle_nll - rows.entropy + 4e-4)


# --- generators.csv: autoencoders on the same oracles -------------------------------

WORDS = ["VAE (dw=0.5)", "VAE (dw=0.75)"]
AE, AAE = "AE-sph (sigma=0.1)", "AAE-sph (sigma=0.1)"
GAUSS, CRITIC = "AE-gauss-det (d=1)", "AAE-gauss-det (lambda=10 d=1)"


def ae(metric, decoding="drawn"):
    """The twelve models of the paper, of those that saw P."""
    found = gan(metric, None, "no", decoding).filter(regex="^(VAE|AAE|AE-|ARAE)")
    found = found.drop(columns="AAE-gauss")
    assert found.shape[1] == 12
    return found


def split(x):
    """The columns of VAEs, and the others."""
    vae = x.columns.str.contains("VAE")
    return x.loc[:, vae], x.loc[:, ~vae]


def over_real(decoding):
    return ae("oracle_nll", decoding).sub(gan("oracle_nll")["real data"], axis=0)


def below_real():
    """The least share of a VAE, and the greatest of another."""
    vae, others = ((x < 0).mean() for x in split(over_real("greedy")))
    return vae.min(), 1 - others.max()


def adversary_below_noise():
    moved = [ae(x).sub(ae(x)[AE], axis=0).abs() for x in ("nll", "oracle_nll")]
    return np.mean([x[AAE] < x["AE-sph (sigma=0.05)"] for x in moved])


def in_three(metric):
    """Both VAEs with word dropout among the three least."""
    return ae(metric).rank(axis=1)[WORDS].le(3).all(axis=1).mean()


def ranks_agree(one, other):
    return ae(one).rank(axis=1).corrwith(ae(other).rank(axis=1), axis=1)


def behind_word_dropout():
    x = ae("LL_SE")
    return split(x)[1].min(axis=1) - x[WORDS].max(axis=1)


def gaussian_beyond_spherical(metric):
    x = ae(metric)
    return x[GAUSS] - x[CRITIC] - abs(x[AE] - x[AAE])


def beyond_vaes(metric, sign=1, decoding="drawn"):
    x = sign * ae(metric, decoding)
    return x[AE] - split(x)[0].max(axis=1)


OF_AUTOENCODERS = [
    ("N23.12", below_real, (0.7, 0.8), 1),
    ("N23.13", adversary_below_noise, 0.9, 1),
    ("N23.14", lambda: [in_three(x) for x in ("js", "read_accuracy")], 0.9, 1),
    ("N23.15", lambda: ranks_agree("nll", "oracle_nll"), UP, INF),
    ("N23.16", behind_word_dropout, UP, INF),
    ("N23.16", lacking, 0, 1),
    ("N23.17", lambda: [*map(gaussian_beyond_spherical, ("nll", "js"))], UP, INF),
    ("N23.18", lambda: ranks_agree("oracle_nll", "read_bleu"), 0.5, INF),
    ("N23.19", lambda: beyond_vaes("nll"), UP, INF),
    ("N23.20", lambda: beyond_vaes("oracle_nll"), UP, INF),
    ("N23.20", lambda: [over_real(x)[AE].min() for x in ("drawn", "greedy")], UP, INF),
    ("N23.21", lambda: [*map(beyond_vaes, ("read_bleu", "read_accuracy"))], UP, INF),
]


# --- tuned_generators.csv, protocol.csv, training_noise.csv -------------------------


def wins(metric):
    """P-values of how often each model has the best mean, of texts drawn or not."""
    rows = table("protocol.csv").query("metric == @metric")
    for _, each in rows.groupby("sampled"):
        x = each.pivot(index="oracle", columns="model", values="mean")
        first = x.idxmax(axis=1) if metric == "bleu" else x.idxmin(axis=1)
        for name in ["SeqGAN-reinforce"] if metric == "bleu" else x.columns:
            yield binomtest(int((first == name).sum()), len(first), 1 / 3).pvalue


OF_SEARCHES = [
    ("N22.17", lambda: wins("bleu"), 0, 1e-4),
    ("N22.17", lambda: wins("js"), 0.01, 1),
]


# --- four models, in print and at the published size --------------------------------

FOUR = ["MLE", "MaliGAN", "SeqGAN", "RankGAN"]


def proposed_metrics():
    """How the two correlate over the models of Tables 1 to 3, less being better."""
    places = [*product("123", FOUR)]
    x = [[published("montahaei2019", *at, c) for at in places] for c in ("MSJ4", "FBD")]
    return -pearsonr(*x).statistic


def firsts():
    """How often MLE is first, and the printed and the most frequent order hold."""
    rows = table("four_models.csv").query("exponent == 0 and stopped == 'oracle_nll'")
    rows = rows.query("texts == 1024 and batch == 64")
    for name in ("bhattacharyya", "nll", "js", "cnd", "ms_jaccard"):
        x = rows.pivot(index="oracle", columns="model", values=name)[FOUR].to_numpy()
        x = x.argsort(axis=1)[:, :: -1 if name == "ms_jaccard" else 1]
        orders = np.bincount(x @ (512, 64, 8, 1))
        yield from ((x[:, 0] == 0).sum(), orders[0o123], orders.max())


def ranks_as_printed():
    """Of the four models, each stopped by Oracle-NLL; then how near two of them are."""
    rows = table("published_size.csv")
    best = rows.loc[rows.groupby("model").oracle_nll.idxmin()].set_index("model")
    for name in ("NLL", "Oracle-NLL", "Bhattacharyya"):
        printed = [published("montahaei2019", "4", x, name) for x in FOUR]
        found = best.loc[FOUR, name.lower().replace("-", "_")]
        yield spearmanr(printed, found).statistic
    yield 0.05 - abs(best.oracle_nll.SeqGAN - best.oracle_nll.RankGAN)


OF_FOUR = [
    ("N22.30", firsts, (24, 12, 12, 27, 17, 17, 24, 9, 9, 19, 9, 9, 15, 6, 6)),
    ("N22.33", proposed_metrics, 0.935, 0.945),
    ("N22.36", ranks_as_printed, (1 - 1e-9, 0.8 - 1e-9, 0.8 - 1e-9, 0), INF),
]


# --- on SeqGAN's oracle: Oracle-NLL, NLL and entropy of a run by step, a row a seed --

REWARDS = "constant", "uniform"
STEPS = range(25, 201, 25)


@cache
def runs(name):
    """Those of Adam, by run and step."""
    rows = table(f"{name}.csv")
    groups = rows[rows.optimiser != "sgd"].groupby(["run", "step"])
    columns = ["oracle_nll", "nll_test", "entropy"]
    return {key: rows[columns].to_numpy() for key, rows in groups}


def noise(run, step):
    return runs("reward_noise")[run, step]


def gans(run, step):
    return runs("oracle_gans")[run, step]


def ours(run, step):
    return runs("published_gans")[run, step][0]


def chance(gaps):
    """Of a sum as great, if each seed's sign were as likely as the other: exact."""
    signs = np.array([*product((1, -1), repeat=len(gaps))])
    return np.mean((signs * gaps).sum(axis=1) >= gaps.sum())


def same_nll(cold, nll):
    """NLL of real text and entropy at an Oracle-NLL, by a parabola."""
    x, *others = np.transpose(cold)
    return np.array([np.polyval(np.polyfit(x, y, 2), nll) for y in others])


def beaten_by_centred_rewards():
    for step, pair in product((50, 100, 150, 200), zip(REWARDS, ("sign", "centred"))):
        positive, centred = (noise(run, step) for run in pair)
        assert len(positive) == 5
        yield chance((centred - positive)[:, 0])


def baseline():
    """NLL of real text by epochs: epochs, and a row for each."""
    epochs = [step for run, step in runs("reward_noise") if run == "MLE"]
    return np.array(epochs), np.array([noise("MLE", t)[:, 1] for t in epochs])


def maligan():
    """By trends; KL(Q, P) is Oracle-NLL less entropy."""
    for run, seed in product(("MaliGAN", "MaliGAN-D"), (0, 1)):
        x = np.array([gans("MLE", 120)[seed], *(gans(run, t)[seed] for t in STEPS)])
        yield from np.polyfit([0, *STEPS], x, 1)[0] * [1, 1, -1]
        yield from (x[:, 0] - x[:, 2])[1:] - (x[0, 0] - x[0, 2])


def seqgans_log_is_reached():
    rows = table("published_logs.csv").query("log.str.startswith('SeqGAN')")
    log = rows[rows.phase == "adversarial"].set_index("step").oracle_nll[50]
    return [log - noise(run, 50)[:, 0].max() for run in REWARDS]


def trade(run):
    """From half to half; and at the best step against a temperature as good."""
    rows = table("published_gans.csv").query("run == @run")
    x = rows[["oracle_nll", "nll_test", "entropy"]].to_numpy()
    best, warm = x[x[:, 0].argmin()], [ours("temperature", t) for t in (70, 80, 90)]
    yield from (x[20:].mean(axis=0) - x[:20].mean(axis=0)) * [-1, 1, -1]
    yield from (same_nll(warm, best[0]) - best[1:]) * [1, -1] - 0.05


def from_the_best_epoch():
    """Better at first, and worse in the end; real text is worse throughout."""
    path = [x[0] for k, x in runs("published_gans").items() if k[0] == "SeqGAN-best"]
    (nll, real, _), start = np.transpose(path), ours("MLE", 5)
    yield from (start[0] - min(nll), nll[-1] - start[0], min(real) - start[1])


OF_REWARDS = [
    ("N21.13", beaten_by_centred_rewards, 0, 1 / 32),
    ("N21.18", lambda: baseline()[0][baseline()[1].argmin(axis=0)], 5),
    ("N21.16", maligan, UP, INF),
    ("N21.19", seqgans_log_is_reached, UP, INF),
    ("N21.22", lambda: trade("SeqGAN"), UP, INF),
    ("N21.23", lambda: trade("RankGAN"), UP, INF),
    ("N21.24", from_the_best_epoch, UP, INF),
]


# --- table2.csv: the noise family on three corpora ----------------------------------

CITED = "MSCOCO", "WMT"
ORDERS = (2, 3, 4, 5)


def noise_family(query):
    return table("table2.csv").dropna(subset="qdisc").query(query)


def in_their_units():
    t = noise_family("quality > 0")
    yield from t.drate * t.quality_range / t.qdisc - 1
    yield from t.self_ratio * t.quality / t.qdisc - 1


def off_the_formula():
    """Of each split, in units of the sampling error; bigrams of a caption vary most."""
    t = noise_family("pair == 'CN' and length == 'same'")
    a = -t.diversity - t.floor
    resampled = np.sqrt(a * (a + t.floor)) - a
    expected = {"references": t.floor, "resample": resampled, "third part": 0 * a}
    expected = np.select([t.source == x for x in expected], [*expected.values()])
    return (t.qdisc - expected) / t.floor


def printed_in_halves_of_the_error():
    for order, paper in product((2, 3, 4), ("li2020", "li2020-preprint")):
        t = noise_family(f"corpus == 'COCO' and pair == 'CN' and order == {order}")
        half = np.median(t.floor * t.sentences) / 50_000 / 2
        theirs = column_of(paper, "2", "MSCOCO QDisc").get(f"CN-{order}")
        if theirs is not None:
            yield theirs / half


def at_the_papers_size(pair):
    """Ours over what is printed of captions and of Europarl, by order."""
    t = noise_family("corpus == 'reviews' and source == 'resample' and length != 'n'")
    mean = t[t.pair == pair].groupby(["order", "length"]).qdisc.mean().unstack()
    for corpus in CITED:
        theirs = column_of("li2020", "2", f"{corpus} QDisc")
        yield [mean.loc[n].max() / theirs[f"{pair}-{n}"] for n in (2, 3, 4)]


def bleu_prefers_noise():
    """Where it has seen the references; where not, it gains nothing."""
    seen = noise_family("pair == 'BS' and source != 'third part'")
    unseen = noise_family("pair == 'BS' and source == 'third part'")
    yield from (seen.qdisc.min() - 0.02, seen.quality_0.min() - 1)
    yield from 0.01 - unseen.qdisc.abs()


def own_loss():
    t = noise_family("pair == 'BS' and source == 'resample'")
    return t.quality_0 - t.quality_02


OF_TABLE_2 = [
    ("N10.27", in_their_units, -1e-5, 1e-5),
    ("N10.28", off_the_formula, -0.3, 0.3),
    ("N10.29", printed_in_halves_of_the_error, 0.7, 1.1),
    ("N10.50", lambda: np.transpose([*at_the_papers_size("CN")]), (0, 1), (1, INF)),
    ("N10.51", lambda: np.min([*at_the_papers_size("BS")], axis=0), 1, 1.2),
    ("N10.30", bleu_prefers_noise, 0, INF),
    ("N10.31", own_loss, 0.19, 0.21),
]


# --- samples of six models, and printed rows ----------------------------------------

SYSTEMS = "Real", "MLE", "SeqGAN", "MaliGAN", "RankGAN", "LeakGAN", "TextGAN"
KEYS = ["references", "metric", "order", "system"]


@cache
def samples():
    rows = table("model_samples.csv").query("system != 'noise'")
    return rows.set_index(KEYS).sort_index()


def scores(metric, order, against="train", column="value"):
    """A metric of all systems, real text first."""
    return samples().loc[(against, metric, order), column][[*SYSTEMS]].to_numpy()


def noisy(metric):
    """Real text with a share of other sentences, by order and share."""
    rows = table("model_samples.csv").query("system == 'noise' and length == 'same'")
    rows = rows[(rows.references == "train") & (rows.metric == metric)]
    return rows.set_index(["order", "share"]).value


def ends(x):
    """Places of the least, of the least model, and of the greatest."""
    return x.argmin(), x[1:].argmin(), x.argmax()


def copied_by_models():
    for against in ("train", "test"):
        real, *models = scores("copied", 0, against)
        yield max(models) - real


def further_than_real_text():
    """The plug-in of real text is what sampling adds, and no model's is."""
    for n in ORDERS:
        real, pairs = (scores(metric, n)[0] for metric in ("CND", "CND of pairs"))
        yield 0.1 * (real - pairs) - abs(pairs)
        yield from scores("CND", n, column="low")[1:] - (real - 2 * pairs)


def shares_of_noise():
    """CND of bigrams is about the square of the share, beyond that of real text."""
    real, mle, seq, mali = scores("CND", 2)[:4]
    unit = (noisy("CND")[2, 0.6] - real) / 0.6**2
    return np.sqrt((np.array([mle, seq, mali]) - real) / unit)


def firsts_and_lasts():
    for n in ORDERS:
        total = 2 * scores("CR", n) + scores("NRR", n)
        for x in (scores("CND", n), scores("CND of pairs", n), -total):
            yield x.argmin() == 0 and x.argmax() == 6


def rankings():
    """By CND, with its sampling error and without, of sequences of 2 to 4 words."""
    every = product(("CND", "CND of pairs"), (2, 3, 4))
    return {tuple(scores(metric, n).argsort()) for metric, n in every}


def lm_scores(fitted_to, column):
    """A row for each training, a column for each system."""
    rows = table("lm_scores.csv").query("fitted_to == @fitted_to")
    return rows.pivot(index="seed", columns="system")[column][[*SYSTEMS]].to_numpy()


def likelier_than_real_text():
    for unit in ("per_text", "per_token"):
        low, high = (lm_scores("references", unit + x) for x in ("_low", "_high"))
        yield from high < low[:, :1]


def agreement():
    """Kendall's tau within what asks for the whole, and across."""
    forward, reverse = (lm_scores(x, "per_text") for x in ("candidates", "references"))
    for n in ORDERS:
        whole = [-scores("CND", n), scores("MS-Jaccard", n), *-forward]
        yield from (kendalltau(x, y).statistic - 0.6 for x, y in combinations(whole, 2))
        across = product(whole, reverse)
        yield from (kendalltau(x, y).statistic - 0.1 for x, y in across)


def real_row(metric, min_count, *sizes):
    """Real captions at orders 2 to 5."""
    x = table("real_row.csv").query("corpus == 'COCO' and order > 1")
    columns = ["metric", "min_count", "candidates", "references"]
    x = x.set_index(columns).sort_index().value
    return x.loc[metric, min_count, *sizes].to_numpy()


def printed_real(name):
    row = "montahaei2019", "1", "Real Data"
    return np.array([published(*row, f"{name}{n}") for n in ORDERS])


def off_by_rare_words():
    """The rule about rare words is all that is left open: both neighbours miss."""
    for min_count, size in ((3, 18068), (1, 19479), (5, 16822)):
        found = real_row("MS-Jaccard", min_count, 40000, size)
        yield np.abs(found - printed_real("MSJ")).max()


def frechet(against):
    rows = table("frechet.csv").query("references == @against").set_index("system")
    return rows.loc[[*SYSTEMS]]


FIVE = ("Real Data", *SYSTEMS[1:5])


def printed_table(t, column, names=FIVE):
    return np.array([published("montahaei2019", t, x, column) for x in names])


def first_in_every_table():
    """Real text; MLE before two GANs; and each GAN repeats itself more than MLE."""
    for t, n in product("123", ORDERS):
        x, own = printed_table(t, f"MSJ{n}"), printed_table(t, f"SBL{n}")
        yield from [*x[0] - x[1:], *x[1] - x[[2, 4]], *own[2:] - own[1]]


def mle_is_first():
    """By NLL, in our samples and the tables."""
    tables = [printed_table(t, "NLL", FIVE[1:]) for t in "123"]
    ours = lm_scores("candidates", "per_text").mean(axis=0)[1:5]
    return [x.argmin() for x in (ours, *tables)]


def lead_of_maligan():
    for column, sign in (("FBD", -1), *((f"MSJ{n}", 1) for n in ORDERS)):
        mle, seq, mali, rank = sign * printed_table("1", column, FIVE[1:])
        yield mali - max(mle, seq, rank)


def place_of_the_language_model():
    bleu = column_of("semeniuta2018", "2", "BLEU4")
    return len(bleu), sorted(bleu, key=bleu.get, reverse=True).index("Language Model")


def implied_bleu(paper, orders, rounding=0.0):
    """From QDisc and Self-Ratio, whatever was rounded: a row for each corpus."""
    qdisc, ratio = (
        [
            [published(paper, "2", f"BS-{n}", f"{x} {name}") for n in orders]
            for x in CITED
        ]
        for name in ("QDisc", "Self-Ratio")
    )
    return (np.array(qdisc) + rounding) / (np.array(ratio) - rounding)


def bleu_falls_or_not():
    """By one word more, whatever was rounded: not in the preprint, always in print."""
    for paper, orders, sign in (("li2020-preprint", (4, 5), 1), ("li2020", (3, 4), -1)):
        low, high = (implied_bleu(paper, orders, x * sign) for x in (-5e-4, 5e-4))
        yield from (low[:, 1] - high[:, 0]) * sign


OF_SAMPLES = [
    ("N10.34", copied_by_models, -INF, -UP),
    ("N10.35", further_than_real_text, UP, INF),
    ("N10.36", shares_of_noise, (0.1, 0.36, 0.42), (0.2, 0.46, 0.52)),
    ("N10.37", lambda: [ends(-scores("distinct", n))[0] for n in (2, 3, 4)], 0),
    ("N10.38", firsts_and_lasts, 1),
    ("N10.40", lambda: len(rankings()), 1),
    ("N10.41", lambda: [ends(-scores("MS-Jaccard", n)) for n in ORDERS], (0, 0, 6)),
    ("N10.42", likelier_than_real_text, (0, 0, 0, 0, 1, 1, 1)),
    ("N10.43", agreement, UP, INF),
    ("N10.45", off_by_rare_words, (0, 0.002, 0.002), (0.002, 1, 1)),
    ("N10.46", lambda: ends(frechet("train").distance.to_numpy()), (0, 0, 6)),
    ("N10.48", first_in_every_table, UP, INF),
    ("N10.49", mle_is_first, 0),
    ("E13.1", lead_of_maligan, UP, INF),
    ("E13.4", place_of_the_language_model, (9, 4)),
    ("E13.5", bleu_falls_or_not, UP, INF),
]


# --- other tables -------------------------------------------------------------------


def captions_fall():
    for n in (1, 2, 3, 4):
        x = table("caption_sweep.csv").set_index("temperature").drop(index="real")
        x = x[x.left_out.isna() & (x.n == n)]
        yield from (x[cnd].idxmin() == "1" for cnd in ("cnd", "cnd_pairs"))
        yield min(np.diff([-x.coverage_rate, x.nrr_pairs]).min(axis=1)) >= 0


def captions(metric, exponent=0):
    """A seed a row and a model a column, of models trained on captions."""
    rows = table("caption_models.csv").query("exponent == @exponent and seed >= 0")
    return rows.pivot(index="seed", columns="model", values=metric)


def from_mle(metric, *names):
    x = captions(metric)
    return x[[*names] or x.columns.drop("MLE")].sub(x.MLE, axis=0).to_numpy()


def mle_first_on_captions():
    for metric in ("nll", "frechet", "cnd_2", "reverse_lm_score"):
        yield from_mle(metric).min()
    yield -from_mle("ms_jaccard_4").max()


def bleu_at_a_price():
    yield from (from_mle(x, "SeqGAN", "RankGAN").min() for x in ("bleu_4", "lm_score"))
    yield from (from_mle(x, "SeqGAN", "RankGAN").max() for x in ("bleu_4", "lm_score"))
    yield from (from_mle("self_bleu_4").min(), from_mle("distinct_4").max())
    yield (from_mle("lm_score", "MaliGAN") < 0).sum()


def dominance_on_captions():
    """Log odds along the sweeps, where the lecture's lines join the numbers."""
    sweeps = [[captions(f"{x}_4", k) for k in range(4, -4, -1)] for x in BLEUS]
    shares, same = {}, 0
    for (one, other), seed in product(combinations(sweeps[0][0].columns, 2), range(3)):
        x, y = (
            logit([[at[name][seed] for at in sweep] for sweep in sweeps])
            for name in (one, other)
        )
        ends = max(x[0, 0], y[0, 0]), min(x[0, -1], y[0, -1])
        at = logit(np.linspace(*expit(ends), 5001))
        below = np.mean(np.interp(at, *x) < np.interp(at, *y))
        shares[one, other, seed] = below
        jaccard = captions("ms_jaccard_4").loc[seed]
        same += (below > 0.5) == (jaccard[one] > jaccard[other])
    with_mle = {
        k: v if k[0] == "MLE" else 1 - v for k, v in shares.items() if "MLE" in k
    }
    return min(with_mle.values()), same


def correlate_on_captions():
    wanted = "nll", "ms_jaccard_4", "frechet", "self_bleu_4"
    rows = table("caption_models.csv").query("seed >= 0")
    for most in (0, 4):
        found = rows[rows.exponent <= most][[*wanted]].corr()
        yield from (*found.nll[1:], found.loc["ms_jaccard_4", "frechet"])


BLEUS = "bleu", "self_bleu"


OLD = "LL|Markov-. LL|CR|CR-.|SE|NRR|NRR-.|(NS)?BLEU-.|Distinct-."


def many_references():
    x = table("compatibility_matrix.csv").query("references in (2, 10, 100)")
    x = x[x.quality.str.fullmatch(OLD) & x.diversity.str.fullmatch(OLD)]
    yield x.beaten.min()
    yield x.query("references > 2 and sigma == 1").drate.astype(float).min() / 0.003


def words_before_topics():
    """Repeat by repeat: slopes, and what two topics less cost against a fifth."""
    rows = table("reverse_scores.csv").set_index(["damage", "strength", "repeat"])
    for repeat in range(5):
        x = rows.xs(repeat, level="repeat").per_token
        each = [x.loc[name].loc[:0.8] for name in (COLLAPSE, "word swap", DROPOUT)]
        yield from np.diff([0, *(np.polyfit(y.index, y, 1)[0] for y in each)])
        yield x.loc[DROPOUT, 0.2] - each[0].iloc[2]


COLLAPSE, DROPOUT = "mode collapse", "word dropout"


OF_OTHERS = [
    ("N10.52", mle_first_on_captions, UP, INF),
    (
        "N10.53",
        bleu_at_a_price,
        (0, -1, 0, -1, 0, -1, 1),
        (1, 0, 1, 0, 1, 0, 1),
    ),
    ("N10.54", dominance_on_captions, (0.95, 15), (1, 16)),
    (
        "N10.55",
        correlate_on_captions,
        (-0.935, 0.935, 0.775, -0.955, -0.365, 0.945, 0.395, -0.405),
        (-0.925, 0.945, 0.785, -0.945, -0.355, 0.955, 0.405, -0.395),
    ),
    ("N11.17", captions_fall, 1),
    ("N14.10", many_references, 1, INF),
    ("N15.21", words_before_topics, UP, INF),
]


EVERY = OF_AUTOENCODERS + OF_SEARCHES + OF_FOUR + OF_REWARDS
EVERY += OF_TABLE_2 + OF_SAMPLES + OF_OTHERS


@pytest.mark.claim(
    "E13.1", "E13.4", "E13.5", "N10.27", "N10.28", "N10.29", "N10.30", "N10.31",
    "N10.34", "N10.35", "N10.36", "N10.37", "N10.38", "N10.40", "N10.41", "N10.42",
    "N10.43", "N10.45", "N10.46", "N10.48", "N10.49", "N10.50", "N10.51",
    "N10.52", "N10.53", "N10.54", "N10.55",
    "N11.17", "N14.10", "N15.21", "N21.13", "N21.16",
    "N21.18", "N21.19", "N21.22", "N21.23", "N21.24",
    "N22.17", "N22.30", "N22.33", "N22.36", "N23.12", "N23.13", "N23.14", "N23.15",
    "N23.16", "N23.17", "N23.18", "N23.19", "N23.20", "N23.21",
    recount=True,
)  # fmt: skip
@pytest.mark.parametrize("row", EVERY, ids=lambda row: row[0])
def test_the_table_says_so(row):
    _, counted, low, *high = row
    found = counted()
    found = np.array([*found] if hasattr(found, "__next__") else found, float)
    assert found.size
    assert (np.array(low) <= found).all()
    assert (found <= np.array(*high or [low])).all()


def test_every_claim_of_the_marks_has_a_row():
    marks = (mark for mark in test_the_table_says_so.pytestmark if mark.name == "claim")
    assert {claim for mark in marks for claim in mark.args} == {row[0] for row in EVERY}
