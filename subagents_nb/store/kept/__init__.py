"""What becomes of old runs: archives, the trash, deletion."""
