"""The command evaluate: metrics of generated text against real text."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from zipfile import BadZipFile

import typer

from qdtheory.commands import inputs
from qdtheory.commands.inputs import count, flag, option
from qdtheory.commands.merge import check_compared, form_of, show
from qdtheory.commands.outputs import check_outputs, fail, line_of, told, with_options
from qdtheory.commands.prompts import evaluate_prompts
from qdtheory.solvers.progress import progress
from qdtheory.text import defaults
from qdtheory.text.defaults import REQUESTED
from qdtheory.text.files import shown

# Options that need all texts at once; the first three are names in the library.
AT_ONCE = "embeddings", "language-model", "paired", "add", "log-probabilities"
# The arguments of `estimate_bhattacharyya`.
LOGS = "real_log_p", "real_log_q", "model_log_p", "model_log_q"


def evaluate(
    context: typer.Context,
    candidates: Annotated[
        list[str],
        typer.Argument(
            help="Generated text: files with a sentence a line, or folders; "
            "- is standard input."
        ),
    ],
    references: Annotated[
        list[str] | None,
        option("Real text, one sample in all.", "FILES...", "--references", "-r"),
    ] = None,
    input: Annotated[
        list[str] | None,
        option("Candidates, if not the first words.", "FILES...", "--input", "-i"),
    ] = None,
    metrics: inputs.MetricsOption = None,
    compare: inputs.CompareOption = None,
    max_order: Annotated[
        int, option("Highest order n of n-grams.", min=1, max=100)
    ] = defaults.MAX_ORDER,
    smoothing: Annotated[
        Literal["none", "epsilon"], option("BLEU: counts of 0 stay, or become 0.1.")
    ] = defaults.SMOOTHING,
    estimator: Annotated[
        defaults.Estimator,
        option("CR, NRR and CND: pairs do not depend on the sample size."),
    ] = defaults.ESTIMATOR,
    empty: Annotated[
        defaults.Empty, option("Lines without a token: score them, or skip them.")
    ] = "keep",
    field: inputs.FieldOption = None,
    column: inputs.ColumnOption = None,
    reference_field: Annotated[
        str | None, option("Field or column of the references, if another.", "NAME")
    ] = None,
    tokenizer: inputs.TokenizerOption = "whitespace",
    lowercase: inputs.LowercaseOption = False,
    embeddings: Annotated[
        bool, flag("--embeddings", "Add Frechet distance and Vendi, of MiniLM.")
    ] = False,
    language_model: Annotated[
        bool, flag("--language-model", "Add LM and reverse LM score.")
    ] = False,
    paired: Annotated[
        bool, flag("--paired", "Add BLEU and ROUGE of line i against line i.")
    ] = False,
    add: Annotated[
        list[str] | None,
        option(f"Add a metric of one sample: {', '.join(REQUESTED)}.", "NAME"),
    ] = None,
    log_probabilities: Annotated[
        list[Path] | None,
        option(
            "Add the Bhattacharyya distance: an .npz file for each candidate, of the "
            "arguments of qd.text.estimate_bhattacharyya.",
            "FILE",
        ),
    ] = None,
    draws: Annotated[
        int | None,
        count(
            "k of distinct_k, different n-grams expected among k.",
            f"{defaults.DRAWS}, where samples have as many",
        ),
    ] = None,
    form: inputs.FormatOption = None,
    as_json: inputs.JsonOption = False,
    output: inputs.OutputOption = None,
    plot: inputs.PlotOption = None,
    html: inputs.HtmlOption = None,
    memory: Annotated[
        str | None,
        option(
            "Count in parts that fit into so much, such as 2GB, on disk. After an "
            "interruption the same command goes on with the next part.",
            "SIZE",
        ),
    ] = None,
    part: Annotated[
        str | None,
        option("Count one part only, such as 3/16, for `qdtheory merge`.", "K/N"),
    ] = None,
    scheduler: Annotated[
        str | None, option("Count on this Dask cluster.", "ADDRESS")
    ] = None,
    prompts: Annotated[
        bool, flag("--prompts", "Several outputs for each prompt, see above.")
    ] = False,
    kernel: Annotated[
        list[str] | None,
        option("With --prompts: exact match, 2-grams, MODULE:FUNCTION.", "NAME"),
    ] = None,
    fields: Annotated[
        str | None, option("With --prompts: names of the three fields.", "NAMES")
    ] = None,
) -> None:
    """BLEU, Self-BLEU, CR, NRR, CND, distinct and MS-Jaccard of generated text.

    BLEU and CR are qualities, NRR and distinct diversities, MS-Jaccard mixes both:
    higher is better. Self-BLEU is a lack of diversity, CND the divergence of CR
    and NRR: lower is better. Each comes with a 95 % interval over samples of both
    sides (of BLEU, of candidates), unless too little repeats.

    Files are UTF-8, plain, gzip or zstd; of JSON Lines name the field, of CSV,
    TSV and Parquet the column. A folder of Parquet files or a saved dataset of
    Hugging Face is one sample, and so are several files of references. An empty
    line is a text that the model wrote: it has BLEU 0.

    An option of FILES or NAMES takes all words up to the next option, so that
    candidates come first, or after -i. The last line, the signature, names each
    choice that changes a number, to be printed beside the numbers.

    With --prompts each line is a JSON object of prompt, outputs and references:
    at least two samples of the model and one human answer, in lists. Fair kernel
    scores of candidates with the same prompts, and t-tests over prompts.

    Example: qdtheory evaluate model.txt other.txt.gz --references test.txt

    Example: qdtheory evaluate a.txt b.txt -r test.txt -m BLEU CND --compare a.txt b.txt

    Example: qdtheory evaluate model.jsonl other.jsonl --prompts
    """
    _refuse_repeated(candidates, references or [])
    form = form_of(form, as_json)
    outputs = {"--output": output, "--plot": plot, "--html": html}
    check_outputs(outputs, *candidates, *(references or []))
    if prompts:
        return evaluate_prompts(context, form)
    inputs.refuse_idle("without --prompts", kernel=kernel, fields=fields)
    if references is None:
        fail("Missing option '--references'; see qdtheory evaluate --help")
    from qdtheory.text.comparison import chosen
    from qdtheory.text.evaluation import KINDS, planned

    for_merge = form or plot or html or metrics or compare
    if part is not None and (output is None or memory or for_merge):
        fail(
            "--part: writes a part to --output FILE, and takes no --memory, --format, "
            "--plot, --html, --metrics or --compare; give these to qdtheory merge"
        )
    if scheduler is not None and (part is not None or memory is not None):
        fail("--scheduler: counts on a cluster, without --memory and --part")
    wanted = [x for x in AT_ONCE if context.params[x.replace("-", "_")]]
    if wanted and (part or memory or scheduler):
        fail(f"--{wanted[0]}: needs all texts at once, in memory")
    for name in add or []:
        if name not in REQUESTED:
            fail(f"--add: expected one of {', '.join(REQUESTED)}, got {name}")
    extra = [*(x for x in wanted if x in AT_ONCE[:3]), *(add or [])]
    logs = _logs(log_probabilities, candidates)
    numbers = None if part is None else _part(part)
    size = None if memory is None else _bytes(memory)
    check_compared(compare, map(shown, candidates), form)
    ours: Any = {"tokenizer": tokenizer, "lowercase": lowercase, "column": column}
    ours |= {"field": field, "stored": size is not None or numbers is not None}
    own = {"field": reference_field, "column": reference_field}
    theirs = ours | own if reference_field else ours
    shared = candidates if reference_field else [*candidates, *references]
    inputs.refuse_idle_choice(shared, field=field, column=column)
    inputs.refuse_idle_choice(references, reference_field=reference_field)
    corpora, real = _read(candidates, references, ours, theirs)
    name = ", ".join(map(shown, references))
    with _named_errors(corpora, name):
        plan, corpora, real = planned(
            corpora,
            real,
            max_order=max_order,
            smoothing=None if smoothing == "none" else smoothing,
            estimator=estimator,
            empty=empty,
            draws=draws,
        )
        if metrics and not extra and not logs:  # before an hour of counting
            kinds = *KINDS, f"distinct_{draws or defaults.DRAWS}"
            orders = range(1, max_order + 1)
            with told(ValueError, of="--metrics: "):
                chosen([f"{kind}-{n}" for kind in kinds for n in orders], metrics)
        texts = plan, corpora, real
        if numbers is not None:
            return _write_part(*texts, name, *numbers, output)
        if size is not None:
            found = _counted_on_disk(*texts, name, size)
        else:
            found = _counted(*texts, extra, logs, scheduler)
    show(found, plan, name, form, outputs, metrics, compare)


# --- Reading ------------------------------------------------------------------------


def _refuse_repeated(candidates: list[str], references: list[str]) -> None:
    for paths in (candidates, references):
        files = [*map(os.path.normpath, paths)]
        for path, file in zip(paths, files):
            if files.count(file) > 1:
                fail(f"{shown(path)}: given more than once")
    if "-" in candidates and "-" in references:
        fail("-: standard input can be read once; give the references as a file")


def _read(candidates: list[str], references: list[str], ours: Any, theirs: Any) -> Any:
    """The candidates by name, and the references."""
    from qdtheory.text.looks import told_later

    def read(*paths: str, **settings: Any) -> Any:
        step(f"Reading {', '.join(map(shown, paths))}")
        return inputs.read_text(*paths, **settings)

    with told_later(), progress(1 + len(candidates)) as step:
        real = read(*references, **theirs)
        return {shown(path): read(path, **ours) for path in candidates}, real


def _logs(paths: list[Path] | None, candidates: list[str]) -> dict[str, Any] | None:
    """The log-probabilities of each candidate's file."""
    if paths is None:
        return None
    import numpy as np

    if len(paths) != len(candidates):
        fail(
            f"--log-probabilities: expected a file for each of the {len(candidates)} "
            f"candidates, in their order, got {len(paths)}"
        )
    found = {}
    for path, candidate in zip(paths, candidates):
        try:
            with np.load(path, allow_pickle=False) as arrays:
                found[shown(candidate)] = [arrays[name].astype(float) for name in LOGS]
        except OSError as error:
            fail(f"--log-probabilities: {shown(path)}: {error.strerror or error}")
        except (KeyError, ValueError, EOFError, TypeError, AttributeError, BadZipFile):
            fail(
                f"--log-probabilities: {shown(path)}: expected an .npz file of the "
                f"arrays {', '.join(LOGS)}; numpy.savez writes it"
            )
    return found


