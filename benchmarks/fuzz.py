"""Does a command answer whatever it is given? A count of answers, no timing.

    python benchmarks/fuzz.py [--formulas 10000] [--files 2000] [--interrupts 40]
                              [--seed 0]

Random formulas go to `check` and `qdisc`, random files to `evaluate` and `--p`, in one
process. Each call must end with status 0 and nothing on stderr but warnings, or with
status 1, one line on stderr and nothing on stdout, within 5 s of the process's time
(60 s for `qdisc`, which compiles for each pair). Processes that are interrupted at a
random time must end within a second with status 130 and one line.
"""

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from measure import at_most
from typer.testing import CliRunner

from qdtheory.commands import cli
from qdtheory.formulas.expressions import Expression

# Seconds; a search compiles anew for each pair.
LIMITS = {"check": 5.0, "evaluate": 5.0, "qdisc": 60.0}
CHARACTERS = (
    "x0123456789.+-*/()logexpsqrt e_'\"\\[]{}:;,@#^%&|~!=<>\n\t\0\x1bé\uff58√\udc80"
)
FRAGMENTS = ["", "(", ")", "log(", "exp(", "sqrt(", "**", "x", "-", "/0", "1e9", "3"]
FORMULAS_OF_PAIRS = ["log(x)", "-x*log(x)", "1 - (1 - x)**3", "(x**0.5 - x)/0.5"]


# --- Formulas -----------------------------------------------------------------------
def random_characters(rng: Random) -> str:
    return "".join(rng.choices(CHARACTERS, k=rng.randrange(60)))


def mutant(rng: Random) -> str:
    """A good formula with one to four places cut or filled."""
    text = rng.choice(FORMULAS_OF_PAIRS)
    for _ in range(rng.randint(1, 4)):
        start = rng.randint(0, len(text))
        end = start + rng.randrange(3)
        text = text[:start] + rng.choice([*FRAGMENTS, *CHARACTERS]) + text[end:]
    return text


def well_formed(rng: Random, depth: int = 3) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["x", "x", "x", "1", "2", "0.5", "1e-3", "3", "10"])
    first, second = well_formed(rng, depth - 1), well_formed(rng, depth - 1)
    return rng.choice(
        [
            f"{rng.choice(['log', 'exp', 'sqrt'])}({first})",
            f"({first})**{rng.choice(['2', '-1', '0.5', '(1/3)', '-2.5', '3', '7'])}",
            f"-({first})",
            f"({first} {rng.choice('+-*/')} {second})",
        ]
    )


def accepted(rng: Random) -> str:
    """A well-formed formula of x without numbers such as log(-1)."""
    while True:
        text = well_formed(rng)
        if "x" not in text.replace("exp", ""):
            continue
        with contextlib.suppress(ValueError):
            Expression(text)
            return text


def calls_with_formulas(rng: Random, number: int, folder: Path) -> Iterator[list[str]]:
    """Half of the formulas are well formed; one call in a hundred computes QDisc."""
    p = folder / "p.txt"
    p.write_text("0.4\n0.3\n0.2\n0.1\n")
    for index in range(number):
        if index % 2:
            pair = accepted(rng), rng.choice([accepted(rng), "-x**2", "-x*log(x)"])
        else:
            text = rng.choice([random_characters, mutant])(rng)
            pair = rng.choice([(text, "-x*log(x)"), ("log(x)", text)])
        options = ["--f", pair[0], "--g", pair[1], "--json"]
        if index % 100 == 1:
            yield ["qdisc", *options, "--p", str(p)]
        else:
            yield ["check", *options]


# --- Files --------------------------------------------------------------------------
def prose(rng: Random) -> str:
    words = rng.choice([["a", "b", "c", "d"], ["the", "cat", "sat", "é", "猫", "1"]])
    lengths = (rng.randrange(9) for _ in range(rng.randrange(40)))
    return rng.choice(["\n", "\r\n", "\n\n"]).join(
        " ".join(rng.choices(words, k=length)) for length in lengths
    )


def numbers(rng: Random) -> str:
    values = [rng.choice([1, 1, 1, 0, -1, float("nan"), 1e300]) * rng.random()
              for _ in range(rng.randrange(8))]  # fmt: skip
    if values and rng.random() < 0.5:
        values = [abs(value) for value in values]
        values = [value / (sum(values) or 1) for value in values]
    return rng.choice(["\n", " ", ","]).join(map(repr, values))


def records(rng: Random) -> str:
    lines = prose(rng).splitlines()
    if rng.random() < 0.5:
        return "\n".join(json.dumps({"text": line, "id": 1}) for line in lines)
    return "\n".join(["id,text", *(f'1,"{line}"' for line in lines)])


def damaged(rng: Random, data: bytes) -> bytes:
    """Bytes with a few places cut, filled or doubled."""
    for _ in range(rng.randrange(4)):
        start = rng.randint(0, len(data))
        filling = rng.choice([b"", b"\0", b"\xff", b"\r", rng.randbytes(3), data[:9]])
        data = data[:start] + filling + data[start + rng.randrange(3) :]
    return data


