"""Functions of distributions: divergences, n-gram metrics, expected BLEU."""
