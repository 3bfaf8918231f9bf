"""The commands metrics and rewards: what is known of each, as a table or of one."""

from typing import Annotated, Any

import typer

from qdtheory.commands.inputs import AsJson, option, refuse_idle
from qdtheory.commands.outputs import exit_on, fail, print_facts, print_json, print_rows
from qdtheory.support.progress import progress

NUMBERS = "NUMBERS"
MORE = "`qdtheory metrics NAME` says why, and what to print beside a metric."


def metrics(
    name: Annotated[
        str | None, typer.Argument(help="One metric, by any of its names.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What is known of a metric that you report, and what belongs beside it?

    For each metric the table says beside what papers print it, where a model beats
    real text in both, and beside what no model can. With a name it says all that is
    known: when and why, what to print beside it, formula, form, estimator, the
    functions that compute it and the claims that show it.

    Example: qdtheory metrics Vendi
    """
    from qdtheory.catalogue.metrics import METRICS, TITLES, find_metric

    if name is None:
        if as_json:
            print_json({"metrics": [_facts(metric) for metric in METRICS]})
        else:
            print_rows(TITLES, [metric.row for metric in METRICS])
            print_facts(MORE, [])
        return
    try:
        metric = find_metric(name)
    except ValueError as error:
        fail(f"{error}; `qdtheory metrics` lists all")
    if as_json:
        print_json(_facts(metric))
    else:
        print(metric)


def _facts(metric: Any) -> dict[str, Any]:
    return vars(metric) | {"claims": metric.claims}


def rewards(
    reward: Annotated[
        str | None,
        option("A formula of D such as logit(D), or else the rewards in use.", "TEXT"),
    ] = None,
    scores: Annotated[str | None, option("Of a prompt's answers.", NUMBERS)] = None,
    recipe: Annotated[str | None, option("One, with --scores.", "NAME")] = None,
    people: Annotated[str | None, option("Shares, with --scores.", NUMBERS)] = None,
    as_json: AsJson = False,
) -> None:
    """What does a generator optimise that a discriminator, or a reward, pays?

    D is the probability that a text is real, of the discriminator that is optimal
    at each step: P/(P + Q). A step on a reward of D descends a divergence,
    the sum of P phi(u) with u = Q/P. The table names it, says whether it is a
    quality-diversity pair for every P, which models are optimal, and where the
    reward falls. M is (P + Q)/2. With --reward it gives phi too, but for a multiple
    of u - 1.

    With --scores it says where a model of one prompt rests that is trained by rewards
    of 8 samples, by each recipe in use: the answers' frequencies by the slope of the
    whole set's score, and if each sample's own reward is held fixed, as in REINFORCE.
    People's shares of the answers (--people) are equal if not given; the price of
    entropy and of KL is .1.

    Example: qdtheory rewards --scores 1,.8,.5,.1 --recipe "pass@k"
    """
    if scores is not None:
        refuse_idle("beside --scores", reward=reward)
        return _print_laws(scores, people, recipe, as_json)
    refuse_idle("without --scores", recipe=recipe, people=people)
    from qdtheory.rewards import REWARDS, check_reward

    chosen = list(REWARDS) if reward is None else [reward]
    verdicts = []
    with progress(len(chosen)) as step:
        for text in chosen:
            step(f"Checking {text}")
            with exit_on(ValueError):
                verdicts.append(check_reward(text))
    if as_json:
        print_json({"rewards": verdicts})
    elif reward is None:
        titles = "reward", *_columns(verdicts[0])
        print_rows(titles, [(x.reward, *_columns(x).values()) for x in verdicts])
    else:
        descends, *rest = _columns(verdicts[0]).items()
        phi = "phi(u)", verdicts[0].phi or "no closed form"
        print_facts(f"{descends[1]}: {reward}", [], [phi, *rest])


def _columns(verdict: Any) -> dict[str, str]:
    """What is shown of a verdict, in words."""
    rises = {True: "yes", False: "no, it is constant", None: "undecided"}[verdict.rises]
    if verdict.falls_at is not None:
        rises = f"no, it falls at D = {verdict.falls_at:.6g}"
    return {
        "descends": verdict.divergence or "sum P phi(Q/P)",
        "pair": verdict.pair or {False: "none", None: "undecided"}[verdict.is_pair],
        "optimum": verdict.optimum,
        "rises": rises,
    }


def _print_laws(
    scores: str, people: str | None, recipe: str | None, as_json: bool
) -> None:
    """Print where training rests by one recipe or by each."""
    from qdtheory.rewards import RECIPES, implied_law

    try:
        r, *p = ([*map(float, x.split(","))] for x in (scores, people) if x is not None)
    except ValueError:
        fail("--scores and --people take numbers with commas between, as 1,.8,.5")
    with exit_on(ValueError):
        laws = {x: implied_law(x, r, *p) for x in ([recipe] if recipe else RECIPES)}
    if as_json:
        return print_json({"laws": laws})
    shares = {name: vars(law).values() for name, law in laws.items()}
    rows = [
        (x, *(" ".join(f"{q:.3f}" for q in law) for law in shares[x])) for x in laws
    ]
    print_rows(("recipe", "set credit", "own credit"), rows)
