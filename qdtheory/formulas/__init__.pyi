from .expressions import Expression as Expression
from .scalar_functions import (
    CR as CR,
    LL as LL,
    NRR as NRR,
    SDI as SDI,
    SE as SE,
    Tsallis as Tsallis,
)
