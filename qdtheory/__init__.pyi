from . import generators as generators, plotting as plotting, text as text
from .certificates.certify import (
    certify as certify,
    quality_discrepancy as quality_discrepancy,
)
from .certificates.cubic import (
    CubicCertificate as CubicCertificate,
    CubicInterval as CubicInterval,
    cubic_bound as cubic_bound,
    cubic_interval as cubic_interval,
)
from .certificates.interval import Interval as Interval
from .certificates.quadratic import quadratic_interval as quadratic_interval
from .certificates.separable import (
    dual_bound as dual_bound,
    separable_interval as separable_interval,
)
from .certificates.tails import bleu_1_interval as bleu_1_interval
from .discrepancy.conditional import (
    ConditionalDiscrepancy as ConditionalDiscrepancy,
    Transport as Transport,
    average_discrepancy as average_discrepancy,
    average_diversity as average_diversity,
    conditional_quality as conditional_quality,
    pooled_discrepancy as pooled_discrepancy,
    pooled_diversity as pooled_diversity,
    transport_bound as transport_bound,
)
from .discrepancy.gain import Gain as Gain
from .discrepancy.quality import Discrepancy as Discrepancy
from .metrics.bleu import (
    estimate_bleu as estimate_bleu,
    expected_bleu as expected_bleu,
    expected_corpus_bleu as expected_corpus_bleu,
    expected_self_bleu as expected_self_bleu,
)
from .metrics.divergence_frontiers import (
    divergence_frontier as divergence_frontier,
    frontier_integral as frontier_integral,
    mauve as mauve,
    prd_f_scores as prd_f_scores,
    precision_recall_distributions as precision_recall_distributions,
)
from .metrics.divergences import (
    bhattacharyya_distance as bhattacharyya_distance,
    cross_entropy as cross_entropy,
    hellinger_distance as hellinger_distance,
    jeffreys_divergence as jeffreys_divergence,
    jensen_shannon_divergence as jensen_shannon_divergence,
    kl_divergence as kl_divergence,
    renyi_divergence as renyi_divergence,
    total_variation as total_variation,
)
from .metrics.compression import expected_compression as expected_compression
from .metrics.draws import (
    distinct_k as distinct_k,
    pass_at_k as pass_at_k,
    utility_k as utility_k,
)
from .metrics.frechet import frechet_distance as frechet_distance
from .metrics.ngrams import (
    cnd as cnd,
    coverage_rate as coverage_rate,
    expected_distinct as expected_distinct,
    expected_self_repetition as expected_self_repetition,
    ms_jaccard as ms_jaccard,
    negative_repetition_rate as negative_repetition_rate,
    ngram_matrix as ngram_matrix,
    ngram_rank as ngram_rank,
)
from .metrics.similarity import (
    bleu_kernel as bleu_kernel,
    edit_kernel as edit_kernel,
    lcs_kernel as lcs_kernel,
    ngram_kernel as ngram_kernel,
)
from .metrics.vendi import (
    quantum_relative_entropy as quantum_relative_entropy,
    vendi_score as vendi_score,
)
from .pairs.base import (
    FunctionPair as FunctionPair,
    LinearPair as LinearPair,
    Pair as Pair,
)
from .pairs.bleu import BleuPair as BleuPair
from .pairs.clusters import ClusterPair as ClusterPair
from .pairs.concave import ConcavePair as ConcavePair
from .pairs.formulas import Expression as Expression
from .pairs.kernel import KernelPair as KernelPair, squared_mmd as squared_mmd
from .pairs.named import (
    CR_NRR as CR_NRR,
    CR_SE as CR_SE,
    LL_NRR as LL_NRR,
    LL_SE as LL_SE,
    distinct_k_pair as distinct_k_pair,
    single_token_bleu_pair as single_token_bleu_pair,
)
from .pairs.ngram import NgramPair as NgramPair
from .pairs.scalar_functions import (
    CR as CR,
    LL as LL,
    NRR as NRR,
    SDI as SDI,
    SE as SE,
    Tsallis as Tsallis,
)
from .pairs.separable import SeparablePair as SeparablePair
from .pairs.vendi import VendiPair as VendiPair
from .solvers.search import Search as Search, search as search
from .theory.check import check as check
from .theory.compatibility import (
    Verdict as Verdict,
    check_compatibility as check_compatibility,
)
from .theory.dominance import (
    Dominance as Dominance,
    dominance as dominance,
    pareto_filter as pareto_filter,
)
from .theory.frontier import (
    FrontierSlopes as FrontierSlopes,
    ParetoFrontier as ParetoFrontier,
    ParetoOptimum as ParetoOptimum,
    frontier_slopes as frontier_slopes,
    kkt_residual as kkt_residual,
    pareto_frontier as pareto_frontier,
    pareto_optimum as pareto_optimum,
    saturation_weight as saturation_weight,
)
from .theory.implied_truths import (
    ImpliedTruths as ImpliedTruths,
    implied_truths as implied_truths,
)
from .theory.kernel_criterion import (
    KernelCriterion as KernelCriterion,
    dominating_model as dominating_model,
    kernel_criterion as kernel_criterion,
)
from .theory.scoring_rules import (
    bregman_divergence as bregman_divergence,
    compatible_quality as compatible_quality,
    local_discrepancy as local_discrepancy,
)
from .theory.theorem_1 import (
    Rationality as Rationality,
    check_rationality as check_rationality,
)
from .theory.witness import Witness as Witness
from .world.cluster import as_solved as as_solved
from .world.devices import over_devices as over_devices
from .world.distributions import (
    entropy as entropy,
    fingerprint as fingerprint,
    mix as mix,
    normalize as normalize,
    sample as sample,
    temper as temper,
)
from .world.language_models import (
    LSTMLanguageModel as LSTMLanguageModel,
    oracle as oracle,
)
from .world.markov import markov_projection as markov_projection
from .world.spaces import TextSpace as TextSpace

__version__: str
