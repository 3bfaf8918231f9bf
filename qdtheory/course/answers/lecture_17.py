"""Lecture 17."""

from qdtheory.bounds.duality import dual_bound as dual_bound
