"""Options common to several commands, and the parsing of pairs and distributions."""

import importlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from qdtheory.commands.outputs import exit_on, fail, line_of
from qdtheory.support.progress import progress
from qdtheory.text.defaults import TokenizerName
from qdtheory.text.files import shown

Two: TypeAlias = tuple[int | None, int | None]
MAX_TEXTS = 10**6
VOCAB_SIZE, LENGTH = 4, 3  # where none are given
BLEU = r"(?i)BLEU[-\s_]*"  # a pair, by the order that follows
MAX_LENGTH = 100  # of one word: of two, 10^6 texts have 19 tokens
# Stands for the names of the pairs in a help text, which only the help looks up.
PAIRS = "{pairs}"


def option(text: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
    """An option and its help, under its own name unless others are given."""
    return typer.Option(*names, help=text, metavar=metavar, **more)


def flag(name: str, text: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=text)


def count(text: str, default: int | str, most: int | None = None) -> Any:
    """An option that is a whole number from 1 on."""
    # None stands for the default, as a given option that does nothing is refused.
    return option(text, min=1, max=most, show_default=str(default))


# --- Pairs and distributions --------------------------------------------------------

FormulaF = Annotated[str | None, option("Quality: f of x = P(text).", "TEXT", "--f")]
FormulaG = Annotated[str | None, option("Diversity: g of x = Q(text).", "TEXT", "--g")]
AnyPairName = Annotated[
    str | None, option(f"A named pair: {PAIRS}; BLEU-1, BLEU-2, ...", "NAME")
]
OWN = "MODULE:FUNCTION"
OwnQuality = Annotated[str | None, option("Your own quality(q, p).", OWN)]
OwnDiversity = Annotated[str | None, option("Your own diversity(q).", OWN)]
NAME = f"NAME or {OWN}"
QualityName = Annotated[str | None, option("ROUGE-L, or your own quality(q, p).", NAME)]
DiversityName = Annotated[str | None, option("NRR, or your own diversity(q).", NAME)]
ScoresFile = Annotated[
    Path | None,
    option("Quality: the score of each text, one a line, or .npy; with --g.", "FILE"),
]
RealFile = Annotated[
    Path | None, option("The real P: one probability a line, or .npy.", "FILE", "--p")
]
AsJson = Annotated[bool, flag("--json", "Print JSON.")]
MANY = 10**9
REFERENCES = SELF_REFERENCES = 2
References = Annotated[
    int | None, count("BLEU: references n of a text.", REFERENCES, MANY)
]
SelfReferences = Annotated[
    int | None, count("Self-BLEU: other texts k of Q.", SELF_REFERENCES, MANY)
]

# --- Texts --------------------------------------------------------------------------

FieldOption = Annotated[
    str | None,
    option(
        "Field or column of the text, also choices.0.text; then that of the "
        "references. With --prompts: prompt,outputs,references.",
        "NAME,...",
        *("--field", "--column", "--fields"),
    ),
]
TokenizerOption = Annotated[
    TokenizerName, option("Split sentences at white space, or as sacrebleu.")
]
LowercaseOption = Annotated[bool, flag("--lowercase", "Lower-case sentences first.")]


def file_of(path: str) -> Any:
    """A file by its path; - is standard input."""
    if not path:  # which Path takes for this folder
        fail("'': No such file or directory")
    if path != "-":
        return Path(path)
    if sys.stdin is None:
        fail("-: there is no standard input; give a file")
    return sys.stdin.buffer


def read_text(path: str, **settings: Any) -> Any:
    """The sample in a file; - is standard input."""
    from qdtheory.text.corpus import read_corpus

    with exit_on(OSError, ValueError, ImportError, file=path), progress(None) as step:
        step(f"Reading {shown(path)}")
        return read_corpus(file_of(path), **settings)


def fields_of(field: str | None, most: int) -> list[str]:
    """The names in --field, at most so many."""
    names = [name.strip() for name in field.split(",")] if field else []
    if len(names) > most or not all(names):
        fail(f"--field {field}: expected names between commas, at most {most}")
    return names


def refuse_idle_choice(paths: list[str], field: str | None) -> None:
    """Fail if a field is named, and all files are plain text."""
    from qdtheory.text.sources import opened_rows

    if field is None or not all(Path(path).is_file() for path in paths):
        return  # a pipe can be read once
    with suppress(OSError, ValueError, ImportError), ExitStack() as stack:
        read = (opened_rows(path, field, bounded=False) for path in paths)
        if {form for form, _ in map(stack.enter_context, read)} == {"sentences"}:
            refuse_idle(f"where a line is a sentence, as in {shown(paths[0])}", field=1)


# --- Reports ------------------------------------------------------------------------

FormatOption = Annotated[
    Literal["table", "csv", "markdown", "latex", "json"] | None,
    option("What is printed; --json: json.", None, "--format", show_default="table"),
]
OutputOption = Annotated[
    Path | None,
    option("Write to a file, whole or not at all.", "FILE", "--output", "--out", "-o"),
]
PlotOption = Annotated[
    Path | None, option("Draw the planes: an SVG, PDF or PNG file.", "FILE")
]


def refuse_idle(why: str, **options: Any) -> None:
    """Fail if an option is given that would do nothing."""
    for name, value in options.items():
        if value is not None:
            fail(f"--{name.replace('_', '-')} has no effect {why}; leave it out")


def is_bleu(pair: str | None) -> bool:
    """Whether a pair is called BLEU, of some order."""
    return pair is not None and re.match(BLEU, pair) is not None


def space_of(vocab_size: int | None, length: int | None) -> Any:
    """All texts of these sizes, or of the default ones."""
    sizes = vocab_size or VOCAB_SIZE, length or LENGTH
    count_texts(*sizes, None)
    from qdtheory import TextSpace

    return TextSpace(*sizes)


def _bleu_pair(name: str, space: Any, numbers: Two) -> Any:
    """BLEU and negative Self-BLEU of the order in a name, over a space."""
    from qdtheory import BleuPair

    order = re.sub(BLEU, "", name)
    if not order.isdecimal() or int(order) < 1:
        fail(f"--pair: expected BLEU- and an order such as BLEU-2, got {name}")
    if int(order) > max(space.lengths):
        fail(
            f"{name} of texts of {max(space.lengths)} tokens is 0: they have no n-gram "
            f"of order {order}; give a lower order, or --length"
        )
    r, k = numbers
    with exit_on(ValueError), progress(None) as step:
        step(f"BLEU of {space.num_texts:,} texts")
        return BleuPair(space, int(order), r or REFERENCES, k or SELF_REFERENCES)


def chosen_pair(given: tuple, numbers: Two, sizes: Two, real) -> tuple[Any, int | None]:
    """Build a pair, and count its texts if their number is known.

    Of f, g, a name, two functions and scores one pair is given; beside it the numbers
    of references of BLEU and Self-BLEU, and the sizes of vocabulary and texts.
    """
    space = space_of(*sizes) if is_bleu(given[2]) else None
    if space is None:
        why = "on a pair that is not BLEU-1, BLEU-2, ..."
        refuse_idle(why, references=numbers[0], self_references=numbers[1])
    num_texts = space.num_texts if space else count_texts(*sizes, real)
    if space and real is not None and real.size != num_texts:
        fail(
            f"--p has {real.size} probabilities, expected one for each of the "
            f"{num_texts} texts of --vocab-size and --length"
        )
    match given:
        case str(f), str(g), None, None, None, None:
            pair = _given_pair(f, g)
        case None, None, str(name), None, None, None:
            pair = _bleu_pair(name, space, numbers) if space else _named_pair(name)
        case None, None, None, str(quality), str(diversity), None:
            pair = _function_pair(quality, diversity, real, num_texts)
        case None, str(g), None, None, None, Path() as scores:
            pair = _scores_pair(scores, g, real, num_texts)
        case _:
            fail(
                "give --f and --g, or --pair, or --quality and --diversity, or "
                "--scores and --g; --help has an example"
            )
    return pair, num_texts


def read_distribution(path: Path) -> Any:
    """Read a distribution from text, one probability per line, or .npy."""
    from qdtheory.distributions import Rounded, as_distribution

    warnings.simplefilter("ignore", Rounded)  # the reason says so
    values = read_numbers(path, "--p", "probability")
    with exit_on(ValueError, TypeError, of=f"{shown(path)}: "):
        as_distribution(values, "P")
    return values


def read_numbers(path: Path, option: str, what: str) -> Any:
    """Read a vector from text, one number per line, or from .npy."""
    name = shown(path)
    try:
        return _vector(path) if path.suffix == ".npy" else _numbers(path, what)
    except (OSError, ValueError, ImportError) as error:
        said = line_of(error, path)
        hint = f"; {option} is a file with one {what} a line, or a .npy file"
        said = said if said.startswith(name) else f"{name}: {said}"
        fail(said + hint * isinstance(error, OSError))


def _numbers(path: Path, what: str) -> Any:
    """Read the numbers in a file of text."""
    from numpy import array

    from qdtheory.text.files import lines, streamed

    found: list[float] = []
    with streamed(path, bounded=True) as (_, held):
        for n, line in enumerate(lines(held, shown(path), bounded=True), 1):
            try:
                found += map(float, line.split())
            except ValueError:
                said = f"expected one {what} a line, got {line.strip()!r:.40}"
                raise ValueError(f"line {n}: {said}") from None
    return array(found)


def _vector(path: Path) -> Any:
    """Read the vector in a .npy file."""
    import numpy as np

    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError):
        raise ValueError("no array of numbers; write one with numpy.save") from None
    if values.dtype.kind not in "iuf":
        raise ValueError(f"expected an array of numbers, got one of {values.dtype}")
    if values.ndim != 1:
        wrong = f"got an array of shape {values.shape}; save one row"
        raise ValueError(f"expected one vector, {wrong}")
    # Of float32 the check of a distribution knows the rounding.
    return values if values.dtype == np.float32 else values.astype(float)


