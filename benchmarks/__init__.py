"""The budgets, measured. Run with `make bench`; figures are printed and written to RESULTS.md, never asserted."""
