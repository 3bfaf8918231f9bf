from .bleu import (
    estimate_bleu as estimate_bleu,
    expected_corpus_bleu as expected_corpus_bleu,
)
from .divergence_frontiers import (
    divergence_frontier as divergence_frontier,
    frontier_integral as frontier_integral,
    mauve as mauve,
    prd_f_scores as prd_f_scores,
    precision_recall_distributions as precision_recall_distributions,
)
from .frechet import (
    frechet_distance as frechet_distance,
)
from .kernels import (
    edit_kernel as edit_kernel,
    lcs_kernel as lcs_kernel,
    ngram_kernel as ngram_kernel,
    quantum_relative_entropy as quantum_relative_entropy,
    vendi_score as vendi_score,
)
from .markov import (
    markov_projection as markov_projection,
)
from .scoring_rules import (
    bregman_divergence as bregman_divergence,
    local_discrepancy as local_discrepancy,
)
from .since_2020 import (
    distinct_k as distinct_k,
    expected_compression as expected_compression,
    expected_self_repetition as expected_self_repetition,
    pass_at_k as pass_at_k,
    utility_k as utility_k,
)
