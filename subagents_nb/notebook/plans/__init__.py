"""Plans as cards, before anything is launched."""
