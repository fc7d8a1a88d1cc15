"""A package, so that fixtures can be its own: they end with its last test."""
