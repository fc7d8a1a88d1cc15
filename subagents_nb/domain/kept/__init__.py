"""What becomes of old runs: which may be deleted, what may be in an archive."""
