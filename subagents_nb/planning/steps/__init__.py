"""One step of a plan, resolved: its prompt, its files, its worktree, its schema."""
