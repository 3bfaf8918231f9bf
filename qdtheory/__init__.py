"""Exact quality-diversity theory for text generators.

Two wings share one vocabulary: the exact wing computes over every text of a tiny
space (this namespace), the sample wing over corpora (`qdtheory.text`).
"""

import importlib
from importlib.metadata import version as _version
from types import ModuleType

from qdtheory.bleu import (
    BleuPair,
    estimate_bleu,
    expected_bleu,
    expected_corpus_bleu,
    expected_self_bleu,
)
from qdtheory.certificates import (
    Interval,
    bleu_1_interval,
    certify,
    quadratic_interval,
)
from qdtheory.compatibility import Verdict, Witness, check_compatibility
from qdtheory.concave import ConcavePair
from qdtheory.concave_envelope import dual_bound, separable_interval
from qdtheory.conditional import (
    ConditionalDiscrepancy,
    Transport,
    average_discrepancy,
    average_diversity,
    conditional_quality,
    pooled_discrepancy,
    pooled_diversity,
    transport_bound,
)
from qdtheory.discrepancy import Discrepancy, quality_discrepancy
from qdtheory.distributions import (
    entropy,
    fingerprint,
    mix,
    normalize,
    sample,
    temper,
)
from qdtheory.divergence_frontiers import (
    divergence_frontier,
    frontier_integral,
    mauve,
    prd_f_scores,
    precision_recall_distributions,
)
from qdtheory.divergences import (
    bhattacharyya_distance,
    cross_entropy,
    hellinger_distance,
    jeffreys_divergence,
    jensen_shannon_divergence,
    kl_divergence,
    renyi_divergence,
    total_variation,
)
from qdtheory.expressions import Expression
from qdtheory.frechet import frechet_distance
from qdtheory.frontier import (
    Dominance,
    FrontierSlopes,
    ParetoFrontier,
    ParetoOptimum,
    dominance,
    frontier_slopes,
    kkt_residual,
    pareto_filter,
    pareto_frontier,
    pareto_optimum,
    saturation_weight,
)
from qdtheory.kernels import (
    KernelCriterion,
    KernelPair,
    bleu_kernel,
    dominating_model,
    kernel_criterion,
    ngram_kernel,
    squared_mmd,
)
from qdtheory.language_models import LSTMLanguageModel
from qdtheory.markov import markov_projection
from qdtheory.ngrams import (
    NgramPair,
    cnd,
    coverage_rate,
    expected_distinct,
    ms_jaccard,
    negative_repetition_rate,
    ngram_matrix,
    ngram_rank,
)
from qdtheory.pairs import (
    CR,
    CR_NRR,
    CR_SE,
    LL,
    LL_NRR,
    LL_SE,
    NRR,
    SDI,
    SE,
    FunctionPair,
    LinearPair,
    Pair,
    Rationality,
    SeparablePair,
    Tsallis,
    check_rationality,
    single_token_bleu_pair,
)
from qdtheory.scoring_rules import (
    bregman_divergence,
    compatible_quality,
    local_discrepancy,
)
from qdtheory.search import Search, search
from qdtheory.spaces import TextSpace
from qdtheory.third_order import (
    ThirdOrderCertificate,
    ThirdOrderInterval,
    third_order_bound,
    third_order_interval,
)

__version__ = _version("qdtheory")


def __getattr__(name: str) -> ModuleType:
    """Import slow modules on first use: `qdtheory.text`, ..."""
    if name in ("plotting", "text"):
        return importlib.import_module(f"qdtheory.{name}")
    raise AttributeError(f"module 'qdtheory' has no attribute {name!r}")
