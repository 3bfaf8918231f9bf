"""Wrong answers that many give, each recognised by a grader, with what leads on."""

from itertools import product

import numpy as np

import qdtheory as qd
from qdtheory.course.grading import Grader, as_formula, function, number, witness

# Any distributions over four texts will tell two functions apart.
ROWS = (0.4, 0.3, 0.2, 0.1), (0.1, 0.6, 0.05, 0.25)


def same_function(wrong: object, *more: object) -> Grader:
    """Recognise a function of four probabilities by its values."""
    inputs = [(np.array(row), *more) for row in ROWS]
    return function(wrong, lambda: inputs, 1e-9)  # type: ignore


def same_number(wrong: float) -> Grader:
    """Recognise a number."""
    return number(wrong, 1e-4)


def same_formula(wrong: str) -> Grader:
    """Recognise a formula in x by its values, whatever its form."""
    x = np.array([0.2, 0.5, 0.9])

    def agrees(answer: object) -> bool:
        return np.allclose(as_formula(answer)(x), as_formula(wrong)(x))

    return witness(agrees, "")


def temper_texts(p: np.ndarray, beta: float) -> np.ndarray:
    """Tempering of whole texts."""
    return np.asarray(qd.temper(p, beta))


def plug_in(shares: np.ndarray) -> float:
    """NRR of the pooled shares."""
    pool = np.asarray(shares).mean(axis=0)
    return -float(pool @ pool)


def plug_in_inputs() -> list[tuple]:
    """Rows of shares, as exercise 12.1 takes them."""
    return [(np.array(ROWS),), (np.array([ROWS[0], ROWS[1], ROWS[0]]),)]


