"""Static cards: a run, its chain, its end, as HTML and as text."""
