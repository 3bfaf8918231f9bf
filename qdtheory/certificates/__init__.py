"""Intervals that hold QDisc whatever the search found."""
