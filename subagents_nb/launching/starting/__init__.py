"""A planned run started or resumed, or one that stands in for it found."""
