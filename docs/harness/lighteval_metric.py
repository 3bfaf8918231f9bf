"""Fair kernel score in lighteval: the metric asks for n outputs a prompt."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
from lighteval.metrics.metrics_sample import SampleLevelComputation, SamplingMetric
from lighteval.metrics.utils.metric_utils import SampleLevelMetricGrouping
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from qdtheory.text import kernel_score

NAMES = ["quality", "diversity", "score"]


class FairKernelScore(SamplingMetric, SampleLevelComputation):
    def __init__(self, n=8, kernel="2-grams"):
        super().__init__()
        self.n, self.kernel = n, kernel

    def num_samples(self):
        return self.n

    def compute(self, doc, model_response, **kwargs):
        outputs = model_response.final_text
        return asdict(kernel_score(outputs, doc.get_golds(), self.kernel))


def prompt(line, task_name):
    real = line["references"]
    return Doc(line["prompt"], choices=real, gold_index=[*range(len(real))])


fair_kernel_score = SampleLevelMetricGrouping(
    metric_name=NAMES,
    higher_is_better=dict.fromkeys(NAMES, True),
    category=SamplingMethod.GENERATIVE,
    sample_level_fn=FairKernelScore(n=8),
    corpus_level_fn=dict.fromkeys(NAMES, np.mean),
)
TASKS_TABLE = [
    LightevalTaskConfig(
        name="several_answers",
        prompt_function=prompt,
        hf_repo=str(Path(__file__).parent / "prompts"),
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        generation_size=64,
        metrics=[fair_kernel_score],
    )
]
