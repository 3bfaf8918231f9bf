from .bhattacharyya import (
    estimate_bhattacharyya as estimate_bhattacharyya,
)
from .bootstrap import (
    bootstrap_interval as bootstrap_interval,
)
from .compression import (
    compression_ratio as compression_ratio,
)
from .draws import (
    distinct_k as distinct_k,
    pass_at_k as pass_at_k,
    semantic_entropy as semantic_entropy,
    utility_k as utility_k,
)
from .embeddings import (
    embed as embed,
)
from .every_metric import (
    every_metric as every_metric,
)
from .features import (
    frechet_distance as frechet_distance,
    vendi_score as vendi_score,
)
from .lm_scores import (
    FittedModel as FittedModel,
    LanguageModelScore as LanguageModelScore,
    cross_entropy_of as cross_entropy_of,
    fit_language_model as fit_language_model,
    known_words as known_words,
    lm_score as lm_score,
    reverse_lm_score as reverse_lm_score,
)
from .noise import (
    NoiseDiscrepancy as NoiseDiscrepancy,
    NoiseFamily as NoiseFamily,
    add_noise as add_noise,
    highest_coverage as highest_coverage,
    noise_discrepancy as noise_discrepancy,
    noise_family as noise_family,
)
from .paired import (
    Rouge as Rouge,
    paired_bleu as paired_bleu,
    paired_bleu_scores as paired_bleu_scores,
    rouge as rouge,
    rouge_scores as rouge_scores,
)
from .preprocessing import (
    PreparedCorpus as PreparedCorpus,
    Removed as Removed,
    imdb as imdb,
    prepare as prepare,
)
from .repetition import (
    ngram_diversity as ngram_diversity,
    self_repetition as self_repetition,
)
