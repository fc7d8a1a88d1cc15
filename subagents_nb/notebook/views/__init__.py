"""Live views: what is shown of a run while it moves, and what the page asks of it."""
