"""Compression: repeated texts, and a method that there is not."""

import numpy as np
import pytest
from lab.corpora import compression_ratio
from refusals import refused


@pytest.mark.claim("N25.19")
def test_repeated_texts_compress_better():
    rng = np.random.default_rng(0)
    varied = [" ".join(map(str, rng.integers(0, 50, 8))) for _ in range(200)]
    for method in ("lz78", "gzip"):
        once = compression_ratio(varied, method)
        again = compression_ratio(varied[:20] * 10, method)
        assert again > 1.3 * once


def test_another_method_is_refused(as_a_user):
    refused(('"lz78" or "gzip"', compression_ratio, ["a b"], "zip"))