def random_file(rng: Random) -> bytes:
    text = rng.choice([prose, prose, numbers, records, random_characters])(rng)
    encoding = rng.choice(["utf-8"] * 6 + ["utf-8-sig", "utf-16", "latin-1"])
    data = text.encode(encoding, "replace" if encoding == "latin-1" else "ignore")
    if rng.random() < 0.2:
        data = gzip.compress(data)
    return damaged(rng, data) if rng.random() < 0.5 else data


def calls_with_files(rng: Random, number: int, folder: Path) -> Iterator[list[str]]:
    good = folder / "good.txt"
    good.write_text("a b c d\nb c d a\nthe cat sat\n" * 5)
    for index in range(number):
        path = folder / f"{index}.txt"
        path.write_bytes(random_file(rng))
        named = rng.choice([[], [], [], ["--field", "text"], ["--column", "text"]])
        yield rng.choice(
            [
                ["evaluate", str(path), "--references", str(good), "--json", *named],
                ["evaluate", str(good), "--references", str(path), "--json", *named],
                ["evaluate", str(path), "--references", str(path), "--max-order", "1"],
                ["check", "--pair", "LL-NRR", "--p", str(path), "--json"],
                ["qdisc", "--pair", "LL-NRR", "--p", str(path), "--json"],
            ]
        )


# --- Calls --------------------------------------------------------------------------
def fault_of(arguments: list[str]) -> str | None:
    """What is wrong with the answer to a command line, or None."""
    try:
        with at_most(LIMITS[arguments[0]], signal.ITIMER_VIRTUAL):
            result = CliRunner().invoke(cli.app, arguments)
    except TimeoutError as error:
        return str(error)
    if result.exception and not isinstance(result.exception, SystemExit):
        trace = io.StringIO()
        traceback.print_exception(result.exception, file=trace)
        return trace.getvalue()
    lines = result.stderr.splitlines()  # a choice that was guessed, warnings, the error
    well = all(line.startswith("qdtheory: ") for line in lines)
    if result.exit_code == 0:
        if not well:
            return f"status 0, stderr {result.stderr!r}"
        if "--json" in arguments:
            json.loads(result.stdout)
        return None if result.stdout else "status 0 without an answer"
    if result.exit_code != 1 or result.stdout or not (lines and well):
        return f"status {result.exit_code}: {result.stdout!r}, {result.stderr!r}"
    return None


# --- Interrupts ---------------------------------------------------------------------
# A shell that runs a script in its background has it ignore interrupts.
INTERRUPTIBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
LONG = [
    ["qdisc", "--pair", "BLEU-2", "--seeds", "3"],
    ["qdisc", "--pair", "LL-NRR", "--seeds", "200"],
    ["check", "--f", "log(x)**3", "--g", "-x**2 + sqrt(x)"],
    ["evaluate", "text.txt", "--references", "other.txt"],
]


def write_long_texts(folder: Path) -> None:
    """Two files of a hundred thousand sentences, for the last of these calls."""
    rng = Random(0)
    for name in ("text.txt", "other.txt"):
        words = (rng.choices("abcdefgh", k=9) for _ in range(100_000))
        (folder / name).write_text("\n".join(map(" ".join, words)))


def fault_of_interrupt(
    arguments: list[str], seconds: float, folder: Path
) -> str | None:
    """What is wrong with the end of a process that is interrupted, or None."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "-m", "qdtheory", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
    ) as running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(seconds)
        running.send_signal(signal.SIGINT)
        start = time.monotonic()
        _, said = running.communicate()
        late = time.monotonic() - start
    if running.returncode == 0:  # it ended just before
        return None
    if (running.returncode, said) != (130, b"qdtheory: interrupted\n") or late > 1:
        return f"status {running.returncode} after {late:.1f} s: {said.decode()!r}"
    return None


def main() -> int:
    """Run all calls; the exit status is 1 if one of them went wrong."""
    parser = argparse.ArgumentParser(description="Give the commands random input.")
    parser.add_argument("--formulas", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--interrupts", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    answers: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), random.Random(options.seed)
        write_long_texts(folder)
        for kind, calls, judge in (
            ("formulas", calls_with_formulas(rng, options.formulas, folder), fault_of),
            ("files", calls_with_files(rng, options.files, folder), fault_of),
            (
                "interrupts",
                (LONG[index % len(LONG)] for index in range(options.interrupts)),
                lambda call: fault_of_interrupt(call, rng.uniform(0.3, 6), folder),
            ),
        ):
            for arguments in calls:
                fault = judge(arguments)
                answers[f"{kind}, {'wrong' if fault else 'right'}"] += 1
                if fault:
                    print(arguments, fault, sep=os.linesep, flush=True)
    print(dict(answers))
    return int(any("wrong" in key for key in answers))


if __name__ == "__main__":
    raise SystemExit(main())
