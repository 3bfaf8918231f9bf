"""Do the notebooks and the tests hold on other processors? One table, no timing.

    python benchmarks/processors.py [--cells CELL ...] [--notebooks [NAME ...]]
                                    [--tests [PATH ...]]

OpenBLAS and XLA are told which processor to assume: every cell is one of OpenBLAS's
kernels with one of XLA's instruction sets. In each the notebooks are executed and
compared with what is committed, and the tests run. `--notebooks` and `--tests` choose
some of both; without a name the option leaves that half out.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))
import build  # noqa: E402

KERNELS = ("Nehalem", "Haswell", "SkylakeX")  # SkylakeX needs a machine with AVX-512
INSTRUCTIONS = ("AVX", "AVX512")
CELLS = [f"{kernel}+{isa}" for kernel, isa in product(KERNELS, INSTRUCTIONS)]


def environment(cell: str, cache: str) -> dict[str, str]:
    """Environment in which the libraries take this machine for another."""
    kernel, isa = cell.split("+")
    flags = build.compiler_flags(version("jaxlib"))
    return os.environ | {
        "OPENBLAS_CORETYPE": kernel,
        "XLA_FLAGS": f"{flags} --xla_cpu_max_isa={isa}",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "PYTHONPATH": str(ROOT),
    }


def commands(notebooks: list[str], tests: list[str]) -> dict[str, list[str]]:
    """What runs in a cell, each under its name in the table."""
    wanted = {
        name: ["notebooks/build.py", "--check", name] for name in sorted(notebooks)
    }
    if tests:
        # What the notebooks show is what the lines before it say.
        chosen = ["-q", "--all", "-k", "not test_notebook", *tests]
        wanted["tests"] = ["-m", "pytest", *chosen]
    return wanted


def main() -> int:
    """Run the cells one by one; the exit status is 1 if anything failed or differs."""
    every = [path.stem for path in ROOT.glob("notebooks/src/*.md")]
    parser = argparse.ArgumentParser(description="Run under other processors' code.")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=CELLS)
    parser.add_argument("--notebooks", nargs="*", choices=every, default=every)
    parser.add_argument("--tests", nargs="*", default=["tests", "qdtheory"])
    options = parser.parse_args()

    failed: dict[str, list[str]] = {}
    wanted = commands(options.notebooks, options.tests)
    for cell in options.cells:
        failed[cell] = []
        with tempfile.TemporaryDirectory() as cache:
            for name, command in wanted.items():
                print(f"== {cell}: {name}", flush=True)
                done = subprocess.run(
                    [sys.executable, *command], cwd=ROOT, env=environment(cell, cache)
                )
                if done.returncode:
                    failed[cell].append(name)

    here = f"Python {platform.python_version()}, JAX {version('jax')}"
    print(f"\n{len(wanted)} of each, {here}: {', '.join(wanted)}")
    for cell, names in failed.items():
        print(f"{cell:16} {'failed: ' + ', '.join(names) if names else 'all passed'}")
    return 1 if any(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
