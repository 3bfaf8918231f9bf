"""The metrics of the compatibility matrix, counted text by text in NumPy and Python.

Nothing of the library is called: texts are tuples of small numbers, all of one length.
Qualities take (texts, p) and give the score of each text; diversities take (texts, q).
"""

from collections import Counter
from itertools import combinations, product

import numpy as np


def texts_of(words, length):
    """All texts, in lexicographic order."""
    return [*product(range(words), repeat=length)]


def grams(text, n):
    return [text[i : i + n] for i in range(len(text) - n + 1)]


def pooled(texts, q, n):
    """The n-gram distribution of a distribution over texts."""
    found = Counter()
    for text, share in zip(texts, q, strict=True):
        for gram in grams(text, n):
            found[gram] += share / (len(text) - n + 1)
    return found


def bleu(text, references, order):
    """Geometric mean of the clipped precisions of orders 1 to n."""
    value = 1.0
    for n in range(1, order + 1):
        own = Counter(grams(text, n))
        most = Counter()
        for reference in references:
            most |= Counter(grams(reference, n))
        value *= (own & most).total() / own.total()
    return value ** (1 / order)


def sets_drawn(p, number):
    """The chance of each set of different texts among so many draws.

    A set S is drawn with chance sum over T in S of (-1)^|S - T| P(T)^number.
    """
    for size in range(1, min(number, len(p)) + 1):
        for drawn in combinations(range(len(p)), size):
            chance = 0.0
            for few in range(1, size + 1):
                for kept in combinations(drawn, few):
                    total = sum(p[i] for i in kept)
                    chance += (-1) ** (size - few) * total**number
            yield drawn, chance


def expected_bleu(texts, p, order, number):
    scores = np.zeros(len(texts))
    for drawn, chance in sets_drawn(p, number):
        references = [texts[i] for i in drawn]
        scores += chance * np.array([bleu(text, references, order) for text in texts])
    return scores


def markov(texts, p, order):
    """Log-likelihood under the Markov model that fits P, starts of texts seen."""
    after, there = Counter(), Counter()
    for text, share in zip(texts, p, strict=True):
        for i, token in enumerate(text):
            context = (min(i, order), text[max(i - order, 0) : i])
            after[context, token] += share
            there[context] += share
    return np.array(
        [
            sum(
                np.log(after[c, t] / there[c])
                for i, t in enumerate(text)
                for c in [(min(i, order), text[max(i - order, 0) : i])]
            )
            for text in texts
        ]
    )


def cosines(texts):
    counts = np.array([[t.count(w) for w in range(1 + max(max(texts)))] for t in texts])
    unit = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    return unit @ unit.T


def longest_common(a, b):
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + longest_common(a[1:], b[1:])
    return max(longest_common(a[1:], b), longest_common(a, b[1:]))


def edits(a, b):
    if not a or not b:
        return len(a) + len(b)
    here = edits(a[1:], b[1:]) + (a[0] != b[0])
    return min(here, 1 + edits(a[1:], b), 1 + edits(a, b[1:]))


def compressed(tokens, words):
    """Plain bits over LZ78's: of each phrase the number of another, and a token."""
    seen, phrase, bits = {()}, (), 0.0
    for token in tokens:
        phrase += (token,)
        if phrase not in seen:
            bits += np.ceil(np.log2(len(seen))) + np.ceil(np.log2(words))
            seen.add(phrase)
            phrase = ()
    if phrase:
        bits += np.ceil(np.log2(len(seen))) + np.ceil(np.log2(words))
    return len(tokens) * np.log2(words) / bits


def by_pairs(texts, similarity):
    return np.array([[similarity(a, b) for b in texts] for a in texts])


def rouge(a, b):
    return longest_common(a, b) / len(a)


def alike(a, b):
    return 1 - edits(a, b) / len(a)


def classes(texts, q):
    found = Counter()
    for text, share in zip(texts, q, strict=True):
        found[tuple(sorted(text))] += share
    return found


