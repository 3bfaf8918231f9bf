"""The command `qdtheory`: a thin shell over the library, which it imports late."""

import sys
import warnings
from functools import partial
from itertools import chain
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup

from qdtheory.commands.catalogue import metrics, rewards
from qdtheory.commands.check import check
from qdtheory.commands.doctor import doctor
from qdtheory.commands.evaluate import DAILY, GONE, evaluate
from qdtheory.commands.grade import grade
from qdtheory.commands.inputs import PAIRS
from qdtheory.commands.outputs import complain, with_options
from qdtheory.commands.qdisc import qdisc
from qdtheory.support.packages import versions

ALL_WORDS = "an option of FILES or NAMES takes all words up to the next option, leaving"
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
            with warnings.catch_warnings():  # which are said in a line
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = lambda x, *_: complain(with_options(str(x)))
                status = super().main(*args, **options | {"standalone_mode": False})
        except UsageError as error:
            path = error.ctx.command_path if error.ctx else "qdtheory"
            said = error.format_message().replace("Value error, ", "").rstrip(".")
            option = getattr(error, "option_name", "")
            if option in GONE and path.endswith(" evaluate"):
                said = f"{option} is gone; {GONE[option]}"
            complain(f"{said}; see {path} --help")
            status = 1
        sys.exit(status)


class Command(TyperCommand):
    """Takes an option once, unless it is a list, and looks up names for its help.

    A list takes all words up to the next option, `--references a.txt b.txt`. If this
    leaves no candidate, each takes one: `--references real.txt model.txt`.
    """

    context_class = typer.Context

    def make_parser(self, ctx: Any) -> Any:
        """Let lists take all words up to the next option."""
        parser = super().make_parser(ctx)
        for option in {*parser._long_opt.values()}:
            if option.action == "append" and "one each" not in ctx.meta:
                option.process = partial(_take_words, option.process)
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        names = {name for option in self.params for name in option.opts}
        if "--json" not in names and "--format" in names:  # a short name of a choice
            stop = args.index("--") if "--" in args else len(args)
            told = [["--format", "json"] if x == "--json" else [x] for x in args[:stop]]
            args = [*chain.from_iterable(told), *args[stop:]]
        values, _, order = self.make_parser(ctx).parse_args(args=[*args])
        files = [x for x in self.params if x.param_type_name == "argument"]
        if files and files[0].required and values.get(name := files[0].name) is None:
            ctx.meta["one each"] = True
            values, more, order = self.make_parser(ctx).parse_args(args=[*args])
            if more or (len(values[name] or ()) > 1 and files[0].nargs != 1):
                one = name.removesuffix("s")
                said = f"{ALL_WORDS} no {one}: write the {name} first"
                raise UsageError(said, ctx)
        for option in order:
            single = option.param_type_name == "option" and not option.multiple
            if single and order.count(option) > 1:
                same = " (--json is --format json)" * (option.name == "form")
                said = f"Option {option.opts[0]!r} is given twice{same}"
                raise UsageError(said, ctx)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        for option in self.params:
            if ctx.info_name == "evaluate" and option.param_type_name == "option":
                panel = "Daily" if option.name in DAILY else "Rare"
                cast(Any, option).rich_help_panel = panel
            text = getattr(option, "help", None) or ""
            if PAIRS in text:
                from qdtheory.pairs import named_pairs

                cast(Any, option).help = text.replace(PAIRS, ", ".join(named_pairs()))
        super().format_help(ctx, formatter)


def _take_words(process: Any, value: str, state: Any) -> None:
    """Take the value of a list, and the words after it."""
    process(value, state)
    while state.rargs and (state.rargs[0] == "-" or state.rargs[0][:1] != "-"):
        process(state.rargs.pop(0), state)


app = typer.Typer(
    cls=Commands,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(versions())
        raise typer.Exit
    return wanted


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_print_version, is_eager=True, help="Print it."
        ),
    ] = False,
) -> None:
    """Judge the quality and diversity of text generators."""


commands = evaluate, doctor, check, qdisc, rewards, metrics, grade
for command in commands:
    app.command(cls=Command)(command)
