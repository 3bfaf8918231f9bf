"""Options common to several commands, and the parsing of pairs and distributions."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from qdtheory.commands.errors import fail

MAX_TEXTS = 10**6
MAX_LENGTH = 100  # of one word: of two, 10^6 texts have 19 tokens
# Stands for the names of the pairs in a help text, which only the help looks up.
PAIRS = "{pairs}"

FormulaF = Annotated[
    str | None,
    typer.Option("--f", help="Quality: f of x = P(text).", metavar="TEXT"),
]
FormulaG = Annotated[
    str | None,
    typer.Option("--g", help="Diversity: g of x = Q(text).", metavar="TEXT"),
]
PairName = Annotated[
    str | None, typer.Option(help=f"A named pair: {PAIRS}.", metavar="NAME")
]
OwnQuality = Annotated[
    str | None,
    typer.Option(help="Your own quality(q, p).", metavar="MODULE:FUNCTION"),
]
OwnDiversity = Annotated[
    str | None,
    typer.Option(help="Your own diversity(q).", metavar="MODULE:FUNCTION"),
]
RealFile = Annotated[
    Path | None,
    typer.Option(
        "--p", help="The real P: one probability a line, or .npy.", metavar="FILE"
    ),
]


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def chosen_pair(f, g, name, quality, diversity, real, num_texts: int | None) -> Any:
    """Build the pair from formulas, a name or functions; exactly one is given."""
    match f, g, name, quality, diversity:
        case str(), str(), None, None, None:
            return _formula_pair(f, g)
        case None, None, str(), None, None:
            return _named_pair(name)
        case None, None, None, str(), str():
            return _function_pair(quality, diversity, real, num_texts)
        case _:
            fail(
                "give --f and --g, or --pair, or --quality and --diversity; "
                "--help has an example"
            )


def read_distribution(path: Path):
    """Read a distribution from text, one probability per line, or .npy."""
    import numpy as np

    from qdtheory.world.distributions import check_distribution

    try:
        if path.suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            values = _numbers(path.read_text("utf-8"))
        check_distribution(values, "P")
    except OSError as error:
        fail(
            f"{path}: {error.strerror or error}; --p is a file with one probability a "
            "line, or a .npy file"
        )
    except (ValueError, TypeError, EOFError) as error:
        fail(f"{path}: {error}")
    return values


def _numbers(text: str):
    """Read one number per line."""
    import numpy as np

    numbers = []
    for word in text.split():
        try:
            numbers.append(float(word))
        except ValueError:
            message = f"expected one probability a line, got {word!r}"
            raise ValueError(message) from None
    return np.array(numbers)


def count_texts(vocab_size: int | None, length: int | None, real) -> int | None:
    """Number of texts, if both sizes are given."""
    if vocab_size is None and length is None:
        return None
    if real is not None or vocab_size is None or length is None:
        fail("give --p, or both --vocab-size and --length, or none of them")
    if vocab_size < 1 or length < 1:
        fail("--vocab-size and --length are at least 1")
    # The full power of two large numbers would take hours.
    num_texts = vocab_size ** min(length, MAX_TEXTS.bit_length())
    if num_texts > MAX_TEXTS:
        fail(f"{vocab_size}**{length} texts are too many; at most {MAX_TEXTS}")
    if length > MAX_LENGTH:
        fail(f"--length is at most {MAX_LENGTH}, got {length}")
    return num_texts


def _formula_pair(f: str, g: str):
    from qdtheory.pairs.formulas import Expression
    from qdtheory.pairs.separable import SeparablePair

    try:
        return SeparablePair(Expression(f), Expression(g), f"f = {f}, g = {g}")
    except ValueError as error:
        fail(str(error))


def _named_pair(name: str):
    from qdtheory.pairs.named import named_pairs

    pairs = named_pairs()
    for known, pair in pairs.items():
        if known.upper() == name.upper():
            return pair
    fail(
        f"no pair is called {name}; there are {', '.join(pairs)}, and for the "
        "command qdisc BLEU-1, BLEU-2, ..."
    )


def _function_pair(quality: str, diversity: str, real, num_texts: int | None) -> Any:
    import jax.numpy as jnp

    from qdtheory.pairs.base import FunctionPair

    if real is None and num_texts is None:
        fail("functions are tested at a P: add --p, or --vocab-size and --length")
    trial = jnp.full(num_texts, 1 / num_texts) if num_texts else jnp.asarray(real)
    functions = (
        _load_function(quality, trial, trial),
        _load_function(diversity, trial),
    )
    return FunctionPair(*functions, f"{quality} and {diversity}")


def _load_function(name: str, *vectors) -> Callable:
    """Load a user's function; call and differentiate it once to check it."""
    import jax

    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute) or module.endswith(".py"):
        fail(
            f"{name}: expected MODULE:FUNCTION, such as metrics:quality for the "
            "function quality of metrics.py in this folder"
        )
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    with _user_code(f"{module} cannot be imported", Exception, SystemExit):
        loaded = importlib.import_module(module)
    function = getattr(loaded, attribute, None)
    if not callable(function):
        fail(f"{module} has no function {attribute}")
    with _user_code(f"{name} failed", Exception, SystemExit):
        value = jax.numpy.asarray(function(*vectors))
    if value.shape != () or value.dtype != float:
        fail(f"{name} must return one float, got {value.dtype}{list(value.shape)}")
    with _user_code(f"JAX cannot trace {name}; use jax.numpy for numpy", Exception):
        jax.eval_shape(jax.hessian(function), *vectors)
    return function


@contextmanager
def _user_code(what: str, *caught: type[BaseException]) -> Iterator[None]:
    """Fail when a user's code raises."""
    try:
        yield
    except caught as error:
        fail(f"{what}: {type(error).__name__}: {error}")
