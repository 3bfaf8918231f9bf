"""Several answers a prompt against one or a few human answers: fair kernel scores.

With one human answer a prompt, the compatible pairs that can be estimated without bias
are kernel scores: the mean similarity to it, a quality, and minus the mean similarity
of two answers of the model, a diversity, of one kernel, with weights 2 and 1. No answer
is compared with itself, which makes the score fair: its mean does not depend on how
many answers there are.
"""

from collections.abc import Sequence

from qdtheory.text.containers import Tokenizer
from qdtheory.text.prompt_kernels import Kernel, grams, kernel_name
from qdtheory.text.prompt_report import KernelScore, moments


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
