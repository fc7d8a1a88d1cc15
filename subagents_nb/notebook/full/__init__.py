"""A run in full: what it was for, what it may use, and everything it did, read from its files by pages.

Enters: a run, and for a chain one of its steps. Leaves: a view that is opened in place, below a row of a board, a live
view, a card or a step. Never: more of a file than a page of it, or anything that a saved notebook keeps.
"""
