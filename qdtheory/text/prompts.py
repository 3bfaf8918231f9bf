"""Several answers a prompt against one or a few human answers: fair kernel scores.

With one human answer a prompt, the compatible pairs that can be estimated without bias
are kernel scores: the mean similarity to it, a quality, and minus the mean similarity
of two answers of the model, a diversity, of one kernel, with weights 2 and 1. No answer
is compared with itself, which makes the score fair: its mean does not depend on how
many answers there are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any

import numpy as np

from qdtheory.support.packages import versions
from qdtheory.support.records import Record
from qdtheory.text.checks import require_positive
from qdtheory.text.comparability import warnings_of_looks
from qdtheory.text.containers import Tokenizer, described, signature_of, splitter
from qdtheory.text.corpus import corpus_of
from qdtheory.text.defaults import LEVEL
from qdtheory.text.prompt_kernels import EXACT, Kernel, blind, kernel_name, similarities
from qdtheory.text.prompt_report import EQUAL, PARTS, PromptReport, moments

KERNELS = ("2-grams", "1-grams", EXACT)
NO_REFERENCES = (
    "No references: diversity alone, which noise has most of. Quality, and how close "
    "the outputs are to what people write, cannot be judged."
)
ONE_OUTPUT = (
    "; draw more samples of each prompt, or evaluate one of each against references as "
    "a corpus, without --prompts"
)


class KernelScore(Record):
    """Fair kernel score of one prompt and its halves; higher is better of all three.

    Attributes:
        quality: mean similarity of outputs and references.
        diversity: minus the mean similarity of two outputs.
        score: 2 quality + diversity.
    """

    quality: float
    diversity: float
    score: float


def kernel_score(
    outputs: Iterable[str],
    references: Iterable[str],
    kernel: Kernel = "2-grams",
    *,
    tokenizer: Tokenizer = "whitespace",
    lowercase: bool = False,
) -> KernelScore:
    r"""Fair kernel score of the outputs for one prompt; higher is better.

    Quality is the mean of $K(x_i, z_j)$ over outputs x and references z, diversity
    minus the mean of $K(x_i, x_j)$ over $i \ne j$, and the score is 2 quality +
    diversity. For independent outputs of law Q and references of law P its expectation
    is $\lVert P \rVert_K^2 - MMD_K^2(P, Q)$, so that P itself has the greatest.

    Args:
        outputs: at least two independent samples of the model.
        references: at least one answer of a human.
        kernel: "exact match" of all tokens; "1-grams", "2-grams", ..., the inner
            product of relative frequencies, 0 for a text that has no n-grams; or a
            function of two lists of strings to their similarities, shape (len(a),
            len(b)), symmetric and positive semidefinite for weights that sum to 0.
        tokenizer: how strings are split, see `as_corpus`.
        lowercase: lower-case strings before they are split.

    Raises:
        TypeError: not lists of strings.
        ValueError: too few of them; an unknown kernel; one that is not finite, not
            symmetric, or indefinite, with the weights that show it; or one that sees
            nothing, as 2-grams in outputs of one word.

    References:
        Dawid 2007; Gneiting and Raftery 2007 (kernel scores); Ferro 2014 (fair).

    Example:
        >>> kernel_score(["a b", "a c"], ["a b"], "1-grams")
        KernelScore(quality=0.375, diversity=-0.25, score=0.5)
    """
    ours = checked(outputs, "outputs", 2)
    texts = [*ours, *checked(references, "references", 1)]
    kernel_name(kernel)  # or raise
    gram = similarities(kernel, texts, splitter(tokenizer, lowercase))
    if said := blind(kernel, [gram], [ours]):
        raise ValueError(said)
    score, quality, diversity, *_ = map(float, moments(gram, len(ours)))
    return KernelScore(quality, diversity, score)


def evaluate_prompts(
    candidates: Mapping[str, Iterable[Any]] | Iterable[Any],
    references: Iterable[Any] | None = None,
    kernels: Kernel | Sequence[Kernel] | None = None,
    *,
    prompts: Sequence[Any] | None = None,
    tokenizer: Tokenizer = "whitespace",
    lowercase: bool = False,
    level: float = LEVEL,
    step: Callable[[str], None] = lambda text: None,
) -> PromptReport:
    """Score several outputs a prompt against its human answers, with tests.

    Each prompt has one `kernel_score` a kernel; their means over prompts have Student's
    intervals. `report.compare("one", "other")` is a paired t-test over prompts, whose
    `plan()` says how many prompts of how many outputs tell the two apart.

    Args:
        candidates: by name, for each prompt a list of at least two outputs, which are
            independent samples; or one such list of lists, called "outputs".
        references: for each prompt, in the same order, a list of at least one answer;
            None: diversity alone.
        kernels: names or functions, see `kernel_score`; or one alone. None:
            2-grams, 1-grams and exact match, without those by which nothing is alike.
        prompts: the prompts themselves, for messages; None: their numbers, from 0.
        tokenizer: how strings are split, see `as_corpus`.
        lowercase: lower-case strings before they are split.
        level: coverage probability of the intervals.
        step: called with a description before each candidate of each kernel.

    Raises:
        ModuleNotFoundError, TypeError: see `kernel_score`.
        ValueError: see `kernel_score`; no candidate or kernel, one kernel twice, fewer
            than two prompts, or another number in a candidate or `prompts`.

    References:
        Dawid 2007; Gneiting and Raftery 2007; Ferro 2014; Bounliphone et al. 2016
        (which of two models is nearer in MMD).

    Example:
        >>> ours = [["a b", "a c"], ["b", "b c"], ["c d", "d"]]
        >>> other = [["a a", "a a"], ["c", "c c"], ["c d", "d"]]
        >>> real = [["a b"], ["b c"], ["d"]]
        >>> found = evaluate_prompts({"ours": ours, "other": other}, real, ["1-grams"])
        >>> print(f"{found['ours']['1-grams score'].value:.3f}")
        0.667
        >>> found.compare("ours", "other").closer is None
        True
    """
    require_positive("level", level, below=1)
    chosen: Any = KERNELS if kernels is None else kernels
    chosen = [chosen] if isinstance(chosen, str) or callable(chosen) else chosen
    names = [*map(kernel_name, chosen)]
    if not names or len({*names}) < len(names):
        raise ValueError(f"kernels: expected some, each once, got {', '.join(names)}")
    if not isinstance(candidates, Mapping):
        candidates = {"outputs": candidates}
    ours = {name: [*x] for name, x in candidates.items()}
    real = [] if references is None else [*references]
    numbers = {name: len(x) for name, x in ours.items()}
    told = (*(range(max(numbers.values(), default=0)) if prompts is None else prompts),)
    size = len(told)
    lengths = {*numbers.values(), size if references is None else len(real)}
    if size < 2 or not ours or lengths != {size}:
        raise ValueError(
            "expected two prompts or more, each with references and outputs of each "
            f"candidate, got {size}, references of {len(real)}, outputs {numbers}"
        )
    places = [f"prompt {short(prompt)}: " for prompt in told]
    real = [checked(x, f"{at}references", 1) for x, at in zip(real, places)]
    for name, texts in ours.items():
        each = zip(texts, places)
        ours[name] = [checked(x, f"{name}, {at}outputs", 2) for x, at in each]
    sizes = {name: np.array([*map(len, x)]) for name, x in ours.items()}
    split = splitter(tokenizer, lowercase)
    # Without references there is no quality, and the score is the diversity.
    parts = [*enumerate(PARTS)][0 if real else 2 :]
    scores: dict[str, Any] = {name: {} for name in ours}
    spreads: dict[str, Any] = {name: {} for name in ours}
    kept: list[str] = []
    for kernel, called in zip(chosen, names):
        found, sees = {}, True
        for name, outputs in ours.items():
            step(f"{called} of {name}")
            grams = [
                similarities(kernel, [*x, *z], split, f"{name}, {at}")
                for x, z, at in zip(outputs, real or [()] * size, places)
            ]
            said = blind(kernel, grams, outputs)
            if said and kernels is not None:
                raise ValueError(said)
            sees = sees and not said
            found[name] = np.array([moments(y, len(x)) for x, y in zip(outputs, grams)])
        alike = np.abs([*found.values()])[..., :3].max() > EQUAL
        if kernels is not None or (sees and alike) or (called == EXACT and not kept):
            kept.append(called)
            for name, x in found.items():
                scores[name] |= {called + part: x[:, i] for i, part in parts}
                spreads[name][called] = x[:, 3:].T
    by = described(tokenizer, lowercase)
    fewest = min(map(min, sizes.values())), min(map(len, real), default=0)
    every = (chain.from_iterable(x) for x in (*ours.values(), *[real] * bool(real)))
    texts = [corpus_of(x, tokenizer, lowercase) for x in every]
    warnings = warnings_of_looks(dict(zip(ours, texts)), texts[-1] if real else None)
    warnings += [NO_REFERENCES] * (not real)
    if lost := [x for x in names if x not in kept]:
        warnings.append(f"Left out, as nothing is alike by it: {', '.join(lost)}.")
    methods = (
        "Fair kernel scores (2 quality + diversity, no output compared with itself), "
        f"{size:,} prompts, {fewest[0]}+ outputs, {fewest[1]}+ references each; "
        f"n-grams and exact match of tokens by {by}; "
        f"{level:.0%} Student intervals and paired t-tests over prompts; {versions()}"
    )
    said = (
        f"prompts:{size}|outputs:{fewest[0]}+|refs:{fewest[1]}+|"
        f"kernels:{'+'.join(sorted(kept))}|level:{level}"
    )
    signature = signature_of(said, [by])
    metrics = (*(called + part for _, part in parts for called in kept),)
    scores = {name: {x: each[x] for x in metrics} for name, each in scores.items()}
    return PromptReport(
        *(metrics, scores, spreads, sizes, (*kept,), told, level, methods, signature),
        warnings=(*warnings,),
    )


def checked(texts: Any, what: str, least: int) -> list[str]:
    """Copy a list of at least so many strings, or raise; a set has none twice."""
    listed = isinstance(texts, Iterable) and not isinstance(texts, str | Mapping | Set)
    found = [*texts] if listed else [None]
    if bad := [text for text in found if not isinstance(text, str)]:
        got = bad if listed else texts
        hint = "; put it in a list" * isinstance(got, str)
        raise TypeError(f"{what}: expected a list of strings, got {got!r:.60}{hint}")
    if len(found) < least:
        hint = ONE_OUTPUT * (least == 2)
        raise ValueError(f"{what}: expected {least} or more, got {len(found)}{hint}")
    return found


def short(prompt: Any) -> str:
    """Quote a prompt, and of a long one both ends, as many begin alike."""
    said = repr(prompt)
    return said if len(said) <= 60 else f"{said[:28]}...{said[-29:]}"
