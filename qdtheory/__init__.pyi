from . import (
    course as course,
    formulas as formulas,
    generators as generators,
    metrics as metrics,
    pairs as pairs,
    plotting as plotting,
    qdisc as qdisc,
    solvers as solvers,
    text as text,
    theory as theory,
    world as world,
)
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
from .world.records import Estimate as Estimate
from .world.spaces import TextSpace as TextSpace
from .metrics.bleu import (
    expected_bleu as expected_bleu,
    expected_self_bleu as expected_self_bleu,
)
from .metrics.divergences import (
    cross_entropy as cross_entropy,
    jensen_shannon_divergence as jensen_shannon_divergence,
    kl_divergence as kl_divergence,
)
from .metrics.ngrams import (
    cnd as cnd,
    coverage_rate as coverage_rate,
    ms_jaccard as ms_jaccard,
    negative_repetition_rate as negative_repetition_rate,
)
from .formulas.expressions import Expression as Expression
from .formulas.scalar_functions import Tsallis as Tsallis
from .pairs.base import (
    ConcavePair as ConcavePair,
    FunctionPair as FunctionPair,
    LinearPair as LinearPair,
    Pair as Pair,
    SeparablePair as SeparablePair,
    compatible_quality as compatible_quality,
)
from .pairs.bleu import BleuPair as BleuPair
from .pairs.kernel import KernelPair as KernelPair, VendiPair as VendiPair
from .pairs.named import (
    CR_NRR as CR_NRR,
    CR_SE as CR_SE,
    LL_NRR as LL_NRR,
    LL_SE as LL_SE,
)
from .pairs.pooled import PooledPair as PooledPair
from .theory.compatibility import (
    Verdict as Verdict,
    check_compatibility as check_compatibility,
)
from .theory.dominance import dominance as dominance, pareto_filter as pareto_filter
from .theory.frontier import (
    ParetoFrontier as ParetoFrontier,
    pareto_frontier as pareto_frontier,
    pareto_optimum as pareto_optimum,
)
from .theory.kernel_criterion import kernel_criterion as kernel_criterion
from .theory.named_pairs import check as check
from .theory.theorem_1 import check_rationality as check_rationality
from .theory.dominance import Witness as Witness
from .qdisc.bounds import Bounds as Bounds
from .qdisc.certify import (
    certify as certify,
    quality_discrepancy as quality_discrepancy,
)

__version__: str
