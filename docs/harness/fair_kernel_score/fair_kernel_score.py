"""Fair kernel score as a metric of Hugging Face evaluate."""

import datasets
import evaluate

from qdtheory.text import evaluate_prompts

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
        found = evaluate_prompts(predictions, references, [kernel])["outputs"]
        return {name.split()[-1]: float(mean.value) for name, mean in found.items()}
