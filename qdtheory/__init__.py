"""Exact quality-diversity theory for text generators."""
