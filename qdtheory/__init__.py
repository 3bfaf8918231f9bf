"""Exact quality-diversity theory for text generators.

Two wings share one vocabulary: the exact wing computes over every text of a tiny
space (this namespace), the sample wing over corpora (`qdtheory.text`).
"""

import importlib
from importlib.metadata import version as _version
from types import ModuleType

from qdtheory.certificates.certify import certify, quality_discrepancy
from qdtheory.certificates.cubic import (
    ThirdOrderCertificate,
    ThirdOrderInterval,
    third_order_bound,
    third_order_interval,
)
from qdtheory.certificates.interval import Interval
from qdtheory.certificates.quadratic import quadratic_interval
from qdtheory.certificates.separable import dual_bound, separable_interval
from qdtheory.certificates.tails import bleu_1_interval
from qdtheory.discrepancy.conditional import (
    ConditionalDiscrepancy,
    Transport,
    average_discrepancy,
    average_diversity,
    conditional_quality,
    pooled_discrepancy,
    pooled_diversity,
    transport_bound,
)
from qdtheory.discrepancy.quality import Discrepancy
from qdtheory.metrics.bleu import (
    estimate_bleu,
    expected_bleu,
    expected_corpus_bleu,
    expected_self_bleu,
)
from qdtheory.metrics.divergence_frontiers import (
    divergence_frontier,
    frontier_integral,
    mauve,
    prd_f_scores,
    precision_recall_distributions,
)
from qdtheory.metrics.divergences import (
    bhattacharyya_distance,
    cross_entropy,
    hellinger_distance,
    jeffreys_divergence,
    jensen_shannon_divergence,
    kl_divergence,
    renyi_divergence,
    total_variation,
)
from qdtheory.metrics.frechet import frechet_distance
from qdtheory.metrics.ngrams import (
    cnd,
    coverage_rate,
    expected_distinct,
    ms_jaccard,
    negative_repetition_rate,
    ngram_matrix,
    ngram_rank,
)
from qdtheory.metrics.similarity import bleu_kernel, ngram_kernel
from qdtheory.pairs.base import FunctionPair, LinearPair, Pair
from qdtheory.pairs.bleu import BleuPair
from qdtheory.pairs.concave import ConcavePair
from qdtheory.pairs.formulas import Expression
from qdtheory.pairs.kernel import KernelPair, squared_mmd
from qdtheory.pairs.named import CR_NRR, CR_SE, LL_NRR, LL_SE, single_token_bleu_pair
from qdtheory.pairs.ngram import NgramPair
from qdtheory.pairs.scalar_functions import CR, LL, NRR, SDI, SE, Tsallis
from qdtheory.pairs.separable import SeparablePair
from qdtheory.solvers.search import Search, search
from qdtheory.theory.compatibility import Verdict, check_compatibility
from qdtheory.theory.dominance import Dominance, dominance, pareto_filter
from qdtheory.theory.frontier import (
    FrontierSlopes,
    ParetoFrontier,
    ParetoOptimum,
    frontier_slopes,
    kkt_residual,
    pareto_frontier,
    pareto_optimum,
    saturation_weight,
)
from qdtheory.theory.kernel_criterion import (
    KernelCriterion,
    dominating_model,
    kernel_criterion,
)
from qdtheory.theory.scoring_rules import (
    bregman_divergence,
    compatible_quality,
    local_discrepancy,
)
from qdtheory.theory.theorem_1 import Rationality, check_rationality
from qdtheory.theory.witness import Witness
from qdtheory.world.distributions import (
    entropy,
    fingerprint,
    mix,
    normalize,
    sample,
    temper,
)
from qdtheory.world.language_models import LSTMLanguageModel
from qdtheory.world.markov import markov_projection
from qdtheory.world.spaces import TextSpace

__version__ = _version("qdtheory")


def __getattr__(name: str) -> ModuleType:
    """Import slow modules on first use: `qdtheory.text`, ..."""
    if name in ("plotting", "text"):
        return importlib.import_module(f"qdtheory.{name}")
    raise AttributeError(f"module 'qdtheory' has no attribute {name!r}")
