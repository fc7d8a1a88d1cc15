"""A run that delegates: its children asked for, watched and ended with it; its own place given back meanwhile."""
