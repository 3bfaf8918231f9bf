"""The files of docs/harness score as the library does, each in its harness.

Where one is not installed, a stand-in has as much of its interface as they use.
"""

import asyncio
import doctest
import importlib.util
import json
import math
import shutil
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import yaml

from qdtheory import text

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/harness"
CARD = (FOLDER / "fair_kernel_score/README.md").read_text()
PARTS = ("quality", "diversity", "score")
PROMPTS = [*map(json.loads, (FOLDER / "prompts/test.jsonl").read_text().splitlines())]
REFERENCES = [row["references"] for row in PROMPTS]
OUTPUTS = [
    ["in the park", "they play in the garden", "behind the school", "in the park"],
    ["a cup of tea", "a cup of coffee", "black tea", "a cup of black tea"],
    ["because of the snow", "because of the snow", "the bridge is under repair", ""],
    ["walk down the hill", "turn left", "take the bus", "walk down the hill"],
]

pytestmark = pytest.mark.filterwarnings("ignore")  # those of installed harnesses


INSTALLED = {
    name
    for name in ("evaluate", "inspect_ai", "lighteval")
    if importlib.util.find_spec(name)
}


def load(monkeypatch, path, stand_in):
    """Run a file with the modules of a stand-in, or of the package if there is none."""
    for name, members in stand_in.items():
        made = ModuleType(name)
        made.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, made)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def with_references(tmp_path):
    """Copy a file, and put prompts with such references beside it."""

    def copy(name, references):
        rows = [{**row, "references": x} for row, x in zip(PROMPTS, references)]
        (tmp_path / "prompts").mkdir(exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "prompts/test.jsonl").write_text(lines)
        return Path(shutil.copy(FOLDER / name, tmp_path))

    return copy


# Inspect: https://inspect.aisi.org.uk/reference


class Score(SimpleNamespace):
    @classmethod
    def unscored(cls, explanation):
        return cls(value=math.nan, explanation=explanation)


def read_samples(file, fields):
    with open(file) as lines:
        return [
            SimpleNamespace(input=row[fields.input], target=row[fields.target] or [""])
            for row in map(json.loads, lines)
        ]


INSPECT = {
    "inspect_ai": {
        "Epochs": lambda epochs, reducer: SimpleNamespace(
            epochs=epochs, reducer=reducer
        ),
        "Task": SimpleNamespace,
        "task": lambda function: function,
    },
    "inspect_ai.dataset": {"FieldSpec": SimpleNamespace, "json_dataset": read_samples},
    "inspect_ai.scorer": {
        "Score": Score,
        "mean": lambda: "mean",
        "stderr": lambda: "stderr",
        "score_reducer": lambda function: function,
        "scorer": lambda metrics: lambda function: function,
    },
    "inspect_ai.solver": {"generate": lambda: None},
}


def in_stand_in(task, outputs):
    """Score after each epoch, as Inspect does, and return the last scores."""
    answers = dict(zip((row["prompt"] for row in PROMPTS), outputs))
    found = []
    for sample in task.dataset:
        scores = []
        for answer in answers[sample.input][: task.epochs.epochs]:
            state = SimpleNamespace(output=SimpleNamespace(completion=answer))
            scores.append(asyncio.run(task.scorer(state, sample.target)))
            reduced = task.epochs.reducer(scores)
        found.append(reduced.value)
    scored = [x for x in found if isinstance(x, dict)]
    means = {x: np.mean([y[x] for y in scored]) for x in PARTS} if scored else None
    return found, means


def in_inspect(task, outputs, folder, **settings):
    """Run a task with a model that gives these outputs, one an epoch."""
    from inspect_ai import eval as run
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    answers = dict(zip((row["prompt"] for row in PROMPTS), outputs))
    asked = Counter()

    def answer(messages, *_):
        prompt = messages[-1].text
        asked[prompt] += 1
        output = ModelOutput.from_content("mock", answers[prompt][asked[prompt] - 1])
        output.usage = ModelUsage()  # else it asks the network for a tokenizer
        return output

    model = get_model("mockllm/model", custom_outputs=answer)
    (log,) = run(
        task,
        model=model,
        log_dir=str(folder),
        display="none",
        max_samples=1,
        **settings,
    )
    if log.status == "error":
        raise ValueError(log.error.message)
    found = [sample.value for sample in log.reductions[0].samples]
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    return found, means


