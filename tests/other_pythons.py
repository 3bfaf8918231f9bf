"""Set up, build notebooks and run quick tests on every other Python of this machine.

    python tests/other_pythons.py

Each Python from 3.11 on that pyenv or PATH has, in its newest release, gets a copy of
the checkout in a temporary folder, where `make` sets up as for a newcomer. No other
Python is no failure; the last lines say what ran.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from quick import ROOT, git

OLDEST = (3, 11)
# Every example of the library, the builder with its kernels and flags, the command.
QUICK_TESTS = ["qdtheory", "tests/test_build.py", "tests/commands/test_cli.py"]
LIGHT = "not one_very_long_line"
# Of text and of training, where other packages differ first.
NOTEBOOKS = ["12_estimating_from_samples", "20_rewards_and_divergences"]
STEPS = [
    ["make", ".venv/ready"],
    [".venv/bin/python", "notebooks/build.py", "--check", *NOTEBOOKS],
    [".venv/bin/python", "-m", "pytest", "-q", "-n", "2", "-k", LIGHT, *QUICK_TESTS],
]
# Of final releases with a lock around the interpreter, for which the wheels are.
VERSION = """
import ensurepip, sys, sysconfig, venv
unlocked = sysconfig.get_config_var("Py_GIL_DISABLED")
usual = sys.version_info[3] == "final" and not unlocked
print(*sys.version_info[:3] if usual else (0, 0, 0))
"""


def version_of(python: Path) -> tuple[int, ...] | None:
    """Its version, or None where it does not run or cannot make environments."""
    try:
        found = subprocess.run(
            [python, "-c", VERSION], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tuple(map(int, found.stdout.split())) if found.returncode == 0 else None


def other_pythons() -> dict[str, Path]:
    """The newest release of each minor version but this one, by its number."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    on_path = [
        python
        for folder in os.get_exec_path()
        for python in Path(folder).glob("python3*")
        if re.fullmatch(r"python3(\.\d+)?", python.name)
    ]
    newest: dict[tuple[int, ...], tuple[tuple[int, ...], Path]] = {}
    for python in [*pyenv.glob("versions/*/bin/python3"), *on_path]:
        release = version_of(python)
        if release and release[:2] >= OLDEST and release[:2] != sys.version_info[:2]:
            best = newest.get(release[:2])
            if best is None or release > best[0]:
                newest[release[:2]] = release, python
    return {".".join(map(str, r)): python for _, (r, python) in sorted(newest.items())}


def copy_checkout(folder: Path) -> None:
    """Copy what git tracks or would track, as it is now."""
    names = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():  # a deleted file is still listed
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def failure(python: Path, folder: Path) -> str | None:
    """The first step that fails with this Python, or None."""
    checkout, tools = folder / "checkout", folder / "tools"
    checkout.mkdir()
    tools.mkdir()
    copy_checkout(checkout)
    (tools / "python3").symlink_to(python)
    # Nothing of the environment in which this runs.
    outer = {
        name: value
        for name, value in os.environ.items()
        if "MAKE" not in name and name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    for step in STEPS:
        print(f"$ {' '.join(step)}", flush=True)
        if subprocess.run(step, cwd=checkout, env=outer | {"PATH": path}).returncode:
            return " ".join(step)
    return None


def main() -> int:
    """Try each of them; the exit status is 1 if anything failed."""
    results = []
    for name, python in other_pythons().items():
        print(f"== Python {name}, {python}", flush=True)
        with tempfile.TemporaryDirectory(prefix="qdtheory-") as folder:
            failed = failure(python, Path(folder))
        verdict = f"FAILED at {failed}" if failed else "passed"
        results.append((failed, f"Python {name}: {verdict}"))
    lines = [line for _, line in results] or ["There is no other Python >= 3.11 here."]
    print("\n".join(lines))
    return 1 if any(failed for failed, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
