"""What the functions say of an example that is refused."""

import pytest

from qdtheory.course.answers import is_compatible
from qdtheory.course.grading import Fault


@pytest.mark.parametrize(
    ("f", "said"), [("5", "undecided: All models"), ("log(x)", "incompatible: g'")]
)
def test_a_pair_that_is_not_shown_compatible_is_told_as_its_verdict(f, said):
    with pytest.raises(Fault, match=said):
        is_compatible(f, "-x**2")
