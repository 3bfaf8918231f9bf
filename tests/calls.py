"""A command as it is called, in this process, its refusal, and the files of pages."""

import json

import numpy as np
from typer.testing import CliRunner

from qdtheory.commands import cli


def call(*arguments, columns=80, **settings):
    environment = {"env": {"COLUMNS": str(columns)}}
    return CliRunner().invoke(cli.app, arguments, **environment | settings)


def refusal(*arguments, **settings):
    """What a call that fails says, in one line on stderr and nothing else."""
    result = call(*arguments, **settings)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("qdtheory: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("qdtheory: ").removesuffix("\n")


def samples():
    """Files that the pages name: a sharper model of sentences over sixty words."""
    rng, files = np.random.default_rng(0), {}
    for name, size, end in (
        *(("model.txt", 1000, 0.25), ("held_out.txt", 1000, 0.2)),
        *(("real.txt", 4000, 0.2), ("other.txt", 1000, 0.22)),
    ):
        words = np.minimum(rng.geometric(end, (size, 8)), 60).astype(str)
        files[name] = "".join(f"w{' w'.join(row)}\n" for row in words)
    answers = rng.choice(["yes", "no", "perhaps not"], (20, 7)).tolist()
    for name, part in ("model", slice(3)), ("other", slice(3, 6)):
        rows = (
            {"prompt": f"question {n}", "outputs": x[part], "references": x[6:]}
            for n, x in enumerate(answers)
        )
        files[f"{name}.jsonl"] = "\n".join(map(json.dumps, rows))
    return files
