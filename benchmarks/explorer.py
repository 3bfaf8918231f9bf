"""Time a change in the explorer of pairs at 64 texts: `python benchmarks/explorer.py`.

Each is an input event in headless Chromium: both formulas are read, the frontier, QDisc
and the model that wins are found, both figures drawn. CPU time of the page's thread is
given, so that other processes hardly matter. It needs Chromium.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from explorer_page import enter, open_explorer

PAIRS = [
    ("log(x)", "-x**2"),
    ("log(x)", "-x*log(x)"),
    ("x", "-x**2"),
    ("x", "-x*log(x)"),
    ("1 - (1 - x)**2", "-x*(1 - (1 - x)**2)"),
    ("log(x)", "-x*(1 - (1 - x)**32)"),
    ("sqrt(x)", "(x - x**1.5)/0.5"),
    ("log(x)", "log(x)"),
    ("x", "x**0.3 + 0.05*log(x)"),
    ("log(x)", "2*log(x) - 2/(0.1 + x)"),
]
CHANGES = 20


def cpu_time(browser):
    """Milliseconds that the page's scripts have taken so far."""
    metrics = browser.send("Performance.getMetrics")["metrics"]
    return 1e3 * next(m["value"] for m in metrics if m["name"] == "ScriptDuration")


def main():
    """Draw 20 distributions under each pair, after two to warm up."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = open_explorer(Path(folder))
        try:
            browser.send("Performance.enable", timeDomain="threadTicks")
            enter(browser, "pair-size", 64)
            for f, g in PAIRS:
                enter(browser, "pair-f", f)
                enter(browser, "pair-g", g)
                times = []
                for seed in range(CHANGES + 2):
                    start = cpu_time(browser)
                    enter(browser, "pair-seed", seed)
                    times.append(cpu_time(browser) - start)
                times = times[2:]
                print(
                    f"f = {f}, g = {g}: median {median(times):.1f} ms, "
                    f"at most {max(times):.1f} ms"
                )
        finally:
            browser.close()


if __name__ == "__main__":
    main()
