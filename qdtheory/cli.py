"""The command `qdtheory`: a thin shell over the library, which it imports late."""

import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from threading import Timer
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperGroup

QUALITIES = ("LL", "CR")
DIVERSITIES = ("SE", "NRR", "SDI")
MAX_TEXTS = 10**6

# Typer names the class of its errors by this subclass only.
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])


class Commands(TyperGroup):
    """Answers a wrong option as any other bad input: one line, exit status 1."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; the command alone shows its help."""
        return super().parse_args(ctx, args or ["--help"])

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run the command."""
        try:
            status = super().main(*args, **options | {"standalone_mode": False})
        except UsageError as error:
            path = error.ctx.command_path if error.ctx else "qdtheory"
            _complain(f"{error.format_message().rstrip('.')}; see {path} --help")
            status = 1
        sys.exit(status)


app = typer.Typer(cls=Commands, add_completion=False, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(version("qdtheory"))
        raise typer.Exit
    return wanted


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print it."
        ),
    ] = False,
) -> None:
    """Judge the quality and diversity of text generators."""


@app.command()
def evaluate(
    candidates: Annotated[
        list[Path], typer.Argument(help="Generated text, one sentence a line.")
    ],
    references: Annotated[
        Path, typer.Option(help="Real text, one sentence a line.", metavar="FILE")
    ],
    max_order: Annotated[int, typer.Option(help="Highest order n of n-grams.")] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Coverage rate, negative repetition rate and CND of generated text.

    CR is a quality and NRR a diversity: higher is better. CND is their
    divergence, the squared distance of the n-gram frequencies: lower is
    better. All three depend on the number of sentences, so compare files
    of equal size.

    Files are UTF-8, plain or gzip, split at white space.

    Example: qdtheory evaluate model.txt other.txt.gz --references test.txt
    """
    if max_order < 1:
        _fail(f"--max-order: expected 1 or more, got {max_order}")
    with _progress((1 + len(candidates)) * (1 + max_order)) as step:
        reference, reference_tables = _count(references, max_order, step)
        results = []
        for path in candidates:
            corpus, tables = _count(path, max_order, step)
            results.append(corpus | {"orders": _scores(tables, reference_tables)})
    report = {"references": reference, "candidates": results}
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        _print_tables(report)


def _count(path: Path, max_order: int, step: Callable[[str], None]):
    """A file's sizes, and its n-gram tables of orders 1 to max_order."""
    from qdtheory.text import ngram_counts, read_corpus

    step(f"Reading {path}")
    try:
        corpus = read_corpus(path)
    except OSError as error:
        _fail(f"{path}: {error.strerror or error}")
    except ValueError as error:
        _fail(str(error))
    tables = []
    for n in range(1, max_order + 1):
        step(f"Counting {n}-grams of {path}")
        try:
            tables.append(ngram_counts(corpus, n))
        except ValueError as error:
            _fail(f"{path}: {error}")
    sizes = {
        "file": str(path),
        "sentences": len(corpus),
        "tokens": corpus.num_tokens,
        "empty_lines": corpus.empty_lines,
    }
    return sizes, tables


def _scores(tables, reference_tables) -> list[dict[str, int | float]]:
    from qdtheory.text import cnd, coverage_rate, negative_repetition_rate

    return [
        {
            "n": n,
            "cr": coverage_rate(table, reference, n),
            "nrr": negative_repetition_rate(table, n),
            "cnd": cnd(table, reference, n),
        }
        for n, (table, reference) in enumerate(
            zip(tables, reference_tables, strict=True), start=1
        )
    ]


def _print_tables(report: dict) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)

    def print_sizes(role: str, sizes: dict) -> None:
        console.print(
            f"{role} {sizes['file']}: {sizes['sentences']} sentences, "
            f"{sizes['tokens']} tokens, {sizes['empty_lines']} empty lines skipped",
            markup=False,  # a path may hold brackets
            soft_wrap=True,
        )

    print_sizes("references", report["references"])
    for result in report["candidates"]:
        print_sizes("candidates", result)
        table = Table("n")
        for name in ("CR", "NRR", "CND"):
            table.add_column(name, justify="right")
        for row in result["orders"]:
            values = (f"{row[name]:.5e}" for name in ("cr", "nrr", "cnd"))
            table.add_row(str(row["n"]), *values)
        console.print(table)


