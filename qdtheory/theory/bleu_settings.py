r"""Which settings of BLEU against Self-BLEU are compatible: a classification.

Texts of one length L over |V| words, order n, r references from P, k from Q, no
smoothing. Then BLEU and negative Self-BLEU are compatible iff one of these holds:

* |V| = 1, where there is one model, or n > L, where both metrics are 0;
* r = k = 1, and n = 1 or n = L;
* |V| = 2, n = 1, L >= 2, and neither r nor k exceeds 2;
* |V| = 2, L = 1, and k <= 3.

*Three texts without a common n-gram* (three words, or 0...0, 1...1 and 0101... for
n >= 2). On models of these alone BLEU is that of single tokens,
$f(x) = 1 - (1 - x)^r$ and $g(x) = -x + x (1 - x)^k$. If every interior P is
Pareto-optimal, the gradients of U and V are antiparallel there and, by continuity, on
the boundary, so the points $(f(P_i), g'(P_i))$ lie on one line for all P on the three
texts. Where one of the three is 0, f and g' vanish, so that $h(x) = g'(x) / f(x)$ is
h(1 - x). At 0 and 1 this gives r = k = 1 or r = 2k >= 4; in the latter case the next
terms, $(k + 1) / 4$ against 2 for k = 2 and 0 for k > 2, differ.
So r = k = 1. ∎

*One reference, 1 < n < L.* Let M = L - n + 1, let h be M - n + 1, or for M < n any
number between 0 and M, and x_s the text that starts at s in 0^M 1^M 0^M 1^M... The
n-grams that begin in the arcs from 0, h, M and M + h differ: 0^n, 0^i 1^(n-i), 1^n,
1^i 0^(n-i), or all 2M. So BLEU of x_0 and x_M is 0, as is that of x_h and x_{M+h}. At a
distance of t texts share all but t of their m-grams, for each m, so that their BLEU
exceeds 1 - t / M. The four others sum to S > 2. With d = 1, -1, 1, -1 on the four texts
d'Kd = 4 - 2S < 0, and Kd sums to 2 - S on x_0 and x_M and to S - 2 on the others: both
signs, so that some P is beaten (`kernel_criterion`). ∎

*Two words, n = 1.* Let $F_t$ be the chance that a text has at most t ones. BLEU-1 is 1
minus the distance, over L, from the number of ones to the interval that the references
span. So $U = c(P) - \frac1L \sum_t F_t(Q)\,[(1 - F_t)^r - F_t^r](P)$ and
$V = -1 + \frac1L \sum_t v(F_t(Q))$, $v(F) = (1 - F) F^k + F (1 - F)^k$. For L >= 2 two
of the F are free, and compatibility needs v' proportional to $(1 - F)^r - F^r$. Divided
by 1 - 2F and with y = F(1 - F), these are 2, 1, 1 - 4y for k = 1, 2, 3, negative at
y = 1/4 for k > 3, and 1, 1, 1 - y, ... for r = 1, 2, 3, ..., positive at y = 1/4 and
not constant from r = 3 on. So r, k <= 2, and then v is concave. ∎
"""

from qdtheory.pairs.bleu import BleuPair


def compatible_setting(pair: BleuPair) -> str | None:
    """The reason why BLEU and negative Self-BLEU are compatible for every P.

    Args:
        pair: BLEU, with any numbers of references.

    Returns:
        The theorem in words; None if the setting is not one of the compatible ones
        that it names, or is one of single tokens or of one text, decided elsewhere.

    Claims: N25.20, N25.21, N25.22.

    Example:
        >>> from qdtheory.world.spaces import TextSpace
        >>> compatible_setting(BleuPair(TextSpace(2, 3), 1, 2, 2)).split(":")[0]
        'BLEU-1 on two words'
        >>> compatible_setting(BleuPair(TextSpace(3, 3), 1, 2, 2)) is None
        True
    """
    if not is_classified(pair) or pair.max_order != 1:
        return None
    r, k = int(pair.num_references), int(pair.num_self_references)
    if r == k == 1:
        return (
            "BLEU-1 with one reference: the kernel of common words is an inner product "
            "of the answers to 'does the text hold this word t times?', so U + V / 2 "
            "is greatest at Q = P."
        )
    if pair.space.vocab_size == 2 and max(r, k) <= 2:
        return (
            "BLEU-1 on two words: with F_t the chance of at most t ones, U is linear "
            "and V concave in F, and their gradients at Q = P are 2 F_t - 1 and "
            f"{'2 (1 - 2 F_t)' if k == 1 else '1 - 2 F_t'}, over L."
        )
    return None


def is_classified(pair: BleuPair) -> bool:
    """Whether the classification covers a pair: one length, no smoothing, n <= L.

    Args:
        pair: BLEU, with any numbers of references.

    Returns:
        True if it does.
    """
    lengths = pair.space.lengths
    return pair.smoothing is None and len(lengths) == 1 and pair.max_order <= lengths[0]
