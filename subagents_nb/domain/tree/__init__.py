"""Runs that start runs: what is asked, the plan of a child, and the tree as its root shows it."""
