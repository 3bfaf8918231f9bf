"""The metrics of the compatibility matrix, counted text by text in NumPy and Python.

Nothing of the library is called: texts are tuples of small numbers, all of one length.
Qualities take (texts, p) and give the score of each text; diversities take (texts, q).
"""

from collections import Counter
from difflib import SequenceMatcher
from itertools import combinations, product

import numpy as np
from nltk import edit_distance


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


def coverage(texts, frequency, n):
    return np.array([np.mean([frequency[g] for g in grams(t, n)]) for t in texts])


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


def subsets(items, most):
    return (x for size in range(1, most + 1) for x in combinations(items, size))


def sets_drawn(p, number):
    """The chance of each set of different texts among so many draws.

    A set S is drawn with chance sum over T in S of (-1)^|S - T| P(T)^number.
    """
    for drawn in subsets(range(len(p)), min(number, len(p))):
        parts = [(len(x), sum(p[i] for i in x)) for x in subsets(drawn, len(drawn))]
        yield drawn, sum((-1) ** (len(drawn) - k) * x**number for k, x in parts)


def expected_bleu(texts, p, order, number):
    scores = np.zeros(len(texts))
    for drawn, chance in sets_drawn(p, number):
        references = [texts[i] for i in drawn]
        scores += chance * np.array([bleu(text, references, order) for text in texts])
    return scores


def markov(texts, p, order):
    """Log-likelihood under the Markov model that fits P, starts of texts seen."""
    steps = [
        [((min(i, order), t[max(i - order, 0) : i]), x) for i, x in enumerate(t)]
        for t in texts
    ]
    after, there = Counter(), Counter()
    for text, share in zip(steps, p, strict=True):
        for context, token in text:
            after[context, token] += share
            there[context] += share
    return np.array([sum(np.log(after[s] / there[s[0]]) for s in t) for t in steps])


def cosines(texts):
    counts = np.array([[t.count(w) for w in range(1 + max(max(texts)))] for t in texts])
    unit = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    return unit @ unit.T


def compressed(tokens, words):
    """Plain bits over LZ78's: of each phrase the number of another, and a token."""
    seen, phrase, bits = {()}, (), 0.0
    for i, token in enumerate(tokens, start=1):
        phrase += (token,)
        if phrase not in seen or i == len(tokens):
            bits += np.ceil(np.log2(len(seen))) + np.ceil(np.log2(words))
            seen.add(phrase)
            phrase = ()
    return len(tokens) * np.log2(words) / bits


def by_pairs(texts, similarity):
    return np.array([[similarity(a, b) for b in texts] for a in texts])


def rouge(a, b):
    """Share of the longest common subsequence: by edits without substitution."""
    return 1 - edit_distance(a, b, substitution_cost=2) / (2 * len(a))


def common(a, b, n=1):
    """Share of the n-grams of a, or of b, that both have."""
    both = (Counter(grams(a, n)) & Counter(grams(b, n))).total()
    return both / max(len(a) - n + 1, 1)


def meteor(a, b):
    """By exact matches: mean of precision and recall, less half the cube of chunks."""
    chunks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()[:-1]
    matches = sum(chunk.size for chunk in chunks)
    return matches / len(a) * (1 - (len(chunks) / max(matches, 1)) ** 3 / 2)


def cider(a, b):
    """Mean cosine of the counts of n-grams of orders 1 to 4, each of one weight."""
    value = 0.0
    for n in range(1, 5):
        x, y = Counter(grams(a, n)), Counter(grams(b, n))
        size = sum(v**2 for v in x.values()) * sum(v**2 for v in y.values())
        value += sum(x[g] * y[g] for g in x) / max(size, 1) ** 0.5 / 4
    return value


def embedded(text):
    """A vector of each token, that of the token before it mixed in."""
    vectors = np.random.default_rng(5).random(size=(30, 12))[[*text]]
    vectors[1:] += vectors[:-1] / 3
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def bert_score(a, b):
    near = embedded(a) @ embedded(b).T
    precision, recall = near.max(axis=1).mean(), near.max(axis=0).mean()
    return 2 * precision * recall / (precision + recall)


def mtld(text):
    """Mean length of runs until types over tokens are below .72, both ways."""
    lengths = []
    for way in (text, text[::-1]):
        factors, run = 0.0, []
        for token in way:
            run.append(token)
            if len({*run}) / len(run) < 0.72:
                factors, run = factors + 1, []
        factors += (1 - len({*run}) / len(run)) / 0.28 if run else 0
        lengths.append(len(text) / factors)
    return sum(lengths) / 2


def alike(a, b):
    return 1 - edit_distance(a, b) / len(a)


def repeated(a, b, n=2):
    return np.log1p(len({*grams(a, n)} & {*grams(b, n)}))


def classes(texts, q):
    found = Counter()
    for text, share in zip(texts, q, strict=True):
        found[tuple(sorted(text))] += share
    return found


def of_classes(texts, found):
    return np.log([found[tuple(sorted(text))] for text in texts])


