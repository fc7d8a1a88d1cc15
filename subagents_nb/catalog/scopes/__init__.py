"""Agents beyond the folders of person and project: those of installed packages, and what settings say of any."""