def _part(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    numbers = tuple(map(int, found.groups())) if found else (0, 0)
    if not 1 <= numbers[0] <= numbers[1]:
        fail(f"--part: expected K/N with K from 1 to N, such as 3/16, got {text}")
    return numbers[0], numbers[1]


def _bytes(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]*)?) *([KMGT])i?B?", text, re.I)
    if not found:
        fail(f"--memory: expected a size such as 2GB or 500MB, got {text}")
    power = "KMGT".index(found[2].upper()) + 1
    return int(float(found[1]) * (1024 if "i" in text.lower() else 1000) ** power)


@contextmanager
def _named_errors(names: Any, references: str) -> Iterator[None]:
    """Fail with the line of an error; only the references' own comes without a name."""
    try:
        yield
    except (OSError, ImportError) as error:
        fail(line_of(error))
    except ValueError as error:
        known = *(f"{name}: " for name in names), "memory: ", "client: "
        named = str(error).startswith(known)
        fail(with_options(str(error) if named else f"{references}: {error}"))


# --- Counting -----------------------------------------------------------------------


def _counted(
    plan, corpora, real, extra: list[str], logs: Any, address: str | None
) -> Any:
    """The report, counted here at once, or by the workers of a Dask cluster."""
    from qdtheory.text.evaluation import counted
    from qdtheory.text.looks import told_later

    client, steps = None, plan.max_order + len(extra) * (1 + len(corpora))
    with ExitStack() as stack:
        stack.enter_context(told_later())
        if address is not None:
            from qdtheory.text.cluster import connected, num_parts_on

            with told(ModuleNotFoundError, ConnectionError, of="--scheduler: "):
                client = stack.enter_context(connected(address))
            steps = num_parts_on(client)
        step = stack.enter_context(progress(steps))
        found = counted(plan, corpora, real, step, client)
        if extra or logs:
            from qdtheory.text.extra import with_extra  # late: imports JAX

            found = with_extra(found, plan, corpora, real, extra, logs, step)
        return found


def _counted_on_disk(plan, corpora, real, references: str, size: int) -> Any:
    """The report, counted in parts that fit into so many bytes."""
    from qdtheory.text.part_files import job_of, run_parts, work_folder
    from qdtheory.text.partial_sums import parts_for

    num_parts = parts_for(size, corpora, real, plan.max_order)
    job = job_of(plan, corpora, real, references, num_parts)
    with work_folder(job) as folder, progress(num_parts + 1) as step:
        _, found = run_parts(job, corpora, real, folder, step)
    return found


def _write_part(
    plan, corpora, real, references: str, part: int, num_parts: int, output: Any
) -> None:
    """Count one part only, and write it to a file."""
    from qdtheory.text.numbered import number_texts
    from qdtheory.text.part_files import count_part, job_of, write_part

    job = job_of(plan, corpora, real, references, num_parts)
    write_part(output, job, count_part(job, number_texts(corpora, real), part - 1))
