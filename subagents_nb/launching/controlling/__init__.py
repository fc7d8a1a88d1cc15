"""What may be asked of a run that exists, and of each of its steps."""
