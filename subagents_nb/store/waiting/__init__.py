"""How many runs may be live, who waits for a place, and which run an output file belongs to."""
