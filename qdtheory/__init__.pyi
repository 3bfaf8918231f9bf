from . import (
    argmax as argmax,
    beaten as beaten,
    bleu as bleu,
    bleu_formula as bleu_formula,
    bounds as bounds,
    catalogue as catalogue,
    compatibility as compatibility,
    course as course,
    discrepancy as discrepancy,
    distributions as distributions,
    divergences as divergences,
    formulas as formulas,
    frontier as frontier,
    functions as functions,
    kernels as kernels,
    lstm as lstm,
    ngrams as ngrams,
    pairs as pairs,
    plotting as plotting,
    proofs as proofs,
    rewards as rewards,
    search as search,
    spaces as spaces,
    support as support,
    text as text,
)
from .distributions import (
    entropy as entropy,
    fingerprint as fingerprint,
    mix as mix,
    normalize as normalize,
    sample as sample,
    temper as temper,
)
from .spaces import (
    TextSpace as TextSpace,
)
from .lstm import (
    LSTMLanguageModel as LSTMLanguageModel,
    oracle as oracle,
)
from .divergences import (
    cross_entropy as cross_entropy,
    jensen_shannon_divergence as jensen_shannon_divergence,
    kl_divergence as kl_divergence,
)
from .ngrams import (
    cnd as cnd,
    coverage_rate as coverage_rate,
    ms_jaccard as ms_jaccard,
    negative_repetition_rate as negative_repetition_rate,
)
from .bleu import (
    expected_bleu as expected_bleu,
    expected_self_bleu as expected_self_bleu,
)
from .functions import (
    Tsallis as Tsallis,
)
from .formulas.expressions import (
    Expression as Expression,
)
from .pairs import (
    BleuPair as BleuPair,
    CR_NRR as CR_NRR,
    CR_SE as CR_SE,
    ConcavePair as ConcavePair,
    FunctionPair as FunctionPair,
    KernelPair as KernelPair,
    LL_NRR as LL_NRR,
    LL_SE as LL_SE,
    LinearPair as LinearPair,
    Pair as Pair,
    PooledPair as PooledPair,
    SeparablePair as SeparablePair,
    VendiPair as VendiPair,
    compatible_quality as compatible_quality,
)
from .frontier import (
    ParetoFrontier as ParetoFrontier,
    pareto_frontier as pareto_frontier,
    pareto_optimum as pareto_optimum,
)
from .beaten import (
    Witness as Witness,
    check_rationality as check_rationality,
    dominance as dominance,
    pareto_filter as pareto_filter,
)
from .compatibility import (
    Verdict as Verdict,
    check_compatibility as check_compatibility,
)
from .discrepancy import (
    certify as certify,
    quality_discrepancy as quality_discrepancy,
)
from .proofs.kernel_criterion import (
    kernel_criterion as kernel_criterion,
)
from .bounds.bounds import (
    Bounds as Bounds,
)
from .catalogue.names import (
    check as check,
)
from .text.evaluation import (
    evaluate as evaluate,
)
from .support.records import (
    Estimate as Estimate,
)
from .text.doctor import (
    doctor as doctor,
)

__version__: str
