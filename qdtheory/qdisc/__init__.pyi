from .bounds import Bounds as Bounds
from .certify import (
    bleu_1_interval as bleu_1_interval,
    certify as certify,
    cubic_bound as cubic_bound,
    cubic_interval as cubic_interval,
    quadratic_interval as quadratic_interval,
    quality_discrepancy as quality_discrepancy,
    separable_interval as separable_interval,
)
from .conditional import (
    Prices as Prices,
    average_discrepancy as average_discrepancy,
    average_diversity as average_diversity,
    conditional_quality as conditional_quality,
    pooled_discrepancy as pooled_discrepancy,
    pooled_diversity as pooled_diversity,
    transport_bound as transport_bound,
)
from .cubic import CubicCertificate as CubicCertificate
from .duality import dual_bound as dual_bound
from .solve import Discrepancy as Discrepancy
