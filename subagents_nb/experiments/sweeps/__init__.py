"""Sweeps: one request over a grid of parameters, a run for each combination."""
