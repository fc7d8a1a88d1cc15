"""The board: many runs at once, live, grouped by what they need.

Enters: which runs to list. Leaves: a plain table in the notebook, and before it, where a page can show one, a live
board that answers, stops and steers. Never: a state of its own; the files of the runs say everything.
"""