def density(texts, q):
    """Vendi's density matrix, with the kernel's eigenvectors as features."""
    sizes, vectors = np.linalg.eigh(cosines(texts))
    features = vectors * np.sqrt(np.maximum(sizes, 0))
    return (features.T * q) @ features, features


def vendi_quality(texts, p):
    rho, features = density(texts, p)
    sizes, vectors = np.linalg.eigh(rho)
    kept = sizes > 1e-12
    return (features @ vectors[:, kept]) ** 2 @ np.log(sizes[kept])


def entropy(shares):
    shares = np.array([x for x in shares if x > 0])
    return -float(shares @ np.log(shares))


def distinct(texts, q, n, number=10):
    """Different n-grams in the draws over all n-grams there."""
    places = number * (len(texts[0]) - n + 1)
    every = {gram for text in texts for gram in grams(text, n)}
    having = {g: sum(s for t, s in zip(texts, q) if g in grams(t, n)) for g in every}
    return sum(1 - (1 - share) ** number for share in having.values()) / places


# By names of the catalogue: of the texts, their shares, an order and references.
QUALITIES = {
    "LL": lambda texts, p, n, r: np.log(p),
    "CR": lambda texts, p, n, r: p,
    "CR-n": lambda texts, p, n, r: coverage(texts, pooled(texts, p, n), n),
    "BLEU-n": expected_bleu,
    "exact match": lambda texts, p, n, r: 1 - (1 - p) ** r,
    "Markov-0 LL": lambda texts, p, n, r: markov(texts, p, 0),
    "Markov-1 LL": lambda texts, p, n, r: markov(texts, p, 1),
    "class LL": lambda texts, p, n, r: of_classes(texts, classes(texts, p)),
    "Vendi's quality": lambda texts, p, n, r: vendi_quality(texts, p),
    "squared similarity": lambda texts, p, n, r: cosines(texts) ** 2 @ p,
    "ROUGE-L": lambda texts, p, n, r: by_pairs(texts, rouge) @ p,
    "edit similarity": lambda texts, p, n, r: by_pairs(texts, alike) @ p,
}
# Scores of a text beside one reference, of one length: words of one letter.
BESIDE = {
    "ROUGE": rouge,
    "METEOR": meteor,
    "chrF": lambda a, b: np.mean([common(a, b, n) for n in range(1, len(a) + 1)]),
    "CIDEr": cider,
    "F1": common,
    "BERTScore": bert_score,
    "COMET": lambda a, b: -np.linalg.norm(embedded(a).mean(0) - embedded(b).mean(0)),
}
QUALITIES |= {
    name: lambda texts, p, n, r, score=score: by_pairs(texts, score) @ p
    for name, score in BESIDE.items()
}
SIMILARITIES = {
    "Div_pair": cosines,
    "Vendi of order 2": lambda texts: cosines(texts) ** 2,
    "pairwise ROUGE-L": lambda texts: by_pairs(texts, rouge),
    "pairwise edit distance": lambda texts: by_pairs(texts, alike),
    "self-repetition": lambda texts: by_pairs(texts, repeated),
    "compression ratio": lambda texts: by_pairs(
        texts, lambda a, b: compressed(a + b, 1 + max(max(texts)))
    ),
}
DIVERSITIES = {
    "SE": lambda texts, q, n, r: entropy(q),
    "NRR": lambda texts, q, n, r: -float(q @ q),
    "NRR-n": lambda texts, q, n, r: -sum(x**2 for x in pooled(texts, q, n).values()),
    "Distinct-n": lambda texts, q, n, r: distinct(texts, q, n),
    "n-gram diversity": lambda texts, q, n, r: sum(
        distinct(texts, q, n) for n in (1, 2, 3)
    ),
    "Self-BLEU-n": lambda texts, q, n, r: -float(expected_bleu(texts, q, n, r) @ q),
    "2-gram entropy": lambda texts, q, n, r: entropy(pooled(texts, q, 2).values()),
    "MTLD": lambda texts, q, n, r: np.dot([mtld(t) for t in texts], q),
    "distinct_10": lambda texts, q, n, r: float(sum(1 - (1 - q) ** 10)),
    "semantic entropy": lambda texts, q, n, r: entropy(classes(texts, q).values()),
    "Vendi": lambda texts, q, n, r: entropy(np.linalg.eigvalsh(density(texts, q)[0])),
}


def found_by(table, name, references, texts, shares):
    stem, order = (name, 0) if name in table else (f"{name[:-1]}n", int(name[-1]))
    numbers = order, int(references or 0)
    return table[stem](texts, np.asarray(shares), *numbers)


def quality(name, references, texts, p):
    """Scores of the texts by a name of the catalogue."""
    return found_by(QUALITIES, name, references, texts, p)


def diversity(name, references, texts, q):
    """The diversity of a model by a name of the catalogue."""
    if name in SIMILARITIES:
        return -float(q @ SIMILARITIES[name](texts) @ q)
    return found_by(DIVERSITIES, name, references, texts, q)
