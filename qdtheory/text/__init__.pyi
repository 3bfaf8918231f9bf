from .checks import TextWarning as TextWarning
from .bleu import (
    References as References,
    bleu as bleu,
    bleu_scores as bleu_scores,
    prepare_references as prepare_references,
    self_bleu as self_bleu,
    self_bleu_scores as self_bleu_scores,
)
from .corpus import (
    Corpus as Corpus,
    as_corpus as as_corpus,
    read_corpus as read_corpus,
)
from .diagnosis import Diagnosis as Diagnosis
from .doctor import doctor as doctor
from .evaluation import evaluate as evaluate
from .files import FieldWarning as FieldWarning
from .intervals import jackknife_interval as jackknife_interval
from .ngrams import (
    NgramCounts as NgramCounts,
    cnd as cnd,
    coverage_rate as coverage_rate,
    distinct as distinct,
    jaccard_index as jaccard_index,
    ms_jaccard as ms_jaccard,
    negative_repetition_rate as negative_repetition_rate,
    ngram_counts as ngram_counts,
)
from .planner import SampleSize as SampleSize, plan as plan
from .plots import plot_report as plot_report
from .prompt_report import (
    PromptComparison as PromptComparison,
    PromptReport as PromptReport,
)
from .prompts import (
    KernelScore as KernelScore,
    evaluate_prompts as evaluate_prompts,
    kernel_score as kernel_score,
)
from .repetition import (
    pairwise_rouge_l as pairwise_rouge_l,
    rouge_l_scores as rouge_l_scores,
)
from .report import Report as Report
