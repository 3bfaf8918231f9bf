from .compatibility import (
    Verdict as Verdict,
    bleu_1_setting as bleu_1_setting,
    check_compatibility as check_compatibility,
)
from .dominance import (
    Dominance as Dominance,
    Witness as Witness,
    dominance as dominance,
    pareto_filter as pareto_filter,
)
from .frontier import (
    FrontierSlopes as FrontierSlopes,
    ParetoFrontier as ParetoFrontier,
    ParetoOptimum as ParetoOptimum,
    frontier_slopes as frontier_slopes,
    kkt_residual as kkt_residual,
    pareto_frontier as pareto_frontier,
    pareto_optimum as pareto_optimum,
    saturation_weight as saturation_weight,
)
from .implied_truths import (
    ImpliedTruths as ImpliedTruths,
    implied_truths as implied_truths,
)
from .kernel_criterion import (
    KernelCriterion as KernelCriterion,
    dominating_model as dominating_model,
    kernel_criterion as kernel_criterion,
)
from .named_pairs import (
    NamedVerdict as NamedVerdict,
    check as check,
)
from .scoring_rules import (
    bregman_divergence as bregman_divergence,
    local_discrepancy as local_discrepancy,
)
from .theorem_1 import (
    Rationality as Rationality,
    check_rationality as check_rationality,
)
