"""The files of a run: those that steps read and write, worktrees, artifacts."""
