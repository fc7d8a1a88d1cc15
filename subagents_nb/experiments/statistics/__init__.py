"""How sure a mean or a difference is: intervals, tests, and how many cases it takes. Pure arithmetic."""
