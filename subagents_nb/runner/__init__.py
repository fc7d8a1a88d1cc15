"""The child process of one run: it carries out one frozen plan.

In: one plan, in its run directory.
Out: status, events and a result in that directory.
Never: decides what is allowed: the plan says it.
"""