def inspect_scores(monkeypatch, path, outputs, tmp_path, **settings):
    real = "inspect_ai" in INSTALLED
    module = load(monkeypatch, path, {} if real else INSPECT)
    task = module.several_answers(**settings)
    return in_inspect(task, outputs, tmp_path) if real else in_stand_in(task, outputs)


# lighteval: https://huggingface.co/docs/lighteval/adding-a-new-metric


def grouping(**fields):
    def compute_sample(**inputs):
        return fields["sample_level_fn"].compute(**inputs)

    return SimpleNamespace(compute_sample=compute_sample, **fields)


def document(query, choices, gold_index):
    golds = [choices[index] for index in gold_index]
    return SimpleNamespace(query=query, get_golds=lambda: golds)


LIGHTEVAL = {
    "lighteval.metrics.metrics_sample": {
        "SampleLevelComputation": type("SampleLevelComputation", (), {}),
        "SamplingMetric": type("SamplingMetric", (), {}),
    },
    "lighteval.metrics.utils.metric_utils": {"SampleLevelMetricGrouping": grouping},
    "lighteval.tasks.lighteval_task": {"LightevalTaskConfig": SimpleNamespace},
    "lighteval.tasks.requests": {
        "Doc": document,
        "SamplingMethod": SimpleNamespace(GENERATIVE="GENERATIVE"),
    },
}


def lighteval_documents(config):
    """The documents of a task in their order, and what joins their scores."""
    from lighteval.tasks.lighteval_task import LightevalTask

    task = LightevalTask(config)
    LightevalTask.load_datasets({config.name: task})
    docs = sorted(task.get_docs(), key=lambda doc: int(doc.id))  # it shuffles them
    assert {doc.num_samples for doc in docs} == {8}
    return docs, task.aggregation()


def lighteval_scores(monkeypatch, path, outputs):
    real = "lighteval" in INSTALLED
    module = load(monkeypatch, path, {} if real else LIGHTEVAL)
    (config,) = module.TASKS_TABLE
    (metric,) = config.metrics
    if real:
        from lighteval.models.model_output import ModelResponse

        docs, joined = lighteval_documents(config)
        responses = [ModelResponse(text=texts) for texts in outputs]
    else:
        assert metric.sample_level_fn.num_samples() == 8
        assert metric.category == "GENERATIVE"
        with open(f"{config.hf_repo}/{config.evaluation_splits[0]}.jsonl") as lines:
            docs = [config.prompt_function(json.loads(line), "task") for line in lines]
        joined = metric.corpus_level_fn
        responses = [SimpleNamespace(final_text=texts) for texts in outputs]
    found = [
        metric.compute_sample(doc=doc, model_response=response)
        for doc, response in zip(docs, responses, strict=True)
    ]
    return found, {x: joined[x]([scores[x] for scores in found]) for x in PARTS}


# evaluate: https://huggingface.co/docs/evaluate/creating_and_sharing


class Metric:
    def compute(self, *, predictions, references, **settings):
        features = self._info().features
        assert features == {"predictions": ["string"], "references": ["string"]}
        return self._compute(predictions, references, **settings)


EVALUATE = {
    "datasets": {"Features": dict, "Sequence": lambda x: [x], "Value": str},
    "evaluate": {"Metric": Metric, "MetricInfo": SimpleNamespace},
}


@pytest.fixture
def evaluate(monkeypatch):
    """The package, or a stand-in that loads a folder."""
    if "evaluate" in INSTALLED:
        return pytest.importorskip("evaluate")

    def load_folder(path):
        folder = ROOT / path
        module = load(monkeypatch, folder / f"{folder.name}.py", EVALUATE)
        return module.FairKernelScore()

    monkeypatch.setitem(sys.modules, "evaluate", SimpleNamespace(load=load_folder))
    return sys.modules["evaluate"]


def expected(kernel="2-grams"):
    """The numbers of each prompt, and their means, from the library's two doors."""
    scores = [text.kernel_score(*pair, kernel) for pair in zip(OUTPUTS, REFERENCES)]
    found = [{x: getattr(score, x) for x in PARTS} for score in scores]
    report = text.evaluate_prompts(OUTPUTS, REFERENCES, [kernel])["outputs"]
    return found, {x: report[f"{kernel} {x}"].value for x in PARTS}