MISTAKES: dict[str, tuple[tuple[Grader, str], ...]] = {
    "01.0": (
        (same_number(64.0), "64 texts have exactly three tokens; add the shorter ones"),
        (same_number(12.0), "each place has four choices: they multiply"),
    ),
    "01.1": (
        (
            same_function(temper_texts, 2.0),
            "these are whole texts tempered; each step needs a normaliser of its own",
        ),
    ),
    "02.0": (
        (same_number(0.5), ".5 is the most that a model can have, not what P has"),
        (same_number(-0.38), "this is NRR of P; coverage rate has the other sign"),
    ),
    "02.1": (
        (
            same_number(2 / 3),
            "this is the split of five candidates (k = 4); six have k = 5",
        ),
        (
            same_number(0.5 - ((160**0.5 - 10) / 24) ** 0.5),
            "this is the same split from its smaller half; x > 1/2 is asked for",
        ),
    ),
    "03.0": (
        (same_number(0.8), "that is P itself, the optimum of weight -1"),
        (
            same_number(0.2**2 / 0.68),
            "the order of P is kept: the likelier text stays the likelier",
        ),
        (same_number(2 / 3), "a weight of -2 squares P, it takes no root"),
    ),
    "03.1": (
        (
            function(
                lambda p: -1.5 / (np.unique(p)[-1] - np.unique(p)[-2]),
                lambda: [(np.array(p),) for p in ((0.5, 0.3, 0.1, 0.1), (0.6, 0.4))],
                1e-9,
            ),
            "right for one mode; with M modes each has 1/M at the end",
        ),
    ),
    "04.0": (
        (same_number(2.0), "g' falls where f rises, so the sign is the other one"),
        (same_number(-1.0), "differentiate: the slope of x^2 is 2x"),
    ),
    "04.1": (
        (
            function(
                lambda q, p: ((q**4 - p**4) / 4 - p**3 * (q - p)).sum(),
                lambda: [(np.array(ROWS[1]), np.array(ROWS[0]))],
                1e-9,
            ),
            "these are the brackets; alpha is missing",
        ),
    ),
    "04.2": (
        (same_formula("log(x)"), "log(x) fits SE alone; NRR adds -2x to g'"),
        (same_formula("2*x"), "2*x fits NRR alone; SE adds -log(x) - 1 to g'"),
        (
            same_formula("log(x) + x"),
            "close: CR counts half of what NRR needs, as g' has -2x",
        ),
        (
            same_formula("-log(x) - 2*x"),
            "this f falls: a likelier text would score less; change the sign",
        ),
    ),
    "05.0": ((same_number(0.0), "exchange the two probabilities"),),
    "06.0": (
        (same_number(2.0), "the two draws may be the same text"),
        (same_number(1.0), "the second draw may differ from the first"),
    ),
    "06.1": (
        (
            function(
                lambda q, m: m - m * (m - 1) / 2 * (np.asarray(q) ** 2).sum(),
                lambda: [(np.array(row), m) for row in ROWS for m in (2, 3)],
                1e-9,
            ),
            "pairs that agree are not enough beyond two draws; ask for each text "
            "whether it is missing",
        ),
    ),
    "07.0": (
        (same_number(1.0), "counts are clipped: one a of the reference matches one a"),
        (same_number(1 / 3), "both letters match once"),
    ),
    "08.0": (
        (same_number(0.5), "that is one reference; with two, either may match"),
        (same_number(0.25), "that both match; one match is enough"),
    ),
    "08.1": (
        (
            function(
                lambda r, k: (3 * k - 2 * r - 1) / 4,
                lambda: product((1, 2, 5), (1, 2, 10)),
                1e-9,
            ),
            "a factor |R| is missing: f'' and η both have it",
        ),
    ),
    "09.0": (
        (same_number(0.02), "negative repetition: the sign is minus"),
        (same_number(-0.0004), "all 50 texts contribute 1/2500 each"),
    ),
    "09.1": (
        (
            same_function(lambda p: p),
            "P is the optimum of weight -2; the sum has weight -1",
        ),
    ),
    "10.0": (
        (
            same_number(-1 / 3),
            "that leaves out each bigram with itself; the plug-in keeps these pairs",
        ),
        (same_number(5 / 9), "negative repetition: the sign is minus"),
    ),
    "10c.0": ((same_number(2.0), "the first two trade; neither beats the other"),),
    "11.0": (
        (same_number(0.64 / 0.68), "that is temperature 1/2: a high one flattens"),
        (same_number(0.8), "that is temperature 1"),
    ),
    "12.0": (
        (same_number(-5 / 9), "that is the plug-in: each sentence meets itself"),
        (same_number(1 / 3), "negative repetition: the sign is minus"),
    ),
    "12.1": (
        (
            function(plug_in, plug_in_inputs, 1e-12),
            "this is the plug-in: it holds each row's product with itself",
        ),
    ),
    "12.2": (
        (
            same_number(0.1),
            "that is for two samples of the source; here the sample is the law",
        ),
    ),
    "12b.0": ((same_number(3.0), "3 is its own count; look at the other sentences"),),
    "13.0": (
        (
            same_number(1.5 * np.log(2)),
            "that is the entropy of the oracle; the model writes one text only",
        ),
        (same_number(-np.log(2)), "negative log-likelihood: the sign is plus"),
        (same_number(1.0), "that is in bits; logarithms are natural here"),
    ),
    "14.0": (
        (same_number(-2.0), "that is in bits; logarithms are natural here"),
        (same_number(0.25), "that is the score of CR, which fits NRR"),
    ),
    "14.1": (
        (same_number(1.0), "the slope of x^2 is 2x: a counts twice"),
        (same_number(2.0), "the other way round: NRR has the factor 2, and CR has not"),
    ),
    "15.0": ((same_number(5 / 6), "τ subtracts the pair that disagrees"),),
    "15.1": (
        (same_number(0.5), "a word can be dropped once only"),
        (same_number(0.56), "that is the chance that a word stays"),
    ),
    "16.0": (
        (same_number(0.3), "the slope of x^2 is 2x"),
        (same_number(-0.6), "that is the slope; minus the slope is asked for"),
    ),
    "16b.0": ((same_number(1.0), "the model meets another text half of the time"),),
    "17.0": (
        (same_number(0.8), "that is U of P = (.8, .2); the bound is for all models"),
    ),
    "17.1": ((same_number(0.625), "the other text's slope also moves with η"),),
    "18.0": ((same_number(-0.5), "both messages get the *same* answer"),),
    "18.1": ((same_number(-0.8), "the pool is more diverse: the sign is plus"),),
    "19.0": (
        (same_number(0.9), "that is one reference; there are two"),
        (same_number(0.8), "the two chances multiply"),
        (same_number(0.19), "that is the chance that it is found"),
    ),
    "20.0": (
        (same_number(3.0), "that is P/Q; D is the share of P in P + Q"),
        (same_number(0.25), "that is the chance that the text is generated"),
    ),
    "20.1": ((same_number(1 / 30), "the step ascends: the divergence has a minus"),),
    "20b.0": ((same_number(0.9), "that is the reward D"),),
    "22.0": ((same_number(3.0), "weights in a batch add up to 1"),),
    "22b.0": ((same_number(0.02), "divide by the square root of 7, not by 7"),),
    "23.0": ((same_number(1.0), "half of the squared distance"),),
    "23.1": ((same_number(0.5), "the posterior's gap lowers the ELBO: add it"),),
    "24.0": (
        (same_number(0.5), "what is kept is normalised again"),
        (same_number(5 / 7), "normalise by what is kept, .8, not by the mass .7"),
        (same_number(1.0), "the first token alone has .5 only, less than the mass"),
    ),
    "24.1": (
        (same_number(50.0), "the loss is a share of what is left, not of the start"),
        (same_number(68.0), "after 68 generations a little more than half is left"),
    ),
    "24.2": (
        (
            function(lambda share, t: share ** (1 / t), lambda: [(0.1, 0.5)], 1e-12),
            "this is the way back: from before the temperature to after it",
        ),
    ),
    "25.0": ((same_number(2.0), "that is their entropy in bits; take exp of nats"),),
    "25.1": (
        (same_number(0.25), "that is the law; a sample of 10 meets itself"),
        (
            same_number(0.35),
            "of the 100 pairs only 90 are of two draws, and meet by law",
        ),
    ),
}
