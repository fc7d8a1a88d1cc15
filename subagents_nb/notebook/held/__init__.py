"""Widgets that other people's layouts hold: a run, a board, a sweep in HBox, Tab and Output; and what marimo shows."""
