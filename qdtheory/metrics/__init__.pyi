from .bleu import (
    expected_bleu as expected_bleu,
    expected_self_bleu as expected_self_bleu,
)
from .more_bleu import (
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
from .divergences import (
    bhattacharyya_distance as bhattacharyya_distance,
    cross_entropy as cross_entropy,
    hellinger_distance as hellinger_distance,
    jeffreys_divergence as jeffreys_divergence,
    jensen_shannon_divergence as jensen_shannon_divergence,
    kl_divergence as kl_divergence,
    renyi_divergence as renyi_divergence,
    total_variation as total_variation,
)
from .frechet import frechet_distance as frechet_distance
from .ngrams import (
    cnd as cnd,
    coverage_rate as coverage_rate,
    expected_distinct as expected_distinct,
    expected_self_repetition as expected_self_repetition,
    ms_jaccard as ms_jaccard,
    negative_repetition_rate as negative_repetition_rate,
    ngram_matrix as ngram_matrix,
    ngram_rank as ngram_rank,
)
from .more_kernels import (
    edit_kernel as edit_kernel,
    lcs_kernel as lcs_kernel,
    ngram_kernel as ngram_kernel,
    quantum_relative_entropy as quantum_relative_entropy,
    vendi_score as vendi_score,
)
from .similarity import bleu_kernel as bleu_kernel
from .since_2020 import (
    distinct_k as distinct_k,
    expected_compression as expected_compression,
    pass_at_k as pass_at_k,
    utility_k as utility_k,
)
