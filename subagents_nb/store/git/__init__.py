"""Git: the one caller, worktrees, what was changed in them as a patch."""
