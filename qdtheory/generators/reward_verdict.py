r"""What a reward of the discriminator optimises: the verdict on a formula of D.

The reward $\rho(D)$ descends $\sum_i P_i\,\varphi(Q_i / P_i)$. That is a sum of a
quality and a diversity, $\sum_i Q_i f(P_i) + \sum_i g(Q_i)$ for every P over three or
more texts, iff $\varphi''(u) = c / u$, iff
$\rho(D) = c\,\mathrm{logit}\,D + \mathrm{const}$, and then the pair is LL-SE.
"""

import re
from typing import Any, Literal, TypeAlias

import numpy as np

from qdtheory.formulas.expressions import Expression, variable
from qdtheory.formulas.scalar_functions import ScalarFunction
from qdtheory.formulas.signs import find_sign, is_zero, number_sign, sign_of
from qdtheory.generators.rewards import REWARDS, Reward, read_reward
from qdtheory.world.records import Record

# SymPy takes seconds to minutes for integrals of longer terms.
MAX_DEGREE = 6
# Ratios Q / P at which φ is compared with its tangent at 1.
RATIOS = np.geomspace(1e-9, 1e9, 1801)
RewardStatus: TypeAlias = Literal[
    "pair", "divergence", "constant", "reversed", "another_optimum", "undecided"
]


class RewardVerdict(Record):
    """What a generator optimises that is rewarded with a function of the optimal D.

    Attributes:
        reward: the name or formula.
        divergence: the divergence that it descends, in words; None if it has no name.
        phi: its φ as a formula of u = Q / P; None if no closed form was found.
        rises: whether the reward is proved to rise on all of (0, 1); None: not decided.
        falls_at: a D near which it falls, or None.
        is_pair: whether the objective is a quality-diversity pair, for every P; None:
            not decided.
        pair: the pair, such as "2 LL + 2 SE", or None.
        optimum: the models that the objective is greatest at, in words.
        status: "pair" and "divergence": it is greatest at Q = P alone, and is a pair
            or not known to be one; "constant": it is the same everywhere; "reversed":
            the reward falls everywhere; "another_optimum": some model was found to be
            better than P; "undecided": none was, on a grid.
    """

    reward: str
    divergence: str | None
    phi: str | None
    rises: bool | None
    falls_at: float | None
    is_pair: bool | None
    pair: str | None
    optimum: str
    status: RewardStatus


def check_reward(reward: Reward | str) -> RewardVerdict:
    r"""Find what a reward of the optimal discriminator optimises.

    Args:
        reward: a reward with a formula, a name in `REWARDS`, or a formula of D.

    Returns:
        The verdict. Signs and identities in it are proved, but for the optimum of a
        reward that falls, which is judged on a grid of ratios Q / P.

    Raises:
        TypeError: it is neither a reward nor text.
        ValueError: the formula cannot be read, the reward is not finite for every D in
            (0, 1), or it has no formula.

    References:
        That the logit alone is a pair is ours, and machine-checked: `logit_is_LL_SE`
        and `only_the_logit` in proofs/LogitTheorem.v.

    Claims: N20.6.

    Example:
        >>> verdict = check_reward("2*log(D) - 2*log(1 - D) + 1")
        >>> verdict.divergence, verdict.is_pair, verdict.pair
        ('2 KL(Q, P)', True, '2 LL + 2 SE')
        >>> check_reward("D*(1 - D)").falls_at
        0.75
    """
    read = read_reward(reward)
    if read.formula is None:
        raise ValueError(f"{read.name} is code; the proofs need a formula of D")
    x = variable()
    _, slope, _ = read.formula.derivatives()
    falls = None if is_zero(slope) else find_sign(slope, x, -1)
    sign = sign_of(slope, x)
    rises = False if falls is not None or sign.value == 0 else sign.value == 1 or None
    weight = _constant(slope * x * (1 - x), x)
    if weight is not None:
        is_pair = number_sign(weight) == 1
    else:
        is_pair = False if _differs(slope, x) else None
    status, optimum = _optimum(read, rises, sign.value)
    return RewardVerdict(
        reward=read.name,
        divergence=_name(slope, x),
        phi=_closed_form(read.formula, read.phi),
        rises=rises,
        falls_at=None if falls is None else float(falls),
        is_pair=is_pair,
        pair=f"{_times(weight, 'LL')} + {_times(weight, 'SE')}" if is_pair else None,
        optimum=optimum,
        status="pair" if is_pair else status,
    )


def _constant(h: Any, x: Any) -> Any:
    """The value of a formula that is proved not to depend on x, or None."""
    import sympy

    if not is_zero(h.diff(x)):
        return None
    return sympy.nsimplify(sympy.simplify(h.subs(x, sympy.Rational(1, 2))))


