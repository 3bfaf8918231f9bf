"""Several answers a prompt against one or a few human answers: fair kernel scores.

With one human answer a prompt, the compatible pairs that can be estimated without bias
are kernel scores: the mean similarity to it, a quality, and minus the mean similarity
of two answers of the model, a diversity, of one kernel, with weights 2 and 1. No answer
is compared with itself, which makes the score fair: its mean does not depend on how
many answers there are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from qdtheory.text.containers import Tokenizer, described, splitter
from qdtheory.text.defaults import LEVEL
from qdtheory.text.intervals import check_level
from qdtheory.text.prompt_kernels import Kernel, grams, kernel_name
from qdtheory.text.prompt_report import KernelScore, PromptReport, moments
from qdtheory.world.packages import versions

KERNELS = ("exact match", "1-grams", "2-grams")


def kernel_score(
    outputs: Sequence[str],
    references: Sequence[str],
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
            product of relative frequencies, 0 for a text that has no n-grams; "MiniLM",
            the cosine of `embed`, which splits for itself; or a function of two lists
            of strings to their similarities, shape (len(a), len(b)), symmetric and
            positive semidefinite for weights that sum to 0.
        tokenizer: how strings are split, see `as_corpus`.
        lowercase: lower-case strings before they are split.

    Raises:
        ModuleNotFoundError: the extra "embeddings" is missing, for MiniLM.
        TypeError: not lists of strings.
        ValueError: too few of them; an unknown kernel; or one that is not finite, not
            symmetric, or indefinite, with the weights that show it.

    References:
        Dawid 2007; Gneiting and Raftery 2007 (kernel scores); Ferro 2014 (fair).

    Example:
        >>> kernel_score(["a b", "a c"], ["a b"], "1-grams")
        KernelScore(quality=0.375, diversity=-0.25, score=0.5)
    """
    kernel_name(kernel)
    texts = [*checked(outputs, "outputs", 2), *checked(references, "references", 1)]
    (gram,) = grams(kernel, [texts], [""], tokenizer, lowercase)
    quality, diversity, *_ = moments(gram, len(outputs))
    return KernelScore(quality, diversity, 2 * quality + diversity)


def evaluate_prompts(
    candidates: Mapping[str, Iterable[Any]] | Sequence[Any],
    references: Iterable[Any],
    kernels: Sequence[Kernel] = KERNELS,
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
        references: for each prompt, in the same order, a list of at least one answer.
        kernels: names or functions, see `kernel_score`.
        prompts: the prompts themselves, for messages; None: their numbers, from 0.
        tokenizer: how strings are split, see `as_corpus`.
        lowercase: lower-case strings before they are split.
        level: coverage probability of the intervals.
        step: called with a description before each kernel of each candidate.

    Raises:
        ModuleNotFoundError, TypeError: see `kernel_score`.
        ValueError: see `kernel_score`; no candidate or kernel, one kernel twice, fewer
            than two prompts, or another number of them in a candidate.

    References:
        Dawid 2007; Gneiting and Raftery 2007; Ferro 2014; Bounliphone et al. 2016
        (which of two models is nearer in MMD).

    Example:
        >>> ours = [["a b", "a c"], ["b", "b c"], ["c d", "d"]]
        >>> other = [["a a", "a a"], ["c", "c c"], ["c d", "d"]]
        >>> real = [["a b"], ["b c"], ["d"]]
        >>> found = evaluate_prompts({"ours": ours, "other": other}, real, ["1-grams"])
        >>> round(found["ours"]["1-grams"].score.value, 3)
        0.667
        >>> found.compare("ours", "other").closer is None
        True
    """
    check_level(level)
    splitter(tokenizer, lowercase)
    names = [*map(kernel_name, kernels)]
    if not names or len({*names}) < len(names):
        raise ValueError(f"kernels: expected some, each once, got {names}")
    if not isinstance(candidates, Mapping):
        candidates = {"outputs": candidates}
    if not candidates:
        raise ValueError("expected at least one set of candidates, got none")
    real = [*references]
    told = (*range(len(real)),) if prompts is None else (*prompts,)
    if len(real) < 2 or len(told) != len(real):
        raise ValueError(
            f"expected references of at least 2 prompts, got {len(real)} for "
            f"{len(told)} prompts"
        )
    places = [f"prompt {prompt!r:.60}: " for prompt in told]
    real = [checked(x, f"{at}references", 1) for x, at in zip(real, places)]
    per_prompt: Any = {}
    spreads: Any = {}
    num_outputs = {}
    for name, outputs in candidates.items():
        ours, where = [*outputs], [f"{name}, {at}" for at in places]
        if len(ours) != len(real):
            raise ValueError(
                f"{name}: expected outputs for {len(real)} prompts, as there are "
                f"references, got {len(ours)}"
            )
        ours = [checked(x, f"{at}outputs", 2) for x, at in zip(ours, where)]
        texts = [x + y for x, y in zip(ours, real)]
        num_outputs[name] = np.array([*map(len, ours)])
        per_prompt[name], spreads[name] = {}, {}
        for kernel, called in zip(kernels, names):
            step(f"{called} of {name}")
            found = grams(kernel, texts, where, tokenizer, lowercase)
            rows = [moments(gram, len(x)) for gram, x in zip(found, ours)]
            quality, diversity, *variances = np.array(rows).T
            scores = KernelScore(quality, diversity, 2 * quality + diversity)
            per_prompt[name][called] = scores
            spreads[name][called] = np.transpose(variances)
    many = _range(np.concatenate([*num_outputs.values()]))
    by = described(tokenizer, lowercase)
    methods = (
        "Fair kernel scores (2 quality + diversity, no output compared with itself) "
        f"by {', '.join(names)} of {len(real):,} prompts, outputs a prompt {many}, "
        f"references {_range([*map(len, real)])}; tokens by {by}; "
        f"{level:.0%} Student intervals and paired t-tests over prompts; {versions()}"
    )
    return PromptReport(
        (*names,), told, per_prompt, spreads, num_outputs, level, methods
    )


def _range(numbers: Any) -> str:
    few, many = min(numbers), max(numbers)
    return f"{few}" if few == many else f"{few} to {many}"


def checked(texts: Sequence[str], what: str, least: int) -> list[str]:
    """Copy a list of at least so many strings, or raise."""
    if isinstance(texts, str) or not hasattr(texts, "__iter__"):
        raise TypeError(f"{what}: expected a list of strings, got {texts!r:.40}")
    found = list(texts)
    for text in found:
        if not isinstance(text, str):
            raise TypeError(f"{what}: expected a list of strings, got one {text!r:.40}")
    if len(found) < least:
        wanted = "one" if least == 1 else f"{least}, of which pairs are compared"
        raise ValueError(f"{what}: expected at least {wanted}, got {len(found)}")
    return found
