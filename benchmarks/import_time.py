"""Time the import of every public name against JAX's own, and `qdtheory --help`.

    python benchmarks/import_time.py

Each run is a fresh process that imports JAX, then all names at the top, which are else
imported when they are first used, and reads the clock in between; so both times come
from the same process.
"""

import json
import statistics
import subprocess
import sys
import time

RUNS = 9
TIMED = """
import json, resource, sys, time
start = time.perf_counter()
import jax, jax.numpy
middle = time.perf_counter()
import qdtheory
for name in {*dir(qdtheory)} - {"text", "plotting"}:
    getattr(qdtheory, name)
end = time.perf_counter()
heavy = ("qdtheory.text", "qdtheory.plotting", "matplotlib", "seaborn", "sympy",
         "cvxpy", "scipy.optimize", "typer")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([middle - start, end - middle, peak,
                  [name for name in heavy if name in sys.modules]]))
"""


def main() -> None:
    runs = []
    for _ in range(RUNS):
        # -P: only the installed package counts, not the current folder.
        output = subprocess.check_output([sys.executable, "-P", "-c", TIMED], text=True)
        runs.append(json.loads(output))
    jax, added, peak, heavy = zip(*runs, strict=True)
    median = statistics.median(added)
    print(
        f"import: jax {statistics.median(jax):.2f} s, qdtheory adds {median:.2f} s "
        f"({min(added):.2f} to {max(added):.2f}); peak memory {max(peak):.0f} MB"
    )
    print(f"heavy modules brought in: {', '.join(heavy[0]) or 'none'}")
    start = time.perf_counter()
    for _ in range(RUNS):
        subprocess.check_output([sys.executable, "-P", "-m", "qdtheory", "--help"])
    help_time = (time.perf_counter() - start) / RUNS
    print(f"qdtheory --help: {help_time:.2f} s from start to end")
    assert median < 0.3
    assert help_time < 0.5
    assert not any(heavy)


if __name__ == "__main__":
    main()
