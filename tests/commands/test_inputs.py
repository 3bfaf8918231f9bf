"""Pairs and distributions as options: whatever is wrong gets one line."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from qdtheory.commands import cli
from qdtheory.commands.inputs import read_distribution

FORMULAS = ["--f", "x", "--g", "-x**2"]


def own(quality="quality", diversity="diversity", p="p.txt"):
    return [
        *("--quality", f"my_metrics:{quality}"),
        *("--diversity", f"my_metrics:{diversity}", "--p", p),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --f and --g, or --pair, or --quality and --diversity"),
        (["--f", "x"], "give --f and --g, or --pair"),
        ([*FORMULAS, "--pair", "LL-SE"], "give --f and --g, or --pair"),
        (["--f", "__import__('os')", "--g", "x"], "__import__('os') is not allowed in"),
        (["--f", "x", "--g", "x +"], "'x +' is not an expression; use x, numbers"),
        (
            ["--pair", "LL"],
            "no pair is called 'LL'; there are LL-SE, LL-NRR, LL-SDI",
        ),
        (["--pair", "SE-LL"], "no pair is called 'SE-LL'"),
        (
            ["--f", "x", "--g", "-x^2"],
            "-x^2 is not allowed in an expression; use x, numbers, log, exp, sqrt, "
            "+ - * / ** and parentheses; a power is x**2\n",
        ),
        ([*FORMULAS, "--length", "2"], "give --p, or both --vocab-size and --length"),
        (
            [*FORMULAS, "--vocab-size", "0", "--length", "2"],
            "--vocab-size and --length",
        ),
        (
            [*FORMULAS, "--vocab-size", "10", "--length", "9" * 400],
            "10**9999",
        ),
        ([*FORMULAS, "--p", "none.txt"], "none.txt: No such file or directory"),
        (
            [*FORMULAS, "--p", "0.5,0.3,0.2"],
            "0.5,0.3,0.2: No such file or directory; --p is a file with one",
        ),
        ([*FORMULAS, "--p", "."], ".: Is a directory"),
        (["--f", "log(x - 1)", "--g", "x", "--p", "p.txt"], "f is not finite at"),
        (["--scores", "p.txt", "--f", "x"], "give --f and --g, or --pair"),
        (
            ["--scores", "none.txt", "--g", "x", "--p", "p.txt"],
            "none.txt: No such file or directory; --scores is a file with one score",
        ),
        (
            ["--scores", "word.txt", "--g", "x", "--p", "p.txt"],
            "word.txt: line 2: expected one score a line",
        ),
        (
            ["--scores", "empty.txt", "--g", "x", "--p", "p.txt"],
            "empty.txt: expected one score for each of the 4 texts, got 0",
        ),
        (["--scores", "p.txt", "--g", "-x**2"], "scores are tested at a P: add --p"),
        (
            ["--scores", "p.txt", "--g", "-x**2", "--p", "p.npy"],
            "p.txt: expected one score for each of the 9 texts, got 4",
        ),
        (
            [*FORMULAS, "--p", "word.txt"],
            "word.txt: line 2: expected one probability a line, got 'half'\n",
        ),
        (
            [*FORMULAS, "--p", "weights.txt"],
            "weights.txt: P must sum to 1, got 3; divide the numbers by their sum\n",
        ),
        ([*FORMULAS, "--p", "empty.txt"], "empty.txt: P is empty"),
        (
            [*FORMULAS, "--p", "latin.txt"],
            "latin.txt, line 1: byte 0xff at position 5",
        ),
        (
            [*FORMULAS, "--p", "single.npy"],
            "single.npy: P must sum to 1, got 1.0000000149; divide",
        ),
        ([*FORMULAS, "--p", "bad.npy"], "bad.npy: no array of numbers; write one with"),
        ([*FORMULAS, "--p", "pickled.npy"], "pickled.npy: no array of numbers; write"),
        ([*FORMULAS, "--p", "words.npy"], "words.npy: expected an array of numbers, g"),
        (
            [*FORMULAS, "--p", "square.npy"],
            "square.npy: expected one vector, got an array of shape "
            "(2, 2); save one row\n",
        ),
        ([*FORMULAS, "--p", "wide.txt"], "wide.txt: UTF-16, expected UTF-8; convert"),
        ([*FORMULAS, "--p", "a\nb"], "'a\\nb': No such file or directory; --p is a"),
        ([*FORMULAS, "--p", "zero.txt"], "zero.txt: p must be positive everywhere"),
        (own()[:-2], "functions are tested at a P: add --p, or --vocab-size and"),
        (own(diversity="missing"), "my_metrics has no function missing"),
        (own(diversity="not_a_function"), "my_metrics has no function not_a_function"),
        (own(diversity="broken"), "my_metrics:broken failed: RuntimeError: first line"),
        (own(diversity="vector"), "my_metrics:vector must return one real number"),
        (
            own(diversity="number_of_texts"),
            "my_metrics:number_of_texts must return one real",
        ),
        (
            own(diversity="numpy_only"),
            "JAX cannot trace my_metrics:numpy_only (TracerArrayConversionError",
        ),
        (own(quality="diversity"), "my_metrics:diversity failed: TypeError"),
        (
            [*own(diversity="uniform_only")[:-2], "--vocab-size", "4", "--length", "1"],
            "my_metrics:quality and my_metrics:uniform_only failed: KeyError: ",
        ),
        (["--quality", "a", *own()[2:]], "a: expected MODULE:FUNCTION, such as"),
        (["--quality", "a.py:f", *own()[2:]], "a.py:f: expected MODULE:FUNCTION, such"),
        (
            ["--quality", "no_such:f", *own()[2:]],
            "no_such cannot be imported: ModuleNotFoundError: No module",
        ),
        (["--quality", "my_exit:f", *own()[2:]], "my_exit cannot be imported: System"),
        (
            ["--quality", "my_syntax:f", *own()[2:]],
            "my_syntax cannot be imported: Synt",
        ),
        (["--quality", ".:f", *own()[2:]], ". cannot be imported: "),
    ],
)
def test_bad_input_gets_one_line(folder, arguments, message):
    result = CliRunner().invoke(cli.app, ["check", *arguments])
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"qdtheory: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["p.txt", "marked.txt", "quarters.npy"])
def test_files_with_a_mark_and_of_32_bits_are_read(folder, name):
    read = read_distribution(Path(name))
    assert read.dtype == float
    assert abs(read.sum() - 1) < 1e-12
