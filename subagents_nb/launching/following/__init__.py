"""Runs followed from their files: who watches, who waits, who hears of it."""
