"""Fair kernel score as a metric of Hugging Face evaluate."""

import datasets
import evaluate
import numpy as np

from qdtheory.text import kernel_score

DESCRIPTION = "Fair kernel score of several outputs a prompt, and its two halves."
INPUTS = """
Args:
    predictions: for each prompt a list of at least two outputs.
    references: for each prompt a list of at least one human answer.
    kernel: "exact match", "1-grams", "2-grams" (the default), ..., or "MiniLM".
Returns:
    The means over prompts of quality, diversity, and score = 2 quality + diversity.
"""


class FairKernelScore(evaluate.Metric):
    def _info(self):
        texts = datasets.Sequence(datasets.Value("string"))
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description=INPUTS,
            features=datasets.Features({"predictions": texts, "references": texts}),
        )

    def _compute(self, predictions, references, kernel="2-grams"):
        pairs = zip(predictions, references)
        found = [kernel_score(outputs, real, kernel) for outputs, real in pairs]
        names = ("quality", "diversity", "score")
        return {x: float(np.mean([getattr(s, x) for s in found])) for x in names}
