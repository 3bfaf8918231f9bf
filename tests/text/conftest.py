"""A report on two samples, for the tests of what computes it and what shows it."""

import pytest
from models import MODEL, REAL

from qdtheory.text import evaluate


@pytest.fixture(scope="package")
def found():
    return evaluate({"model": MODEL, "half": MODEL[:30]}, REAL, max_order=2)
