"""Comparisons and sweeps on the page."""
