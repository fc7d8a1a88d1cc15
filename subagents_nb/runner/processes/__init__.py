"""What the runner starts: children, hooks, notices, threads; and its own output."""
