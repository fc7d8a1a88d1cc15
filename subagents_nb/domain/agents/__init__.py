"""Agents, models and settings, once they were read; which variables and files an agent may see."""