def count_texts(vocab_size: int | None, length: int | None, real) -> int | None:
    """Number of texts, if both sizes are given."""
    if vocab_size is None and length is None:
        return None
    if real is not None or vocab_size is None or length is None:
        fail("give --p, or both --vocab-size and --length, or none of them")
    # The full power of two large numbers would take hours.
    num_texts = vocab_size ** min(length, MAX_TEXTS.bit_length())
    if num_texts > MAX_TEXTS:
        fail(f"{vocab_size}**{length} texts are too many; at most {MAX_TEXTS}")
    if length > MAX_LENGTH:
        fail(f"--length is at most {MAX_LENGTH}, got {length}")
    return num_texts


def _named_pair(name: str) -> Any:
    from qdtheory.pairs import named_pair

    try:
        return named_pair(name)
    except ValueError as error:
        fail(f"{error}, BLEU-1, BLEU-2, ...")


def _given_pair(*given: Any) -> Any:
    from qdtheory.catalogue.names import FORMULA
    from qdtheory.pairs import given_pair

    try:
        return given_pair(*given)
    except (TypeError, ValueError) as error:
        u, v = ("NAME" if re.search(FORMULA, f"{x}") else repr(x) for x in given)
        names = f"--quality {u} --diversity {v}"
        fail(str(error).replace("--quality NAME --diversity NAME", names))


