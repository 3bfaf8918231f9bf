"""Every metric that the project knows, in one table: what `qdtheory metrics` prints."""

import importlib
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["quality", "diversity", "divergence", "both in one"]
Status: TypeAlias = Literal["compatible", "incompatible", "a divergence", "none"]


@dataclass(frozen=True)
class Metric:
    """What is known of one metric.

    Attributes:
        name: the short name.
        kind: what it measures.
        formula: of a model Q and the real P, in plain text.
        form: how it depends on Q.
        status: "compatible" if it is half of a compatible pair, "incompatible" if no
            partner makes one, "a divergence" if it is least at Q = P by itself, "none"
            where the question does not arise.
        verdict: why, in a few words.
        partner: the metric beside which it is compatible.
        estimator: what is unbiased from samples, or the bias.
        beside: what to print beside it.
        functions: where it is computed, dotted names below `qdtheory`, the exact one
            first.
        other_names: under which papers report it.
    """

    name: str
    kind: Kind
    formula: str
    form: str
    status: Status
    verdict: str
    partner: str
    estimator: str
    beside: str
    functions: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims that the docstrings of its functions name."""
        found: dict[str, None] = {}
        for path in self.functions:
            module, _, name = path.rpartition(".")
            function = getattr(importlib.import_module(f"qdtheory.{module}"), name)
            text = re.search(r"Claims: ([^\n]*(?:\n    +\S[^\n]*)*)", function.__doc__)
            if text:
                found |= dict.fromkeys(re.findall(r"[A-Z]+\d+\.\d+", text[1]))
        return tuple(found)


def find_metric(name: str) -> Metric:
    """Find a metric by its name or another name, in capitals or not.

    Args:
        name: such as "Vendi" or "oracle-nll".

    Returns:
        The metric.

    Raises:
        ValueError: there is no such metric; the message has the closest names.

    Example:
        >>> find_metric("-oracle-nll").name
        'LL'
    """
    names = {x.lower(): m for m in METRICS for x in (m.name, *m.other_names)}
    wanted = name.lower()
    if wanted in names:
        return names[wanted]
    # BLEU-2 is BLEU-n, distinct_10 is distinct_k.
    general = re.sub(r"(?<=[-_@])\d+\b", lambda m: "[nk]", re.escape(wanted))
    for known, metric in names.items():
        if re.fullmatch(general.replace("\\-", "-"), known):
            return metric
    close = get_close_matches(wanted, names, 3, 0.4)
    hint = f"; do you mean {', '.join(close)}?" if close else ""
    raise ValueError(f"no metric is called {name!r}{hint}")


LINEAR = "linear in Q"
SUM = "a sum of g(Q_i)"
KERNEL = "-Q'KQ"
SAMPLE_SIZE = "depends on sample size, so only at equal sizes"

METRICS = (
    # --- Qualities ------------------------------------------------------------------
    Metric(
        "LL",
        "quality",
        "sum Q_i log P_i",
        LINEAR,
        "compatible",
        "Theorem 3: U + V is -KL(Q, P)",
        "SE",
        "the mean of log P over samples, where P is known",
        "SE, the model's own entropy; their sum is minus a divergence",
        ("metrics.divergences.cross_entropy",),
        ("-Oracle-NLL", "Oracle-NLL", "reverse cross-entropy", "LM score"),
    ),
    Metric(
        "CR",
        "quality",
        "sum Q_i P_i",
        LINEAR,
        "compatible",
        "Theorem 3: 2U + V is minus a squared distance",
        "NRR",
        "pairs of one sample each",
        "NRR on the same n-grams, and CND",
        ("metrics.ngrams.coverage_rate", "text.ngrams.coverage_rate"),
        ("coverage rate",),
    ),
    Metric(
        "exact match",
        "quality",
        "sum Q_i (1 - (1 - P_i)^n), n real texts",
        LINEAR,
        "compatible",
        "Theorem 3",
        "distinct_k with k = n + 1",
        "leave no reference out; the mean over samples",
        "distinct_k of one draw more",
        ("pairs.named.distinct_k_pair",),
    ),
    Metric(
        "BLEU-n",
        "quality",
        "mean BLEU of a draw from Q with r references from P",
        LINEAR,
        "compatible",
        "only with one reference and n = 1 or n = the length, or over two words",
        "Self-BLEU with one reference; see the classification",
        "the mean over samples",
        "CR and NRR on n-grams: with Self-BLEU a model can win in both",
        ("metrics.bleu.expected_bleu", "text.bleu.bleu", "pairs.bleu.BleuPair"),
        ("BLEU",),
    ),
    Metric(
        "ROUGE-L",
        "quality",
        "mean LCS of a draw from Q and one from P, over the length",
        LINEAR,
        "incompatible",
        "beaten at every P of 4 words and 2 tokens, 2 words and 4 tokens, or more",
        "none",
        "pairs of one sample each",
        "a similarity that is an inner product, such as common n-grams",
        ("metrics.similarity.lcs_kernel",),
        ("LCS",),
    ),
    Metric(
        "utility",
        "quality",
        "sum Q_i r_i, scores r that do not depend on P",
        LINEAR,
        "none",
        "perfect is a family of distributions, whatever people write",
        "any concave V: `qd.implied_truths`",
        "the mean over samples",
        "the implied truth at the price that you accept",
        ("theory.implied_truths.implied_truths",),
        ("reward", "pass@1"),
    ),
    Metric(
        "class LL",
        "quality",
        "sum Q_i log P(class of i)",
        LINEAR,
        "compatible",
        "Theorem 3 on the classes",
        "semantic entropy",
        "the mean over samples, where P is known",
        "a metric within classes: it is blind there",
        ("pairs.clusters.ClusterPair",),
    ),
    Metric(
        "Vendi's quality",
        "quality",
        "tr rho_Q log rho_P",
        LINEAR,
        "compatible",
        "Klein's inequality",
        "log of Vendi",
        "the mean over samples for a known rho_P",
        "Vendi; their sum is minus the quantum relative entropy",
        ("pairs.vendi.VendiPair",),
    ),
    # --- Diversities ----------------------------------------------------------------
    Metric(
        "SE",
        "diversity",
        "-sum Q_i log Q_i",
        SUM,
        "compatible",
        "Theorem 3",
        "LL",
        "none is unbiased; the plug-in falls short by about (N - 1) / 2n",
        "LL; their sum is minus a divergence",
        ("world.distributions.entropy",),
        ("Shannon entropy", "entropy"),
    ),
    Metric(
        "NRR",
        "diversity",
        "-sum Q_i^2",
        SUM,
        "compatible",
        "Theorem 3",
        "CR",
        "pairs of different sentences",
        "CR on the same n-grams, and CND",
        (
            "metrics.ngrams.negative_repetition_rate",
            "text.ngrams.negative_repetition_rate",
        ),
        ("negative repetition rate", "Simpson", "SDI"),
    ),
    Metric(
        "Tsallis",
        "diversity",
        "sum (Q_i - Q_i^a) / (a - 1)",
        SUM,
        "compatible",
        "Theorem 3, with f = x^(a - 1) / (a - 1)",
        "the power score f",
        "for whole a groups of a samples",
        "its power score",
        ("pairs.scalar_functions.Tsallis",),
        ("Hill number", "Renyi entropy"),
    ),
    Metric(
        "Self-BLEU-n",
        "diversity",
        "-mean BLEU of a draw from Q with k others from Q",
        "a polynomial of degree k + 1, not concave",
        "compatible",
        "only with one reference and n = 1 or n = the length, or over two words",
        "BLEU with one reference; see the classification",
        "leave one out, for k = n - 1 only: " + SAMPLE_SIZE,
        "NRR on n-grams",
        ("metrics.bleu.expected_self_bleu", "text.bleu.self_bleu"),
        ("Self-BLEU", "NSBLEU"),
    ),
    Metric(
        "Distinct-n",
        "diversity",
        "distinct n-grams of m texts over all of them",
        "concave",
        "compatible",
        "minus the gradient of a concave diversity",
        "minus the n-grams of a text that m - 1 real texts lack",
        SAMPLE_SIZE,
        "how many n-grams of a text m - 1 real texts lack",
        ("metrics.ngrams.expected_distinct", "text.ngrams.distinct"),
        ("dist-n",),
    ),
    Metric(
        "n-gram diversity",
        "diversity",
        "the sum of Distinct-1 to Distinct-4",
        "concave",
        "compatible",
        "a sum of compatible pairs of one weight",
        "the same of each order",
        SAMPLE_SIZE,
        "how many n-grams of a text m - 1 real texts lack, order by order",
        ("text.repetition.ngram_diversity",),
        ("NGD",),
    ),
    Metric(
        "self-repetition",
        "diversity",
        "-mean log(1 + n-grams of a text in the m - 1 others)",
        "a polynomial of degree m, not concave",
        "incompatible",
        "for m = 2 three negative directions on the 8 texts of 3 tokens, n = 2",
        "none",
        SAMPLE_SIZE,
        "NRR on n-grams",
        ("metrics.ngrams.expected_self_repetition", "text.repetition.self_repetition"),
        ("SRS",),
    ),
    Metric(
        "distinct_k",
        "diversity",
        "sum 1 - (1 - Q_i)^k, over texts or classes",
        SUM,
        "compatible",
        "Theorem 3, for k - 1 real texts and no other number",
        "exact match with k - 1 real texts",
        "Hurlbert's, from n >= k samples",
        "the share of samples that are among k - 1 real texts",
        (
            "metrics.draws.distinct_k",
            "text.draws.distinct_k",
            "pairs.named.distinct_k_pair",
        ),
        ("rarefaction", "HD-D"),
    ),
    Metric(
        "Vendi",
        "diversity",
        "exp of -tr rho_Q log rho_Q",
        "its log is concave",
        "compatible",
        "Klein's inequality",
        "tr rho_Q log rho_P",
        "biased downwards; of order 2 the inverse has a known bias",
        "its quality, and the quantum relative entropy to real text",
        (
            "metrics.vendi.vendi_score",
            "text.vendi.vendi_score",
            "pairs.vendi.VendiPair",
        ),
        ("Vendi score",),
    ),
    Metric(
        "Vendi of order 2",
        "diversity",
        "1 / Q'(K o K)Q, squares of the similarities",
        "the inverse is " + KERNEL[1:],
        "compatible",
        "a squared similarity is an inner product: MMD",
        "mean squared similarity to a real text",
        "pairs of different samples",
        "the mean squared similarity to real text",
        ("metrics.vendi.vendi_score", "pairs.kernel.KernelPair"),
    ),
    Metric(
        "pairwise ROUGE-L",
        "diversity",
        "-mean LCS of two draws from Q, over the length",
        KERNEL,
        "incompatible",
        "beaten at every P of 4 words and 2 tokens, 2 words and 4 tokens, or more",
        "none",
        "pairs of different samples",
        "a similarity that is an inner product, such as common n-grams",
        ("metrics.similarity.lcs_kernel", "text.repetition.pairwise_rouge_l"),
        ("homogenization", "Self-ROUGE-L"),
    ),
    Metric(
        "pairwise edit distance",
        "diversity",
        "mean Levenshtein distance of two draws from Q, over the length",
        KERNEL,
        "incompatible",
        "some P are beaten on the 8 texts of 3 tokens, every P on those of 4",
        "none",
        "pairs of different samples",
        "a similarity that is an inner product, such as common n-grams",
        ("metrics.similarity.edit_kernel",),
        ("Levenshtein",),
    ),
    Metric(
        "semantic entropy",
        "diversity",
        "entropy of the classes of meaning",
        "concave, flat within classes",
        "compatible",
        "Theorem 3 on the classes",
        "class LL",
        "none is unbiased; the plug-in falls short by about (C - 1) / 2n",
        "LL of classes, and a metric within classes",
        ("pairs.clusters.ClusterPair", "text.draws.semantic_entropy"),
        ("cluster entropy",),
    ),
    Metric(
        "compression ratio",
        "diversity",
        "-plain bits over compressed bits of m texts",
        "a polynomial of degree m, not concave",
        "incompatible",
        "linear for m = 1; for m = 2 two negative directions on 8 texts",
        "none; as the sample grows, LL",
        SAMPLE_SIZE,
        "SE and LL under a model of real text",
        (
            "metrics.compression.expected_compression",
            "text.repetition.compression_ratio",
        ),
        ("LZ78", "gzip ratio"),
    ),
    Metric(
        "pass@k",
        "diversity",
        "sum r_i (1 - (1 - Q_i)^k), r_i the chance that answer i is right",
        "concave",
        "none",
        "perfect is a family that does not hold the answers' frequencies r",
        "pass@1: `qd.implied_truths`",
        "Chen's, from n >= k samples",
        "pass@1, and the implied truth between them",
        ("metrics.draws.pass_at_k", "text.draws.pass_at_k"),
    ),
    # --- Both in one, and divergences -----------------------------------------------
    Metric(
        "utility_k",
        "both in one",
        "mean discounted utility of the new among k draws",
        "a sum of u_i g(Q_i), not concave",
        "none",
        "its maximiser depends on utilities and patience, not on P",
        "none",
        "means over orders of k samples, from n >= k",
        "distinct_k and the mean utility apart",
        ("metrics.draws.utility_k", "text.draws.utility_k"),
    ),
    Metric(
        "CND",
        "divergence",
        "sum (Q_g - P_g)^2 over n-grams",
        "convex",
        "a divergence",
        "of n-gram distributions: CR and NRR in one",
        "CR and NRR",
        "pairs, on both sides",
        "CR and NRR, to say which half is at fault",
        ("metrics.ngrams.cnd", "text.ngrams.cnd"),
        ("squared distance",),
    ),
    Metric(
        "MMD",
        "divergence",
        "(Q - P)'K(Q - P)",
        "convex if K is an inner product",
        "a divergence",
        "up to what K does not tell apart",
        "similarity to P and within Q",
        "pairs of different samples",
        "both similarities",
        ("pairs.kernel.squared_mmd",),
        ("kernel distance",),
    ),
    Metric(
        "quantum relative entropy",
        "divergence",
        "tr rho_Q (log rho_Q - log rho_P)",
        "convex",
        "a divergence",
        "up to what the squared similarity does not tell apart",
        "Vendi and its quality",
        "biased upwards",
        "Vendi and its quality",
        ("metrics.vendi.quantum_relative_entropy",),
    ),
    Metric(
        "NLL",
        "divergence",
        "-sum P_i log Q_i",
        "convex",
        "a divergence",
        "KL(P, Q) but for the entropy of P",
        "none: it is no pair, but a model that covers P is best",
        "the mean over real texts, where Q is known",
        "LL and SE: NLL punishes what the model misses, they what it adds",
        ("metrics.divergences.cross_entropy",),
        ("NLL-test", "forward cross-entropy", "perplexity", "reverse LM score"),
    ),
    Metric(
        "KL",
        "divergence",
        "sum Q_i log(Q_i / P_i)",
        "convex",
        "a divergence",
        "LL and SE in one",
        "LL and SE",
        "needs Q and P",
        "LL and SE",
        ("metrics.divergences.kl_divergence",),
        ("reverse KL",),
    ),
    Metric(
        "JS",
        "divergence",
        "half of KL(Q, M) + KL(P, M), M the mean of both",
        "convex",
        "a divergence",
        "no pair has it as its divergence",
        "none",
        "needs Q and P",
        "KL each way",
        ("metrics.divergences.jensen_shannon_divergence",),
        ("Jensen-Shannon",),
    ),
    Metric(
        "total variation",
        "divergence",
        "half of sum |Q_i - P_i|",
        "convex",
        "a divergence",
        "no pair has it as its divergence",
        "none",
        "needs Q and P",
        "KL each way",
        ("metrics.divergences.total_variation",),
        ("TV",),
    ),
    Metric(
        "Hellinger",
        "divergence",
        "root of half of sum (root Q_i - root P_i)^2",
        "its square is convex",
        "a divergence",
        "no pair has it as its divergence",
        "none",
        "needs Q and P",
        "KL each way",
        (
            "metrics.divergences.hellinger_distance",
            "metrics.divergences.bhattacharyya_distance",
        ),
        ("Bhattacharyya",),
    ),
    Metric(
        "MS-Jaccard",
        "divergence",
        "geometric mean of overlaps of n-gram counts",
        "neither linear nor concave",
        "a divergence",
        "1 iff the expected counts agree; says not which half is at fault",
        "none",
        SAMPLE_SIZE,
        "CR and NRR on n-grams",
        ("metrics.ngrams.ms_jaccard", "text.jaccard.ms_jaccard"),
        ("MSJ",),
    ),
    Metric(
        "Frechet distance",
        "divergence",
        "of Gaussians with the means and covariances of features",
        "neither linear nor concave",
        "a divergence",
        "0 iff means and covariances agree; says not which half is at fault",
        "none",
        "biased upwards, " + SAMPLE_SIZE,
        "Vendi and its quality on the same features",
        ("metrics.frechet.frechet_distance", "text.frechet.frechet_distance"),
        ("FED", "FBD", "FID"),
    ),
    Metric(
        "MAUVE",
        "divergence",
        "area under the divergence frontier of mixtures of Q and P",
        "of an f-divergence",
        "a divergence",
        "its two axes are divergences, not a quality and a diversity",
        "none",
        "biased, by clusters and sample size",
        "KL each way on the same clusters",
        ("metrics.divergence_frontiers.mauve",),
    ),
    Metric(
        "precision and recall",
        "divergence",
        "frontier of sum min(a P_i, Q_i) and sum min(P_i, Q_i / a)",
        "concave",
        "a divergence",
        "at each a total variation, weighted; both are greatest at Q = P",
        "each other, trivially",
        "biased, by clusters and sample size",
        "KL each way on the same clusters",
        (
            "metrics.divergence_frontiers.precision_recall_distributions",
            "metrics.divergence_frontiers.prd_f_scores",
        ),
        ("PRD", "F8 and F1/8"),
    ),
)
