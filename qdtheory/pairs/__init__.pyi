from .base import (
    ConcavePair as ConcavePair,
    FunctionPair as FunctionPair,
    LinearPair as LinearPair,
    Pair as Pair,
    SeparablePair as SeparablePair,
    compatible_quality as compatible_quality,
)
from .bleu import BleuPair as BleuPair
from .kernel import (
    KernelPair as KernelPair,
    VendiPair as VendiPair,
    squared_mmd as squared_mmd,
)
from .named import (
    CR_NRR as CR_NRR,
    CR_SE as CR_SE,
    LL_NRR as LL_NRR,
    LL_SE as LL_SE,
    distinct_k_pair as distinct_k_pair,
    single_token_bleu_pair as single_token_bleu_pair,
)
from .pooled import PooledPair as PooledPair, ngram_pair as ngram_pair