def _scores_pair(path: Path, g: str, real, num_texts: int | None) -> Any:
    size = _tested_at("scores", real, num_texts).size
    scores = read_numbers(path, "--scores", "score")
    if scores.size != size:
        of_each = f"expected one score for each of the {size} texts"
        fail(f"{path}: {of_each}, got {scores.size}")
    return _given_pair(scores, g)


def _tested_at(what: str, real, num_texts: int | None) -> Any:
    """The P at which a pair is tried: a given one, or the uniform one."""
    import numpy as np

    if real is not None:
        return real
    if num_texts is None:
        fail(f"{what} are tested at a P: add --p, or --vocab-size and --length")
    return np.full(num_texts, 1 / num_texts)


def _function_pair(quality: str, diversity: str, real, num_texts: int | None) -> Any:
    from qdtheory.formulas.tracing import require_traceable
    from qdtheory.pairs import FunctionPair

    trial, functions = _tested_at("functions", real, num_texts), []
    for name, vectors in (quality, (trial, trial)), (diversity, (trial,)):
        function = load_function(name)
        with _user_code(f"{name} failed"):
            function(*vectors)
        with exit_on(TypeError):
            require_traceable(function, *vectors, name=name)
        functions.append(function)
    return FunctionPair(functions[0], functions[1], f"{quality} and {diversity}")


def named_or_loaded(metric: str) -> str | Callable:
    """Load MODULE:FUNCTION; any other text is a name that the library knows."""
    return load_function(metric) if ":" in metric else metric


def load_function(name: str) -> Callable:
    """Load a user's function, MODULE:FUNCTION."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute) or module.endswith(".py"):
        fail(
            f"{name}: expected MODULE:FUNCTION, such as metrics:quality for the "
            "function quality of metrics.py in this folder"
        )
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    with _user_code(f"{module} cannot be imported"):
        loaded = importlib.import_module(module)
    function = getattr(loaded, attribute, None)
    if not callable(function):
        fail(f"{module} has no function {attribute}")
    return function


@contextmanager
def _user_code(what: str) -> Iterator[None]:
    """Fail when a user's code raises."""
    try:
        yield
    except (Exception, SystemExit) as error:
        fail(f"{what}: {type(error).__name__}: {error}")
