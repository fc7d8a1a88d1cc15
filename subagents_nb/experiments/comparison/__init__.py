"""Runs beside one another: groups, means with intervals, differences, charts."""
