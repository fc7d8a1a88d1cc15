"""What a run may do: one value that can only narrow, and the decision on each tool call."""
