"""Scores: runs judged by functions of the person's, and which function that was."""
