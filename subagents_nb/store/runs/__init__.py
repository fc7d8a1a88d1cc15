"""The directory of a run: where each document lies, who writes it, how it is read."""
