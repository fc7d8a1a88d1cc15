"""What the runs of one tree leave each other: asks for children, usage, and how the supervisor is told."""
