"""Give the language model as many further searches as it has rivals; equal_budget.csv.

    python notebooks/data/make_equal_budget.py FOLDER [--oracles 100]

In `make_tuned_generators.py` six GANs are each searched for from a language model, and
the best of the six is compared with that one. Six searches find something nearer by
chance too. Here maximum likelihood has the same: six further searches of its own from
the same start (column `search`), which that script chose by the likelihood of held-out
texts, each with 16 new rates, 600 steps and 30 checkpoints, on the same texts, and by
the same two criteria. All take some two minutes of CPU
time.
"""

import jax
import make_tuned_generators as tuned
import tables
from lab.generators import MaximumLikelihood
from make_protocol import METRICS, measured

COLUMNS = "oracle", "search", "selected", "rate", "step", "criterion", *METRICS
SEARCHES = 6
SETTINGS = (
    f"{SEARCHES} searches of {tuned.TRIALS} rates, {tuned.STEPS} steps, "
    f"{tuned.CHECKPOINTS} checkpoints; {tuned.NUM_TEXTS} texts, as many held out"
)


def rows(oracle: int) -> list[list]:
    """The searches of an oracle, as each criterion selects."""
    p, search = tuned.searches(oracle)
    model, table = tuned.lstm(jax.random.key(1000 + oracle)), []
    start = jax.tree.map(lambda leaf: leaf[0], search(MaximumLikelihood(), model).model)
    for number in range(1, SEARCHES + 1):
        # Numbers that no search of the other table has.
        best = search(MaximumLikelihood(), start, number=100 + number)
        for k, name in enumerate(tuned.CRITERIA):
            model = jax.tree.map(lambda leaf, k=k: leaf[k], best.model)
            found = measured(model.probabilities(tuned.SPACE), p)
            chosen = float(best.rates[k, 0]), int(best.step[k]), float(best.loss[k])
            metrics = [found[metric] for metric in METRICS]
            table.append([oracle, number, name, *chosen, *metrics])
    return table


def main() -> None:
    """Make the parts that are missing, then write the table in one go."""
    packages = "jax", "optax", "scipy"
    tables.in_parts(__doc__, "equal_budget", COLUMNS, SETTINGS, packages, rows, 100)


if __name__ == "__main__":
    # By its name, under which workers find it too.
    import make_equal_budget

    make_equal_budget.main()
