"""What people can ask for, in a cell and in a terminal alike: one table, from which both front ends are made.

A row goes in; a magic, a subcommand, their help, completion and `docs/verbs.md` come out. Nothing here imports IPython,
and nothing heavy is imported before a verb is used.
"""
