"""Fair kernel score in Inspect: an epoch is an output, a reducer scores a prompt's."""

from dataclasses import asdict
from pathlib import Path

from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import Score, mean, score_reducer, scorer, stderr
from inspect_ai.solver import generate

from qdtheory.text import kernel_score


@scorer(metrics={"*": [mean(), stderr()]})
def output_and_references():
    async def score(state, target):
        output = state.output.completion
        real = [text for text in target if text]  # a sample without a target has ""
        return Score(value=output, answer=output, metadata={"references": real})

    return score


@score_reducer
def fair_kernel_score(kernel="2-grams"):
    def reduce(scores):
        if len(scores) < 2:  # Inspect shows means while epochs are still missing
            return Score.unscored(explanation="needs at least two epochs")
        outputs = [score.answer for score in scores]
        found = kernel_score(outputs, scores[0].metadata["references"], kernel)
        return Score(value=asdict(found))

    return reduce


@task
def several_answers(k=8, kernel="2-grams"):
    kernel_score([""] * k, [""], kernel)  # refuses a wrong k or kernel before any call
    return Task(
        dataset=json_dataset(
            str(Path(__file__).parent / "prompts/test.jsonl"),
            FieldSpec(input="prompt", target="references"),
        ),
        solver=generate(),
        scorer=output_and_references(),
        epochs=Epochs(k, fair_kernel_score(kernel)),
    )
