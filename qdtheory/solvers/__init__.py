"""Optimisation over the simplex, with arrays in and arrays out."""
