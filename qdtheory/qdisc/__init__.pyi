from .bounds import Bounds as Bounds
from .certify import (
    certify as certify,
    cubic_bound as cubic_bound,
    quality_discrepancy as quality_discrepancy,
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
