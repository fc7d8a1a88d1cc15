"""The version, in a file that nothing else is in, so that every room may read it."""

__version__ = "0.1.0"
