"""A run while it lives and when it has ended: its documents, its states, what may be asked of it."""