def _differs(slope: Any, x: Any) -> bool:
    """Whether x (1 - x) times the slope is proved to differ at two places."""
    import sympy

    h = slope * x * (1 - x)
    places = [sympy.Rational(n, 7) for n in (1, 2, 3, 5, 6)]
    gaps = (number_sign(h.subs(x, a) - h.subs(x, places[0])) for a in places[1:])
    return any(gap in (1, -1) for gap in gaps)


def _times(weight: Any, name: str) -> str:
    if abs(weight) == 1:
        return name if weight == 1 else f"-{name}"
    return f"({weight}) {name}" if weight.is_Add else f"{weight} {name}"


def _name(slope: Any, x: Any) -> str | None:
    """The divergence, if the reward is one of `REWARDS` up to scale and shift."""
    for known in REWARDS.values():
        if known.formula is None or known.divergence is None:
            continue
        scale = _constant(slope / known.formula.derivatives()[1], x)
        if scale:
            factor, name = re.findall(r"^(\d*) ?(.*)", known.divergence)[0]
            name = f"({name})" if " - " in name and scale != 1 else name
            return _times(scale * int(factor or 1), name)
    return None


def _closed_form(rho: Expression, phi: ScalarFunction) -> str | None:
    """φ with its linear term left out, if SymPy integrates each term of the reward."""
    import sympy

    x, u = variable(), sympy.Symbol("u", positive=True)
    # Forced, as log(x/(1 - x)) is no difference to SymPy; the end of this checks it.
    split = sympy.expand_log(rho.symbolic(x), force=True)
    terms = sympy.Add.make_args(sympy.expand_mul(split))
    if not all(_is_short(term, x) for term in terms):
        return None
    whole = sum(sympy.integrate(-_of_ratio(term, x, u), u) for term in terms)
    whole = sympy.expand(_split_logs(sympy.expand(whole)))
    bent = sum(t for t in sympy.Add.make_args(whole) if t.diff(u, 2) != 0)
    found = sympy.collect(bent, list(sympy.sympify(bent).atoms(sympy.log)))
    found = found - sympy.sympify(found).subs(u, 1)
    # Another route: by quadrature, with the linear term.
    at = np.array([0.3, 0.7, 2.0, 5.0])
    try:
        gap = np.array([complex(found.subs(u, v)) for v in at]) - np.asarray(phi(at))
    except TypeError:  # an integral that SymPy did not solve
        return None
    line = gap[0] / (at[0] - 1) * (at - 1)
    return str(found) if np.abs(gap - line).max() <= 1e-9 else None


def _is_short(term: Any, x: Any) -> bool:
    """Whether SymPy integrates a term at once: powers, and one logarithm at most."""
    import sympy

    log_of, powers = None, {}
    for factor in sympy.Mul.make_args(term):
        base, exponent = factor.as_base_exp()
        if base in (x, 1 - x) and exponent.is_Rational and abs(exponent) <= MAX_DEGREE:
            powers[base] = exponent
        elif isinstance(base, sympy.log) and exponent == 1 and log_of is None:
            log_of = base.args[0]
        elif factor.has(x):
            return False
    a, b = (sympy.sympify(powers.get(base, 0)) for base in (x, 1 - x))
    if log_of is None:  # an integral of u^b (1 + u)^(-a - b)
        return b.is_Integer or a + b == 0 or max(a.q, b.q) <= 2
    if log_of in (x, 1 - x):
        return all(power.is_Integer and power >= 0 for power in (a, b))
    return not powers and log_of.is_polynomial(x) and sympy.degree(log_of, x) == 1


def _of_ratio(term: Any, x: Any, u: Any) -> Any:
    """A term of the reward at D = 1 / (1 + u)."""
    import sympy

    return _split_logs(sympy.simplify(term.subs(x, 1 / (1 + u))))


def _split_logs(h: Any) -> Any:
    """Write logarithms of fractions as differences."""
    import sympy

    fractions = h.replace(sympy.log, lambda a: sympy.log(sympy.together(a)))
    return sympy.expand_log(fractions, force=True)


def _optimum(
    reward: Reward, rises: bool | None, sign: int | None
) -> tuple[RewardStatus, str]:
    """The models that the objective is greatest at."""
    if sign == 0:
        return "constant", "every Q: the reward is constant"
    if rises:
        return "divergence", "Q = P alone"
    if sign == -1:
        return "reversed", "the rarest text alone, for a reward that falls everywhere"
    above = np.asarray(reward.phi(RATIOS))
    tangent = float(reward.of_discriminator(0.5)) * (1 - RATIOS)
    below = above - tangent < -1e-9 * (1 + np.abs(above))
    if not below.any():
        return "undecided", "Q = P, judged on a grid"
    worst = RATIOS[np.argmin((above - tangent) / (1 + RATIOS))]
    better = f"not Q = P: some model with Q = {worst:.2g} P on a text is better"
    return "another_optimum", better