@pytest.mark.parametrize("kernel", ["2-grams", "exact match"])
def test_inspect_scores_the_epochs_of_a_prompt(
    monkeypatch, with_references, tmp_path, kernel
):
    path = with_references("inspect_scorer.py", REFERENCES)
    found = inspect_scores(monkeypatch, path, OUTPUTS, tmp_path, k=4, kernel=kernel)
    assert found == expected(kernel)


def test_inspect_refuses_bad_tasks(monkeypatch, with_references, tmp_path):
    path = with_references("inspect_scorer.py", REFERENCES)
    for settings, message in (
        ({"k": 1}, "outputs: expected 2 or more, got 1"),
        ({"kernel": "grams"}, "kernel: grams is not known"),
    ):
        with pytest.raises(ValueError, match=message):
            inspect_scores(monkeypatch, path, OUTPUTS, tmp_path, **settings)
    path = with_references("inspect_scorer.py", [*REFERENCES[:3], []])
    with pytest.raises(ValueError, match="references: expected 1 or more, got 0"):
        inspect_scores(monkeypatch, path, OUTPUTS, tmp_path, k=4)


def test_one_epoch_leaves_prompts_unscored(monkeypatch, with_references, tmp_path):
    path = with_references("inspect_scorer.py", REFERENCES)
    real = "inspect_ai" in INSTALLED
    task = load(monkeypatch, path, {} if real else INSPECT).several_answers(k=2)
    if real:
        found, _ = in_inspect(task, OUTPUTS, tmp_path, epochs=1)
    else:
        task.epochs.epochs = 1
        found, _ = in_stand_in(task, OUTPUTS)
    assert np.isnan(found).tolist() == [True] * 4


def test_lighteval_scores_the_samples_of_a_prompt(monkeypatch, with_references):
    path = with_references("lighteval_metric.py", REFERENCES)
    assert lighteval_scores(monkeypatch, path, OUTPUTS) == expected()


@pytest.mark.parametrize("where", ["outputs", "references"])
def test_lighteval_refuses_a_single_output_and_no_reference(
    monkeypatch, with_references, where
):
    outputs, references = [*OUTPUTS], [*REFERENCES]
    if where == "outputs":
        outputs[2] = outputs[2][:1]
    else:
        references[2] = []
    path = with_references("lighteval_metric.py", references)
    with pytest.raises(ValueError, match=rf"^{where}: expected \d or more, got \d$"):
        lighteval_scores(monkeypatch, path, outputs)


@pytest.mark.parametrize("kernel", ["2-grams", "1-grams", "exact match"])
def test_evaluate_loads_the_folder(evaluate, kernel):
    metric = evaluate.load(str(FOLDER / "fair_kernel_score"))
    found = metric.compute(predictions=OUTPUTS, references=REFERENCES, kernel=kernel)
    assert found == expected(kernel)[1]
    assert {*map(type, found.values())} == {float}


def test_evaluate_names_the_prompt_of_bad_input(evaluate):
    metric = evaluate.load(str(FOLDER / "fair_kernel_score"))
    with pytest.raises(
        ValueError, match="prompt 1: outputs: expected 2 or more, got 1"
    ):
        metric.compute(
            predictions=[OUTPUTS[0], OUTPUTS[1][:1]], references=REFERENCES[:2]
        )
    with pytest.raises(ValueError, match="prompt 1: references: expected 1 or more"):
        metric.compute(predictions=OUTPUTS[:2], references=[REFERENCES[0], []])


def test_the_metric_card_prints_what_it_says(evaluate, monkeypatch):
    monkeypatch.chdir(ROOT)
    examples = doctest.DocTestParser().get_doctest(CARD, {}, "card", None, 0)
    assert sum(bool(example.want) for example in examples.examples) == 2
    assert doctest.DocTestRunner().run(examples).failed == 0


def test_the_metric_card_has_the_parts_of_one():
    _, head, body = CARD.split("---\n", 2)
    assert {"title", "tags", "description"} <= yaml.safe_load(head).keys()
    assert yaml.safe_load(head)["tags"] == ["evaluate", "metric"]
    titles = [line.strip("# ") for line in body.splitlines() if line.startswith("#")]
    assert titles == [
        "Metric Card for Fair Kernel Score",
        "Metric Description",
        "How to Use",
        "Inputs",
        "Output Values",
        "Values from Popular Papers",
        "Examples",
        "Limitations and Bias",
        "Citation",
        "Further References",
    ]
