"""Processes that runs start: the system's table of them, and what is noted for whoever clears up."""
