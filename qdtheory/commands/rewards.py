"""The command rewards: what a GAN's reward optimises."""

from typing import Annotated, Any

import typer

from qdtheory.commands.errors import told
from qdtheory.commands.inputs import AsJson
from qdtheory.commands.outputs import print_json, print_rows
from qdtheory.solvers.progress import progress


def rewards(
    reward: Annotated[
        str | None,
        typer.Option(
            help="A formula of D, 0 < D < 1; by default the rewards in use.",
            metavar="TEXT",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What does a generator optimise that a discriminator rewards?

    D is the probability that a text is real, of the discriminator that is optimal
    at each step: P/(P + Q). A step on a reward of D descends a divergence,
    the sum of P phi(u) with u = Q/P. The table names it, says whether it is a
    quality-diversity pair for every P, which models are optimal, and where the
    reward falls. M is (P + Q)/2; phi is given but for a multiple of u - 1.

    Example: qdtheory rewards --reward "log(D)"
    """
    from qdtheory.generators.rewards import REWARDS, check_reward

    chosen = list(REWARDS) if reward is None else [reward]
    verdicts = []
    with progress(len(chosen)) as step:
        for text in chosen:
            step(f"Checking {text}")
            with told(ValueError):
                verdicts.append(check_reward(text))
    if as_json:
        print_json({"rewards": verdicts})
    elif reward is None:
        titles = "reward", *_columns(verdicts[0])
        print_rows(titles, [(x.reward, *_columns(x).values()) for x in verdicts])
    else:
        descends, *rest = _columns(verdicts[0]).items()
        print(f"{descends[1]}: {reward}")
        for title, shown in rest:
            print(f"  {title:8}  {shown}")


def _columns(verdict: Any) -> dict[str, str]:
    """What is shown of a verdict, in words."""
    rises = {True: "yes", False: "no, it is constant", None: "undecided"}[verdict.rises]
    if verdict.falls_at is not None:
        rises = f"no, it falls at D = {verdict.falls_at:.6g}"
    return {
        "descends": verdict.divergence or "sum P phi(Q/P)",
        "phi(u)": verdict.phi or "no closed form",
        "pair": verdict.pair or {False: "none", None: "undecided"}[verdict.is_pair],
        "optimum": verdict.optimum,
        "rises": rises,
    }
