"""Values and decisions: plans, records, states, and what follows from them.

In: plain values; the time, ids and contents of files too arrive as arguments.
Out: frozen values, and decisions as functions of them.
Never: touches a clock, a file, a process or chance.
"""