def density(texts, q):
    """Vendi's density matrix, with the kernel's eigenvectors as features."""
    sizes, vectors = np.linalg.eigh(cosines(texts))
    features = vectors * np.sqrt(np.maximum(sizes, 0))
    return (features.T * q) @ features, features


def log_of(matrix):
    sizes, vectors = np.linalg.eigh(matrix)
    kept = sizes > 1e-12
    return (vectors[:, kept] * np.log(sizes[kept])) @ vectors[:, kept].T


def vendi_quality(texts, p):
    rho, features = density(texts, p)
    return np.einsum("ia,ab,ib->i", features, log_of(rho), features)


def log_vendi(texts, q):
    sizes = np.linalg.eigvalsh(density(texts, q)[0])
    sizes = sizes[sizes > 1e-12]
    return -float(sizes @ np.log(sizes))


def distinct(texts, q, n, number=10):
    """Different n-grams in the draws over all n-grams there."""
    places = number * (len(texts[0]) - n + 1)
    every = {gram for text in texts for gram in grams(text, n)}
    having = {g: sum(s for t, s in zip(texts, q) if g in grams(t, n)) for g in every}
    return sum(1 - (1 - share) ** number for share in having.values()) / places


def repeated(a, b, n=2):
    return np.log1p(len({*grams(a, n)} & {*grams(b, n)}))


def quality(name, references, texts, p):
    """Scores of the texts by a name of the catalogue."""
    p, n = np.asarray(p), int(name[-1]) if name[-1].isdigit() else 0
    frequency = pooled(texts, p, n) if n else {}
    match name.rstrip("0123456789"):
        case "LL":
            return np.log(p)
        case "CR":
            return p
        case "CR-":
            return np.array(
                [np.mean([frequency[g] for g in grams(t, n)]) for t in texts]
            )
        case "BLEU-":
            return expected_bleu(texts, p, n, int(references))
        case "exact match":
            return 1 - (1 - p) ** int(references)
    match name:
        case "Markov-0 LL" | "Markov-1 LL":
            return markov(texts, p, int(name[7]))
        case "class LL":
            held = classes(texts, p)
            return np.log([held[tuple(sorted(t))] for t in texts])
        case "Vendi's quality":
            return vendi_quality(texts, p)
        case "squared similarity":
            return cosines(texts) ** 2 @ p
        case "ROUGE-L":
            return by_pairs(texts, rouge) @ p
        case "edit similarity":
            return by_pairs(texts, alike) @ p
    raise ValueError(name)


def diversity(name, references, texts, q):
    """The diversity of a model by a name of the catalogue."""
    q, n = np.asarray(q), int(name[-1]) if name[-1].isdigit() else 0
    words = 1 + max(max(texts))
    match name:
        case "SE":
            return -float(q[q > 0] @ np.log(q[q > 0]))
        case "NRR":
            return -float(q @ q)
        case "NRR-1" | "NRR-2":
            return -sum(x**2 for x in pooled(texts, q, n).values())
        case "Distinct-1" | "Distinct-2":
            return distinct(texts, q, n)
        case "n-gram diversity":
            return sum(distinct(texts, q, n) for n in (1, 2, 3))
        case "Self-BLEU-1" | "Self-BLEU-2" | "Self-BLEU-3":
            return -float(expected_bleu(texts, q, n, int(references)) @ q)
        case "distinct_10":
            return float(sum(1 - (1 - x) ** 10 for x in q))
        case "semantic entropy":
            held = np.array([*classes(texts, q).values()])
            return -float(held[held > 0] @ np.log(held[held > 0]))
        case "Vendi":
            return log_vendi(texts, q)
        case "Vendi of order 2":
            return -float(q @ cosines(texts) ** 2 @ q)
        case "pairwise ROUGE-L":
            return -float(q @ by_pairs(texts, rouge) @ q)
        case "pairwise edit distance":
            return -float(q @ by_pairs(texts, alike) @ q)
        case "self-repetition":
            return -float(q @ by_pairs(texts, repeated) @ q)
        case "compression ratio":
            return -float(
                q @ by_pairs(texts, lambda a, b: compressed(a + b, words)) @ q
            )
    raise ValueError(name)
