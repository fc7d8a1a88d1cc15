"""Untrusted text made fit to be shown or exported: as Markdown, as a notebook, without secrets."""
