"""Processes that the tests start, and what they say."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def ran(*command: str | Path, cwd: Path = ROOT, **environment: str):
    """A command that has ended, with what it said as text."""
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


def python(*arguments: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """What this Python prints; it has to end well."""
    done = ran(sys.executable, *arguments, cwd=cwd, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