@app.command()
def check(
    f: Annotated[
        str | None,
        typer.Option("--f", help="Quality: f of x = P(text).", metavar="TEXT"),
    ] = None,
    g: Annotated[
        str | None,
        typer.Option("--g", help="Diversity: g of x = Q(text).", metavar="TEXT"),
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option(help="LL or CR, then SE, NRR or SDI: LL-SE, ...", metavar="NAME"),
    ] = None,
    quality: Annotated[
        str | None,
        typer.Option(help="Your own quality(q, p).", metavar="MODULE:FUNCTION"),
    ] = None,
    diversity: Annotated[
        str | None,
        typer.Option(help="Your own diversity(q).", metavar="MODULE:FUNCTION"),
    ] = None,
    vocab_size: Annotated[
        int | None, typer.Option(help="Tokens in the vocabulary of the texts.")
    ] = None,
    length: Annotated[int | None, typer.Option(help="Tokens in a text.")] = None,
    p: Annotated[
        Path | None,
        typer.Option(
            "--p", help="The real P: one probability a line, or .npy.", metavar="FILE"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Can the real distribution be beaten in both quality and diversity?

    Give the pair as formulas of x (--f and --g: x, numbers, log, exp, sqrt,
    + - * / ** and parentheses), by its name (--pair), or as functions that JAX
    can trace, from a module in this folder (--quality and --diversity). A pair
    of functions is tested at P (--p) or at random ones over all texts
    (--vocab-size and --length); the other verdicts hold for every P over 4 or
    more texts unless fewer are asked for.

    Example: qdtheory check --f "log(x)" --g "-x*log(x)"
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    from qdtheory.compatibility import check_compatibility

    real = _read_distribution(p) if p is not None else None
    num_texts = _num_texts(vocab_size, length, real)
    match f, g, pair, quality, diversity:
        case str(), str(), None, None, None:
            chosen = _formula_pair(f, g)
        case None, None, str(), None, None:
            chosen = _named_pair(pair)
        case None, None, None, str(), str():
            chosen = _function_pair(quality, diversity, real, num_texts)
        case _:
            _fail("give --f and --g, or --pair, or --quality and --diversity")
    with _progress(1) as step:
        step(f"Checking {chosen.name}")
        try:
            verdict = check_compatibility(chosen, real, num_texts=num_texts)
        except ValueError as error:
            _fail(str(error))
        except Exception as error:
            if quality is None:  # only a user's function may raise what it likes
                raise
            _fail(f"{chosen.name} failed: {type(error).__name__}: {error}")
    if as_json:
        print(json.dumps(_report(chosen.name, verdict), indent=2))
    else:
        _print_verdict(chosen.name, verdict)


def _read_distribution(path: Path):
    import numpy as np

    from qdtheory.distributions import check_distribution

    try:
        if path.suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            values = np.array([float(text) for text in path.read_text("utf-8").split()])
        check_distribution(values, "P")
    except OSError as error:
        _fail(f"{path}: {error.strerror or error}")
    except (ValueError, TypeError, EOFError) as error:
        _fail(f"{path}: {error}")
    return values


def _num_texts(vocab_size: int | None, length: int | None, real) -> int | None:
    if vocab_size is None and length is None:
        return None
    if real is not None or vocab_size is None or length is None:
        _fail("give --p, or both --vocab-size and --length, or none of them")
    if vocab_size < 1 or length < 1:
        _fail("--vocab-size and --length are at least 1")
    # The full power of two large numbers would take hours.
    num_texts = vocab_size ** min(length, MAX_TEXTS.bit_length())
    if num_texts > MAX_TEXTS:
        _fail(f"{vocab_size}**{length} texts are too many; at most {MAX_TEXTS}")
    return num_texts


def _formula_pair(f: str, g: str):
    from qdtheory.expressions import Expression
    from qdtheory.pairs import SeparablePair

    try:
        return SeparablePair(Expression(f), Expression(g), f"f = {f}, g = {g}")
    except ValueError as error:
        _fail(str(error))


def _named_pair(name: str):
    from qdtheory import pairs

    quality, _, diversity = name.partition("-")
    if quality not in QUALITIES or diversity not in DIVERSITIES:
        names = [f"{a}-{b}" for a in QUALITIES for b in DIVERSITIES]
        _fail(f"no pair is called {name}; there are {', '.join(names)}")
    return pairs.SeparablePair(getattr(pairs, quality), getattr(pairs, diversity))


def _function_pair(quality: str, diversity: str, real, num_texts: int | None) -> Any:
    import jax.numpy as jnp

    from qdtheory.pairs import FunctionPair

    if real is None and num_texts is None:
        _fail("functions are tested at a P: add --p, or --vocab-size and --length")
    trial = jnp.full(num_texts, 1 / num_texts) if num_texts else jnp.asarray(real)
    functions = (
        _load_function(quality, trial, trial),
        _load_function(diversity, trial),
    )
    return FunctionPair(*functions, f"{quality} and {diversity}")


def _load_function(name: str, *vectors) -> Callable:
    """A user's function, called and differentiated once to see that it works."""
    import jax

    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        _fail(f"{name}: expected MODULE:FUNCTION, such as metrics:quality")
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    with _user_code(f"{module} cannot be imported", Exception, SystemExit):
        loaded = importlib.import_module(module)
    function = getattr(loaded, attribute, None)
    if not callable(function):
        _fail(f"{module} has no function {attribute}")
    with _user_code(f"{name} failed", Exception, SystemExit):
        value = jax.numpy.asarray(function(*vectors))
    if value.shape != () or value.dtype != float:
        _fail(f"{name} must return one float, got {value.dtype}{list(value.shape)}")
    with _user_code(f"JAX cannot trace {name}; use jax.numpy for numpy", Exception):
        jax.eval_shape(jax.hessian(function), *vectors)
    return function


@contextmanager
def _user_code(what: str, *caught: type[BaseException]) -> Iterator[None]:
    """Fail when a user's code raises."""
    try:
        yield
    except caught as error:
        _fail(f"{what}: {type(error).__name__}: {error}")


def _report(name: str, verdict) -> dict:
    report = {"pair": name, **asdict(verdict)}
    if verdict.witness is not None:
        for key in ("p", "q"):
            report["witness"][key] = report["witness"][key].tolist()
    if verdict.residual is not None and not math.isfinite(verdict.residual):
        report["residual"] = None  # JSON knows no infinity
    return report


def _print_verdict(name: str, verdict) -> None:
    answers = {True: "compatible", False: "incompatible", None: "undecided"}
    print(f"{answers[verdict.compatible]}: {name}")
    print(verdict.reason)
    rows = {key: getattr(verdict, key) for key in ("w0", "b0", "alpha")}
    for key, exact in (verdict.exact or {}).items():
        value = f"{rows[key]:.6g}"
        rows[key] = exact if exact == value else f"{exact} = {value}"
    rows |= {"Psi": verdict.psi, "Psi(P) - Psi(Q)": verdict.divergence}
    if verdict.witness is not None:
        witness = verdict.witness
        rows |= {
            "real P": _shortened(witness.p),
            "better Q": _shortened(witness.q),
            "quality gain": witness.quality_gain,
            "diversity gain": witness.diversity_gain,
        }
    rows["residual"] = verdict.residual
    for label, value in rows.items():
        if value is not None:
            shown = f"{value:.6g}" if isinstance(value, float) else value
            print(f"  {label:15}  {shown}")


def _shortened(vector) -> str:
    values = [f"{float(value):.6g}" for value in vector[:8]]
    more = [f"... ({vector.size} texts)"] if vector.size > 8 else []
    return " ".join(values + more)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that advances a bar, drawn on a terminal after two seconds."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=total)
    timer = Timer(2.0, bar.start)
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield lambda text: bar.update(task, advance=1, description=text)
    finally:
        timer.cancel()
        if bar.live.is_started:
            bar.stop()


def _complain(message: str) -> None:
    first_line, *_ = message.splitlines() or [""]
    print(f"qdtheory: {first_line}", file=sys.stderr)


def _fail(message: str) -> NoReturn:
    _complain(message)
    raise typer.Exit(1)
